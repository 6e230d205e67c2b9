"""Why a walk did not come to a node."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.tools.tune.why import not_reached
from stabtree.tools.tune.why.model import NodeStatus
from stabtree.tools.tune.why.not_reached import why_not
from stabtree.tools.tune.why.ways import nodes_by_name
from stabtree.tree.load import load_tree, load_trees
from tests.cli.command import failed, run
from tests.conftest import FIXTURES, falling, make_run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.facts.registry import Param
    from stabtree.tools.tune.why.model import WhyNot

CASES = sorted(path for path in FIXTURES.glob("phase19/*") if path.is_dir())
PHASE19 = load_tree("phase19")
LEAVES = sorted(PHASE19.leaves)


@cache
def judged(path: Path) -> Diagnosis:
    """A fixture, walked through the first tree."""
    return diagnose(load_run(path), PHASE19)


def asked(name: str, node: str) -> WhyNot:
    """A node, asked of a fixture."""
    return why_not(judged(FIXTURES / "phase19" / name), node)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_every_leaf_of_every_fixture_has_an_answer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each leaf is told as reached where a finding or a walk ends there, and else with the question that led away."""
    monkeypatch.setattr(not_reached, "flips", lambda *_: ())  # asked by the tests below: it takes most of the time
    found = judged(path)
    for leaf in LEAVES:
        told = why_not(found, leaf)
        ends = {finding.leaf.id for finding in found.reached} | {found.end.id}
        assert (told.status is NodeStatus.REACHED) >= (leaf in ends), leaf
        if told.status is NodeStatus.REACHED:
            assert all(stage.agrees for stage in told.stages)
        else:
            assert told.turn or told.why, leaf


def test_a_leaf_that_was_reached_shows_the_way_to_it() -> None:
    """The questions are those of the walk, each with the answer that led on."""
    told = asked("spike-minor", "spike-minor")
    assert told.status is NodeStatus.REACHED
    assert [stage.visit.question.id for stage in told.stages] == ["Q2.1", "Q2.2", "Q2.3"]


def test_the_question_that_led_away_is_told_with_its_number() -> None:
    """A healthy run's highest step is held against the limit of this run, with what is missing to it."""
    told = asked("healthy", "spike-minor")
    assert told.turn is not None
    assert told.turn.visit.question.id == "Q2.1"
    margin = told.turn.margin
    assert margin is not None
    assert margin.decides
    assert margin.value < margin.threshold
    assert margin.missed == pytest.approx(margin.threshold - margin.value)


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("healthy", "spike-minor"),
        ("healthy", "Q2.2"),
        ("spike-minor", "spike-bad-batch"),
        ("spike-minor", "spike-unexplained"),
        ("spike-lr-jump", "spike-bad-batch"),
        ("weight-decay-high", "grad-norm-rising"),
    ],
)
def test_what_is_told_to_be_set_takes_the_walk_there(name: str, node: str) -> None:
    """With the values that are told the walk comes to the node, and not with the last a little nearer to its own."""
    found = judged(FIXTURES / "phase19" / name)
    told = why_not(found, node)
    assert told.settings
    assert comes(found, node, {flip.key: flip.value for flip in told.settings})
    *others, last = told.settings
    if isinstance(last.value, float) and last.value and isinstance(last.now, int | float):
        nearer = last.value + 0.02 * (float(last.now) - last.value)
        given = {flip.key: flip.value for flip in others} | {last.key: nearer}
        assert not comes(found, node, given)


def comes(found: Diagnosis, node: str, given: Mapping[str, Param]) -> bool:
    """Whether the walk comes to a node with parameters set."""
    overrides: dict[str, dict[str, Param]] = {}
    for key, value in given.items():
        id_, _, name = key.rpartition(".")
        overrides.setdefault(id_, {})[name] = value
    again = diagnose(found.run, PHASE19, overrides=overrides)
    walks = (again.path, *again.further)
    ids = {visit.question.id for walk in walks for visit in walk} | {again.end.id}
    return node in ids | {finding.leaf.id for finding in again.reached}


def test_what_is_behind_a_question_is_asked_as_if_it_had_been_turned() -> None:
    """Past a spike that is none in this run, the later questions are asked of the one that would be one."""
    told = asked("healthy", "spike-minor")
    assert [stage.visit.answer.verdict for stage in told.stages] == ["no", "yes", "minor"]


def test_a_question_without_an_answer_names_what_to_log() -> None:
    """Where a question could not be answered, the metrics that it asks for are told, and none that was logged."""
    told = asked("fp16-suspected", "fp16-overflow")
    assert told.turn is not None
    assert {name for name, _ in told.turn.lacks} == {"grad_norm", "loss_scale"}


