"""One event is one finding: merges the findings of several leaves, and takes restarts from before all trouble."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.diagnosis.causes import by_strength
from stabtree.diagnosis.fixes import leaf_fixes, ranked_fixes
from stabtree.diagnosis.restart import FROM_THE_START, advise
from stabtree.diagnosis.timeline import precursors
from stabtree.facts import facts_of
from stabtree.facts.registry import finite
from stabtree.facts.rise import Rise
from stabtree.tree.model import Severity, Take

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.common.answer import Evidence
    from stabtree.diagnosis.fixes import FixFormatter
    from stabtree.diagnosis.restart import Restart
    from stabtree.diagnosis.result import Finding
    from stabtree.facts.checkpoints import Checkpoints
    from stabtree.facts.registry import Facts


class FindingWithContext(NamedTuple):
    """The finding of one walk, with what it takes to merge it with others.

    Attributes:
        finding: the finding.
        storm: whether the loss went NaN.
        by_levels: whether its onset is that of a level and not of a row.
        formatter: fills in its fixes.
        reasons: the evidence that speaks for its own fixes.
    """

    finding: Finding
    storm: bool
    by_levels: bool
    formatter: FixFormatter
    reasons: tuple[Evidence, ...]


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings by severity; equally severe ones keep their order."""
    return sorted(findings, key=lambda finding: -finding.leaf.severity.rank)


def merge_events(found: Iterable[FindingWithContext], facts: Facts) -> list[Finding]:
    """Merge the findings of the same event; return one finding for each event, worst first.

    Findings are of one event if their leaves share a kind of it, and both last to the end of the log, or both begin
    at the same time (within one level of the loss, or with no row between them that could separate them), or both
    name the highest row of the loss.

    Args:
        found: all findings; of equally bad ones the first gives the event its leaf.
        facts: the facts of the run.
    """
    groups: list[list[FindingWithContext]] = []
    for item in sorted(found, key=lambda item: -item.finding.leaf.severity.rank):
        merged: list[FindingWithContext] = []
        apart = []
        for group in groups:
            if not any(_is_one_event(item, other, facts) for other in group):
                apart.append(group)
            elif merged:
                merged += group
            else:
                merged = group
                apart.append(merged)
        merged.append(item)
        groups = apart if len(merged) > 1 else [*apart, merged]
    return [_merge(group, facts) for group in groups]


def _is_one_event(one: FindingWithContext, other: FindingWithContext, facts: Facts) -> bool:
    if not set(one.finding.leaf.events) & set(other.finding.leaf.events):
        return False
    if one.finding.leaf.lasting and other.finding.leaf.lasting:
        return True
    if _holds_peak(one, facts) and _holds_peak(other, facts):
        return True
    return not (one.by_levels or other.by_levels) and _begin_together(one.finding, other.finding, facts)


def _holds_peak(item: FindingWithContext, facts: Facts) -> bool:
    """Return whether the highest row of the loss is what was found, or is part of a rise that no earlier row shows."""
    loss, onset = facts.run.get("loss"), item.finding.onset_step
    if loss is None or onset is None:
        return False
    steps, values = finite(loss)
    peak = int(steps[np.argmax(values)]) if len(steps) else onset - 1
    if item.finding.leaf.lasting and "rise" in item.finding.leaf.events:
        return onset <= peak
    return any(evidence.metric == "loss" and peak in evidence.steps[1:2] for evidence in item.finding.evidence)


def _begin_together(one: Finding, other: Finding, facts: Facts) -> bool:
    """Return whether two onsets are within one level of the loss, or no row of a series that shows them is between."""
    if one.onset_step is None or other.onset_step is None:
        return False
    early, late = sorted((one.onset_step, other.onset_step))
    loss = facts.run.get("loss")
    if loss is not None and late - early <= facts.sure("levels").length(loss):
        return True
    for finding in (one, other):
        series = facts.run.get(finding.metric)
        if series is not None and not ((series.steps > early) & (series.steps < late)).any():
            return True
    return False


def _merge(group: Sequence[FindingWithContext], facts: Facts) -> Finding:
    """Merge the findings of one event: the leaf of the first, the earliest onset, and the evidence of all."""
    if len(group) == 1:
        return group[0].finding
    findings = [item.finding for item in group]
    head, *others = group
    grave = _as_grave(head, others)
    begins = _earliest(group, facts)
    onset, restart = begins.onset_step, _restart(group, begins, facts)
    start = onset if any(item.leaf.restart for item in findings) else None
    causes = by_strength(head.finding.causes, chain.from_iterable(item.finding.causes for item in grave))
    formatter = replace(head.formatter, has_older=restart is None or restart.checkpoint_step is not None)
    more = chain.from_iterable(leaf_fixes(item.finding.leaf, item.reasons, item.formatter) for item in grave)
    return replace(
        head.finding,
        onset_step=onset,
        last_good_step=begins.last_good_step,
        evidence=tuple(dict.fromkeys(chain.from_iterable(item.evidence for item in findings))),
        causes=causes,
        advice=ranked_fixes(head.finding.leaf, causes, head.reasons, formatter, more),
        precursors=precursors(facts, start),
        restart=restart,
        seen_as=tuple(findings),
    )


def _as_grave(head: FindingWithContext, others: Sequence[FindingWithContext]) -> list[FindingWithContext]:
    """Return the others but the notes of a failure: their "nothing to do" is not to be read under it."""
    min_rank = min(Severity.WARNING.rank, head.finding.leaf.severity.rank)
    return [item for item in others if item.finding.leaf.severity.rank >= min_rank]


def _restart(group: Sequence[FindingWithContext], begins: Finding, facts: Facts) -> Restart | None:
    """Return the restart from before the whole event, as the leaf that it begins with asks for it."""
    takes = {item.finding.leaf.take for item in group if item.finding.restart}
    if not takes or begins.onset_step is None:
        return None
    take = Take.BEFORE
    if begins.restart:
        take = begins.leaf.take
    elif len(takes) == 1:
        take = takes.pop()
    storm = any(item.storm for item in group)
    return advise(facts.sure("checkpoints"), begins.onset_step, begins.last_good_step, storm=storm, take=take)


def _earliest(group: Sequence[FindingWithContext], facts: Facts) -> Finding:
    """Return the finding with the earliest onset; the first one if none has an onset.

    The lowest level of a loss that jumped is anywhere before the jump. It is the onset only if the loss had risen by
    then: if the rise would have been found had the log ended before the jump.
    """
    known = [item for item in group if item.finding.onset_step is not None]
    sure = [item for item in known if item is group[0] or not _may_pass(item.finding)]
    dated = sorted(sure or known, key=_onset)
    if not dated:
        return group[0].finding
    exact = min(dated, key=lambda item: item.by_levels)
    if dated[0] is exact or _had_risen(_onset(exact), facts):
        return dated[0].finding
    return exact.finding


def _may_pass(finding: Finding) -> bool:
    """Return whether a finding may be dated by a row that the rise only passes: a leaf that knows has a restart."""
    return "rise" in finding.leaf.events and not finding.leaf.restart


def _had_risen(step: int, facts: Facts) -> bool:
    """Return whether a rise is found in the log up to a step."""
    before = {name: series.before(step) for name, series in facts.run.series.items()}
    return isinstance(facts_of(replace(facts.run, series=before), facts.params, facts.faults).get("rise"), Rise)


def _onset(item: FindingWithContext) -> int:
    return item.finding.onset_step or 0


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
