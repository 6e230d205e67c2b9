"""For how long a finding must hold before it is reported.

What a log shows while it is young passes: its noise is hardly known, and what seems to rise is the scatter of the last
rows. So only what one row proves is reported at once; what took long to show must hold for longer, and what is over can
wait until it is sure. Chosen with `python -m benchmarks.watch` on 163 healthy labelled logs, long ones partly thinned,
with both halves seen while choosing: the rates are those of the logs that the rules were made for, not of others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stabtree.diagnosis.judged import STRONG
from stabtree.tools.live.signs import NEVER_ZERO
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Incident
    from stabtree.run import Run

SHARE = 0.2
"""Levels of noise rise and fall again within this share of their age: with 0.1 two healthy logs more of 163 alarm."""
MIN_ROWS = 10
"""The shortest window that any statistic takes: a shorter log gets no warning, and a loss that stays up none before it
has been there so long. With rows wider than the document's horizon a single one would decide."""
ENDS = "end"
"""The kind of event of what ends a process."""
WINDOW_ROWS = 100
"""The document knows a spike only beside as many steps before it (phase19, Q2.1)."""


HOLD_SECONDS = 300.0
"""After so long the next row decides: where a row is an epoch, three of them may be hours."""


class Hold(NamedTuple):
    """For how long something must be seen before it is reported.

    Attributes:
        rows: so many rows; after `HOLD_SECONDS` a single one.
        known_rows: so many rows at any rate, since fewer show too little.
    """

    rows: int
    known_rows: int = 0

    @property
    def due_rows(self) -> int:
        """Return the number of rows that is enough without any time."""
        return max(self)


def hold_of(finding: Incident, run: Run, age: int, min_rows: int) -> Hold:
    """Return for how long a finding must have been found at every judgement.

    Args:
        finding: the finding.
        run: the run, as long as it is now.
        age: how many rows after its onset it was first found.
        min_rows: for how many rows anything must hold that can pass.
    """
    if is_certain(finding):
        return Hold(0)
    before, rows, known = rows_before(finding, run), max(min_rows, math.ceil(SHARE * age)), 0
    if finding.leaf.severity is not Severity.CRITICAL:
        known = MIN_ROWS - before - age - 1
    if "rise" in finding.leaf.events and finding.leaf.lasting:
        known = max(known, MIN_ROWS - age)
    if is_doubtful(finding, before):
        known = max(known, WINDOW_ROWS - before)
    return Hold(rows, max(known, 0))


def is_certain(finding: Incident) -> bool:
    """Return whether a single row, or none, proves it: a loss that is NaN or 0, a setting that is wrong."""
    events = finding.leaf.events
    if ENDS in events:
        return False  # a run may survive an error that it prints
    if "nan" in events and finding.leaf.severity is Severity.CRITICAL:
        return finding.storm
    return ("zero" in events and finding.metric in NEVER_ZERO) or is_setting(finding)


def is_setting(finding: Incident) -> bool:
    """Return whether it is a setting that is wrong, not something that happened: no row of the log shows it."""
    return finding.onset_step is None and not any(item.metric for item in finding.evidence)


def is_doubtful(finding: Incident, before: int) -> bool:
    """Return whether an event has passed, left nothing to go back for, and nothing else in the log bears it out.

    A cause that points at no step of the log holds from the start: it bears out what begins there, and no later event.
    """
    leaf = finding.leaf
    passed = bool(leaf.events) and not (leaf.lasting or leaf.restart)
    strong = [cause for cause in finding.causes if cause.state in STRONG]
    return passed and not any(before < MIN_ROWS or any(e.steps for e in cause.evidence) for cause in strong)


def rows_before(finding: Incident, run: Run, metric: str | None = None) -> int:
    """Return how many rows a run has before a finding begins; none where that is not known.

    Args:
        finding: the finding.
        run: the run.
        metric: the series whose rows they are, the finding's where not given; the longest where there is none.
    """
    name = finding.metric if metric is None else metric
    series = run.series.get(name) or max(run.series.values(), key=len, default=None)
    if series is None or finding.onset_step is None:
        return 0
    return int((series.steps < finding.onset_step).sum())
