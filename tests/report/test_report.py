"""The report as data: what it says, in its order, of whole runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.report.figure.build import figure
from stabtree.report.model.advice import MAX_TO_DO
from stabtree.report.model.build import report
from stabtree.report.verdicts import Tick
from stabtree.tree.load import load_trees

FIXTURES = sorted(path for path in (Path(__file__).resolve().parents[2] / "fixtures").glob("*/*") if path.is_dir())


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.name)
def test_a_report_says_what_the_diagnosis_found(path: Path) -> None:
    """Verdict, path and last line are those of the diagnosis, and a run with a finding is told what to do."""
    run = load_run(path)
    found = diagnose(run, load_trees(run))
    told = report(found, exit_code=1)
    assert told.verdict == found.verdict
    assert [turn.id for turn in told.walks[0].turns] == [visit.question.id for visit in found.path]
    assert told.closing.endswith("exit 1")
    assert bool(told.do_now) == bool(told.finding)
    assert len(told.do_now) <= MAX_TO_DO
    drawn = figure(found, told.finding, 80)
    assert drawn is not None
    assert "loss" in [strip.metric for strip in drawn.strips]
    assert all(drawn.first_step <= mark.step <= drawn.last_step for mark in drawn.marks)


def test_a_section_that_leads_on_to_the_finding_did_not_pass() -> None:
    """A NaN that is traced to fp16 is ticked under both sections that it was seen in."""
    run = load_run(next(path for path in FIXTURES if path.name == "fp16-overflow"))
    ticks = dict(report(diagnose(run, load_trees(run))).ticks)
    assert (ticks["1"], ticks["2"], ticks["3"]) == (Tick.FOUND, Tick.PASSED, Tick.FOUND)
