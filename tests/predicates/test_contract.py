"""What must hold for every predicate, on any floats that a log may hold. No exemptions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stabtree.answer import NO, UNKNOWN, Answer
from stabtree.metrics.table import by_name
from stabtree.predicates import PREDICATES, Predicate
from stabtree.run import LogLine, Run, Series, Setting
from stabtree.tree.load import stated_for
from tests.conftest import facts_of, falling, make_run

NAMES = ("loss", "eval_loss", "grad_norm", "lr", "loss_scale", "batch_id", "weight_norm/a", "weight_norm/b")
LAYERS = ("activation_max/x", "activation_finite/x", "grad_norm/embed", "update_ratio/a", "update_ratio/b")
RARE = ("skipped_steps", "logits_max", "logsumexp", "attention_logits_max/x", "pad_share")
LEARNED = ("reward", "kl", "completion_length", "completion_length_max")
WILD = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, 1.0, -1.0, 65504.0, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf]),
)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Any run: each series with its own steps and any floats, and perhaps a dtype."""
    found: dict[str, Series] = {}
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    for name in draw(st.sets(st.sampled_from(NAMES + LAYERS + RARE + LEARNED))) | {"loss"}:
        rows = draw(st.integers(1, 150))
        pool = np.array(draw(st.lists(WILD, min_size=1, max_size=6)))
        steps = np.cumsum(rng.integers(1, draw(st.integers(2, 30)), rows))
        found[name] = Series(name, steps.astype(np.int64), pool[rng.integers(0, len(pool), rows)])
    dtype = draw(st.sampled_from([None, "fp16", "bf16", "fp32"]))
    config = {"dtype": Setting(dtype, "test")} if dtype else {}
    config |= {"n_classes": Setting(draw(st.integers(2, 10**6)), "test"), "grad_clip": Setting(1.0, "test")}
    rerun = Run("other", dict(list(found.items())[::2]), config) if draw(st.booleans()) else None
    lines = (LogLine(3, "RuntimeError: CUDA out of memory", at_end=True),) if draw(st.booleans()) else ()
    return Run("any", found, config, lines=lines, rerun=rerun)


def ask(predicate: Predicate, run: Run, **params: Any) -> Answer:
    """The answer with default parameters but the given ones."""
    return predicate.ask(facts_of(run), {**stated_for(predicate.name), **params})


@pytest.mark.parametrize("predicate", PREDICATES.values(), ids=PREDICATES)
@settings(max_examples=40, deadline=None)
@given(run=runs())
def test_any_floats_give_an_honest_answer(predicate: Predicate, run: Run) -> None:
    """Any run gets an answer; it is the same twice, changes nothing, and its numbers are finite."""
    before = {name: series.values.copy() for name, series in run.series.items()}
    answer = ask(predicate, run)
    assert answer == ask(predicate, run)
    for name, series in run.series.items():
        np.testing.assert_array_equal(series.values, before[name])
    assert answer.verdict in predicate.verdicts
    assert bool(answer.evidence) == (answer.verdict != UNKNOWN)
    assert bool(answer.reason) == (answer.verdict == UNKNOWN)
    for item in answer.evidence:
        assert item.text
        for number in (item.observed, item.threshold):
            assert number is None or math.isfinite(number)
        assert all(isinstance(step, int) for step in item.steps)


@pytest.mark.parametrize("predicate", PREDICATES.values(), ids=PREDICATES)
def test_a_required_series_that_is_missing_gives_unknown(predicate: Predicate) -> None:
    """Without a series that it needs, a predicate says unknown and names what to log."""
    for need in predicate.needs:
        if need.required and need.kind in ("Series", "Groups"):
            others = (n.name for n in predicate.needs if n.kind in ("Series", "Groups") and n.name != need.name)
            names = {name: [1.0] * 60 for name in others}
            answer = ask(predicate, make_run(names))
            assert answer.verdict == UNKNOWN
            assert answer.missing == (need.name,)
            assert by_name()[need.name].log


@pytest.mark.parametrize("predicate", PREDICATES.values(), ids=PREDICATES)
def test_a_predicate_declares_itself(predicate: Predicate) -> None:
    """The first docstring line is a question, the source is named, a shipped tree states every parameter."""
    assert predicate.question.endswith("?")
    assert predicate.source
    assert set(predicate.params) == set(stated_for(predicate.name))


SCALE_FREE = ("nonfinite_loss", "spike", "spike_recovers", "spike_cause", "loss_rising", "settled", "nonfinite_grad")


@pytest.mark.parametrize("name", SCALE_FREE)
@pytest.mark.parametrize("seed", range(3))
def test_scaling_the_loss_and_shifting_the_steps_change_no_verdict(name: str, seed: int) -> None:
    """A loss in other units, or a run that starts at another step, gets the same verdict."""
    loss = falling(600, seed=seed)
    loss[400] += 3
    columns = {"loss": loss, "lr": np.full(600, 1e-3), "grad_norm": np.ones(600)}
    here = ask(PREDICATES[name], make_run(columns))
    scaled = ask(PREDICATES[name], make_run({**columns, "loss": loss * 1024}))
    shifted = ask(PREDICATES[name], make_run(columns, steps=range(70_000, 70_600)))
    assert here.verdict == scaled.verdict == shifted.verdict
    if here.onset_step is not None:
        assert shifted.onset_step == here.onset_step + 70_000


def test_every_no_shows_how_far_the_run_stayed_away() -> None:
    """On a healthy run each `no` of a threshold question shows what was seen against what it takes."""
    columns = {"loss": falling(600), "lr": np.full(600, 1e-3), "grad_norm": np.ones(600), "weight_norm": np.ones(600)}
    for name in ("spike", "loss_rising", "lr_rising", "weight_norm_change", "grad_norm_rising"):
        answer = ask(PREDICATES[name], make_run(columns))
        assert answer.verdict == NO
        assert answer.evidence[0].observed is not None
        assert answer.evidence[0].threshold is not None
