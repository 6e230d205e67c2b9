"""Walking: every leaf has a fixture that ends there, every question is answered both ways, options do what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from stabtree.common.answer import NO, UNKNOWN
from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.run import Gap
from stabtree.tree.load import load_tree
from tests.conftest import FIXTURES, falling, make_run, series
from tests.measures.judged import loss as judged_loss

if TYPE_CHECKING:
    from stabtree.tree.model import Question

TREE = load_tree()


def test_missing_columns_are_named_not_passed_over() -> None:
    """With only a loss, the panels of a spike are unknown and the report says what to log."""
    loss = falling(600)
    loss[400] += 8
    found = diagnose(make_run({"loss": loss}), TREE)
    assert found.findings[0].leaf.id == "spike-unexplained"
    missing = {miss.id: miss.metrics for miss in found.missing}
    assert missing["Q2.3"] == ("lr", "batch_id", "grad_norm")
    causes = {cause.cause.id for cause in found.findings[0].causes}
    assert not causes & {"Q2.3.lr", "Q2.3.batch"}  # no guesses at what was not logged


@pytest.mark.parametrize("rows", [1, 2])
def test_too_short_a_run_is_not_judged(rows: int) -> None:
    """A healthy-looking loss of a few rows is unknown, which is not ok."""
    assert diagnose(make_run({"loss": falling(rows)}), TREE).verdict == UNKNOWN


def test_a_short_run_that_is_nan_is_judged() -> None:
    """One NaN row is enough for the verdict critical."""
    assert diagnose(make_run({"loss": [np.nan]}), TREE).verdict == "critical"


def test_a_later_failure_is_not_hidden_by_the_first() -> None:
    """The path ends at the spike, and the rise after it is a further finding."""
    loss = np.concatenate(
        (falling(400, 0.02), 1 + np.linspace(0, 3, 600) + np.random.default_rng(1).normal(0, 0.02, 600))
    )
    loss[250] += 8
    found = diagnose(make_run({"loss": loss, "lr": np.linspace(1e-4, 1e-3, 1000)}), TREE)
    assert found.end.id == "spike-unexplained"
    assert [finding.leaf.id for finding in found.findings] == ["lr-rising", "spike-unexplained"]


def test_a_loss_that_stops_being_logged_is_never_clean() -> None:
    """A gap at the end of the loss is a finding from its first missing step."""
    run = make_run({"loss": falling(300)}, gaps=(Gap("loss", 300, 500, 40, at_end=True),))
    found = diagnose(run, TREE)
    assert (found.verdict, found.findings[0].leaf.id, found.findings[0].onset_step) == ("critical", "loss-stops", 300)


def test_the_first_rank_to_blow_up_is_named() -> None:
    """Per-rank series tell on which rank the NaN began."""
    ranks = {}
    for rank, begin in (("0", 320), ("1", 300), ("2", 1000)):
        values = falling(400)
        values[begin:] = np.nan
        ranks[rank] = {"loss": series("loss", values)}
    merged = falling(400)
    merged[300:] = np.nan
    found = diagnose(make_run({"loss": merged}, ranks=ranks), TREE)
    texts = [item.text for item in found.findings[0].evidence]
    assert any(text == "rank 1 was first, at step 300; 1 of 3 ranks stayed finite" for text in texts)


def test_literal_takes_the_documents_letter() -> None:
    """Noise alone sets off the 3σ rule and no guarded one; a rising noisy loss is not monotonic."""
    noise = make_run({"loss": 2 + np.random.default_rng(3).normal(0, 0.1, 3000)})
    assert diagnose(noise, TREE).findings == () or diagnose(noise, TREE).verdict == "note"
    literal = diagnose(noise, TREE, literal=True)
    assert [visit.answer.verdict for visit in literal.path if visit.question.id == "Q2.1"] == ["yes"]
    rising = make_run({"loss": np.linspace(1, 2, 600) + np.random.default_rng(4).normal(0, 0.05, 600)})
    verdicts = [
        next(v.answer.verdict for v in (*d.path, *(v for w in d.further for v in w)) if v.question.id == "Q4.1")
        for d in (diagnose(rising, TREE), diagnose(rising, TREE, literal=True))
    ]
    assert verdicts == ["yes", NO]


def test_overrides_reach_the_questions_that_are_like_it() -> None:
    """Raising Q2.1's sigma makes the spike vanish for Q2.2 and Q2.3 as well."""
    loss = falling(600)
    loss[400] += 3
    run = make_run({"loss": loss})
    assert diagnose(run, TREE).end.of == "Q2.3"
    assert diagnose(run, TREE, overrides={"Q2.1": {"sigma": 1e6}}).end.id == "healthy"


