"""From which checkpoint to restart: the newest one that the trouble has not touched yet."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stabtree.diagnosis.result import Finding, Restart
from stabtree.facts.checkpoints import ASSUMED
from stabtree.tree.model import Severity, Take

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.facts.checkpoints import Checkpoints

HALF = 0.5  # of a rise: a checkpoint from before that is better than none


def advise(
    known: Checkpoints, onset_step: int, last_good_step: int | None, *, storm: bool, take: Take = Take.BEFORE
) -> Restart | None:
    """The checkpoint that a leaf asks for; None where no restart is of use, since the run got over it.

    Args:
        known: where the run's checkpoints are.
        onset_step: the first step of the trouble.
        last_good_step: the last logged step before it; found in the loss when not given.
        storm: whether the loss went NaN. Then a checkpoint from the last `fresh_steps` steps up to the last good
            one is passed over, as long as there is an older one.
        take: which checkpoint that is.
    """
    if take is Take.BEST:
        return _best(known, onset_step)
    if take is Take.UNLESS_OVER and known.is_over(onset_step - 1 if last_good_step is None else last_good_step):
        return None
    trouble, good, late = onset_step, last_good_step, onset_step
    # A rise begins at the lowest level of the loss, which is sound itself.
    if good == onset_step and (risen := known.risen(onset_step, known.risen_share)) is not None:
        late = known.risen(onset_step, HALF) or risen
        trouble, good = (risen, None) if take is Take.TURN else (trouble, good)
    before = known.step_before(trouble)
    good = before if good is None else good
    if take is Take.NEWEST:
        good = known.last_finite if storm else known.last_step
    if nothing := _nothing(known, good, take):
        return _made(known, None, trouble, nothing=nothing)
    good = good or 0
    newest = known.newest(good)
    if newest is None and (take is Take.LOW or good == before):
        trouble = max(trouble, late)
        # Between the best and the trouble a run may have lost most of it already.
        fading = late == onset_step and good != before
        newest = _between(known, good, (good + trouble) // 2 + 1 if fading else trouble)
    elif take not in (Take.NEWEST, Take.LOW) and newest != known.newest(trouble - 1):
        trouble = known.step_after(good) or trouble
    older = known.newest(good - known.fresh_steps) if storm else newest
    chosen = newest if older is None else older
    told = take if take is Take.NEWEST else Take.BEFORE
    return _made(known, chosen, trouble, take=told, fresh_step=newest if newest != older else None)


def _nothing(known: Checkpoints, good: int | None, take: Take) -> str:
    """Why the log has nothing to go back to; empty where it may have."""
    if known.loss is not None and good is None:
        return "the run is broken from its first row"
    if good is not None and take is Take.LOW and known.untrained(good):
        return "at its best the model was not trained yet"
    return ""


def _between(known: Checkpoints, good: int, trouble: int) -> int | None:
    """The oldest checkpoint after the last good step, if it was written before the trouble showed."""
    later = known.oldest(good)
    return later if later is not None and later < trouble else None


def _best(known: Checkpoints, best_step: int) -> Restart:
    """The checkpoint that is nearest to where the run was at its best; none where most of that is lost in it."""
    chosen = known.best(best_step)
    if chosen is not None and (useless := known.useless(chosen, best_step)):
        return _made(known, None, best_step, take=Take.BEST, useless=useless)
    return _made(known, chosen, best_step, take=Take.BEST)


def _made(known: Checkpoints, chosen: int | None, trouble: int, *, take: Take = Take.BEFORE, **more: Any) -> Restart:
    """The advice to take a checkpoint, with all that is known of it."""
    lost = take is not Take.BEST
    return Restart(
        checkpoint_step=chosen,
        told=known.told,
        every=known.every,
        lost_steps=(known.last_step or trouble) - (chosen or 0) if lost else 0,
        path=known.paths.get(min(known.paths, default=0) if chosen is None else chosen, ""),
        before_step=trouble,
        lost_hours=known.hours_since(chosen or 0) if lost else None,
        take=take,
        listed=None if known.told in ASSUMED else known.steps,
        by_epoch=known.by_epoch,
        epoch=known.epochs.get(chosen or 0),
        line=known.lines.get(chosen or 0),
        **more,
    )


def before_all_trouble(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, none with a checkpoint that lies inside the trouble of an earlier critical one."""
    restarts = [
        f.restart for f in findings if f.leaf.severity is Severity.CRITICAL and f.onset_step is not None and f.restart
    ]
    moved: list[Finding] = []
    for finding in findings:
        own = finding.restart
        earlier = [
            restart
            for restart in restarts
            if own is not None
            and restart is not own
            # A checkpoint from after the onset may lie inside what came later.
            and (own.take is Take.NEWEST or restart.before_step < max(own.before_step, (own.checkpoint_step or 0) + 1))
        ]
        if own is not None and earlier:
            first = min([own, *earlier], key=lambda restart: restart.checkpoint_step or 0)
            moved.append(replace(finding, restart=first))
        else:
            moved.append(finding)
    return moved
