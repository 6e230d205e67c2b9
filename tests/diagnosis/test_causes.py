"""What a finding says of its causes: which it tells, in which state, and what rules one out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from stabtree.diagnosis.result import CauseState
from stabtree.diagnosis.walk import diagnose
from stabtree.errors import StabtreeError
from stabtree.loaders import load_run
from stabtree.tree.load import build, load_trees
from tests.conftest import ask, facts_of, make_run
from tests.leaves.make import AT, ROWS, healthy, nan_from, noisy

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.diagnosis.result import JudgedCause
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


def test_a_rate_inside_its_bar_is_no_more_than_possible() -> None:
    """Adam above 0.01 is likely too high, an eighth below it possible, at 1e-4 not confirmed."""
    states = []
    for lr in (0.0112, 0.0088, 1e-4):
        run = make_run({"loss": noisy(2.3, sigma=0.005)}, lr=lr, optimizer="adamw_torch")
        states.append(str(causes(run, "flat-from-start")["O22.high"].state))
    assert states == ["likely", "possible", "not confirmed"]


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
    ],
)
def test_what_a_cause_needs_is_known_or_not(
    config: dict[str, Any], holds: dict[str, tuple[str, ...]], fits: bool | None
) -> None:
    """The configuration says that it holds, that it does not, or nothing."""
    run = make_run(healthy(), **config)
    assert facts_of(run).get("circumstances").fit(holds) is fits


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
