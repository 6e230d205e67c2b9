"""--steps A:B judges a stretch of a log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from stabtree import diagnose, load_run
from stabtree.loaders.paths.joined import stretch
from tests.cli.command import failed, run
from tests.conftest import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

NAN = str(FIXTURES / "phase19" / "fp16-overflow")  # 790 rows, NaN from step 730 on


def judged(*words: str) -> dict[str, Any]:
    """The diagnosis of the run with these options."""
    found: dict[str, Any] = json.loads(run(NAN, "--json", *words).stdout)
    return found


def test_what_lies_outside_does_not_count() -> None:
    """Before the overflow the run is no failure; the note tells how many rows are left out."""
    before = judged("--steps", ":600")
    assert before["verdict"] in ("ok", "note")
    assert (before["run"]["first_step"], before["run"]["last_step"]) == (0, 600)
    assert before["notes"][0] == "Judged: steps 0 to 600 only (--steps); 189 of 790 rows lie outside."


@pytest.mark.parametrize("steps", ["600:", "600:789", " 600 : 900 "])
def test_onset_and_restart_are_in_the_logs_own_steps(steps: str) -> None:
    """A stretch counts no steps anew, and a checkpoint from before it may be gone back to."""
    part = judged("--steps", steps)
    assert part["run"]["first_step"] == 600
    assert 660 < part["findings"][0]["onset_step"] <= 730
    assert part["findings"][0]["restart"]["checkpoint_step"] <= 600


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ("600", "is not of the form A:B"),
        (":", "is not of the form A:B"),
        ("a:b", "is not of the form A:B"),
        ("1:2:3", "is not of the form A:B"),
        ("nan:", "is not of the form A:B"),
        ("800:600", "ends before it begins\n next: type --steps 600:800"),
        ("-5:10", "is not of the form A:B\n next: type --steps 500:800"),
        (f"500:{'9' * 400}", "is not of the form A:B"),
        (f"{2**53}:", "is not of the form A:B"),
        ("1e2:2,000", "is not of the form A:B"),
        ("900:", "no row of fp16-overflow lies in it\n next: the log has steps 0 to 789"),
    ],
)
def test_a_stretch_that_makes_no_sense_is_an_error(steps: str, problem: str) -> None:
    """With what to type, or which steps there are."""
    told = failed("diagnose", NAN, f"--steps={steps}")
    assert problem in told
    assert len(told.strip().splitlines()) == 2
    assert len(told) < 300


def test_of_several_runs_each_is_cut() -> None:
    """One that has no row there is not read, and the others are judged."""
    healthy = str(FIXTURES / "phase19" / "healthy")
    done = run(NAN, healthy, "-q", "--steps", ":600")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["OK", "OK"]
    late = run(NAN, healthy, "--json", "--steps", "795:")
    runs = json.loads(late.stdout)["runs"]
    assert "lies in it" in runs[0]["error"]["problem"]


def test_gaps_resumes_and_ends_are_those_of_the_stretch(tmp_path: Path) -> None:
    """A resume counts where its later rows begin, a silence where it lies, the end of a log that goes on not at all."""
    rows = [(i, 3 - i / 100) for i in range(60)] + [(i, 2.5 - i / 200) for i in range(50, 100)]
    text = "".join(f"{i},{'' if 70 <= i < 80 else loss},0.5\n" for i, loss in rows)
    (tmp_path / "m.csv").write_text(f"step,loss,grad_norm\n{text}", encoding="utf-8")
    whole = load_run(tmp_path / "m.csv")
    assert (len(whole.resumes), len(whole.gaps)) == (1, 1)
    early, late = stretch(whole, last=49), stretch(whole, 45, 75)
    assert (early.resumes, early.gaps) == ((), ())
    assert late.resumes == whole.resumes
    assert (late.gaps[0].first_step, late.gaps[0].last_step, late.gaps[0].at_end) == (70, 75, True)
    assert np.array_equal(late.series["grad_norm"].steps, np.arange(45, 76))


def test_a_stretch_of_a_run_that_went_on_is_no_early_end(tmp_path: Path) -> None:
    """That the log stops before the planned end is not said of a stretch that ends before the log."""
    rows = "".join(f"{i},{3 - i / 100}\n" for i in range(100))
    (tmp_path / "metrics.csv").write_text(f"step,loss\n{rows}", encoding="utf-8")
    (tmp_path / "manifest.json").write_text(
        json.dumps({"max_steps": 1000, "metrics_file": "metrics.csv"}), encoding="utf-8"
    )
    whole = load_run(tmp_path)
    assert "stops-short" in {item.leaf.id for item in diagnose(whole).findings}
    assert "stops-short" in {item.leaf.id for item in diagnose(stretch(whole, 50)).findings}
    assert "stops-short" not in {item.leaf.id for item in diagnose(stretch(whole, last=50)).findings}
