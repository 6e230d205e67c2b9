"""Runs that are in memory already."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import stabtree
from stabtree.common.errors import StabtreeError
from tests.conftest import falling

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS = 300
STEPS = np.arange(ROWS)


def broken() -> NDArray[np.float64]:
    """A loss that is NaN from row 200 on."""
    loss = falling(ROWS)
    loss[200:] = np.nan
    return loss


def records() -> list[dict[str, Any]]:
    """What a trainer keeps of a healthy run: rows of the training, and of the evaluation between them."""
    found: list[dict[str, Any]] = []
    for step, loss in zip(STEPS, falling(ROWS), strict=True):
        found.append({"step": step, "loss": loss, "learning_rate": 1e-3, "grad_norm": np.float32(1.0)})
        if step % 50 == 49:
            found.append({"step": step, "eval_loss": float(loss) + 0.1})
    return found


@pytest.mark.parametrize(
    "data",
    [
        {"step": STEPS, "loss": broken()},
        {"step": STEPS.tolist(), "loss": broken().tolist()},
        [{"step": step, "loss": loss} for step, loss in zip(STEPS, broken(), strict=True)],
        pd.DataFrame({"step": STEPS, "loss": broken()}),
        pd.DataFrame({"loss": broken()}, index=pd.Index(STEPS, name="step")),
    ],
    ids=["arrays", "lists", "records", "frame", "index"],
)
def test_a_nan_is_found_in_whatever_holds_it(data: Any) -> None:
    """The verdict and the onset are those of the file with the same rows."""
    found = stabtree.diagnose(data)
    assert found.verdict == "critical"
    assert found.findings[0].onset_step == 200


def test_rows_of_an_evaluation_hold_no_loss() -> None:
    """Empty cells of a DataFrame are no NaN of the loss, and its evaluations are all there."""
    found = stabtree.diagnose(pd.DataFrame(records()))
    assert found.run.series["loss"].values.tolist() == pytest.approx(falling(ROWS).tolist())
    assert len(found.run.series["eval_loss"]) == ROWS // 50
    assert found.verdict == stabtree.diagnose(records()).verdict == "ok"


def test_what_is_nothing_in_pandas_is_nothing() -> None:
    """`NA` in a column or a record is no value, and an index of steps counts without a name."""
    values = [pd.NA if step % 9 == 4 else loss for step, loss in zip(STEPS, falling(ROWS), strict=True)]
    assert len(stabtree.load_run({"step": STEPS, "loss": values}).series["loss"]) == ROWS - 33
    assert stabtree.load_run([{"loss": value} for value in values]).series["loss"].values[-1] > 0
    run = stabtree.load_run(pd.DataFrame({"loss": falling(ROWS)}, index=STEPS * 10))
    assert run.last_step == 10 * (ROWS - 1)


def test_a_run_as_a_frame_is_the_same_run() -> None:
    """What `to_frame` gives is diagnosed as the run itself."""
    run = stabtree.load_run(records())
    frame = run.to_frame()
    assert frame.index.name == "step"
    again = stabtree.load_run(frame)
    assert {name: series.values.tolist() for name, series in again.series.items()} == {
        name: series.values.tolist() for name, series in run.series.items()
    }


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_of_other_libraries_are_read(library: str) -> None:
    """A NaN in them is one, a null is nothing."""
    module = pytest.importorskip(library)
    make = module.DataFrame if library == "polars" else module.table
    held_out = [float(step) if step % 50 == 49 else None for step in STEPS]
    found = stabtree.diagnose(make({"step": STEPS, "loss": broken(), "eval_loss": held_out}))
    assert found.findings[0].onset_step == 200
    assert len(found.run.series["eval_loss"]) == ROWS // 50


def test_a_lazy_frame_is_refused() -> None:
    """It holds no values yet: the hint says what to call."""
    lazy = pytest.importorskip("polars").LazyFrame({"step": STEPS, "loss": broken()})
    with pytest.raises(StabtreeError, match="holds no values yet"):
        stabtree.diagnose(lazy)


def test_a_value_that_is_too_large_is_told_as_it_was_logged() -> None:
    """The jump goes up to what the log says; where several are too large none is told that is not in it."""
    loss = falling(ROWS)
    loss[200] = 1e150
    found = stabtree.diagnose({"step": STEPS, "loss": loss})
    text = json.dumps(found.to_dict()["findings"])
    assert "up to 1e150" in text
    assert "up to 1e100" not in text
    loss[200:210] = np.geomspace(1e120, 1e150, 10)
    assert "up to 1e100 or more" in json.dumps(stabtree.diagnose({"step": STEPS, "loss": loss}).to_dict()["findings"])


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (3, "a int is no run"),
        ({"loss": "abc"}, "no list of values"),
        ([1, 2], "values without a name"),
        (np.array(3.0), "a ndarray is no run"),
        (falling(ROWS), "values without a name"),
        ({"step": STEPS, "loss": [1.0, 2.0]}, "step has 300 values, loss 2"),
        (pd.DataFrame([[1, 2]], columns=["loss", "loss"]), "two columns called 'loss'"),
        ("nowhere.csv", "no such file"),
    ],
)
def test_what_is_no_run_is_refused(data: Any, problem: str) -> None:
    """A sentence says what to give."""
    with pytest.raises(StabtreeError, match=problem):
        stabtree.diagnose(data)


def test_the_public_names_are_what_an_editor_completes() -> None:
    """All of them, and nothing else, can be had."""
    assert dir(stabtree) == sorted(stabtree.__all__)
    assert all(getattr(stabtree, name) is not None for name in dir(stabtree))
