"""Judge the ranks of a run one by one: a mean over them may hide a failure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN, Evidence
from stabtree.diagnosis.result import worst_first
from stabtree.diagnosis.whole.coverage import with_faults

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree.common.faults import Fault
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import Run


def with_worst_rank(whole: Diagnosis, judge: Callable[[Run], Diagnosis]) -> Diagnosis:
    """Add the findings of the worst rank, where it is worse than the mean over all ranks.

    Args:
        whole: the diagnosis of the mean.
        judge: diagnoses the run of one rank with the same options.
    """
    worst, where = whole, ""
    faults: list[Fault] = []
    for rank, series in whole.run.ranks.items():
        alone = judge(replace(whole.run, series=series, ranks={}))
        faults += alone.faults
        if _badness(alone) > max(_badness(worst), 0):
            worst, where = alone, rank
    if not where:
        return with_faults(whole, faults)
    known = {finding.leaf.id for finding in whole.reached}
    text = f"on rank {where} alone; the mean over {len(whole.run.ranks)} ranks does not show it"
    added = [
        replace(finding, evidence=(Evidence(text), *finding.evidence))
        for finding in worst.findings
        if finding.leaf.id not in known
    ]
    ignored_ids = {finding.leaf.id for finding in whole.ignored}
    ignored = (*whole.ignored, *(finding for finding in worst.ignored if finding.leaf.id not in ignored_ids))
    findings = tuple(worst_first([*whole.findings, *added]))
    joined = replace(whole, findings=findings, ignored=ignored, verdict=worst.verdict)
    return with_faults(joined, faults)


def _badness(diagnosis: Diagnosis) -> int:
    """Return the rank of the worst finding, 0 without one; -1 for a verdict of unknown."""
    if diagnosis.verdict == UNKNOWN:
        return -1
    if not diagnosis.findings:
        return 0
    return diagnosis.findings[0].severity.rank
