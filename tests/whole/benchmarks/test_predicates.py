"""What the benchmark counts of questions and predicates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import stabtree
from benchmarks import predicates
from benchmarks.predicates import Labelled, ends, judged, measured, turns
from stabtree.tree.load import load_trees
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

FIXTURES = ROOT / "fixtures" / "phase19"


def test_an_answer_leads_to_what_the_walk_reaches_before_another_section_begins() -> None:
    """Q1.1 and Q1.2 lead to the overflow that section 3 names; a no of section 1 leads to no spike."""
    overflow = {turn.question: turn.leaf for turn in turns(stabtree.diagnose(FIXTURES / "fp16-overflow"))}
    assert overflow["Q1.1"] == overflow["Q1.2"] == overflow["Q3.3"] == "fp16-overflow"
    spike = {turn.question: turn.leaf for turn in turns(stabtree.diagnose(FIXTURES / "spike-bad-batch"))}
    assert spike["Q2.1"] == spike["Q2.3"] == "spike-bad-batch"
    assert spike["Q1.1"] == ""


def test_what_a_question_can_lead_to_ends_where_another_section_begins() -> None:
    """The spikes are section 2's alone."""
    able = ends(load_trees())
    assert "spike-bad-batch" in able["Q2.1"]
    assert "spike-bad-batch" not in able["Q1.1"]
    assert "fp16-overflow" in able["Q1.1"]
    assert "spike-minor" not in able["Q2.1"], "a note is no alarm"


def test_healthy_and_failed_runs_are_counted_apart() -> None:
    """A failed run counts where a question can lead to what it may be called; right only what it may."""
    spiked = Labelled("wild", FIXTURES / "spike-bad-batch", healthy=False, right=frozenset({"spike-bad-batch"}))
    other = Labelled("wild", FIXTURES / "spike-bad-batch", healthy=False, right=frozenset({"spike-lr-jump"}))
    false = Labelled("wild", FIXTURES / "spike-bad-batch", healthy=True, right=frozenset())
    found = measured([spiked, other, false], load_trees())
    asked = found["questions"]["Q2.1"]
    assert asked["healthy"] == {"asked": 1, "alarms": 1}
    assert asked["failed"] == {"asked": 2, "right": 1, "elsewhere": 0}
    assert asked["answers"] == {"yes": [1, 2]}
    assert found["questions"]["Q1.1"]["healthy"] == {"asked": 1, "alarms": 0}
    assert found["questions"]["Q1.1"]["failed"]["asked"] == 0
    assert found["predicates"]["spike"] == asked
    assert found["samples"]["wild"]["failed"] == 2


def test_what_cannot_be_read_is_not_counted(tmp_path: Path) -> None:
    """Nor is it healthy."""
    (tmp_path / "empty.csv").write_text("", encoding="utf-8")
    assert judged(tmp_path / "empty.csv") is None
    assert judged(tmp_path / "missing.csv") is None


def test_without_labelled_runs_nothing_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And what was recorded stays."""
    monkeypatch.setattr("sys.argv", ["predicates", str(tmp_path), "--write", str(tmp_path / "out.json")])
    assert predicates.main() == 0
    assert "nothing is measured" in capsys.readouterr().out
    assert not (tmp_path / "out.json").exists()
