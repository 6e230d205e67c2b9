"""The ranks of a run, one by one: what a mean over them hides."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN, Evidence

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import Run


def with_worst_rank(whole: Diagnosis, judge: Callable[[Run], Diagnosis]) -> Diagnosis:
    """The diagnosis of a run, with what is found on the rank that is worse off than the mean over all ranks.

    Args:
        whole: the diagnosis of the mean.
        judge: diagnoses the run of one rank as the whole was.
    """
    worst, where = whole, ""
    for rank, series in whole.run.ranks.items():
        alone = judge(replace(whole.run, series=series, ranks={}))
        if _badness(alone) > max(_badness(worst), 0):
            worst, where = alone, rank
    if not where:
        return whole
    known = {finding.leaf.id for finding in whole.reached}
    text = f"on rank {where} alone; the mean over {len(whole.run.ranks)} ranks does not show it"
    added = [
        replace(finding, evidence=(Evidence(text), *finding.evidence))
        for finding in worst.findings
        if finding.leaf.id not in known
    ]
    waived = {finding.leaf.id for finding in whole.ignored}
    ignored = (*whole.ignored, *(finding for finding in worst.ignored if finding.leaf.id not in waived))
    findings = sorted([*whole.findings, *added], key=lambda finding: -finding.leaf.severity.rank)
    return replace(whole, findings=tuple(findings), ignored=ignored, verdict=worst.verdict)


def _badness(diagnosis: Diagnosis) -> int:
    """How bad a verdict is; one that could not be given is below every other."""
    if diagnosis.verdict == UNKNOWN or not diagnosis.findings:
        return -1 if diagnosis.verdict == UNKNOWN else 0
    return diagnosis.findings[0].leaf.severity.rank
