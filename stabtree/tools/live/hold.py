"""For how many rows a finding must hold before it is reported.

What a log shows while it is young passes: its noise is hardly known, and what seems to rise is the scatter of the last
rows. So nothing is reported at once; what took long to show must hold for longer, and what is over can wait until it is
sure. Chosen with `python -m benchmarks.watch` on 163 healthy labelled logs, long ones partly thinned, with both halves
seen while choosing: the rates are those of the logs that the rules were made for, not of others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.diagnosis.judged import STRONG
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Incident
    from stabtree.run import Run

SHARE = 0.2
"""Levels of noise rise and fall again within this share of their age: with 0.1 two healthy logs more of 163 alarm."""
MIN_ROWS = 10
"""The shortest window that any statistic takes: a shorter log gets no warning, and a loss that stays up none before it
has been there so long. With rows wider than the document's horizon a single one would decide."""
WINDOW_ROWS = 100
"""The document knows a spike only beside as many steps before it (phase19, Q2.1)."""


def rows_to_hold(finding: Incident, run: Run, age: int, min_rows: int) -> int:
    """For how many rows a finding must have been found at every judgement.

    Args:
        finding: the finding.
        run: the run, as long as it is now.
        age: how many rows after its onset it was first found.
        min_rows: for how many rows anything must hold that can pass.
    """
    if "end" in finding.leaf.events:
        return 0  # what a process died of is the last that its log holds
    before, rows = rows_before(finding, run), max(min_rows, math.ceil(SHARE * age))
    if finding.leaf.severity is not Severity.CRITICAL:
        rows = max(rows, MIN_ROWS - before - age - 1)
    if "rise" in finding.leaf.events and finding.leaf.lasting:
        rows = max(rows, MIN_ROWS - age)
    if is_doubtful(finding, before):
        return max(rows, WINDOW_ROWS - before)
    return rows


def is_doubtful(finding: Incident, before: int) -> bool:
    """Return whether an event has passed, left nothing to go back for, and nothing else in the log bears it out.

    A cause that points at no step of the log holds from the start: it bears out what begins there, and no later event.
    """
    leaf = finding.leaf
    passed = bool(leaf.events) and not (leaf.lasting or leaf.restart)
    strong = [cause for cause in finding.causes if cause.state in STRONG]
    return passed and not any(before < MIN_ROWS or any(e.steps for e in cause.evidence) for cause in strong)


def rows_before(finding: Incident, run: Run) -> int:
    """Return how many rows a run has before a finding begins; none where that is not known."""
    series = run.series.get(finding.metric) or max(run.series.values(), key=len, default=None)
    if series is None or finding.onset_step is None:
        return 0
    return int((series.steps < finding.onset_step).sum())
