"""Where the run's checkpoints are."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from stabtree.common.lazy import np
from stabtree.common.passes import broken_rows, rows_before, rows_upto
from stabtree.common.shared import FACTOR_SMALL, SHARE_SOME
from stabtree.common.stats import change_noise, median, medians_of_three, running_medians
from stabtree.measures.movers import last_finite_before
from stabtree.measures.registry import finite, measure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.common.lazy import Floats, Ints
    from stabtree.context.model import Context
    from stabtree.run import Run, Series

FRESH_STEPS = 10
HOUR = 3600.0  # no limit
MIN_LEVEL_ROWS, MAX_LEVEL_ROWS = 3, 15  # no limit: the rows of a level: a twentieth of all, within these


class CheckpointSource(StrEnum):
    """Where the steps of the checkpoints were found."""

    LISTED = "listed"  # a folder, or a list of their steps
    LOGGED = "logged"  # the log reports each save
    CONFIGURED = "configured"
    UNKNOWN = "unknown"  # nothing says where they are


class Checkpoints(Struct, frozen=True):
    """Where checkpoints are, and which of them are too recent to trust."""

    run: Run  # the run; it knows the paths, the epochs that ended and the lines that say what was saved, by step
    source: CheckpointSource  # where they were found
    # Their steps; None where they come at even distances without an end, or are not known.
    steps: tuple[int, ...] | None
    every: int  # steps between two of them; 0 where they are not known
    loss: Series | None  # the loss, in which the last step before some other is looked up
    eval_loss: Series | None  # the eval loss, which shows how good a checkpoint is
    outcome: Series | None  # the series that says how well the run does; None where only the training loss does
    higher_is_better: bool  # in which direction
    last_step: int | None  # the last step of the log

    @property
    def fresh_steps(self) -> int:
        """From so few steps before the loss goes NaN a checkpoint has the state that was about to break it."""
        return 1 if self.run.by_epoch else FRESH_STEPS

    @property
    def steps_unknown(self) -> bool:
        """Whether nothing says where they are: any step may have one."""
        return self.source is CheckpointSource.UNKNOWN

    def newest(self, limit: int) -> int | None:
        """Return the newest checkpoint up to a step, None when there is none, as before step 1 or the first epoch."""
        every = max(self.every, 1)
        known = [limit // every * every] if self.steps is None else [s for s in self.steps if s <= limit]
        whole = self.run.by_epoch and self.run.excerpt_from is None
        first = int(self.loss.steps[0]) if whole and self.loss is not None and len(self.loss) else 1
        return max((step for step in known if step >= first), default=None)

    def oldest(self, after: int) -> int | None:
        """Return the oldest checkpoint after a step that the run reached."""
        every = max(self.every, 1)
        known = [(after // every + 1) * every] if self.steps is None else [s for s in self.steps if s > after]
        end = self.last_step if self.last_step is not None and self.steps is None else None
        return min((step for step in known if end is None or step <= end), default=None)

    def best(self, step: int) -> int | None:
        """Return whichever checkpoint next to a step has the lower eval loss, else the older one."""
        sides = [side for side in (self.newest(step), self.oldest(step)) if side is not None]
        return min(sides, key=lambda side: self.eval_at(side) or 0.0, default=None)

    def eval_at(self, step: int) -> float | None:
        """Return the eval loss at a step, interpolated between two evaluations."""
        if self.eval_loss is None:
            return None
        steps, values = finite(self.eval_loss)
        return float(np.interp(step, steps, values)) if len(steps) else None

    def useless(self, step: int, best_step: int) -> tuple[int, float, float] | None:
        """Return step, eval loss and best where a checkpoint has lost half of all gained, and more than the scatter."""
        here, best, first = self.eval_at(step), self.eval_at(best_step), self.eval_at(0)
        if self.eval_loss is None or here is None or best is None or first is None:
            return None
        scatter = median(np.abs(np.diff(finite(self.eval_loss)[1])))
        return (step, here, best) if here - best > max((first - best) / 2, scatter) else None

    def step_after(self, step: int) -> int | None:
        """Return the first step of the loss after a given one."""
        after = self.loss.steps[self.loss.steps > step] if self.loss is not None else None
        return int(after[0]) if after is not None and len(after) else None

    def step_before(self, step: int) -> int | None:
        """Return the last step of the loss before a given one."""
        before = self.loss.steps[self.loss.steps < step] if self.loss is not None else None
        return int(before[-1]) if before is not None and len(before) else None

    def is_over(self, good: int) -> bool:
        """Return whether the loss ends no higher than it was up to a step."""
        found = self._levels(good)
        if self.loss is None or found is None or not np.isfinite(self.loss.values[-1]):
            return False
        steps, values, rows = found
        before, after = values[: rows_upto(steps, good)][-rows:], values[rows_upto(steps, good) :]
        return len(before) > 0 and len(after) >= rows and median(after[-rows:]) <= median(before)

    def is_back(self, since: int, by: int) -> bool:
        """Return whether a twentieth of the loss between two steps is no higher than the last twentieth before them.

        Nothing is known to be up without a loss; a loss that begins there must come down to its first row.
        """
        found = self._levels(since)
        if found is None:
            return True
        steps, values, _ = found
        rows = max(MIN_LEVEL_ROWS, len(values) // 20)
        between = values[rows_before(steps, since) : rows_before(steps, by)]
        if len(between) < rows:
            return False
        before = values[: rows_before(steps, since)][-rows:] if steps[0] < since else values[:1]
        levels = running_medians(between, rows)
        return bool(levels.min() <= median(before))

    def ends_at_best(self, onset_step: int) -> bool:
        """Return whether the outcome of the last rows is the best since a step, but for its scatter."""
        if self.outcome is None:
            return False
        values = self._smooth_outcome()
        return bool(values[-1] >= values[finite(self.outcome)[0] > onset_step].max() - change_noise(values))

    def _smooth_outcome(self) -> Floats:
        """Return the medians of three rows of the outcome, higher for better."""
        values = finite(self.outcome)[1] if self.outcome is not None else np.empty(0)
        return medians_of_three(values if self.higher_is_better else -values)

    def better_after(self, onset_step: int, good: int, until: int | None = None) -> int | None:
        """Return the step of the best outcome after a trouble, if it is better than what the run had before it.

        Single rows may be lucky: the medians of three are compared, and a difference inside their scatter is none.
        `good` is the last step before the trouble, `until` the one at which the weights broke for good.
        """
        if self.outcome is None:
            return None
        steps, values = finite(self.outcome)
        before, after = steps <= good, steps > onset_step
        if until is not None:
            after &= steps < until
        if not before.any() or after.sum() < MIN_LEVEL_ROWS:
            return None
        smooth = self._smooth_outcome()
        best = int(np.argmax(np.where(after, smooth, -np.inf)))
        gained = float(smooth[best] - smooth[before].max())
        return int(steps[best]) if gained > change_noise(values) else None

    @property
    def begins_late(self) -> int | None:
        """The step up to which older checkpoints of an excerpt may be sound; None where the log holds the beginning."""
        first = self.run.excerpt_from
        broken = any(
            not np.isfinite(one.values[:1]).all() for one in (*self.run.series.values(), *self.run.others.values())
        )
        return None if first is None else first - broken

    def begins_by(self, step: int) -> bool:
        """Return whether no more than one level of the loss was logged before a step, and it had not clearly fallen."""
        if self.loss is None:
            return False
        before = self.loss.before(step).values
        fell = len(before) > 1 and before[0] >= FACTOR_SMALL * before[-1] > 0
        return not fell and len(before) <= _level_rows(len(self.loss))

    def _levels(self, step: int) -> tuple[Ints, Floats, int] | None:
        """Return the steps and values of the loss and the rows of a level; None where no row follows the step."""
        if self.loss is None:
            return None
        steps, values = finite(self.loss)
        rows = _level_rows(len(values))
        return (steps, values, rows) if len(steps) and steps[-1] > step else None

    def untrained(self, step: int, until: int | None = None) -> bool:
        """Return whether the model was not trained yet: a step is more than one row before the first loss.

        So it is of one up to a later one where that is no later than the first loss.
        """
        if self.loss is None or len(self.loss) < 2:
            return False
        first = self.loss.steps[0]
        return bool(step < first - median(np.diff(self.loss.steps)) or (until is not None and step < until <= first))

    def learned_nothing(self, step: int) -> bool:
        """Return whether the eval loss is lowest at a step, and hardly below that of the untrained model."""
        best, first = self.eval_at(step), self.eval_at(0)
        if self.eval_loss is None or best is None or first is None or best > float(finite(self.eval_loss)[1].min()):
            return False
        losses = finite(self.loss)[1] if self.loss is not None else np.array([])
        untrained = max(first, float(losses[0])) if len(losses) else first
        return best > (1 - SHARE_SOME) * untrained > 0

    @property
    def ends_broken(self) -> bool:
        """Whether the last row of the loss is not finite."""
        return self.loss is not None and len(self.loss) > 0 and not np.isfinite(self.loss.values[-1])

    @property
    def last_finite(self) -> int | None:
        """The last step of the loss before it is first not finite; None where its first value is not."""
        if self.loss is None or not len(self.loss):
            return None
        broken = broken_rows(self.loss)
        return last_finite_before(self.loss, int(broken[0]) if len(broken) else len(self.loss))

    def hours_since(self, step: int) -> float | None:
        """Return the hours spent after a step, without pauses in which the clock restarted; None without a clock.

        Rows of the same time, or a clock that never moves, are not counted.
        """
        if (clock := self.run.get("wall_time")) is None:
            return None
        steps, seconds = finite(clock)
        passed = np.diff(seconds)[steps[1:] > step]
        spent = float(passed[passed > 0].sum())
        return spent / HOUR if spent > 0 else None


@measure()
def checkpoints(run: Run, context: Context, loss: Series | None = None, eval_loss: Series | None = None) -> Checkpoints:
    """Find where checkpoints are: as listed, logged or configured.

    A trainer that keeps a few only has deleted the older ones.
    """
    outcome, listed, last_step = context.outcome.value, run.setting("checkpoints"), run.last_step
    # What is logged beside the loss may count something else.
    if loss is not None and len(loss) and not any(gap.metric == "loss" and gap.at_end for gap in run.gaps):
        last_step = int(loss.steps[-1])
    source, steps, every = CheckpointSource.UNKNOWN, None, 0
    if isinstance(listed, tuple):
        source, steps, every = CheckpointSource.LISTED, listed, _distance(listed)
    elif run.setting("save_strategy") in ("no", "none"):
        source, steps, every = CheckpointSource.CONFIGURED, (), 1
    elif run.saved:
        source, steps, every = CheckpointSource.LOGGED, _kept(run, run.saved), _distance(run.saved)
    elif (configured := _configured(run, eval_loss)) is not None:
        source, (steps, every) = CheckpointSource.CONFIGURED, configured
    return Checkpoints(
        run=run,
        source=source,
        steps=steps,
        every=every,
        loss=loss,
        eval_loss=eval_loss,
        outcome=None if outcome in (None, "loss") else run.find(outcome),
        higher_is_better=context.better == "higher",
        last_step=last_step,
    )


def _level_rows(count: int) -> int:
    return max(MIN_LEVEL_ROWS, min(MAX_LEVEL_ROWS, count // 20))


def _configured(run: Run, eval_loss: Series | None) -> tuple[tuple[int, ...] | None, int] | None:
    """Return the steps of the checkpoints that the configuration asks for, and how far apart they are."""
    period = run.setting("checkpoint_every")
    if run.setting("save_strategy") == "epoch" and run.epoch_ends:
        return _kept(run, run.epoch_ends), _distance(run.epoch_ends)
    if isinstance(period, int) and period >= 1 and not run.by_epoch:
        known = range(period, (run.last_step or 0) + 1, period)
        limited = isinstance(run.setting("save_total_limit"), int)
        return _kept(run, known) if limited else None, period
    always = run.setting("always_save_checkpoint")
    if isinstance(always, bool) and eval_loss is not None:
        steps, values = finite(eval_loss)
        lowest = np.minimum.accumulate(values) if len(values) else values
        rows = zip(steps.tolist(), values, lowest, strict=True)
        saved = [step for step, value, best in rows if always or value <= best]
        return tuple(saved), _distance(saved)
    return None


def _distance(steps: Iterable[int]) -> int:
    """Return the median distance between checkpoints, in steps."""
    known = sorted({0, *steps})
    return max(1, int(median(np.diff(known)))) if len(known) > 1 else 1


def _kept(run: Run, steps: Iterable[int]) -> tuple[int, ...]:
    """Return the checkpoints that the trainer was configured to keep: the newest ones, or all."""
    limit = run.setting("save_total_limit")
    return tuple(sorted(steps))[-limit:] if isinstance(limit, int) else tuple(sorted(steps))
