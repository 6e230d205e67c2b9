"""What to log next time: never what is there, grouped by what it answers, the most useful first."""

from __future__ import annotations

import numpy as np
import pytest

from stabtree.common.answer import UNKNOWN
from stabtree.common.text import in_words
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.report.screen import full
from stabtree.run import Run
from stabtree.tree.load import load_trees
from tests.conftest import FIXTURES, falling, make_run
from tests.measures.judged import loss as judged_loss

TREES = load_trees()


def test_a_short_log_lacks_rows_and_no_metric() -> None:
    """Too few rows is said as that, with both numbers, and nothing is advised for it."""
    found = diagnose(make_run({"loss": falling(30), "grad_norm": np.ones(30)}, dtype="fp32"), TREES)
    miss = next(miss for miss in found.missing if miss.id == "O14.calm")
    assert (miss.metrics, miss.log) == ((), "")
    assert "nothing to log would help: the loss has 30 finite" in " ".join(full(found).split())


def test_what_does_not_apply_is_no_entry() -> None:
    """fp16's underflow is no question of an fp32 run, and bf16 has no loss scale."""
    columns = {"loss": falling(300), "grad_norm": np.ones(300)}
    ids = {miss.id for miss in diagnose(make_run(columns, dtype="fp32"), TREES).missing}
    assert "P10.log" not in ids
    assert "P10.log" in {miss.id for miss in diagnose(make_run(columns), TREES).missing}
    columns = {"loss": falling(300), "grad_norm": np.where(np.arange(300) % 40 == 9, np.inf, 1.0)}
    assert all("loss_scale" not in miss.metrics for miss in diagnose(make_run(columns, dtype="bf16"), TREES).missing)


def test_a_setting_that_lacks_is_named_as_one() -> None:
    """What a manifest would tell is no metric to log; where the manifest tells it, it is not asked for."""
    columns = {"loss": falling(300), "grad_norm": np.ones(300), "lr": np.full(300, 1e-3)}
    logs = {miss.id: miss.log for miss in diagnose(make_run(columns), TREES).missing}
    assert logs["O1.start"] == "add n_classes to the manifest"
    assert logs["O23"] == "add lr_schedule to the manifest"
    assert logs["P13.log"] == "add grad_clip to the manifest"
    told = make_run(columns, vocab_size=10, lr_schedule="constant", grad_clip=0.0, dtype="fp32")
    assert not {"O1.start", "O23", "P13.log"} & {miss.id for miss in diagnose(told, TREES).missing}


def test_a_metric_that_is_named_like_a_setting_is_still_advised() -> None:
    """The lr of the manifest is no series of it."""
    run = make_run({"loss": falling(400)}, lr=1e-3, dtype="fp32")
    assert ("lr",) in {item.names for item in diagnose(run, TREES).log_next}


@pytest.mark.parametrize(
    ("task", "wanted"), [("language", "vocab_size"), ("classification", "n_classes"), ("detection", "")]
)
def test_a_run_is_asked_for_what_its_guesses_are_among(task: str, wanted: str) -> None:
    """A detector has no vocabulary, and a classifier counts classes."""
    found = diagnose(make_run({"loss": falling(400)}, task=task), TREES)
    named = {name for miss in found.missing for name in miss.metrics}
    assert named & {"vocab_size", "n_classes"} == {wanted} - {""}


def test_what_answers_the_same_questions_is_one_entry() -> None:
    """Metrics are grouped by what they would unlock, each question once."""
    found = diagnose(load_run(FIXTURES / "phase19" / "spike-unexplained"), TREES)
    names = {item.names: item.unlocks for item in found.log_next}
    assert names["batch_id", "grad_norm"] == ("Q2.3",)
    assert all(len(set(item.unlocks)) == len(item.unlocks) for item in found.log_next)


def test_the_full_report_names_all_that_could_be_logged() -> None:
    """The most useful first: what the verdict lacks, then what tells the cause."""
    empty = diagnose(make_run({"lr": np.full(12, 1e-3)}), TREES)
    assert empty.verdict == UNKNOWN
    assert empty.log_next[0].names == ("loss",)
    found = diagnose(make_run({"loss": falling(400)}), TREES)
    told = full(found).partition("what to log next time")[2]
    assert all(f"{in_words(item.names)} →" in " ".join(told.split()) for item in found.log_next)


@pytest.mark.parametrize(("grad", "leaf"), [(1.0, "nan-forward"), (500.0, "nan-backward")])
def test_the_measurement_that_is_said_to_decide_between_leaves_does(grad: float, leaf: str) -> None:
    """A NaN that the log can't place: grad_norm is named, and with it the forward and the backward pass differ."""
    loss = judged_loss(nan_from=900)
    found = diagnose(make_run({"loss": loss}, dtype="fp32"), TREES)
    assert found.end.id == "nan-unlocated"
    advice = next(item for item in found.log_next if "grad_norm" in item.names)
    assert any("the row before was sound" in text and "The run blew up" in text for text in advice.decides)
    norm = 1 + 0.1 * np.random.default_rng(1).random(len(loss))
    norm[895:] *= grad
    norm[900:] = np.nan
    with_it = diagnose(make_run({"loss": loss, "grad_norm": norm}, dtype="fp32"), TREES)
    assert with_it.end.id == leaf
    assert not any("grad_norm" in item.names for item in with_it.log_next)


def test_where_the_path_hinges_on_the_precision_it_is_told() -> None:
    """Between which diagnoses --dtype would decide; nothing where each leads to the same, or where it is known."""
    whole = load_run(FIXTURES / "phase19" / "fp16-overflow")
    bare = {name: whole.series[name] for name in ("loss", "grad_norm", "lr")}
    run = Run("bare", bare)
    (told,) = [item for item in diagnose(run).log_next if "dtype" in item.names]
    assert told.decides[0].startswith('between "The')
    for word in ("fp16", "bf16"):
        known = diagnose(load_run(FIXTURES / "phase19" / "fp16-overflow", dtype=word))
        assert not [item for item in known.log_next if "dtype" in item.names]
        leaf = diagnose(run, answers={"Q1.2": word}).end.title
        assert leaf in told.decides[0]
    healthy = Run("bare", {"loss": load_run(FIXTURES / "phase19" / "healthy").series["loss"]})
    assert not any(text.startswith("between") for item in diagnose(healthy).log_next for text in item.decides)
