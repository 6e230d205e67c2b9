"""The sink: rows of any shape, steps that are missing, and what is wrong with a row never reaching the loop."""

from __future__ import annotations

import json
import math
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from stabtree import Recorder, Sink
from stabtree.run import RUN_HEADER

if TYPE_CHECKING:
    from pathlib import Path

BROKEN = 60


class Tensor:
    """A tensor of another library: its numbers are fetched by `item`."""

    def __init__(self, *values: float) -> None:
        self.values = values
        self.shape = (len(values),)

    def item(self) -> float:
        """Fetch the one number."""
        (value,) = self.values
        return value

    __float__ = item


class Refusing(Mapping[str, Any]):
    """A row that can't be read."""

    def __getitem__(self, name: str) -> Any:
        raise RuntimeError("it is gone")

    def __iter__(self) -> Iterator[str]:
        return iter(["loss"])

    def __len__(self) -> int:
        return 1


def written(path: Path) -> list[dict[str, Any]]:
    """The lines of a log, its header without what a run was started with."""
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    lines[0].pop(RUN_HEADER)
    return [line for line in lines if line != {"config": {}}]


def test_what_is_one_number_is_written_under_a_flat_name(tmp_path: Path) -> None:
    """Of whatever library it is, and however deep it lies; nothing else is."""
    path = tmp_path / "run.jsonl"
    row = {
        "loss": np.float32(0.5), "eval": {"loss": Tensor(0.25), "by": {"task": {"acc": np.array([[1.0]])}}},
        "lr": Decimal("0.125"), "done": True, 7: 3, "nan": math.nan,
        "text": "0.5", "nothing": None, "many": np.zeros(3), "tensors": Tensor(1.0, 2.0), "list": [1.0],
        "picture": object(), "complex": 1j,
    }  # fmt: skip
    with Sink(path, on_finding=None) as sink:
        sink.log(row, step=np.int64(4))
    numbers = {"loss": 0.5, "eval/loss": 0.25, "eval/by/task/acc": 1.0, "lr": 0.125, "done": 1, "7": 3, "nan": "NaN"}
    assert written(path) == [{"step": 4, **numbers}]


def test_a_step_that_is_missing_is_counted(tmp_path: Path) -> None:
    """Or read from the row; a row without a step after one with a step belongs to that step."""
    path = tmp_path / "run.jsonl"
    with Sink(path, on_finding=None) as sink:
        for row in ({"loss": 1.0}, {"loss": 1.0}, {"loss": 1.0, "global_step": 10}, {"eval/loss": 1.0}, {"loss": 1.0}):
            sink.log(row)
        sink.log({"loss": 1.0}, step=20)
    assert [row["step"] for row in written(path)] == [0, 1, 10, 10, 11, 20]


@pytest.mark.parametrize("wrong", [None, [1.0], "loss", Refusing(), {"loss": Refusing()}, {"loss": np.array(1j)}])
def test_what_is_wrong_with_a_row_is_reported_once(
    wrong: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And the rows after it are written; nothing is raised for a wrong step, an empty row or a closed log."""
    path = tmp_path / "run.jsonl"
    sink = Sink(path)
    sink.log(wrong, 1)
    sink.log(wrong, 2)
    sink.log({"loss": 1.0}, 3)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "the training goes on" in caplog.text
    assert [row["step"] for row in written(path) if "loss" in row] == [3]
    itself: dict[str, Any] = {"loss": 1.0}
    itself["row"] = itself
    sink.log(itself, 4)
    sink.log({"loss": 1.0}, "third")  # type: ignore[arg-type]
    sink.log({}, 5)
    sink.close()
    sink.log({"loss": 1.0}, 6)
    sink.log_config({"lr": 1.0})
    sink.close()


def test_a_loss_that_becomes_nan_is_reported_while_the_loop_runs(tmp_path: Path) -> None:
    """A finding is logged without being asked for, and `should_stop` ends the loop."""
    step = 0
    with Sink(tmp_path / "run.jsonl") as sink:
        for step in range(100):
            sink.log({"train": {"loss": math.nan if step >= BROKEN else 2.0 - step * 0.01}}, step)
            if sink.should_stop:
                break
    assert BROKEN <= step <= BROKEN + 5
    assert sink.news[0].finding.onset_step == BROKEN


@dataclass
class Arguments:
    """Settings as many scripts hold them."""

    lr: float = 0.5


@pytest.mark.parametrize("config", [{"lr": 0.5}, Arguments(), Namespace(lr=0.5)])
def test_settings_of_every_kind_are_written(config: Any, tmp_path: Path) -> None:
    """Also where the Recorder is the user's own, which stays open."""
    path = tmp_path / "run.jsonl"
    with Recorder(path) as recorder:
        with Sink(recorder) as sink:
            sink.log_config(config)
            sink.log({"loss": 1.0}, 1)
        recorder.log(2, loss=1.0)
    assert written(path) == [{"config": {"lr": 0.5}}, {"step": 1, "loss": 1.0}, {"step": 2, "loss": 1.0}]
