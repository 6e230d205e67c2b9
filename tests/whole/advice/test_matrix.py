"""The first screen of each kind of run with each failure says what an expert of that kind would, and nothing else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from stabtree.report.model import Report
from stabtree.report.words import badge
from tests.whole.advice.cells import cells
from tests.whole.advice.failures import FAILURES
from tests.whole.advice.kinds import KINDS
from tests.whole.advice.made import diagnosed

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis
    from tests.whole.advice.cells import Cell

MIN_CELLS = 60
OPEN = {
    "detection/slow-divergence",
    "grpo/entropy-collapses",
    "grpo/no-spread",
    "ppo/entropy-collapses",
    "reward-model/pairs-swapped",
}
"""Cells that are known to be wrong; one that is right must leave the list."""
NEVER_FIRST = re.compile(r"(Log|Restart|Reload|Go back|Keep the checkpoint|Write a)\b")
"""What no fix begins with: the lines below say what to log and where to restart."""


@pytest.mark.parametrize("cell", cells(), ids=str)
def test_the_first_screen_fits_the_run(cell: Cell) -> None:
    """Leaf, first action and words are those of the table."""
    assert bool(list(wrong(cell))) is (str(cell) in OPEN)


def wrong(cell: Cell) -> list[str]:
    """What is wrong with the screen of a cell, a line each."""
    diagnosis = diagnosed(cell.kind, cell.failure)
    found = [*_found(cell, diagnosis), *_said(cell, diagnosis)]
    shown = _words(diagnosis)
    for pattern in cell.banned:
        if (hit := pattern.search(shown)) is not None:
            around = " ".join(shown[max(0, hit.start() - 40) : hit.end() + 25].split())
            found.append(f"says {hit[0]!r}: ... {around} ...")
    return found


def _found(cell: Cell, diagnosis: Diagnosis) -> list[str]:
    """What is wrong with what was found."""
    leaf = diagnosis.findings[0].leaf.id if diagnosis.findings else ""
    found = []
    if badge(diagnosis) not in cell.verdict:
        found.append(f"verdict {diagnosis.verdict} ({leaf or 'nothing found'})")
    elif cell.leaf and leaf not in cell.leaf:
        found.append(f"headline {leaf}")
    if cell.no_restart and diagnosis.findings and diagnosis.findings[0].restart:
        found.append("advises a restart")
    return found


def _said(cell: Cell, diagnosis: Diagnosis) -> list[str]:
    """What is wrong with the first action."""
    actions = Report(diagnosis).do_now
    if cell.first is None:
        return []
    if not actions:
        return ["nothing to do"]
    first = actions[0]
    text = " ".join((first.text, *(what for _, what in first.branches)))
    if cell.first.search(text) is None or NEVER_FIRST.match(text):
        return [f"first action: {text}"]
    return []


def _words(diagnosis: Diagnosis) -> str:
    """The screen without the names that are the run's own."""
    text = diagnosis.to_text()
    own = {diagnosis.run.name, *diagnosis.run.series, *(one.origin for one in diagnosis.run.series.values())}
    for name in sorted(filter(None, own), key=len, reverse=True):
        text = text.replace(name, "·")
    return text


def test_the_table_is_whole() -> None:
    """There are enough cells; every kind and every failure has one."""
    assert len(cells()) >= MIN_CELLS
    assert {cell.kind for cell in cells()} == KINDS.keys()
    assert {cell.failure for cell in cells()} == FAILURES.keys()