@pytest.mark.parametrize(
    ("name", "value"), [("sigma", np.float32(4)), ("window_steps", np.int64(60)), ("window_steps", np.uint8(60))]
)
def test_numbers_of_numpy_are_numbers(name: str, value: Any) -> None:
    """What a user computed with numpy sets a parameter as a plain number does."""
    loss = falling(600)
    loss[400] += 3
    run = make_run({"loss": loss})
    plain = float(value) if name == "sigma" else int(value)
    found = [diagnose(run, TREE, overrides={"Q2.1": {name: given}}) for given in (value, plain)]
    assert found[0].path == found[1].path


@pytest.mark.parametrize("value", [0, np.int64(0), -1, np.nan, True, np.bool_(True)])
def test_a_window_holds_at_min_one_step(value: object) -> None:
    """A count of none is no count; nor is what only looks like a number."""
    with pytest.raises(StabtreeError, match="must be of type int, from 1 on"):
        diagnose(make_run({"loss": falling(99)}), TREE, overrides={"Q2.1": {"window_steps": value}})  # type: ignore[dict-item]


def test_answers_go_before_the_data_and_ask_fills_the_gaps() -> None:
    """`answers` overrules a test; `ask` is called only for what stays unknown, None leaves it so."""
    loss = falling(600)
    loss[500:] = np.nan
    run = make_run({"loss": loss}, dtype="fp32")
    assert diagnose(run, TREE, answers={"Q1.3": "backward"}).end.id == "nan-backward"
    asked: list[str] = []

    def ask(question: Question) -> str | None:
        asked.append(question.id)
        return "forward" if question.id == "Q1.3" else None

    found = diagnose(run, TREE, ask=ask)
    assert found.end.id == "nan-forward"
    assert asked[0] == "Q1.3"
    assert next(visit for visit in found.path if visit.question.id == "Q1.3").given_by == "person"


@pytest.mark.parametrize(
    ("options", "where", "text"),
    [
        ({"overrides": {"Q2.11": {"sigma": 1.0}}}, "--set", "did you mean 'Q2.1'?"),
        ({"overrides": {"Q2.1": {"sgma": 1.0}}}, "--set", "did you mean 'sigma'?"),
        ({"overrides": {"Q2.1": {"sigma": "high"}}}, "--set", "must be of type float"),
        ({"answers": {"Q9": "yes"}}, "--answer", "there is no question 'Q9'"),
        ({"answers": {"Q1.2": "fp61"}}, "--answer", "'fp61' is not an answer to Q1.2; did you mean 'fp16'?"),
        ({"applied": ["Q1.5"]}, "--applied", "did you mean 'Q1.4'?"),
    ],
)
def test_wrong_options_get_the_nearest_right_name(options: dict[str, object], where: str, text: str) -> None:
    """An unknown id, parameter, type or verdict is an error with a hint, before anything is walked."""
    with pytest.raises(StabtreeError) as caught:
        diagnose(make_run({"loss": falling(100)}), TREE, **options)  # type: ignore[arg-type]  # one table for three options
    assert caught.value.where == where
    assert text in caught.value.problem
    assert caught.value.hint


def test_a_person_may_answer_in_the_documents_words() -> None:
    """`Q1.3=attention` is an answer: a layer."""
    run = make_run({"loss": judged_loss(nan_from=900)}, dtype="fp32")
    assert diagnose(run, TREE, answers={"Q1.3": "attention"}).end.id == "nan-layer"


@pytest.mark.parametrize(("factor", "literal", "leaf"), [(1.4, False, "no"), (1.4, True, "yes"), (0.5, True, "yes")])
def test_by_the_letter_any_jump_of_the_rate_explains_a_spike(factor: float, literal: bool, leaf: str) -> None:
    """The document speaks of a rate that is not continuous; guarded, it must rise by half."""
    loss = falling(600)
    loss[400:402] += 3
    run = make_run({"loss": loss, "lr": np.where(np.arange(600) < 400, 1e-3, factor * 1e-3)})
    assert (diagnose(run, TREE, literal=literal).end.id == "spike-lr-jump") is (leaf == "yes")


def test_a_run_is_shown_in_a_line_and_a_path_is_read() -> None:
    """A notebook shows no arrays, and a path that does not exist is told as such."""
    found = diagnose(load_run(FIXTURES / "phase19" / "nan-forward"))
    assert len(repr(found)) < 200
    assert "nan-forward" in repr(found)
    assert "array" not in repr(found.run)
    with pytest.raises(StabtreeError, match="there is no such file"):
        diagnose("run.csv")


def test_a_rerun_is_read_with_the_run() -> None:
    """`load_run(..., rerun=...)` holds the other run, as --rerun does."""
    folder = FIXTURES / "phase19"
    run = load_run(folder / "nan-forward", rerun=folder / "healthy")
    assert run.rerun is not None
    assert run.rerun.series["loss"].values[-1] == load_run(folder / "healthy").series["loss"].values[-1]
