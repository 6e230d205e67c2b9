"""The course of a run somewhere inside an object."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from stabtree import StabtreeError, load_run
from stabtree.common.errors import SeveralRunsError
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

LOSS = [3.0, 2.0, 1.5, 1.25]
ROWS = [{"epoch": i, "train_loss": loss, "val_loss": loss + 1} for i, loss in enumerate(LOSS)]
LISTS = {"train_losses": LOSS, "val_losses": [loss + 1 for loss in LOSS]}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    "content",
    [
        {"config": {"lr": 0.1}, "epochs": ROWS},
        {"model": "x", "best": 0.9, "training": {"per_epoch": ROWS}},
        {"model": "x", "history": LISTS},
        {"train": {"loss": LOSS}, "val": {"loss": [loss + 1 for loss in LOSS]}},
        {"training": {"rmse": LOSS}, "valid_1": {"rmse": [loss + 1 for loss in LOSS]}},
    ],
)
def test_the_course_is_found_under_any_key(tmp_path: Path, content: dict[str, Any], indent: int | None) -> None:
    """Rows and lists, whatever they are called, on one line or many."""
    run = load_run(write(tmp_path, json.dumps(content, indent=indent), "a.json"))
    assert run.series["loss"].values.tolist() == LOSS
    assert run.series["eval_loss"].values.tolist() == [loss + 1 for loss in LOSS]


def test_several_runs_are_told_apart(tmp_path: Path) -> None:
    """An object of runs is no run; each can be named."""
    path = write(tmp_path, json.dumps({"a": LISTS, "b": LISTS}), "runs.json")
    with pytest.raises(SeveralRunsError):
        load_run(path)
    assert load_run(path, run="b").series["loss"].values.tolist() == LOSS


def test_rows_in_an_envelope_are_read_without_its_name(tmp_path: Path) -> None:
    """A logger that puts all metrics of a row under `data`."""
    rows = [{"step": i, "data": {"critic/loss": loss, "loss": loss}} for i, loss in enumerate(LOSS)]
    path = write(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "a.jsonl")
    assert [column.name for column in load_run(path).sources[0].columns][:3] == ["step", "critic/loss", "loss"]


def test_results_are_no_course(tmp_path: Path) -> None:
    """Rows that say nothing of when are results of several models."""
    results = {"results": [{"model": "a", "loss": 1.0}, {"model": "b", "loss": 2.0}], "epochs": 10}
    with pytest.raises(StabtreeError):
        load_run(write(tmp_path, json.dumps(results, indent=1), "results.json"))
