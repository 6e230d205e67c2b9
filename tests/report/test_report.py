"""The report as data: what it says, in its order, of whole runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.report.model import MAX_TO_DO, Report
from stabtree.report.page import Tick
from stabtree.report.plot import figure
from stabtree.report.rows import quoted
from stabtree.tree.load import load_trees
from tests.conftest import make_run

FOLDER = Path(__file__).resolve().parents[2] / "fixtures"
FIXTURES = sorted(path for path in FOLDER.glob("*/*") if path.is_dir())[::8]


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
def test_a_report_says_what_the_diagnosis_found(path: Path) -> None:
    """Verdict, path and last line are those of the diagnosis, and a run with a finding is told what to do."""
    run = load_run(path)
    found = diagnose(run, load_trees(run))
    told = Report(found, 1)
    assert [visit for group in told.walks[0].groups for visit in group] == list(found.path)
    assert told.closing.endswith("exit 1")
    assert bool(told.do_now) == bool(told.finding)
    assert len(told.do_now) <= MAX_TO_DO
    drawn = figure(found, told.finding, 80)
    assert drawn is not None
    assert "loss" in [strip.metric for strip in drawn.strips]
    assert all(drawn.first_step <= mark.step <= drawn.last_step for mark in drawn.marks)


def test_a_section_that_leads_on_to_the_finding_did_not_pass() -> None:
    """A NaN that is traced to fp16 is ticked under both sections that it was seen in."""
    run = load_run(FOLDER / "phase19" / "fp16-overflow")
    ticks = dict(Report(diagnose(run, load_trees(run))).ticks)
    assert (ticks["1"], ticks["2"], ticks["3"]) == (Tick.FOUND, Tick.PASSED, Tick.FOUND)


def notes(loss: object) -> dict[int, str]:
    """What the quoted rows of the first finding of a loss are called, by step."""
    run = make_run({"loss": loss})
    found = diagnose(run, load_trees(run)).findings[0]
    table = quoted(run, found)
    assert table is not None
    return {line.step: line.note for line in table.lines}


def test_no_row_is_the_worst_where_none_is_off_its_level() -> None:
    """Rows of exactly 0 are too low, and the highest row after them is an ordinary one."""
    loss = 2.5 + 0.1 * np.random.default_rng(0).standard_normal(300)
    loss[[150, 151, 170, 190, 210]] = 0.0
    assert "worst" not in notes(loss).values()


def test_a_row_that_exploded_is_not_the_last_good_one() -> None:
    """The row before a NaN is a million times the one before it."""
    loss = np.full(200, np.nan)
    loss[:2] = 5.0, 5.2e6
    assert notes(loss)[1] == "row before"
