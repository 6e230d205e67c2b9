"""What a person answers counts wherever it was given, and never against the log in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from stabtree.common.answer import UNKNOWN
from stabtree.diagnosis.walk import diagnose
from stabtree.report.json import to_dict
from stabtree.report.screen import full, headline
from stabtree.tree.load import load_tree, load_trees
from tests.conftest import falling, make_run
from tests.measures.judged import loss as judged_loss

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stabtree.run import Run
    from stabtree.tree.model import Question

TREES = load_trees()


def learning() -> Run:
    """A run in which nothing is wrong."""
    return make_run({"loss": falling(600), "grad_norm": 1 + 0.1 * np.random.default_rng(0).random(600)}, dtype="fp32")


def broken(**config: Any) -> Run:
    """A run whose loss went NaN, with nothing else logged."""
    return make_run({"loss": judged_loss(nan_from=900)}, **config)


def flat(**columns: float) -> Run:
    """A run that does not learn."""
    loss = 2.3 + np.random.default_rng(0).normal(0, 0.01, 600)
    return make_run({"loss": loss, **{name: np.full(600, value) for name, value in columns.items()}}, dtype="fp32")


@pytest.mark.parametrize(("make", "aloud"), [(learning, True), (flat, False)])
def test_a_loop_that_learns_is_said_to_learn(make: Callable[[], Run], aloud: bool) -> None:
    """Who answers that it can't memorise a batch is told that the loss has fallen, and is believed all the same."""
    found = diagnose(make(), TREES, answers={"O1": "no"})
    assert "loop-broken" in {finding.leaf.id for finding in found.findings}
    assert any("O1 answered no; the log says otherwise" in text for text in found.answer_notes) is aloud


@pytest.mark.parametrize(
    ("id_", "word", "leaf"),
    [("O5", "yes", "wrong-mode"), ("O17", "yes", "frozen-in-optimizer"), ("O1", "no", "loop-broken")],
)
def test_an_answer_counts_on_a_run_that_learns(id_: str, word: str, leaf: str) -> None:
    """The walk does not come by the question; what was answered is found all the same."""
    assert diagnose(learning(), TREES).verdict == "ok"
    found = diagnose(learning(), TREES, answers={id_: word})
    assert [finding.leaf.id for finding in found.findings] == [leaf]
    assert found.verdict == TREES.leaves[leaf].severity
    assert f"{id_}" in full(found)


def test_an_answer_counts_beside_a_nan() -> None:
    """A sigmoid before BCELoss is told of a run whose loss went NaN."""
    found = diagnose(broken(dtype="fp32"), TREES, answers={"O13": "yes"})
    assert {"nan-unlocated", "sigmoid-bce"} <= {finding.leaf.id for finding in found.findings}


@pytest.mark.parametrize(("id_", "word"), [("O6", "no"), ("O1", "yes"), ("O26", "no")])
def test_an_answer_that_proves_nothing_is_said_to(id_: str, word: str) -> None:
    """Nothing is found on its behalf, and it is not dropped in silence."""
    found = diagnose(learning(), TREES, answers={id_: word})
    assert found.findings == ()
    assert found.answer_notes == (f"{id_} answered {word}: nothing follows from that for this run",)


def test_two_answers_prove_no_leaf_of_a_third() -> None:
    """A loop that memorises a batch is not broken, whatever else was answered with no."""
    assert diagnose(learning(), TREES, answers={"O1": "yes", "O5": "no"}).findings == ()


def test_an_answer_that_is_not_asked_for_is_said_to_be() -> None:
    """Where the NaN began is no question of a run without one."""
    found = diagnose(learning(), TREES, answers={"Q1.3": "mlp"})
    assert found.verdict == "ok"
    assert found.answer_notes == ("Q1.3 answered mlp: not used, the walk of this run does not come to it",)
    assert found.answer_notes[0] in to_dict(found)["notes"]
    assert "Your answers" in full(found)


