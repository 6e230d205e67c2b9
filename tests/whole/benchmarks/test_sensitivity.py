"""The sensitivity benchmark moves each threshold once, through the public overrides."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import stabtree
from benchmarks import sensitivity
from benchmarks.sensitivity import Knob, Split
from tests.conftest import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

SCORE = """
import json, sys
given = {flag: value for flag, value in zip(sys.argv[1::2], sys.argv[2::2])}
called = json.load(open(given["--predictions"]))
flagged = [[run] for run, prediction in sorted(called.items()) if not prediction["healthy"]]
json.dump({"false_alarms": flagged, "misses": [], "_sec": 0, "_leaf": 0}, open(given["--json"], "w"))
"""


def bench(folder: Path) -> Split:
    """A benchmark of two fixtures, whose score calls every flagged run a false alarm."""
    for name in ("healthy", "spike-unexplained"):
        shutil.copytree(FIXTURES / "phase19" / name, folder / "dev" / "runs" / name)
    (folder / "score.py").write_text(SCORE, encoding="utf-8")
    return Split(folder, "dev", (1, 2))


def test_every_threshold_stands_in_one_place_and_may_be_set() -> None:
    """No threshold stands there twice, and diagnose takes each one's multiples."""
    tree = stabtree.load_trees()
    knobs = list(sensitivity.knobs(tree))
    assert len(set(knobs)) == len(knobs)
    assert {knob.question for knob in knobs if knob.name == "chance"} == {"spike", "movers"}
    run = stabtree.load_run(FIXTURES / "phase19" / "spike-unexplained")
    for knob in knobs:
        for factor in (0.75, 1.25):
            assert knob.times(factor) != knob.value
            stabtree.diagnose(run, tree, overrides={knob.question: {knob.name: knob.times(factor)}})


def test_a_moved_threshold_changes_what_it_decides(tmp_path: Path) -> None:
    """The spike is an alarm with the shipped bars at every row, and none where it takes a thousand times the sigmas."""
    split = bench(tmp_path)
    shipped = sensitivity.outcome(split, None)
    assert shipped.false_alarms == {("spike-unexplained", 1), ("spike-unexplained", 2)}
    moved = sensitivity.outcome(split, (Knob("Q2.1", "sigma", 3.0), 1000.0))
    assert not moved.false_alarms
    assert moved.changed(shipped) == 2
    assert shipped.among(["spike-unexplained"]) == (2, 0)
    assert shipped.among(["healthy"]) == (0, 0)
    assert moved.row() == "0/0/0/0"
