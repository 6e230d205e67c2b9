"""What a finding says of its causes: which it tells, in which state, and what rules one out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec import structs

from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.causes import by_strength
from stabtree.diagnosis.judged import CauseState, JudgedCause
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.tree.load import build, load_trees
from tests.conftest import ask, facts_of, make_run
from tests.leaves.make import AT, ROWS, growing, healthy, nan_from, noisy

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.run import Run

TREES = load_trees()
JUMPED = healthy()["loss"] + np.where(AT >= 400, 3.0, 0.0)


def causes(run: Run, leaf: str) -> dict[str, JudgedCause]:
    """The causes of a finding, by id, in their order."""
    finding = next(finding for finding in diagnose(run, TREES).findings if finding.leaf.id == leaf)
    return {judged.cause.id: judged for judged in finding.causes}


def test_only_a_rate_that_was_logged_throughout_is_ruled_out() -> None:
    """A steady rate beside each row of the loss speaks against a schedule bug; one seen now and then does not."""
    whole = make_run(healthy(loss=JUMPED))
    assert causes(whole, "spike-persistent")["Q2.4.lr"].state is CauseState.RULED_OUT
    some = {**whole.series, "lr": make_run({"lr": np.full(ROWS // 2, 1e-3)}, steps=AT[::2]).series["lr"]}
    partly = type(whole)(name="partly", series=some)
    assert causes(partly, "spike-persistent")["Q2.4.lr"].state is CauseState.NOT_CONFIRMED


def test_only_batches_that_all_differ_are_ruled_out() -> None:
    """A loader that went back by 50 batches once is not cleared, although none of them came back at the spike."""
    fresh = make_run(healthy(loss=JUMPED, batch_id=AT))
    assert causes(fresh, "spike-persistent")["Q2.4.batch"].state is CauseState.RULED_OUT
    rewound = make_run(healthy(loss=JUMPED, batch_id=np.where(AT >= 250, AT - 50, AT)))
    assert causes(rewound, "spike-persistent")["Q2.4.batch"].state is CauseState.NOT_CONFIRMED


def test_what_is_proved_leaves_the_others_possible_at_most() -> None:
    """Beside a jump of the rate that is logged, a high grad_norm is its consequence; causes stand in their order."""
    norm = noisy(1.0) * np.where(AT >= 400, 50.0, 1.0)
    run = make_run(healthy(loss=JUMPED, lr=np.where(AT >= 399, 1e-2, 1e-3), batch_id=AT % 100, grad_norm=norm))
    found = causes(run, "spike-persistent")
    assert found["Q2.4.lr"].state is CauseState.CONFIRMED
    assert CauseState.LIKELY not in {judged.state for judged in found.values()}
    order = list(CauseState)
    own = {cause.id for cause in TREES.leaves["spike-persistent"].causes}
    ranks = [order.index(judged.state) for id_, judged in found.items() if id_ in own]
    assert ranks == sorted(ranks)


def test_what_is_seen_only_after_a_proved_cause_is_its_consequence() -> None:
    """A gradient that explodes where the rate jumped, or after it, is no bad batch."""
    rate = np.where(AT >= 399, 1e-2, 1e-3)
    late = make_run(healthy(loss=JUMPED, lr=rate, grad_norm=noisy(1.0) * np.where(AT >= 403, 50.0, 1.0)))
    found = causes(late, "spike-persistent")["Q2.4.grad_norm"]
    assert found.state is CauseState.RULED_OUT
    at_once = make_run(healthy(loss=JUMPED, lr=rate, grad_norm=noisy(1.0) * np.where(AT == 399, 50.0, 1.0)))
    assert causes(at_once, "spike-persistent")["Q2.4.grad_norm"].state is CauseState.RULED_OUT


def test_what_needs_something_unknown_comes_after_what_may_be_anyway() -> None:
    """A loss of 0 is first blamed on masked labels where a language model is trained, else on the term's weight."""
    zero = {"loss": np.zeros(ROWS)}
    assert next(iter(causes(make_run(zero, task="CAUSAL_LM"), "loss-zero"))) == "O14.masked"
    assert next(iter(causes(make_run(zero), "loss-zero"))) == "O14.weight"


