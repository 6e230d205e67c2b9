"""From which checkpoint to restart: the newest one that the trouble has not touched yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stabtree.measures.checkpoints import CheckpointSource
from stabtree.tree.model import Take

if TYPE_CHECKING:
    from collections.abc import Collection

    from stabtree.measures.checkpoints import Checkpoints

FROM_THE_START = "the trouble is there from the first rows"
HEALED_BY_OUTCOME = frozenset(("loss", "eval_loss", "grad_norm"))
"""Where these left their level and the outcome then became better than ever, the weights are sound."""
UNTRAINED = "at its best the model was not trained yet"
LEARNED_NOTHING = "no evaluation was clearly better than the untrained model"


class Restart(Struct, frozen=True, repr_omit_defaults=True):
    """Where to restart.

    Attributes:
        checkpoint_step: the checkpoint to restart from; None when there is none, or none is known.
        up_to_step: any checkpoint up to this step will do; for the best one, where the run was at its best.
        source: how it is known where the checkpoints are.
        every: steps between checkpoints; 0 where that is not known.
        lost_steps: steps of the log that are run again.
        fresh_step: the newest checkpoint, if it was written right before a NaN storm: passed over, or the same as
            `checkpoint_step` if no other is older than the trouble.
        path: the path of that checkpoint, without one that of the oldest; empty if it was not seen.
        epoch: the epoch at whose end it was written; None if it was not, or if that is not known.
        line: the line of the log that says that it was saved.
        nothing: why the log has nothing to go back to; empty if it may have.
        useless: if the checkpoint nearest to the best step is of no use: its step, the eval loss there, and the best.
        lost_hours: hours spent on the steps that are run again; None if no time was logged.
        before_step: the first step of the trouble that it must be older than; the best step for the best checkpoint.
        take: what is advised: a checkpoint from before the trouble, the best one, or the newest one.
        listed: the steps of all checkpoints that are known to exist; None without a list of them.
        unit: what all these steps count: `step`, `epoch` or `row`.
        margin_steps: how far `up_to_step` is before the last sound row; 0 where it is that row.
    """

    checkpoint_step: int | None
    source: CheckpointSource
    every: int
    lost_steps: int
    before_step: int
    up_to_step: int | None = None
    fresh_step: int | None = None
    path: str = ""
    lost_hours: float | None = None
    take: Take = Take.BEFORE
    listed: tuple[int, ...] | None = None
    unit: str = "step"
    epoch: int | None = None
    line: int | None = None
    nothing: str = ""
    useless: tuple[int, float, float] | None = None
    margin_steps: int = 0

    @property
    def assumed(self) -> bool:
        """Whether nothing says where the checkpoints are."""
        return self.source is CheckpointSource.UNKNOWN

    @property
    def has_older(self) -> bool:
        """Whether there is a checkpoint to take, or may be one."""
        return self.checkpoint_step is not None or (self.assumed and self.up_to_step is not None)


def seen_by(known: Checkpoints, metric: str, events: Collection[str] = ()) -> Checkpoints:
    """Return the checkpoints as an incident of a series judges them: a critic's is not over because a reward rose.

    Args:
        known: the checkpoints of the run.
        metric: the series that shows the incident.
        events: the kinds of event that its leaf describes.
    """
    healed = metric.partition("/")[0] in HEALED_BY_OUTCOME and "value" not in events
    return known if healed else replace(known, outcome=None)


def advise(
    known: Checkpoints, onset_step: int, last_good_step: int | None, *, storm: bool, take: Take = Take.BEFORE
) -> Restart | None:
    """Return the checkpoint that a leaf asks for; None if no restart is of use, since the run recovered.

    Where the outcome became better after the trouble than it ever was before it, the weights were sound again: the best
    checkpoint is worth more than an older one.

    Args:
        known: the checkpoints of the run.
        onset_step: the first step of the trouble.
        last_good_step: the last logged step before it; found in the loss when None.
        storm: whether the loss went NaN. Then a checkpoint from the last `fresh_steps` steps up to the last good
            one is passed over, as long as there is an older one.
        take: which checkpoint that is.
    """
    if take is Take.BEST:
        return _best(known, onset_step)
    if take is Take.UNLESS_OVER and known.is_over(onset_step - 1 if last_good_step is None else last_good_step):
        return None
    good = _last_good(known, onset_step, last_good_step, storm=storm, take=take)
    if not storm and take is not Take.NEWEST and good is not None:
        better = known.better_after(onset_step, good)
        if better is not None:
            return None if known.ends_at_best(onset_step) else _best(known, better)
    nothing = _why_nothing(known, good, onset_step, take)
    if nothing:
        return _restart(known, None, onset_step, nothing=nothing)
    good = good or 0
    newest, trouble = _newest_sound(known, onset_step, good, take)
    guessed = known.steps_unknown and known.begins_late is None
    if known.begins_by(onset_step) and (newest is None or guessed):
        return _restart(known, None, trouble, nothing=FROM_THE_START)
    if not storm or known.last_finite is None:  # of an excerpt that begins broken no row was sound
        return _restart(known, newest, trouble, take, good)
    return _restart_before_storm(known, newest, good, trouble, take)


def _restart_before_storm(known: Checkpoints, newest: int | None, good: int, trouble: int, take: Take) -> Restart:
    """Return the newest checkpoint that is not too fresh, as long as there is one."""
    limit = good - known.fresh_steps
    if known.run.by_epoch and known.last_finite is not None:  # an epoch is long: trouble that was seen before is apart
        limit = min(good, known.last_finite - known.fresh_steps)
    older = known.newest(limit)
    if older == newest or known.steps_unknown:
        up_to = good if older is None else limit
        return replace(_restart(known, older, trouble, take, up_to), margin_steps=good - up_to)
    if older is None:
        older = newest
    return replace(_restart(known, older, trouble, take, good), fresh_step=newest)


def _last_good(
    known: Checkpoints, onset_step: int, last_good_step: int | None, *, storm: bool, take: Take
) -> int | None:
    """Return the last step at which the run was sound; None if the log has none."""
    good = last_good_step
    if take is Take.NEWEST:
        good = known.last_finite if storm or known.ends_broken else known.last_step
    elif good is None or good == onset_step:  # a turn is sound itself: the row before it surely is
        good = known.step_before(onset_step)
    return known.begins_late if good is None else good


def _why_nothing(known: Checkpoints, good: int | None, onset_step: int, take: Take) -> str:
    """Return why the log has nothing to go back to; empty if it may have."""
    if known.loss is not None and good is None:
        return FROM_THE_START if known.last_finite is not None else "the run is broken from its first row"
    if good is not None and take is Take.LOW and known.untrained(good, onset_step):
        return UNTRAINED
    return ""


def _newest_sound(known: Checkpoints, onset_step: int, good: int, take: Take) -> tuple[int | None, int]:
    """Return the newest checkpoint that is sound, None without one, and the step that it must be older than."""
    newest = known.newest(good)
    if newest is None:
        later = known.oldest(good)
        if good == known.step_before(onset_step) and later is not None and later < onset_step:
            newest = later  # between two rows, of which the second is the first bad one
        return newest, onset_step
    if take is not Take.NEWEST and newest != known.newest(onset_step - 1):
        return newest, known.step_after(good) or onset_step
    return newest, onset_step


def _best(known: Checkpoints, best_step: int) -> Restart:
    """Return the checkpoint nearest to where the run was at its best; none if most of that is lost in it."""
    if not known.run.by_epoch and (best_step <= 0 or known.untrained(best_step)):
        return _restart(known, None, best_step, Take.BEST, nothing=UNTRAINED)
    if known.learned_nothing(best_step):
        return _restart(known, None, best_step, Take.BEST, nothing=LEARNED_NOTHING)
    chosen = known.best(best_step)
    useless = None if chosen is None else known.useless(chosen, best_step)
    if useless is not None:
        chosen = None
    return replace(_restart(known, chosen, best_step, Take.BEST, best_step), useless=useless)


def _restart(
    known: Checkpoints,
    chosen: int | None,
    trouble: int,
    take: Take = Take.BEFORE,
    up_to: int | None = None,
    nothing: str = "",
) -> Restart:
    """Return the advice to take a checkpoint, with all that is known of it."""
    if known.steps_unknown:
        chosen, back = None, up_to or 0
    else:
        back = chosen or 0
    lost_steps, lost_hours = 0, None
    if take is not Take.BEST:
        lost_steps = (known.last_step or trouble) - back
        lost_hours = known.hours_since(back)
    return Restart(
        checkpoint_step=chosen,
        up_to_step=up_to,
        source=known.source,
        every=known.every,
        lost_steps=lost_steps,
        path=known.run.checkpoints.get(min(known.run.checkpoints, default=0) if chosen is None else chosen, ""),
        before_step=trouble,
        lost_hours=lost_hours,
        take=take if take in (Take.BEST, Take.NEWEST) else Take.BEFORE,
        listed=None if known.steps_unknown else known.steps,
        unit=known.run.unit,
        epoch=known.run.epoch_ends.get(chosen or 0),
        line=known.run.saved.get(chosen or 0),
        nothing=nothing,
    )
