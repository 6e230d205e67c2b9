"""Values that don't mean what they say: placeholders, masked NaN, gradients times their scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree import diagnose
from stabtree.loaders import load_run
from tests.conftest import falling

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.run import Run

ROWS = 200
AT = np.arange(ROWS)
NORM = np.exp(np.random.default_rng(1).normal(0, 0.1, ROWS))


def written(folder: Path, dtype: str | None = None, **columns: np.ndarray) -> Run:
    """A run that was logged with these columns, read again."""
    names = ["step", *columns]
    rows = zip(AT.tolist(), *(column.tolist() for column in columns.values()), strict=True)
    text = "\n".join([",".join(names), *(",".join(map(str, row)) for row in rows)])
    file = folder / "metrics.csv"
    file.write_text(text + "\n", encoding="utf-8")
    return load_run(file, dtype=dtype)


@pytest.mark.parametrize(("value", "dtype", "kept"), [(-1.0, None, False), (1.0, "bf16", False), (1.0, "fp16", True)])
def test_a_scale_that_stands_for_no_scaler(tmp_path: Path, value: float, dtype: str | None, kept: bool) -> None:
    """-1 and 1 throughout are placeholders; in fp16 a scale of 1 is one, and a bad one."""
    run = written(tmp_path, dtype, loss=falling(ROWS), loss_scale=np.full(ROWS, value))
    assert (run.get("loss_scale") is not None) is kept
    assert any("taken as not logged" in note for note in run.notes) is not kept


@pytest.mark.parametrize("norm", [np.nan, 0.0])
@pytest.mark.parametrize("shown", ["zero", "mean"])
def test_a_masked_nan_is_a_nan(tmp_path: Path, norm: float, shown: str) -> None:
    """A loss of 0.0, or the last one again and again, with a dead gradient to the end."""
    loss = falling(ROWS)
    loss[150:] = 0.0 if shown == "zero" else loss[149]
    run = written(tmp_path, loss=loss, grad_norm=np.where(AT < 150, NORM, norm))
    masked = shown == "zero" or bool(np.isnan(norm))
    series = run.get("loss")
    assert series is not None
    assert bool(np.isnan(series.values[151:]).all()) is masked
    assert any("read as NaN" in note for note in run.notes) is masked
    if masked:
        assert diagnose(run).verdict == "critical"


def test_a_loss_of_zero_is_no_nan_where_the_gradient_lives(tmp_path: Path) -> None:
    """A model that fits its data to the last digit, and the loss of a method that gives 0 by construction."""
    loss = np.where(AT < 150, falling(ROWS), 0.0)
    assert not any("NaN" in note for note in written(tmp_path, loss=loss, grad_norm=NORM).notes)
    reward = np.linspace(0, 1, ROWS)
    run = written(tmp_path, loss=np.zeros(ROWS), grad_norm=np.zeros(ROWS), reward=reward)
    assert not any("NaN" in note for note in run.notes)


MEASURED = {  # rows that are due, those of them that are NaN, and whether the others are filler
    "every other row": (AT % 2 == 0, AT < 0, True),
    "at the end of 50": (AT % 50 == 49, AT < 0, True),
    "the first and the last as well": ((AT % 50 == 48) | (AT == 0) | (AT == ROWS - 1), AT < 0, True),
    "NaN from the middle on": (AT % 10 == 5, AT >= 100, True),
    "NaN in the last": (AT % 10 == 0, AT == 190, True),
    "every row, NaN from the middle on": (AT >= 0, AT >= 100, False),
    "NaN but for the first row": (AT >= 0, AT > 0, False),
    "NaN but for two rows": (AT >= 0, (AT != 31) & (AT != 140), False),
    "NaN by chance": (AT >= 0, NORM > 0.9, False),
}


@pytest.mark.parametrize("which", MEASURED)
def test_nan_between_measured_rows_is_filler(tmp_path: Path, which: str) -> None:
    """A NaN stays where its column was due; the rule shows in the rows that hold a number."""
    due, lost, filler = MEASURED[which]
    run = written(tmp_path, loss=falling(ROWS), grad_norm=np.where(due & ~lost, NORM, np.nan))
    assert run.series["grad_norm"].steps.tolist() == AT[due].tolist()
    assert any("filler" in note for note in run.notes) is filler


def test_another_column_tells_when_a_column_was_due(tmp_path: Path) -> None:
    """A loss in rows of another kind."""
    due = np.isin(AT, [3, 20, 31, 75, 88, 120, 133, 180])
    loss = np.where(due, np.nan, falling(ROWS))
    columns = {"loss": loss, "val_loss": np.where(due & (AT < 130), NORM, np.nan)}
    run = written(tmp_path, None, **columns)
    assert run.series["eval_loss"].steps.tolist() == AT[due].tolist()
    assert run.series["loss"].steps.tolist() == AT[np.isfinite(loss) | (due & (AT > 130))].tolist()