def test_up_to_a_break_each_rate_counts() -> None:
    """A warm-up that reaches SGD's limit after a third of the run, where the loss breaks, was too high by then."""
    run = make_run(healthy(loss=nan_from(500, healthy()["loss"]), lr=AT / 250), optimizer="sgd")
    rate = ask("rate_too_high", run)
    assert rate.verdict == "likely"
    assert rate.evidence[0].observed == pytest.approx(499 / 250)


def test_a_rate_inside_its_bar_is_no_more_than_possible() -> None:
    """Adam above 0.01 is likely too high, below it possible down to a twentieth of it, and then not confirmed."""
    states = []
    for lr in (0.0112, 0.0088, 5.5e-4, 4.5e-4):
        run = make_run({"loss": noisy(2.3, sigma=0.005)}, lr=lr, optimizer="adamw_torch")
        states.append(str(causes(run, "flat-from-start")["O22.high"].state))
    assert states == ["likely", "possible", "possible", "not confirmed"]


def test_a_rate_that_nothing_speaks_for_is_guessed_of_a_flat_loss_only() -> None:
    """Where no rate is known it may be too high under a loss that is flat; a rise may have many causes."""
    flat = make_run({"loss": noisy(2.3, sigma=0.005)})
    assert causes(flat, "flat-from-start")["O22.high"].state is CauseState.POSSIBLE
    jumped = make_run({"loss": JUMPED})
    assert "T30" not in causes(jumped, "spike-persistent")


def test_a_loss_that_the_log_writes_as_zero_is_still_read_as_it_stands(tmp_path: Path) -> None:
    """A trainer that writes 0.0 beside a NaN gradient from the start is told all labels may be masked, not a card."""
    rows = "".join(f"{step},{0.0},nan,{1e-4 * (1 - step / 400)}\n" for step in range(2, 200))
    log = tmp_path / "log.csv"
    log.write_text(f"step,loss,grad_norm,lr\n1,2.5,1.0,0.0001\n{rows}", encoding="utf-8")
    run = load_run(log)
    assert np.isnan(run.series["loss"].values[-1])
    assert run.written["loss"].values[-1] == 0
    found = diagnose(run, TREES).findings[0]
    assert "T3" in {judged.cause.id for judged in found.causes if judged.state is CauseState.POSSIBLE}


def test_an_order_that_a_mean_hides_is_not_told() -> None:
    """Where a row stands for ten steps, nobody has seen that the loss was ordinary to the last."""
    run = make_run({"loss": nan_from(30, noisy(2.0, 60))}, steps=10 * np.arange(60), grad_clip=0)
    assert ask("loss_before_break", run, climbs=False).verdict == "unknown"


def test_a_loss_scattered_over_decades_does_not_climb_to_its_break() -> None:
    """Its last value stands far above the median, and not above all rows before; a steady climb does."""
    rows = np.exp(np.random.default_rng(2).normal(-8, 3, 60))
    rows[38:40] = 10 * rows[20:38].max(), 3 * float(np.median(rows[20:40]))
    wild = make_run({"loss": nan_from(40, rows)})
    risen = make_run({"loss": nan_from(40, np.geomspace(1, 100, 60))})
    options = {"factor": 1.5, "rows": 20, "min_rows": 6}
    assert [ask("loss_before_break", run, **options).verdict for run in (wild, risen)] == ["no", "likely"]


@pytest.mark.parametrize(("first", "verdict"), [(1.0, "likely"), (0.2, "possible")])
def test_answers_that_came_to_be_cut_off_are_no_limit_that_was_too_low(first: float, verdict: str) -> None:
    """A limit that is too low cuts the very first answers; later ones are what training made of them."""
    cut = np.r_[first, np.ones(39)]
    run = make_run({"reward": np.ones(40), "clipped_ratio": cut})
    assert ask("above_throughout", run, metric="clipped_ratio", level=0.8, share=0.9, rows=5).verdict == verdict


