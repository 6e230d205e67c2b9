"""The loggers that answer to the names of `SummaryWriter`, of a run of wandb and of torchtune's metric loggers.

The methods and their arguments are those of the documentation: torch.utils.tensorboard.writer.SummaryWriter,
wandb.Run (`log`, `config`, `finish`), and torchtune.training.metric_logging.MetricLoggerInterface.
"""

from __future__ import annotations

import copy
import json
import math
from argparse import Namespace
from typing import TYPE_CHECKING, Any

import pytest

from stabtree.integrations import Logger, TorchtuneLogger
from stabtree.run import RUN_HEADER

if TYPE_CHECKING:
    from pathlib import Path

BROKEN = 60


def written(path: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    lines[0].pop(RUN_HEADER)  # the same object holds what the run was started with
    return [line for line in lines if line != {"config": {}}]


class Beside:
    """A writer that remembers its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.config = {"lr": 0.5}

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **named: Any) -> str:
            self.calls.append((name, args, named))
            return name

        return call


def test_the_scalars_of_a_step_make_one_row(tmp_path: Path) -> None:
    """Written when the next step begins, and the last one when the writer is closed."""
    path = tmp_path / "run.jsonl"
    writer = Logger(path, on_finding=None)
    writer.add_hparams({"lr": 0.5}, {})
    for step in (1, 2):
        writer.add_scalar("train/loss", 1.0, step)
        writer.add_scalar("train/lr", 0.5, global_step=step)
        writer.add_scalars("eval", {"loss": 2.0, "note": "text"}, step)
        writer.add_histogram("weights", [1.0], step)
    assert [row.get("step") for row in written(path)] == [None, 1]
    writer.close()
    assert written(path)[0] == {"config": {"lr": 0.5}}
    assert written(path)[2] == {"step": 2, "train/loss": 1.0, "train/lr": 0.5, "eval/loss": 2.0}


def test_scalars_without_a_step_are_counted(tmp_path: Path) -> None:
    """A row ends where one of its names comes again."""
    path = tmp_path / "run.jsonl"
    with Logger(path, on_finding=None) as writer:
        for _ in range(3):
            writer.add_scalar("loss", 1.0)
            writer.add_scalar("lr", 0.5)
        writer.flush()
    assert written(path) == [{"step": step, "loss": 1.0, "lr": 0.5} for step in range(3)]


def test_the_value_counts_that_a_tensor_has_when_it_is_logged(tmp_path: Path) -> None:
    """A loop may add to its tensor in place before the row is written."""
    np = pytest.importorskip("numpy")
    path = tmp_path / "run.jsonl"
    total = np.array([1.0])
    with Logger(path, on_finding=None) as writer:
        writer.add_scalar("loss", total, 1)
        total += 1.0
        writer.close()
    assert written(path) == [{"step": 1, "loss": 1.0}]


def test_a_loss_that_becomes_nan_stops_the_loop(tmp_path: Path) -> None:
    """One step later than a row that is logged whole."""
    writer = Logger(tmp_path / "run.jsonl")
    step = 0
    for step in range(100):
        writer.add_scalar("loss", 2.0 - step * 0.01 if step < BROKEN else math.nan, step)
        writer.add_scalar("lr", 1e-3, step)
        if writer.should_stop:
            break
    assert BROKEN <= step <= BROKEN + 6
    writer.close()


def test_a_run_of_wandb(tmp_path: Path) -> None:
    """Its settings are written as they are set, and steps that are not given are counted."""
    path = tmp_path / "run.jsonl"
    run = Logger(path, on_finding=None)
    run.config.update({"lr": 0.5}, allow_val_change=True)
    run.config.update(Namespace(seed=1))
    run.config.batch_size = 8
    run.define_metric("loss", summary="min")
    run.log({"loss": 1.0, "table": object()})
    run.log({"loss": 2.0}, commit=True)
    run.log({"loss": 3.0}, step=5)
    run.finish(exit_code=0)
    assert (run.config.lr, run.config["seed"], run.config.get("batch_size")) == (0.5, 1, 8)
    with pytest.raises(AttributeError):
        _ = run.config.nothing
    assert written(path) == [
        {"config": {"lr": 0.5}}, {"config": {"seed": 1}}, {"config": {"batch_size": 8}},
        {"step": 0, "loss": 1.0}, {"step": 1, "loss": 2.0}, {"step": 5, "loss": 3.0},
    ]  # fmt: skip


def test_a_writer_beside_it_gets_every_call(tmp_path: Path) -> None:
    """Those that a Logger does not know are answered by it alone."""
    path, beside = tmp_path / "run.jsonl", Beside()
    logger = Logger(path, beside=beside, on_finding=None)
    logger.log({"loss": 1.0}, 1, commit=True)
    logger.add_scalar("loss", 2.0, 2, walltime=3.0)
    assert logger.add_histogram("weights", [1.0], 2) == "add_histogram"
    assert logger.config is beside.config
    logger.finish()
    assert written(path) == [{"config": {"lr": 0.5}}, {"step": 1, "loss": 1.0}, {"step": 2, "loss": 2.0}]
    assert beside.calls == [
        ("log", ({"loss": 1.0}, 1), {"commit": True}),
        ("add_scalar", ("loss", 2.0, 2), {"walltime": 3.0}),
        ("add_histogram", ("weights", [1.0], 2), {}),
        ("finish", (), {}),
    ]


def test_a_method_that_neither_has_is_an_attribute_error(tmp_path: Path) -> None:
    """A misspelt call must not vanish without a word."""
    logger = Logger(tmp_path / "run.jsonl")
    with pytest.raises(AttributeError, match="get_logdir"):
        logger.get_logdir()
    logger.close()


def test_a_copy_is_the_same_logger(tmp_path: Path) -> None:
    """A trainer may copy the configuration that holds it."""
    with Logger(tmp_path / "run.jsonl") as logger:
        logger.config.lr = 1e-3
        assert copy.deepcopy({"logger": logger})["logger"] is copy.copy(logger) is logger


def test_the_metric_logger_of_torchtune(tmp_path: Path) -> None:
    """It is made from YAML as `DiskLogger` is: a folder, and a name."""
    logger = TorchtuneLogger(log_dir=str(tmp_path / "logs"))
    logger.log_config({"optimizer": {"_component_": "torch.optim.AdamW", "lr": 2e-5}})
    step = 0
    for step in range(100):
        logger.log_dict({"loss": 2.0 - step * 0.01 if step < BROKEN else math.nan, "lr": 2e-5}, step=step)
        if logger.should_stop:
            break
    logger.log("val_loss", 1.0, step=step)
    logger.close()
    assert BROKEN <= step <= BROKEN + 5
    assert written(tmp_path / "logs" / "stabtree.jsonl")[-1] == {"step": step, "val_loss": 1.0}