def test_a_section_that_was_not_walked_says_why() -> None:
    """A leaf of a section that waits for a metric names that metric."""
    told = why_not(diagnose(make_run({"loss": falling(200)}), load_trees()), "reward-collapse")
    assert told.status is NodeStatus.NOT_WALKED
    assert "reward was not logged" in told.why
    assert next(name for name, _ in told.lacks) == "reward"


def test_a_leaf_behind_others_names_the_fixes_to_apply_first() -> None:
    """What is told only where other fixes failed says whose, and shows the way to where the run is."""
    told = asked("nan-forward", "nan-structural")
    assert "--applied Q1.4" in told.why
    assert [stage.target for stage in told.stages][-1] == "nan-forward"


def test_an_answer_of_a_person_is_not_argued_with() -> None:
    """A question that a person answered has no margin, and nothing to set."""
    found = diagnose(load_run(FIXTURES / "phase19" / "nan-unlocated"), PHASE19, answers={"Q1.3": "layer"})
    told = why_not(found, "nan-backward")
    assert told.turn is not None
    assert told.turn.visit.given_by == "person"
    assert (told.turn.margin, told.turn.flips) == (None, ())


def test_what_was_found_on_one_rank_was_reached() -> None:
    """A finding of a rank that the mean does not show is told as reached."""
    broken = np.where(np.arange(300) > 250, np.nan, falling(300))
    whole = make_run({"loss": falling(300)})
    ranks = {"0": whole.series, "1": make_run({"loss": broken}).series}
    found = diagnose(make_run({"loss": falling(300)}, ranks=ranks), PHASE19)
    assert why_not(found, found.findings[0].leaf.id).status is NodeStatus.REACHED


@pytest.mark.parametrize("word", ["nosuch", "", "Q9.9", "\x1b[31mQ2.1", "'; rm -rf /"])
def test_an_unknown_node_is_an_error_in_two_lines(word: str) -> None:
    """What no tree knows is refused with the next thing to type."""
    with pytest.raises(StabtreeError, match="no node is called") as error:
        why_not(judged(FIXTURES / "phase19" / "healthy"), word)
    assert error.value.hint


def test_a_node_is_found_in_any_case_and_a_near_one_is_named() -> None:
    """`q2.1` is Q2.1, and a slip of the key names what was meant."""
    assert asked("healthy", "q2.1").node == "Q2.1"
    assert "did you mean 'spike-minor'" in failed("diagnose", str(CASES[0]), "--why-not", "spike-minr")


def test_all_that_stands_in_the_trees_can_be_asked_about() -> None:
    """Every question, leaf, group, cause, section and entry of all trees has an answer for a run of a loss alone."""
    found = diagnose(make_run({"loss": falling(60)}), load_trees())
    for node in nodes_by_name(load_trees()):
        told = why_not(found, node)
        assert told.status is NodeStatus.REACHED or told.turn or told.why, node


def test_json_and_markdown_tell_it_too() -> None:
    """It stands in JSON under `why_not`, null without the option, and in Markdown; a line has no place for it."""
    healthy = str(FIXTURES / "phase19" / "healthy")
    told = json.loads(run(healthy, "--json", "--why-not", "spike-minor").stdout)["why_not"]
    assert (told["node"], told["came"]) == ("spike-minor", "turned_away")
    assert told["way"][0]["margin"]["missed_by"] > 0
    assert json.loads(run(healthy, "--json").stdout)["why_not"] is None
    assert "the walk did not come to it" in run(healthy, "--output", "markdown", "--why-not", "Q1.2").stdout
    assert "--why-not" in failed(healthy, "-q", "--why-not", "Q1.2")


def test_the_verdict_and_the_exit_code_stay_what_they_are() -> None:
    """Asking why changes nothing of what was found; several runs are asked one by one."""
    spike = str(FIXTURES / "phase19" / "spike-bad-batch")
    plain, told = (json.loads(run(spike, "--json", *more).stdout) for more in ([], ["--why-not", "Q1.2"]))
    assert all(plain[key] == told[key] for key in ("verdict", "path", "findings", "timeline", "monitor"))
    assert run(spike, "--why-not", "Q1.2").returncode == run(spike).returncode == 1
    assert "--why-not" in failed(spike, str(CASES[0]), "--why-not", "Q1.2")


def test_explain_says_how_to_ask_it_of_a_run() -> None:
    """The page of a question and that of a leaf name the command."""
    for node in ("Q2.1", "spike-minor"):
        assert f"stabtree diagnose RUN --why-not {node}" in run("explain", node).stdout
