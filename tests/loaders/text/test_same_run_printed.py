"""The small run of `test_same_run`, as trainers print it and as binary loggers keep it, loads to the same run."""

from __future__ import annotations

import sqlite3
import struct
from typing import TYPE_CHECKING

import pytest

from stabtree.loaders import load_run
from tests.loaders.make import points
from tests.loaders.make_binary import event, events, part, tensor, wandb_file, wandb_records
from tests.loaders.test_same_run import EVAL, EXPECTED, TRAIN, Row, mixed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DIGITS = "{:.9g}"


def number(value: float) -> str:
    """A number with nine digits, as far as the expected run has them."""
    return DIGITS.format(value)


def printed(train: str, evaluation: str, before: str = "") -> str:
    """A line for each row, from two patterns over step, loss, grad_norm, lr and eval_loss."""
    lines = [before] if before else []
    for row in mixed():
        values = {key: f"{value:.0f}" if key == "step" else number(value) for key, value in row.items()}
        lines.append((evaluation if "eval_loss" in row else train).format(**values))
    return "\n".join(lines) + "\n"


def dicts(quote: str = "'", *, text: bool = False) -> str:
    """Dicts as the Hugging Face trainer prints them, with the step as a key."""
    lines = []
    for row in mixed({"lr": "learning_rate"}):
        cells = [
            f"{quote}{key}{quote}: " + (f"{quote}{number(v)}{quote}" if text else number(v)) for key, v in row.items()
        ]
        lines.append("{" + ", ".join(cells) + "}")
    return "\n".join(lines) + "\n"


TEXTS: dict[str, Callable[[], str]] = {
    "megatron": lambda: printed(
        " iteration {step:>8}/     240 | consumed samples: 64 | elapsed time per iteration (ms): 9.5 | "
        "learning rate: {lr} | global batch size: 8 | lm loss: {loss} | loss scale: 1.0 | grad norm: {grad_norm} | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |",
        " validation loss at iteration {step} | lm loss value: {eval_loss} | lm loss PPL: 9.0E+00 |",
    ),
    "printed dicts": dicts,
    "printed dicts of texts": lambda: dicts(text=True),
    "nanogpt": lambda: printed(
        "iter {step}: loss {loss}, grad_norm {grad_norm}, lr {lr}, time 9.50ms, mfu 30.0%",
        "step {step}: val loss {eval_loss}",
    ),
    "torchtitan": lambda: printed(
        "[rank0]:2026-01-02 03:04:05,678 - root - INFO - step: {step}  loss: {loss}  grad_norm: {grad_norm}  lr: {lr}  "
        "memory: 9.50GiB(12.00%)  tps: 5,970  mfu: 30.00%",
        "[rank0]:2026-01-02 03:04:05,678 - root - INFO - step: {step}  val_loss: {eval_loss}",
    ),
    "key=value": lambda: printed(
        "2026-01-02 03:04:05 INFO step={step} loss={loss} grad_norm={grad_norm} lr={lr} tokens/s=9000",
        "2026-01-02 03:04:05 INFO step={step} eval_loss={eval_loss}",
    ),
    "key: value": lambda: printed(
        "step: {step} | loss: {loss} | grad_norm: {grad_norm} | lr: {lr}", "step: {step} | eval_loss: {eval_loss}"
    ),
    "colours and a bar": lambda: printed(
        "\r 10%|#     | {step}/240 [00:01<00:09,  9.50it/s]\x1b[32m"
        "step {step} loss {loss} grad_norm {grad_norm} lr {lr}\x1b[0m",
        "step {step} val_loss {eval_loss}",
    ),
}


def checked(path: Path) -> None:
    """The run, whatever its numbers' last digits are: a printed or a single-precision number has few."""
    found = points(load_run(path))
    assert set(EXPECTED) <= set(found)
    for metric, expected in EXPECTED.items():
        assert [step for step, _ in found[metric]] == [step for step, _ in expected], metric
        assert [value for _, value in found[metric]] == pytest.approx([value for _, value in expected], rel=2e-7)


@pytest.mark.parametrize("name", TEXTS)
def test_every_text_gives_the_same_run(tmp_path: Path, name: str) -> None:
    """As a file, and as the folder that holds it."""
    file = tmp_path / "train.log"
    file.write_bytes(TEXTS[name]().encode())
    checked(file)
    checked(tmp_path)


def scalars() -> list[tuple[int, dict[str, float]]]:
    """The rows as TensorBoard tags."""
    names = {"loss": "train/loss", "grad_norm": "train/grad_norm", "lr": "train/lr", "eval_loss": "eval/loss"}
    return [(int(row["step"]), {names[k]: v for k, v in row.items() if k != "step"}) for row in mixed()]


def test_event_files_of_both_styles_give_the_same_run(tmp_path: Path) -> None:
    """Simple values, and tensors."""
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
    (old / "events.out.tfevents.1.host").write_bytes(events(scalars()))
    rows = [
        event(step, [tensor(tag, 1, part(4, struct.pack("<f", value))) for tag, value in values.items()])
        for step, values in scalars()
    ]
    (new / "events.out.tfevents.1.host").write_bytes(b"".join(rows))
    for folder in (old, new):
        checked(folder)


def test_a_wandb_run_gives_the_same_run(tmp_path: Path) -> None:
    """As the offline log keeps it, a record for each call."""

    def record(row: Row) -> dict[str, object]:
        names = {"step": "train/global_step", "eval_loss": "eval/loss"}
        return {names.get(key, f"train/{key}"): value for key, value in row.items()}

    data = wandb_file(wandb_records([record(row) for row in mixed()], {}, "run"))
    file = tmp_path / "run-abc.wandb"
    file.write_bytes(data)
    checked(file)


def test_mlflow_gives_the_same_run_from_files_and_from_its_database(tmp_path: Path) -> None:
    """One file a metric, and one row a value."""
    rows = [(metric, int(r["step"]), r[metric]) for r in (*TRAIN, *EVAL) for metric in r if metric != "step"]
    store = tmp_path / "mlruns" / "0" / ("a" * 32)
    (store / "metrics").mkdir(parents=True)
    (store / "meta.yaml").write_text(f"run_name: small\nrun_id: {store.name}\n", encoding="utf-8")
    (store.parent / "meta.yaml").write_text("name: Default\n", encoding="utf-8")
    for metric in EXPECTED:
        lines = [f"1700000000000 {value!r} {step}" for name, step, value in rows if name == metric]
        (store / "metrics" / metric).write_text("\n".join(lines) + "\n", encoding="utf-8")
    checked(tmp_path / "mlruns")
    database = tmp_path / "mlflow.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE runs (run_uuid TEXT, name TEXT, experiment_id INTEGER)")
        connection.execute(
            "CREATE TABLE metrics "
            "(key TEXT, value REAL, timestamp INTEGER, run_uuid TEXT, step INTEGER, is_nan INTEGER)"
        )
        connection.execute("CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT)")
        connection.execute("INSERT INTO runs VALUES ('a', 'small', 0)")
        connection.executemany(
            "INSERT INTO metrics VALUES (?, ?, 1700000000000, 'a', ?, 0)",
            [(name, value, step) for name, step, value in rows],
        )
    connection.close()
    checked(database)
