"""One event is one finding: what several leaves tell of it is put together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.diagnosis.causes import by_strength
from stabtree.diagnosis.fixes import advised
from stabtree.diagnosis.restart import advise
from stabtree.diagnosis.timeline import precursors
from stabtree.facts import facts_of
from stabtree.facts.registry import finite
from stabtree.facts.rise import Rise
from stabtree.tree.model import Severity, Take

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.common.answer import Evidence
    from stabtree.diagnosis.fixes import Filling
    from stabtree.diagnosis.result import Finding, Restart
    from stabtree.facts.registry import Facts


class Seen(NamedTuple):
    """A finding, and what its onset stands on.

    Attributes:
        finding: the finding.
        storm: whether the loss went NaN.
        by_levels: whether its onset is that of a level, and not of a row.
        filling: what fills its fixes.
        reasons: what speaks for its own fixes.
    """

    finding: Finding
    storm: bool
    by_levels: bool
    filling: Filling
    reasons: tuple[Evidence, ...]


def one_each(seen: Iterable[Seen], facts: Facts) -> list[Finding]:
    """The findings, one for each event, worst first.

    Findings tell of one event where their leaves share a kind of it, and both last to the end of the log, both begin
    at the same time (within one level of the loss, or with no row between them that could tell them apart), or both
    speak of the highest row of the loss.

    Args:
        seen: all that was found; of equally bad ones the first gives the event its leaf.
        facts: what is found in the run.
    """
    groups: list[list[Seen]] = []
    for item in sorted(seen, key=lambda item: -item.finding.leaf.severity.rank):
        same = [group for group in groups if any(_one_event(item, other, facts) for other in group)]
        if not same:
            groups.append([item])
            continue
        first, *others = same
        first += [*(other for group in others for other in group), item]
        groups = [group for group in groups if all(group is not other for other in others)]
    return [group[0].finding if len(group) == 1 else _joined(group, facts) for group in groups]


def _one_event(one: Seen, other: Seen, facts: Facts) -> bool:
    if not set(one.finding.leaf.events) & set(other.finding.leaf.events):
        return False
    if one.finding.leaf.lasting and other.finding.leaf.lasting:
        return True
    if all(_holds_peak(item, facts) for item in (one, other)):
        return True
    return not (one.by_levels or other.by_levels) and _at_once(one.finding, other.finding, facts)


def _holds_peak(item: Seen, facts: Facts) -> bool:
    """Whether the highest row of the loss is named as what was found, or lies in a rise that no earlier row shows."""
    loss, onset = facts.run.get("loss"), item.finding.onset_step
    if loss is None or onset is None:
        return False
    steps, values = finite(loss)
    peak = int(steps[np.argmax(values)]) if len(steps) else onset - 1
    if item.finding.leaf.lasting and "rise" in item.finding.leaf.events:
        return onset <= peak
    return any(evidence.metric == "loss" and peak in evidence.steps[1:2] for evidence in item.finding.evidence)


def _at_once(one: Finding, other: Finding, facts: Facts) -> bool:
    if one.onset_step is None or other.onset_step is None:
        return False
    early, late = sorted((one.onset_step, other.onset_step))
    loss = facts.run.get("loss")
    if loss is not None and late - early <= facts.get("levels").length(loss):
        return True
    logged = [facts.run.get(finding.metric) for finding in (one, other)]
    return any(not ((item.steps > early) & (item.steps < late)).any() for item in logged if item is not None)


def _joined(group: Sequence[Seen], facts: Facts) -> Finding:
    """One finding of several: the first one's leaf, the earliest onset, and what each of them knows."""
    findings = [item.finding for item in group]
    head, *others = group
    # "Nothing to do" of a note is not to be read under a failure.
    least = min(Severity.WARNING.rank, head.finding.leaf.severity.rank)
    heavy = [item for item in others if item.finding.leaf.severity.rank >= least]
    begins = _begins(group, facts)
    causes = by_strength(head.finding.causes, (judged for item in heavy for judged in item.finding.causes))
    told = [(item.finding.leaf, item.reasons, item.filling) for item in heavy]
    restart, onset = _restart(group, begins, facts), begins.onset_step
    asked = onset is not None and any(item.leaf.restart for item in findings)
    filling = replace(head.filling, has_older=restart is None or restart.checkpoint_step is not None)
    return replace(
        head.finding,
        onset_step=onset,
        last_good_step=begins.last_good_step,
        evidence=tuple(dict.fromkeys(evidence for item in findings for evidence in item.evidence)),
        causes=causes,
        advice=advised(head.finding.leaf, causes, head.reasons, filling, also=told),
        precursors=precursors(facts, onset) if asked and onset is not None else (),
        restart=restart,
        seen_as=tuple(findings),
    )


def _restart(group: Sequence[Seen], begins: Finding, facts: Facts) -> Restart | None:
    """The restart from before the whole event, as the leaf that it begins with asks for it."""
    takes = {item.finding.leaf.take for item in group if item.finding.restart}
    if not takes or begins.onset_step is None:
        return None
    take = begins.leaf.take if begins.restart else takes.pop() if len(takes) == 1 else Take.BEFORE
    storm = any(item.storm for item in group)
    return advise(facts.get("checkpoints"), begins.onset_step, begins.last_good_step, storm=storm, take=take)


def _begins(group: Sequence[Seen], facts: Facts) -> Finding:
    """The one of the earliest onset.

    The lowest level of a loss that jumped lies anywhere before the jump. It is the onset only where the loss had risen
    by then: where the rise would have been found had the log ended before the jump.
    """
    known = [item for item in group if item.finding.onset_step is not None]
    sure = [item for item in known if item is group[0] or not _passes(item.finding)]
    dated = sorted(sure or known, key=_onset)
    if not dated:
        return group[0].finding
    exact = next((item for item in dated if not item.by_levels), dated[0])
    early = dated[0] is exact or _risen_before(_onset(exact), facts)
    return dated[0].finding if early else exact.finding


def _passes(finding: Finding) -> bool:
    """Whether it may stand on a row that the rise only passes: what knows where a loss began to rise has a restart."""
    return "rise" in finding.leaf.events and not finding.leaf.restart


def _risen_before(step: int, facts: Facts) -> bool:
    before = {name: series.before(step) for name, series in facts.run.series.items()}
    return isinstance(facts_of(replace(facts.run, series=before), facts.params).get("rise"), Rise)


def _onset(item: Seen) -> int:
    return item.finding.onset_step or 0