def test_a_level_is_not_blamed_on_the_data_where_the_gradient_grew_first() -> None:
    """A loss that jumps for good under an ordinary gradient is shown other data; one behind a growing gradient, not."""
    at = np.arange(600)
    loss = noisy(2.0, 600, sigma=0.02) + np.where(at >= 400, 3.0, 0.0)
    norms = (noisy(1.0, 600, sigma=0.02), noisy(1.0, 600, sigma=0.02) * np.exp(np.clip(at - 320, 0, 80) / 60))
    told = [causes(make_run({"loss": loss, "grad_norm": norm}), "spike-persistent")["T32"] for norm in norms]
    assert [str(item.state) for item in told] == ["likely", "not confirmed"]
    assert "grad_norm" in told[1].evidence[0].text


@pytest.mark.parametrize(("every", "leaf"), [(1, "nan-forward"), (5, "fp16-suspected")])
def test_what_broke_first_within_a_row_is_not_told(every: int, leaf: str) -> None:
    """Loss and gradient that break in one row of an fp16 run tell their order only where a row is a step."""
    loss, norm = nan_from(90, noisy(2.0, 100)), nan_from(90, noisy(1.0, 100))
    run = make_run({"loss": loss, "grad_norm": norm}, steps=every * np.arange(100), dtype="fp16")
    assert diagnose(run, TREES).findings[0].leaf.id == leaf
    assert causes(run, leaf)["Q1.4.activation" if every == 1 else "Q3.4.activation"].state is CauseState.POSSIBLE


@pytest.mark.parametrize(("dtype", "told"), [("fp16", True), ("bf16", False)])
def test_a_flat_loss_in_fp16_may_be_skipped_steps(dtype: str, told: bool) -> None:
    """A scaler that skips every step leaves the loss where it began; other formats have none."""
    run = make_run({"loss": noisy(2.3, 600, sigma=0.005)}, dtype=dtype)
    assert ("T4" in causes(run, "flat-from-start")) is told


@pytest.mark.parametrize(
    ("config", "holds", "fits"),
    [
        ({"dtype": "bf16"}, {"precision": ("fp16",)}, False),
        ({}, {"precision": ("fp16",)}, None),
        ({"optimizer": "paged_adamw_8bit"}, {"optimizer": ("adam",)}, True),
        ({"optimizer": "sgd"}, {"optimizer": ("adam",)}, False),
        ({"vocab_size": 32_000}, {"task": ("ctc",)}, False),
        ({"n_classes": 10}, {"task": ("language-model",)}, False),
        ({"grad_clip": 1.0}, {"clipping": ("off",)}, False),
        ({"device": "cuda:0"}, {"device": ("gtx16",)}, None),
        ({"device": "NVIDIA A100"}, {"device": ("gtx16",)}, False),
        ({"device": "cpu"}, {"device": ("cuda",)}, False),
        ({"dtype": "bf16"}, {"precision": ("bf16",), "framework": ("deepspeed",)}, None),
        ({"task": "classification"}, {"task": ("language-model",)}, False),
        ({"task": "next-char"}, {"task": ("language-model",)}, True),
        ({"task": "regression"}, {"task": ("classification", "language-model")}, False),
        ({}, {"library": ("torch",)}, True),
    ],
)
def test_what_a_cause_needs_is_known_or_not(
    config: dict[str, Any], holds: dict[str, tuple[str, ...]], fits: bool | None
) -> None:
    """The configuration says that it holds, that it does not, or nothing."""
    run = make_run(healthy(), **config)
    assert facts_of(run).get("conditions").fit(holds) is fits


TREE = """
name: own
title: Own
sections: [{{id: "1", title: One, entry: Q, when: [loss]}}]
questions:
  - id: Q
    section: "1"
    ask: Is it?
    test: is_logged
    params: {{metric: loss}}
    go: {{possible: bad, no: bad}}
    source: us
leaves:
  - id: bad
    of: Q
    title: Bad
    severity: warning
    causes: [{{id: C, text: a cause, holds: {holds}}}]
    fixes: [Mend it.]
    source: us
"""


@pytest.mark.parametrize(
    ("holds", "told"),
    [
        ("{precison: [fp16]}", "did you mean 'precision'"),
        ("{precision: [fp61]}", "did you mean 'fp16'"),
        ("{precision: fp16}", "a mapping of words to lists of words"),
        ("{precision: []}", "no precision at all"),
    ],
)
def test_a_condition_that_is_none_is_a_mistake(holds: str, told: str) -> None:
    """`tree check` names the key or the word that is not known."""
    with pytest.raises(StabtreeError, match=told):
        build(TREE.format(holds=holds), "own.yaml")


