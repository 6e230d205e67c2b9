"""Where the run's checkpoints are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree._lazy import np
from stabtree.facts.registry import Count, fact, finite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.run import Run, Series

HOUR = 3600.0


class Checkpoints(NamedTuple):
    """Where checkpoints are, and which of them are too fresh.

    Attributes:
        listed: their steps, None where nobody lists them.
        paths: those that were seen, by step.
        every: steps between two of them; `assumed` when nothing says so.
        fresh_steps: a checkpoint from so few steps before the loss goes NaN holds the state that was about to break it.
        loss: the loss, in which the last step before some other is looked up.
        last_step: the last step of the log.
        clock: wall-clock time in seconds, where it was logged.
        by_epoch: whether the log counts epochs.
    """

    listed: tuple[int, ...] | None
    paths: Mapping[int, str]
    every: int
    assumed: bool
    fresh_steps: int
    loss: Series | None
    last_step: int | None
    clock: Series | None
    by_epoch: bool

    def newest(self, limit: int) -> int | None:
        """The newest checkpoint up to a step, None when there is none; step 0 is the beginning, not a checkpoint."""
        known = [limit // self.every * self.every] if self.listed is None else [s for s in self.listed if s <= limit]
        return max((step for step in known if step > 0), default=None)

    def before(self, onset_step: int, last_good_step: int | None) -> int | None:
        """The newest checkpoint from before some trouble, None when there is none."""
        good = last_good_step if last_good_step is not None else self.step_before(onset_step)
        return None if good is None else self.newest(good)

    def nearest(self, step: int) -> int | None:
        """The newest checkpoint up to a step; the oldest one after it where there is none."""
        later = [listed for listed in self.listed or () if listed > step]
        return self.newest(step) or min(later, default=None)

    def step_before(self, step: int) -> int | None:
        """The last step of the loss before some other."""
        before = self.loss.steps[self.loss.steps < step] if self.loss is not None else None
        return int(before[-1]) if before is not None and len(before) else None

    @property
    def last_finite(self) -> int | None:
        """The last step of the loss before it is first not finite; None where its first value is not."""
        if self.loss is None or not len(self.loss):
            return None
        broken = np.flatnonzero(~np.isfinite(self.loss.values))
        end = int(broken[0]) if len(broken) else len(self.loss)
        return int(self.loss.steps[end - 1]) if end else None

    def hours_since(self, step: int) -> float | None:
        """The hours that were spent after a step, pauses in which the clock began anew left out; None without a clock.

        Rows of the same time, or a clock that never moves, tell nothing.
        """
        if self.clock is None:
            return None
        steps, seconds = finite(self.clock)
        passed = np.diff(seconds)[steps[1:] > step]
        spent = float(passed[passed > 0].sum())
        return spent / HOUR if spent > 0 else None


@fact()
def checkpoints(
    run: Run,
    loss: Series | None = None,
    wall_time: Series | None = None,
    *,
    assumed_every_steps: Count,
    fresh_steps: int,
) -> Checkpoints:
    """Where checkpoints lie, else where the configuration says so, else every `assumed_every_steps` (the document's).

    Of a log of epochs one is assumed after each. A trainer that keeps a few only has deleted the older ones.
    """
    period, listed = run.setting("checkpoint_every"), run.setting("checkpoints")
    every = period if isinstance(period, int) and period >= 1 and not run.by_epoch else None
    steps = listed if isinstance(listed, tuple) else None
    if steps is None:
        steps = _kept(run, every)
    return Checkpoints(
        listed=steps,
        paths=run.checkpoints,
        every=every or (1 if run.by_epoch else assumed_every_steps),
        assumed=every is None and steps is None,
        fresh_steps=min(fresh_steps, 1) if run.by_epoch else fresh_steps,
        loss=loss,
        last_step=run.last_step,
        clock=wall_time,
        by_epoch=run.by_epoch,
    )


def _kept(run: Run, every: int | None) -> tuple[int, ...] | None:
    """The steps of the checkpoints that the trainer was told to keep; None where all are, or nobody knows."""
    if run.setting("save_strategy") in ("no", "none"):
        return ()
    most = run.setting("save_total_limit")
    if every is None or not isinstance(most, int) or run.last_step is None:
        return None
    return tuple(range(every, run.last_step + 1, every))[-most:]
