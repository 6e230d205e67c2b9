"""Signatures of established causes: each is told for one made run, ruled out for another, and raises nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.diagnosis.judged import STRONG, CauseState
from stabtree.diagnosis.walk import diagnose
from stabtree.tree.load import load_tree, load_trees
from stabtree.tree.model import Severity
from tests.conftest import ask, ask_node, make_run
from tests.leaves import diagnosed
from tests.leaves.make import nan_from
from tests.leaves.signatures import GRAD, LOSS, NOT_TOLD, TOLD, climbing, dead, early, fine, single

if TYPE_CHECKING:
    from stabtree.run import Run

TREES = load_trees()
ALL = {item.id: item for name in ("sft", "grpo", "signatures") for item in load_tree(name).signatures}
GUESSES = ("setting_is", "is_logged")  # nothing is likely by a setting or a column alone
TESTED = [id_ for id_, item in ALL.items() if item.test]


def verdict(id_: str, run: Run) -> str:
    """What a signature's test answers for a run."""
    return ask_node(ALL[id_], run).verdict


def test_every_signature_with_a_test_has_its_two_runs() -> None:
    """None goes untested."""
    assert set(TESTED) == {name for name in TOLD if ":" not in name} == {name for name in NOT_TOLD if ":" not in name}


@pytest.mark.parametrize("id_", TESTED)
def test_a_signature_is_told_of_one_run_and_ruled_out_for_another(id_: str) -> None:
    """Under a leaf that it names, likely or a guess; and no for a run that only looks like it."""
    findings = diagnosed(TOLD[id_], TREES).findings
    told = [cause for f in findings if f.leaf.id in ALL[id_].of for cause in f.causes if cause.cause.id == id_]
    if ALL[id_].test in GUESSES:
        assert any(cause.state is CauseState.POSSIBLE for cause in told)
    else:  # several causes may leave one trace: then each is weighed up, and none is likely
        assert any(cause.state in STRONG or cause.odds > 1 for cause in told)
    assert verdict(id_, diagnosed(NOT_TOLD[id_], TREES).run) == "no"


def states(run: Run) -> dict[str, str]:
    """What each cause came to under the findings of a run, the first ones before the others."""
    findings = reversed(diagnose(run, TREES).findings)
    return {judged.cause.id: str(judged.state) for finding in findings for judged in finding.causes}


def test_a_setting_tells_causes_with_one_trace_apart() -> None:
    """With the overlap on it is likely, without a word of it possible, and with it off it is not told."""
    assert states(dead(dtype="bf16", overlap_comm=True))["T1"] == "likely"
    assert states(dead(dtype="bf16"))["T1"] == "possible"
    assert "T1" not in states(dead(dtype="bf16", overlap_comm=False))


def test_a_cause_of_another_kind_of_run_is_not_told() -> None:
    """No CTC for a language model, no masked prompt for a classifier, no GTX card in fp32, no clip that is missing."""
    assert "T14" not in states(single(2, "grad_norm", dtype="bf16", vocab_size=32_000))
    assert "T13" not in states(single(2, "loss", dtype="fp32", n_classes=10))
    assert "T8" not in states(early(0, dtype="fp32"))
    climbs = climbing(1.3, grad_norm=np.where(np.arange(200) >= 149, np.inf, GRAD))
    assert "T12" not in states(replace(climbs, config=fine(grad_clip=1.0).config))


def test_what_is_not_known_of_a_run_keeps_a_cause_possible() -> None:
    """Nothing says which card it was, or that the weights are in fp16: possible, with the reason, never likely."""
    causes = {judged.cause.id: judged for judged in diagnose(early(0, dtype="fp16"), TREES).findings[0].causes}
    assert causes["T8"].state is CauseState.POSSIBLE
    assert states(early(3, dtype="fp16", optimizer="adamw"))["T7"] == "possible"
    assert "T7" not in states(early(3, dtype="fp16", optimizer="adamw", mixed=True))
    assert "T7" not in states(early(3, dtype="fp16", optimizer="sgd", mixed=False))


@pytest.mark.parametrize("id_", ALL)
def test_a_signature_names_its_thread_an_example_and_a_fix(id_: str) -> None:
    """It says where it comes from and what it looked like there."""
    item = ALL[id_]
    assert item.fixes
    assert item.source.startswith(("https://", "public notes"))
    assert item.example or id_.startswith(("S20", "T29"))


def test_the_trace_ranks_the_causes_under_a_finding() -> None:
    """A dead run under ZeRO-2 with overlapped communication names it first."""
    findings = diagnose(dead(dtype="bf16", overlap_comm=True), TREES).findings
    finding = next(item for item in findings if item.leaf.id in ALL["T1"].of)
    assert (finding.causes[0].cause.id, str(finding.causes[0].state)) == ("T1", "likely")


def test_what_is_ruled_out_of_a_list_of_signatures_is_not_told() -> None:
    """A finding names the signatures that something speaks for, and its own causes whatever they came to."""
    finding = diagnose(
        make_run({"loss": nan_from(150, LOSS), "grad_norm": nan_from(150, GRAD)}, dtype="fp32"), TREES
    ).findings[0]
    found = {judged.cause.id: str(judged.state) for judged in finding.causes}
    assert not {id_ for id_ in found if id_ in ALL and found[id_] in ("ruled out", "not confirmed", "not checkable")}
    assert len([id_ for id_ in found if id_ not in ALL]) > 1


def test_signatures_raise_no_alarm() -> None:
    """Their file holds no question, and no run gets another verdict through them."""
    tree = load_tree("signatures")
    assert not tree.questions
    assert not tree.leaves
    assert all(
        leaf.severity is not Severity.OK for item in ALL.values() for leaf in map(TREES.leaves.get, item.of) if leaf
    )


@pytest.mark.parametrize("key", ["dtype", "grad_clip", "overlap_comm"])
def test_a_setting_that_is_not_known_is_unknown(key: str) -> None:
    """Silence is no answer."""
    assert ask("setting_is", fine(), key=key, value="x").verdict == "unknown"


def test_a_number_is_compared_as_one() -> None:
    """`0` is 0.0, and a word is no number."""
    assert ask("setting_is", fine(grad_clip=0.0), key="grad_clip", value="0").verdict == "possible"
    assert ask("setting_is", fine(grad_clip=0.0), key="grad_clip", value="none").verdict == "no"
