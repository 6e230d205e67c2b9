"""Losses that are not finite: for good, for a while, and on the held-out data alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from tests.conftest import falling, make_run
from tests.predicates.judged import AT, ONES, ROWS, TREE, Case, check, loss, lowered, nan_from

CASES: dict[str, Case] = {
    "bf16 has no scaler to blame": ({"loss": loss(nan_from=900)}, {"dtype": "bf16"}, "nan-unlocated"),
    "one NaN in fp16 that was got over": (
        {"loss": np.where(AT == 100, np.nan, loss()), "grad_norm": np.where(AT == 99, np.inf, 1.0)},
        {"dtype": "fp16"},
        "nan-skipped",
    ),
    "mostly NaN, finite at the end": ({"loss": np.where((AT > 100) & (AT < 970), np.nan, loss())}, {}, "nan-unlocated"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_run_that_is_easily_judged_wrong(case: Case) -> None:
    """The worst finding is what an engineer would name, and no finding blames what was not logged."""
    check(case)


def test_a_nan_never_ends_in_a_leaf_that_is_ok() -> None:
    """Whatever else is logged, a loss that is NaN at the end is critical."""
    for dtype in (None, "fp16", "bf16", "fp32", "fp8"):
        for scale in (None, ONES, ONES * 65536, lowered(600, 3), lowered(600, 40), ONES * np.nan):
            for grad_norm in (None, ONES, nan_from(900), nan_from(300)):
                columns = {"loss": loss(nan_from=900), "loss_scale": scale, "grad_norm": grad_norm}
                config: dict[str, Any] = {"dtype": dtype} if dtype else {}
                run = make_run({k: v for k, v in columns.items() if v is not None}, **config)
                assert diagnose(run, TREE).verdict == "critical"


def test_an_eval_loss_that_breaks_is_found() -> None:
    """NaN on the held-out data alone, as an exporter of training loss hides it."""
    evals = np.where(AT < 600, falling(ROWS), np.nan)
    found = diagnose(make_run({"loss": loss(), "eval_loss": evals}))
    assert next((f.leaf.id, f.onset_step) for f in found.findings) == ("eval-nonfinite", 600)
    once = diagnose(make_run({"loss": loss(), "eval_loss": np.where(AT == 600, np.nan, falling(ROWS))}))
    assert once.verdict in ("ok", "note")
