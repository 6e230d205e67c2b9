"""From which checkpoint to restart: the newest one that the trouble has not touched yet."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

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
    """Return the checkpoint that a leaf asks for; None if no restart is of use, since the run recovered.

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
    found = _last_good(known, onset_step, last_good_step, storm=storm, take=take)
    nothing = _why_nothing(known, found, take)
    if nothing:
        return replace(_restart(known, None, onset_step), nothing=nothing)
    good = found or 0
    newest, trouble = _newest_sound(known, onset_step, good, take)
    if newest is None and known.begins_by(onset_step):
        return replace(_restart(known, None, trouble), nothing=FROM_THE_START)
    if not storm:
        return _restart(known, newest, trouble, take)
    return _restart_before_storm(known, newest, good, trouble, take)


def _restart_before_storm(known: Checkpoints, newest: int | None, good: int, trouble: int, take: Take) -> Restart:
    """Return the newest checkpoint that is not too fresh, as long as there is one."""
    older = known.newest(good - known.fresh_steps)
    if older == newest:
        return _restart(known, newest, trouble, take)
    return replace(_restart(known, newest if older is None else older, trouble, take), fresh_step=newest)


def _last_good(
    known: Checkpoints, onset_step: int, last_good_step: int | None, *, storm: bool, take: Take
) -> int | None:
    """Return the last step at which the run was sound; None if the log has none."""
    good = last_good_step
    if take is Take.NEWEST:
        good = known.last_finite if storm else known.last_step
    elif good is None or good == onset_step:  # a rise begins at the lowest level of the loss, which is sound itself
        good = known.step_before(onset_step)
    return known.begins_late if good is None else good


def _why_nothing(known: Checkpoints, good: int | None, take: Take) -> str:
    """Return why the log has nothing to go back to; empty if it may have."""
    if known.loss is not None and good is None:
        if known.last_finite is None:
            return "the run is broken from its first row"
        return FROM_THE_START
    if good is not None and take is Take.LOW and known.untrained(good):
        return "at its best the model was not trained yet"
    return ""


def _newest_sound(known: Checkpoints, onset_step: int, good: int, take: Take) -> tuple[int | None, int]:
    """Return the newest checkpoint that is sound, None without one, and the step that it must be older than."""
    newest = known.newest(good)
    at_onset = good == known.step_before(onset_step)
    if newest is None and (take is Take.LOW or at_onset):
        # Between the best and the trouble a run may have lost most of it already.
        end = onset_step if at_onset else (good + onset_step) // 2 + 1
        later = known.oldest(good)
        return later if later is not None and later < end else None, onset_step
    if take not in (Take.NEWEST, Take.LOW) and newest != known.newest(onset_step - 1):
        return newest, known.step_after(good) or onset_step
    return newest, onset_step


def _best(known: Checkpoints, best_step: int) -> Restart:
    """Return the checkpoint nearest to where the run was at its best; none if most of that is lost in it."""
    chosen = known.best(best_step)
    useless = known.useless(chosen, best_step) if chosen is not None else None
    if useless is not None:
        chosen = None
    return replace(_restart(known, chosen, best_step, Take.BEST), useless=useless)


def _restart(known: Checkpoints, chosen: int | None, trouble: int, take: Take = Take.BEFORE) -> Restart:
    """Return the advice to take a checkpoint, with all that is known of it."""
    lost_steps, lost_hours = 0, None
    if take is not Take.BEST:
        lost_steps = (known.last_step or trouble) - (chosen or 0)
        lost_hours = known.hours_since(chosen or 0)
    return Restart(
        checkpoint_step=chosen,
        source=known.source,
        every=known.every,
        lost_steps=lost_steps,
        path=known.paths.get(min(known.paths, default=0) if chosen is None else chosen, ""),
        before_step=trouble,
        lost_hours=lost_hours,
        take=take if take in (Take.BEST, Take.NEWEST) else Take.BEFORE,
        listed=None if known.source in ASSUMED else known.steps,
        unit=known.unit,
        epoch=known.epochs.get(chosen or 0),
        line=known.lines.get(chosen or 0),
    )


def before_all_trouble(findings: Sequence[Finding], known: Checkpoints) -> list[Finding]:
    """Replace each restart from inside the trouble of an earlier finding by one from before it.

    That finding is a critical one, or one of the same kind of event that the loss had not recovered from.
    """
    return [_before_its_beginning(finding, findings, known) for finding in _before_critical(findings)]


def _before_its_beginning(finding: Finding, findings: Sequence[Finding], known: Checkpoints) -> Finding:
    own = finding.restart
    if own is None or own.nothing or own.take in (Take.BEST, Take.NEWEST):
        return finding
    open_ = [step for step in _onsets_of_kind(finding, findings) if _is_open(step, own, known)]
    if not open_:
        return finding
    first = min(open_)
    restart = advise(known, first, None, storm=False)
    if restart is not None and restart.nothing == FROM_THE_START:
        restart = replace(restart, nothing=f"the loss is up from step {first:,} on")
    return replace(finding, restart=restart)


def _onsets_of_kind(finding: Finding, findings: Sequence[Finding]) -> list[int]:
    """Return the onsets of all that is no note and shares a kind of event with a finding."""
    kinds = {kind for part in finding.parts for kind in part.leaf.events}
    onsets = []
    for part in (part for other in findings for part in other.parts):
        is_note = part.leaf.severity.rank < Severity.WARNING.rank
        if part.onset_step is not None and not is_note and kinds.intersection(part.leaf.events):
            onsets.append(part.onset_step)
    return onsets


def _is_open(onset_step: int, restart: Restart, known: Checkpoints) -> bool:
    """Return whether trouble that began earlier was not over where a restart goes back to."""
    return onset_step < restart.before_step and not known.is_back(onset_step, restart.before_step)


def _before_critical(findings: Sequence[Finding]) -> list[Finding]:
    critical = [
        finding.restart
        for finding in findings
        if finding.leaf.severity is Severity.CRITICAL and finding.onset_step is not None and finding.restart
    ]
    return [replace(finding, restart=_oldest(finding.restart, critical)) for finding in findings]


def _oldest(own: Restart | None, critical: Sequence[Restart]) -> Restart | None:
    """Return the restart with the oldest checkpoint: the own one, or one from before earlier critical trouble."""
    if own is None:
        return None
    # A checkpoint from after the onset may be inside what came later.
    end = max(own.before_step, (own.checkpoint_step or 0) + 1)
    earlier = [other for other in critical if own.take is Take.NEWEST or other.before_step < end]
    return min([own, *earlier], key=lambda restart: restart.checkpoint_step or 0)
