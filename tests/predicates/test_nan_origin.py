"""Where a NaN began."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.run import Setting
from tests.conftest import ask, falling, make_run
from tests.predicates.judged import AT, NOISY, TREE, Case, check, loss, nan_from

CASES: dict[str, Case] = {
    "a gradient that explodes slowly": (
        {"loss": loss(nan_from=900), "grad_norm": nan_from(900, np.exp(np.clip(AT - 600, 0, 300) / 43))},
        {"dtype": "fp32"},
        "nan-backward",
    ),
    "a grad_norm logged after clipping proves nothing": (
        {"loss": loss(nan_from=900), "grad_norm": nan_from(900)},
        {"dtype": "fp32"},
        "nan-unlocated",
    ),
    "a loss that explodes before it breaks": (
        {"loss": nan_from(900, loss() * np.exp(np.clip(AT - 850, 0, 50) / 3)), "grad_norm": nan_from(900)},
        {"dtype": "fp32"},
        "nan-backward",
    ),
    "a gradient that stays ordinary after an infinite loss, which log(0) makes": (
        {"loss": np.where(AT < 900, loss(), np.inf), "grad_norm": NOISY},
        {"dtype": "fp32"},
        "nan-forward",
    ),
    "a gradient that stays ordinary under a loss of NaN": (
        {"loss": loss(nan_from=900), "grad_norm": NOISY},
        {"dtype": "fp32"},
        "nan-logged",
    ),
    "a gradient that is repeated row after row": (
        {"loss": loss(nan_from=900), "grad_norm": np.where(AT < 900, NOISY, 1.0)},
        {"dtype": "fp32"},
        "nan-forward",
    ),
}


@pytest.mark.parametrize(
    ("every", "reduced", "leaf"), [(5, "mean", "nan-unlocated"), (5, "last", "nan-forward"), (1, "mean", "nan-forward")]
)
def test_a_mean_over_several_steps_hides_what_broke_first(every: int, reduced: str, leaf: str) -> None:
    """Within a row that is the mean of five steps, an ordinary gradient in the row before proves no forward pass."""
    columns = {"loss": loss(nan_from=900), "grad_norm": nan_from(900, NOISY)}
    run = make_run(columns, steps=every * AT, dtype="fp32", log_reduce=reduced)
    found = diagnose(run, TREE)
    assert found.end.id == leaf
    told = [visit.answer.reason for visit in found.path if visit.question.id == "Q1.3"]
    assert ("mean of 5 steps" in told[0]) is (leaf == "nan-unlocated")


def test_no_restart_where_only_the_logged_loss_is_lost() -> None:
    """The weights are sound: a warning without a restart, and no fix that reloads anything."""
    finding = diagnose(make_run({"loss": loss(nan_from=900), "grad_norm": NOISY}, dtype="fp32"), TREE).findings[0]
    assert (str(finding.leaf.severity), finding.restart) == ("warning", None)
    assert not any("eload" in fix for fix in finding.fixes)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_run_that_is_easily_judged_wrong(case: Case) -> None:
    """The worst finding is what an engineer would name, and no finding blames what was not logged."""
    check(case)


@pytest.mark.parametrize(("key", "value", "told"), [("lr", 1e-4, "unknown"), ("seed", 4, "gone")])
def test_a_rerun_with_another_configuration_tells_nothing_of_chance(key: str, value: float, told: str) -> None:
    """A NaN that is gone with another rate was not gone by chance; with another seed it is the same training."""
    loss = falling(200)
    run = make_run({"loss": np.where(np.arange(200) >= 150, np.nan, loss)}, lr=1e-3, seed=3)
    other = replace(run, series=make_run({"loss": loss}).series, config={**run.config, key: Setting(value, "test")})
    answer = ask("nan_returns", replace(run, rerun=other))
    assert answer.verdict == told
    if told == "unknown":
        assert "trained otherwise (lr)" in answer.reason