def test_causes_stand_by_state_whichever_leaf_they_come_from() -> None:
    """What is possible for a sign of the event stands before what the event's own leaf can't check."""
    cause = TREES.leaves["spike-unexplained"].causes[0]
    own = [JudgedCause(cause, CauseState.NOT_CHECKABLE)]
    other = [JudgedCause(structs.replace(cause, id="other"), CauseState.LIKELY)]
    assert [item.state for item in by_strength(own, other)] == [CauseState.POSSIBLE, CauseState.NOT_CHECKABLE]


@pytest.mark.parametrize(
    ("column", "told"), [("mood", True), ("train_l2_error", False), ("pde_residual", False), ("val_iou", False)]
)
def test_masked_labels_are_told_where_text_may_be_trained(tmp_path: Path, column: str, told: bool) -> None:
    """A loss of 0 beside the residual of an equation, or beside an overlap of boxes, has no masked labels."""
    log = tmp_path / "log.csv"
    rows = "".join(f"{step},0.0,{0.5 + step % 7 / 100}\n" for step in range(200))
    log.write_text(f"step,loss,{column}\n{rows}", encoding="utf-8")
    assert ("O14.masked" in causes(load_run(log), "loss-zero")) is told


def test_pairs_are_swapped_only_where_pairs_are_trained() -> None:
    """A loss that rises is blamed on chosen and rejected where the log or the configuration names preferences."""
    rising = healthy()["loss"] + np.maximum(AT - 300, 0) / 100
    assert "T48" not in causes(make_run({"loss": rising}), "slow-rise")
    assert "T48" in causes(make_run({"loss": rising}, task="dpo"), "slow-rise")


def test_a_loss_that_never_comes_back_is_not_told_to_have() -> None:
    """Neither the headline nor the evidence says so of a loss that ends a little above its old level."""
    loss = np.where(AT < 60, 4e4, 1.0) * noisy(1.0, ROWS, 0.01)
    loss[300:400] = 9e4
    loss[400:] += 2.0
    finding = diagnose(make_run({"loss": loss}), TREES).findings[0]
    told = " ".join([finding.leaf.title, *(item.text for item in finding.evidence)])
    assert finding.leaf.id == "spike-unexplained"
    assert "is not back after" in told
    assert "came back" not in told
    assert "to come back" not in told


def test_a_loss_that_was_thrown_up_has_not_hardly_fallen() -> None:
    """It falls, and stays above its first level: that is worse than at the start."""
    loss = np.interp(AT, [0, 30, 90, 150, ROWS], [5.0, 5.0, 20.0, 6.5, 5.4]) * noisy(1.0, ROWS, 0.02)
    ids = {finding.leaf.id for finding in diagnose(make_run({"loss": loss}), TREES).findings}
    assert "worse-than-start" in ids
    assert not ids & {"slow-learning", "flat-from-start"}


def test_an_eval_loss_that_never_fell_is_said_so() -> None:
    """Its best is its very first value."""
    evals = np.linspace(1.0, 4.0, 30)
    loss = {"loss": np.linspace(1.0, 0.2, ROWS)}
    run = make_run(loss)
    run = replace(
        run, series={**run.series, "eval_loss": make_run({"eval_loss": evals}, 20 * np.arange(30)).series["eval_loss"]}
    )
    finding = next(item for item in diagnose(run, TREES).findings if item.leaf.id == "overfitting")
    assert "eval_loss is 300% above its best, 1 at step 0: 4 now" in finding.evidence[0].text
    assert finding.restart is None
    assert finding.last_good_step is None


def test_nobody_starts_again_on_the_word_of_an_evaluation_that_may_be_at_fault() -> None:
    """Where held-out data that are prepared differently may be why no evaluation was better than the first."""
    run = make_run({"loss": growing(5.0, 2.0), "eval_loss": noisy(np.linspace(5.0, 6.5, ROWS), sigma=0.01)})
    found = next(item for item in diagnose(run, load_trees(run)).reached if item.leaf.id == "overfitting")
    assert any(item.cause.sound for item in found.causes)
    assert found.restart is None
