"""Losses that are not finite: for good, for a while, and on the held-out data alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from stabtree.diagnosis.walk import answering, diagnose
from stabtree.loaders import load_run
from stabtree.predicates.metric.breaks import Finiteness, finiteness
from tests.conftest import falling, make_run
from tests.predicates.judged import AT, ONES, ROWS, TREE, Case, check, loss, lowered, nan_from

if TYPE_CHECKING:
    from pathlib import Path

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


@pytest.mark.parametrize(
    ("last", "config", "verdict"),
    [
        ("600,,1.0,0.1,7", {}, "warning"),
        ("600,,1.0,0.1,7", {"max_steps": 900}, "warning"),
        ("600,,1.0,0.1,7", {"max_steps": 600}, "ok"),
        ("600,,,0.1,7", {}, "critical"),
        ("600,,,0.1,7", {"max_steps": 601}, "ok"),
        ("600,,nan,0.1,7", {}, "critical"),
        ("600,,inf,0.1,7", {"max_steps": 600}, "critical"),
        ("600,,1.0,0.1,7\n601,,1.0,0.1,8", {"max_steps": 602}, "critical"),
    ],
)
def test_what_a_last_row_without_a_loss_means(tmp_path: Path, last: str, config: dict[str, int], verdict: str) -> None:
    """It is an alarm unless the run was done, and a NaN where grad_norm is none or not finite, too."""
    norms = np.random.default_rng(2).normal(1, 0.02, 600)
    rows = [f"{i},{value:.4f},{norms[i]:.4f},0.1,{i}" for i, value in enumerate(falling(600))]
    (tmp_path / "metrics.csv").write_text(
        "\n".join(["step,loss,grad_norm,lr,batch_id", *rows, last]) + "\n", encoding="utf-8"
    )
    (tmp_path / "manifest.json").write_text(json.dumps({"metrics_file": "metrics.csv", **config}), encoding="utf-8")
    assert diagnose(load_run(tmp_path), TREE).verdict == verdict


NAN = np.nan


def series_verdict(**columns: Any) -> str:
    """The answer of the check for a sound loss beside other columns."""
    diagnosis = diagnose(make_run({"loss": falling(40), **columns}))
    return answering(diagnosis)(diagnosis.tree.questions["P.finite"], {}).verdict


@pytest.mark.parametrize(
    ("values", "course"),
    [
        ([1.0, 2.0, 3.0], Finiteness.FINITE),
        ([NAN, 2.0, 3.0], Finiteness.UNDEFINED),
        ([NAN, NAN, NAN], Finiteness.UNDEFINED),
        ([1.0, NAN, 3.0], Finiteness.RETURNS),
        ([1.0, 2.0, np.inf], Finiteness.LOST),
        ([NAN, 2.0, NAN], Finiteness.RETURNS),
        ([1.0, NAN, 2.0, NAN, NAN], Finiteness.LOST),
    ],
)
def test_the_finiteness_a_series(values: list[float], course: Finiteness) -> None:
    """A last row alone does not show a loss of what was undefined for as long before."""
    series = make_run({"loss": falling(len(values)), "entropy": np.array(values)}).series["entropy"]
    assert finiteness(series) is course


def test_what_is_computed_is_worse_than_what_is_measured() -> None:
    """A loss that breaks for a while is reported; a measure need not be defined in each row."""
    lost = np.where(np.arange(40) >= 20, NAN, 1.0)
    gap = np.where(np.arange(40) == 20, NAN, 1.0)
    assert series_verdict(value_loss=lost) == "yes"
    assert series_verdict(token_accuracy=lost) == "measured"
    assert series_verdict(value_loss=gap) == "passing"
    assert series_verdict(token_accuracy=gap) == "no"


def test_a_loss_that_is_lost_itself_is_judged_by_section_1() -> None:
    """Its parts break with it."""
    lost = np.where(np.arange(40) >= 20, NAN, 1.0)
    assert series_verdict(loss=falling(40) * lost, value_loss=lost) == "no"
