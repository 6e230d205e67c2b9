"""For how many rows a finding must hold before it is told.

What a log shows while it is young passes: its noise is hardly known, and what seems to rise is the scatter of the last
rows. So nothing is told at once, and what took long to show must hold for longer.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Finding
    from stabtree.run import Run, Series
    from stabtree.tree.model import Leaf

SHARE = 0.1
WINDOW_STEPS = 100
LEAST_ROWS = 10
"""The document knows a spike only beside the `WINDOW_STEPS` before it (phase19, Q2.1), and no window is shorter."""


def rows_to_hold(finding: Finding, run: Run, age: int, least: int) -> int:
    """For how many rows a finding must have been found at every judgement.

    Args:
        finding: the finding.
        run: the run, as long as it is now.
        age: how many rows after its onset it was first found.
        least: for how many rows anything must hold that can pass.
    """
    leaf = finding.leaf
    if "end" in leaf.events:
        return 0  # what a process died of is the last that its log holds
    rows = max(least, math.ceil(SHARE * age))
    return max(rows, _rows_lacking(finding, run)) if is_over(leaf) else rows


def is_over(leaf: Leaf) -> bool:
    """Whether it tells of an event that has passed and left nothing to go back for: there is time to be sure."""
    return bool(leaf.events) and not (leaf.lasting or leaf.restart)


def rows_before(finding: Finding, run: Run) -> int:
    """How many rows a run has before a finding begins; none where that is not known."""
    series = series_of(finding, run)
    return 0 if series is None or finding.onset_step is None else int((series.steps < finding.onset_step).sum())


def series_of(finding: Finding, run: Run) -> Series | None:
    """The series that a finding was seen in, else the longest."""
    return run.series.get(finding.metric) or max(run.series.values(), key=len, default=None)


def _rows_lacking(finding: Finding, run: Run) -> int:
    """How many rows a log lacks of the window before an onset: as many after it serve as well."""
    series, before = series_of(finding, run), rows_before(finding, run)
    if series is None or finding.onset_step is None or len(series) < 2:
        return LEAST_ROWS
    first, last = int(series.steps[0]), int(series.steps[-1])
    steps_a_row = max(last - first, 1) / (len(series) - 1)
    lacking = (WINDOW_STEPS - (finding.onset_step - first)) / steps_a_row
    return max(math.ceil(lacking), LEAST_ROWS - before)
