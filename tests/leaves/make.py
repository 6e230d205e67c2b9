"""What the made runs of all trees are made of: series that look like a training's, and a text log."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from stabtree.loaders import load_run
from tests.conftest import falling, make_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from stabtree.run import Run

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]
    Made = Run | tuple[Run, dict[str, Any]]
    Maker = Callable[[], Made]

ROWS = 600
AT = np.arange(ROWS)
ONES = np.ones(ROWS)


def noisy(level: Any, rows: int = ROWS, sigma: float = 0.1, seed: int = 1) -> Floats:
    """A positive series about a level, or about a level for each row."""
    return np.asarray(level * np.exp(np.random.default_rng(seed).normal(0, sigma, rows)))


def growing(begin: float, end: float, rows: int = ROWS, sigma: float = 0.02) -> Floats:
    """A series that goes from one level to another geometrically, steady in its first and last 15%, and noisy."""
    way = np.clip((np.arange(rows) / rows - 0.15) / 0.7, 0, 1)
    return noisy(begin * (end / begin) ** way, rows, sigma)


def healthy(**more: Any) -> dict[str, Any]:
    """The columns of a run in which nothing is wrong, with others added or put in their place."""
    return {"loss": falling(ROWS), "grad_norm": noisy(1.0), "lr": np.full(ROWS, 1e-3), **more}


def with_rerun(run: Run, rerun: Run) -> Run:
    """A run and another one of the same training."""
    return replace(run, rerun=rerun)


def nan_from(step: int, values: Any) -> Floats:
    """Values that are NaN from a step on."""
    return np.where(np.arange(len(values)) >= step, np.nan, values)


def nan_at(step: int, values: Any) -> Floats:
    """Values with one NaN."""
    return np.where(np.arange(len(values)) == step, np.nan, values)


def broken(step: int, batch: int | None = None, **config: Any) -> Run:
    """A run whose loss is NaN from a step on."""
    columns = healthy(loss=nan_from(step, falling(ROWS)))
    if batch is not None:
        columns["batch_id"] = np.where(step == AT, batch, 10_000 + AT)
    return make_run(columns, **config)


def text_log(*lines: str, rows: int = 40, after: int = 0) -> str:
    """A text log: rows of metrics, lines, and rows again."""
    losses = 1 + 3 * np.exp(-np.arange(rows + after) / 50)
    made = [f"step: {step} loss: {loss:.3f} lr: 0.001\n" for step, loss in enumerate(losses)]
    return "".join([*made[:rows], *(f"{line}\n" for line in lines), *made[rows:]])


def logged(*lines: str, rows: int = 40, after: int = 0) -> Run:
    """The run that is read from a text log with these lines in it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.log"
        path.write_text(text_log(*lines, rows=rows, after=after), encoding="utf-8")
        return load_run(path)
