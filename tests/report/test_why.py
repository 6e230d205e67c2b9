"""`stabtree explain NODE --why RUN`: the questions on the way to a node, and the first that turned away."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.report.why import why
from stabtree.tree.load import load_trees
from tests.cli.command import failed, run
from tests.conftest import FIXTURES

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.report.why import Why


@cache
def judged(name: str) -> Diagnosis:
    """A fixture, walked through all trees."""
    return diagnose(load_run(FIXTURES / "phase19" / name), load_trees())


def asked(name: str, node: str) -> Why:
    """A node, asked of a fixture."""
    return why(judged(name), node)


def test_every_leaf_has_an_answer() -> None:
    """Each is reached where a finding or a walk ends there; else a question turned away, or a sentence says why."""
    found = judged("nan-forward")
    ends = {finding.leaf.id for finding in found.reached} | {found.end.id}
    for leaf in found.tree.leaves:
        told = why(found, leaf)
        assert told.reached >= (leaf in ends), leaf
        assert told.reached or told.turn or told.reason, leaf


@pytest.mark.parametrize(
    ("name", "node", "way", "turn", "wanted"),
    [
        ("spike-minor", "spike-minor", ["Q2.1", "Q2.2", "Q2.3"], None, None),
        ("healthy", "spike-minor", ["Q2.1", "Q2.2", "Q2.3"], "Q2.1", ("yes",)),
        ("healthy", "q2.1", ["Q1.1"], None, None),
        ("slow-rise", "lr-rising", ["Q4.1", "Q4.2"], "Q4.2", ("yes",)),
        ("spike-minor", "spike-unexplained", ["Q2.1", "Q2.2", "Q2.3"], "Q2.3", ("unexplained", "unknown")),
    ],
)
def test_the_first_question_that_turned_away_is_named(
    name: str, node: str, way: list[str], turn: str | None, wanted: tuple[str, ...] | None
) -> None:
    """The way is that of the walk as far as the walk went on it; what lies behind was not asked."""
    told = asked(name, node)
    assert [step.question.id for step in told.way] == way
    assert told.reached == (turn is None)
    if told.turn is None:
        assert turn is None
        return
    assert (told.turn.question.id, told.turn.wanted) == (turn, wanted)
    behind = told.way[told.way.index(told.turn) + 1 :]
    assert all(step.visit is None for step in behind)


def test_what_no_question_decides_is_a_sentence() -> None:
    """A section that was not walked, a leaf behind others, an entry of a document, and what to log."""
    assert "reward was not logged" in asked("healthy", "reward-collapse").reason
    assert "--applied Q1.4" in asked("nan-forward", "nan-structural").reason
    tree = load_trees()
    for entry in tree.entries:
        assert why(judged("healthy"), entry).reason
    assert {name for name, _ in asked("fp16-suspected", "fp16-overflow").log} == {"grad_norm", "loss_scale"}


def test_the_command_says_it_on_the_screen_and_in_json() -> None:
    """With the number and its limit; any question, leaf, cause, group or section will do, and a slip is named."""
    healthy = str(FIXTURES / "phase19" / "healthy")
    text = " ".join(run("explain", "spike-minor", "--why", healthy).stdout.split())
    assert "spike-minor was not reached" in text
    assert "no, not yes: the highest step" in text
    assert "turned away here" in text
    found = json.loads(run("explain", "spike-minor", "--why", healthy, "--json").stdout)
    assert [step["turned"] for step in found["way"]] == [True, False, False]
    assert [step["asked"] for step in found["way"]] == [True, False, False]
    (evidence,) = found["way"][0]["evidence"]
    assert evidence["observed"] < evidence["threshold"]
    for node in ("Q1.4", "§2", "Q1.4.fp16"):
        assert "reached" in run("explain", node, "--why", healthy).stdout
    assert "did you mean 'spike-minor'" in failed("explain", "spike-minr", "--why", healthy)
    assert "--why" in failed("explain", "spike-minor", "--json")
    assert "goes with a node" in failed("explain", "--all", "--why", healthy)
