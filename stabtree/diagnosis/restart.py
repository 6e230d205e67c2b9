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

FROM_THE_START = "the trouble is there from the first rows"


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
    trouble, good = onset_step, last_good_step
    before = known.step_before(trouble)
    if take is Take.NEWEST:
        good = known.last_finite if storm else known.last_step
    elif good is None or good == onset_step:  # a rise begins at the lowest level of the loss, which is sound itself
        good = before
    good = known.begins_late if good is None else good
    if nothing := _nothing(known, good, take):
        return _made(known, None, trouble, nothing=nothing)
    good = good or 0
    newest = known.newest(good)
    if newest is None and (take is Take.LOW or good == before):
        # Between the best and the trouble a run may have lost most of it already.
        newest = _between(known, good, trouble if good == before else (good + trouble) // 2 + 1)
    elif take not in (Take.NEWEST, Take.LOW) and newest != known.newest(trouble - 1):
        trouble = known.step_after(good) or trouble
    if newest is None and known.begins_by(onset_step):
        return _made(known, None, trouble, nothing=FROM_THE_START)
    older = known.newest(good - known.fresh_steps) if storm else newest
    chosen = newest if older is None else older
    told = take if take is Take.NEWEST else Take.BEFORE
    return _made(known, chosen, trouble, take=told, fresh_step=newest if newest != older else None)


def _nothing(known: Checkpoints, good: int | None, take: Take) -> str:
    """Why the log has nothing to go back to; empty where it may have."""
    if known.loss is not None and good is None:
        return "the run is broken from its first row" if known.last_finite is None else FROM_THE_START
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
        unit=known.unit,
        epoch=known.epochs.get(chosen or 0),
        line=known.lines.get(chosen or 0),
        **more,
    )


def before_all_trouble(findings: Sequence[Finding], known: Checkpoints) -> list[Finding]:
    """The findings, none with a checkpoint that lies inside the trouble of an earlier one.

    That is a critical one, or one of the same kind of event that the loss had not come back from.
    """
    return [_before_its_beginning(finding, findings, known) for finding in _before_critical(findings)]


def _before_its_beginning(finding: Finding, findings: Sequence[Finding], known: Checkpoints) -> Finding:
    own = finding.restart
    if own is None or own.nothing or own.take in (Take.BEST, Take.NEWEST):
        return finding
    kinds = {kind for part in finding.parts for kind in part.leaf.events}
    least = Severity.WARNING.rank
    parts = [part for other in findings for part in other.parts if part.leaf.severity.rank >= least]
    told = [part.onset_step for part in parts if kinds.intersection(part.leaf.events)]
    onsets = [step for step in told if step is not None and step < own.before_step]
    first = min((step for step in onsets if not known.is_back(step, own.before_step)), default=None)
    if first is None:
        return finding
    restart = advise(known, first, None, storm=False)
    if restart is not None and restart.nothing == FROM_THE_START:
        restart = replace(restart, nothing=f"the loss is up from step {first:,} on")
    return replace(finding, restart=restart)


def _before_critical(findings: Sequence[Finding]) -> list[Finding]:
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
