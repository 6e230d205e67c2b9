"""What explains a spike, and what only looks like it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.run import Series
from tests.conftest import ask, make_run
from tests.predicates.judged import AT, TREE, Case, check, loss

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats

CASES: dict[str, Case] = {
    "a jump of the rate by plan": (
        {"loss": loss(spike=(500, 4)), "lr": np.where(AT < 500, 1e-4, 1e-3)},
        {"lr_schedule": "cosine_with_restarts"},
        "spike-unexplained",
    ),
    "an epoch's batches in their order": (
        {"loss": loss(spike=(540, 4)), "batch_id": AT % 500},
        {},
        "spike-unexplained",
    ),
    "the first batches of a shuffled epoch are the last ones of the epoch before": (
        {"loss": loss(spike=(482, 4)), "batch_id": np.where(AT // 30 % 2, 29 - AT % 30, AT % 30)},
        {},
        "spike-unexplained",
    ),
    "a loader that goes back by 50 batches": (
        {"loss": loss(spike=(540, 4)), "batch_id": np.where((AT >= 490) & (AT < 560), AT - 50, AT)},
        {},
        "spike-duplicate-batch",
    ),
    "a loader that goes back by more than half of its batches": (
        {"loss": loss(spike=(540, 4)), "batch_id": np.where(AT >= 520, AT - 400, AT)},
        {},
        "spike-duplicate-batch",
    ),
    "a second epoch in another order of the shards": (
        {"loss": loss(spike=(540, 4)), "batch_id": np.where(AT < 500, AT, (AT + 100) % 500)},
        {},
        "spike-unexplained",
    ),
    "a jump of the rate long after the spike is not its cause": (
        {"loss": loss() + np.where(AT >= 300, 2.0, 0), "lr": np.where(AT < 800, 1e-3, 5e-3)},
        {},
        "spike-persistent",
    ),
    "a restart of the cosine goes back to a rate that the run had": (
        {
            "loss": loss() + np.where(AT >= 500, 0.5 * np.exp(-(AT.clip(500) - 500) / 20), 0),
            "lr": 1e-3 * (1 - (AT % 500) / 500),
        },
        {},
        "spike-minor",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_run_that_is_easily_judged_wrong(case: Case) -> None:
    """The worst finding is what an engineer would name, and no finding blames what was not logged."""
    check(case)


def test_set_and_literal_reach_the_causes() -> None:
    """The panel below a leaf judges by the same thresholds as the question that led there."""
    grad_norm = np.where(AT == 500, 15.0, 1.0)
    run = make_run({"loss": loss(spike=(500, 4)), "grad_norm": grad_norm})
    usual = diagnose(run, TREE, overrides={"Q2.3": {"grad_norm_factor": 10.0}}).findings[0]
    assert {c.cause.id: str(c.state) for c in usual.causes}["Q2.3.grad_norm"] == "likely"
    letter = diagnose(run, TREE, literal=True).findings[0]
    assert (usual.leaf.id, letter.leaf.id) == ("spike-bad-batch", "spike-unexplained")


@pytest.mark.parametrize(
    ("lr", "told"),
    [
        (np.where(AT < 501, 1e-3, 2e-4), "lr does not rise by more than ×1 around the spike (limit ×1.5); it falls to"),
        (1e-60 * 1.6 ** np.minimum(AT, 520.0), "lr rises by no more than in the rows before: by ×1.6 at most"),
        (1e-3 * np.exp(-AT / 1000), "lr is continuous around the spike (largest change ×0.999, limit ×1.5)"),
    ],
    ids=["falls", "rises as before", "continuous"],
)
def test_what_lr_does_is_said_as_it_is(lr: Floats, told: str) -> None:
    """A fall is a change as well, and a rise above the limit is called continuous in no log."""
    columns = {"loss": loss(spike=(500, 4)), "lr": lr}
    found = ask("lr_jumps_at_spike", make_run(columns))
    assert found.verdict == "no"
    assert found.evidence[0].text.startswith(told)


@pytest.mark.parametrize(("later", "verdict"), [(1e-3, "no"), (9e-4, "unknown")])
def test_a_rare_lr_that_is_the_same_on_both_sides_did_not_jump(later: float, verdict: str) -> None:
    """Logged twice, before and after the spike: nothing else is known where the two differ."""
    run = make_run({"loss": loss(spike=(500, 4)), "lr": np.where(AT < 500, 1e-3, later)})
    sparse = Series("lr", run.series["lr"].steps[[0, 900]], run.series["lr"].values[[0, 900]])
    assert ask("lr_jumps_at_spike", replace(run, series={**run.series, "lr": sparse})).verdict == verdict