def test_a_loop_that_works_is_no_proof_of_a_low_rate() -> None:
    """O1=yes under updates of the usual size is no finding of a low rate."""
    main = diagnose(flat(update_ratio=1e-3), TREES, answers={"O1": "yes"}).findings[0]
    assert main.leaf.id == "learns-one-batch"
    assert diagnose(flat(update_ratio=1e-6), TREES, answers={"O1": "yes"}).findings[0].leaf.id == "lr-too-low"


@pytest.mark.parametrize("at_prompt", [False, True])
def test_the_number_format_that_was_answered_is_believed_by_all(at_prompt: bool) -> None:
    """`Q1.2=fp16` does what --dtype fp16 does, and Q3.0 does not ask again."""
    wanted = diagnose(broken(dtype="fp16"), TREES).end.id
    asked: list[str] = []

    def ask(question: Question) -> str | None:
        asked.append(question.id)
        return "fp16" if question.id == "Q1.2" else None

    found = diagnose(broken(), TREES, ask=ask) if at_prompt else diagnose(broken(), TREES, answers={"Q1.2": "fp16"})
    assert found.end.id == wanted == "fp16-suspected"
    assert found.run.setting("dtype") == "fp16"
    assert "Q3.0" not in asked
    assert len(asked) == len(set(asked))


def test_an_answer_against_the_log_is_said_aloud() -> None:
    """The answer goes before the data, and what the data say stands beside it."""
    found = diagnose(learning(), TREES, answers={"Q1.2": "bf16", "Q2.1": "yes"})
    assert found.answer_notes[0] == "Q1.2 answered bf16; the log says fp32: dtype is fp32 (test)"
    assert found.answer_notes[1].startswith("Q2.1 answered yes; the log says no: ")
    spike = next(visit for visit in found.path if visit.question.id == "Q2.1")
    assert spike.given_by == "person"
    assert "the log says no" in spike.answer.evidence[0].text
    assert not diagnose(learning(), TREES, answers={"Q1.1": "no"}).answer_notes


@pytest.mark.parametrize(
    ("word", "cause"), [("embedding", "no-clipping"), ("softmax", "loss-numerics"), ("log_softmax", "loss-numerics")]
)
def test_the_layer_that_was_answered_names_the_cause(word: str, cause: str) -> None:
    """An embedding is not clipped, a softmax gives log(0), since a person said where the NaN began."""
    first = diagnose(broken(dtype="fp32"), TREES, answers={"Q1.3": word}).findings[0].causes[0]
    assert first.cause.id == cause
    assert any(word in item.text for item in first.evidence)


HOUSE = """
name: house
title: Our own rules
sections: [{id: H, title: By hand, entry: H1}]
questions:
  - {id: H1, section: H, ask: Is the data left unshuffled?, go: {yes: bad, no: good}, source: s}
leaves:
  - {id: bad, of: H1, title: Not shuffled, severity: warning, fix: Shuffle it., source: s}
  - {id: good, of: H1, title: Fine, severity: ok, fix: Nothing to do., source: s}
"""


def test_a_question_that_nobody_answered_is_no_ok(tmp_path: Path) -> None:
    """A tree whose only question is for a person is unknown until it is answered; beside others it is named as open."""
    path = tmp_path / "house.yaml"
    path.write_text(HOUSE, encoding="utf-8")
    tree = load_tree(path)
    assert diagnose(learning(), tree).verdict == UNKNOWN
    assert diagnose(learning(), tree, answers={"H1": "no"}).verdict == "ok"
    assert diagnose(learning(), tree, answers={"H1": "yes"}).verdict == "warning"
    first = (
        "{id: H0, section: H, ask: Does it rise?, test: loss_rising, go: {yes: bad, no: H1}, source: s}\n  - {id: H1"
    )
    path.write_text(
        path.read_text(encoding="utf-8").replace("entry: H1", "entry: H0").replace("{id: H1", first), encoding="utf-8"
    )
    both = load_tree(path)
    assert headline(diagnose(learning(), both)) == "OK  made: Fine; not answered: H1"
    assert headline(diagnose(learning(), both, answers={"H1": "no"})) == "OK  made: Fine"
