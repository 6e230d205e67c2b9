"""Logs of one run are put together on one axis of steps, and only where their values prove it."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.loaders import load_run, load_runs
from tests.conftest import falling
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

LOSS = falling(140, seed=5).tolist()
BROKEN = [*LOSS[:120], *[math.nan] * 20]


def state(folder: Path, loss: list[float], step: int = 5) -> None:
    """The newest state of a trainer, in the folder of a checkpoint."""
    place = folder / f"checkpoint-{step * len(loss)}"
    place.mkdir(parents=True)
    rows = [{"step": step * (i + 1), "loss": value, "learning_rate": 1e-4} for i, value in enumerate(loss)]
    write(place, json.dumps({"global_step": step * len(loss), "log_history": rows}), "trainer_state.json")


def dicts(loss: list[float], more: str = "") -> str:
    """What the trainer prints: epochs, and no steps."""
    rows = (f"{{'loss': {value:.4f}, {more}'epoch': {(i + 1) / 50:.2f}}}\n" for i, value in enumerate(loss))
    return "".join(rows)


def test_rows_that_only_the_printed_log_holds_are_on_the_steps_of_the_state(tmp_path: Path) -> None:
    """A state ends at its checkpoint; what was printed after it is seen where it happened."""
    state(tmp_path, LOSS[:100])
    write(tmp_path, dicts(BROKEN), "train.log")
    run = load_run(tmp_path)
    loss = run.series["loss"]
    assert loss.steps.tolist() == [5 * (i + 1) for i in range(140)]
    assert loss.steps[np.isnan(loss.values)].tolist() == [5 * (i + 1) for i in range(120, 140)]
    assert not run.by_row
    assert "train.log holds the same run, and goes on from step 500 to 700." in " ".join(run.notes)


def test_a_value_that_is_not_finite_in_one_log_alone_counts(tmp_path: Path) -> None:
    """Where one log lacks a step that another one has, and the rest is the same, the row is added."""
    write(tmp_path, "step,loss\n" + "".join(f"{i},{LOSS[i]}\n" for i in range(140) if i % 2))
    text = "".join(f"step {i} loss {math.nan if i == 60 else LOSS[i]:.4f}\n" for i in range(140))
    write(tmp_path, text, "train.log")
    loss = load_run(tmp_path).series["loss"]
    assert loss.steps[np.isnan(loss.values)].tolist() == [60]


@pytest.mark.parametrize("form", ["{:.3g}", "{:.4f}", "{:.4e}"])
def test_values_are_compared_in_the_digits_that_are_printed(tmp_path: Path, form: str) -> None:
    """As few digits as stable-baselines3 prints still prove a run, and a small difference beyond them is another."""
    write(tmp_path, "step,loss\n" + "".join(f"{i},{12 * LOSS[i]}\n" for i in range(140)))
    write(tmp_path, "".join(f"step {i} loss {form.format(12 * LOSS[i])}\n" for i in range(140)), "train.log")
    assert len(load_runs(tmp_path)) == 1
    write(tmp_path, "".join(f"step {i} loss {form.format(12.3 * LOSS[i])}\n" for i in range(140)), "train.log")
    assert len(load_runs(tmp_path)) == 2


@pytest.mark.parametrize(
    ("other", "runs"),
    [
        (BROKEN, 2),  # finite in one log and not in the other one
        ([*LOSS[:100], *(value + 1 for value in LOSS[100:])], 2),
        (LOSS[:100], 1),
    ],
    ids=["broken", "parted", "cut"],
)
def test_a_log_that_contradicts_another_one_is_another_run(tmp_path: Path, other: list[float], runs: int) -> None:
    """Nothing that one log shows is hidden by another."""
    write(tmp_path, "step,loss\n" + "".join(f"{i},{value}\n" for i, value in enumerate(LOSS)))
    write(tmp_path, "".join(json.dumps({"step": i, "loss": value}) + "\n" for i, value in enumerate(other)), "b.jsonl")
    assert len(load_runs(tmp_path)) == runs


def test_runs_side_by_side_in_folders_of_their_own_stay_two(tmp_path: Path) -> None:
    """Two seeds of a sweep may hold the same first rows; each is a run."""
    for name, rows in (("run_a", 140), ("run_b", 90)):
        (tmp_path / "sweep" / name).mkdir(parents=True)
        text = "step,loss\n" + "".join(f"{i},{LOSS[i]}\n" for i in range(rows))
        write(tmp_path / "sweep" / name, text)
    assert len(load_runs(tmp_path)) == 2


def test_the_error_of_a_log_without_metrics_is_that_of_the_one_run(tmp_path: Path) -> None:
    """Of two such logs, and of two runs, nobody can tell: each is an item of its own."""
    error = "Traceback (most recent call last):\nValueError: nothing left\n"
    write(tmp_path, "step,loss\n" + "".join(f"{i},{value}\n" for i, value in enumerate(LOSS)))
    write(tmp_path, error, "job.err")
    run = load_run(tmp_path)
    assert any("ValueError" in line.text for line in run.lines)
    assert "How the run ended was read from job.err, which is beside its metrics." in run.notes
    write(tmp_path, error, "other.err")
    assert len(load_runs(tmp_path)) == 3


def test_a_progress_bar_of_one_row_is_no_run(tmp_path: Path) -> None:
    """A bar that writes over itself leaves a single row, which is named in the notes of the run beside it."""
    write(tmp_path, "step,loss\n" + "".join(f"{i},{value}\n" for i, value in enumerate(LOSS)))
    write(tmp_path, "Epoch 14/14 43/43 loss: 0.522 val_loss: 0.147\n", "train.log")
    run = load_run(tmp_path)
    assert any("train.log holds a single row" in note for note in run.notes)


def test_a_copy_is_named_and_not_judged_again(tmp_path: Path) -> None:
    """The same bytes, however few rows, beside the log or in a folder of their own."""
    for place in (tmp_path, tmp_path / "old"):
        place.mkdir(exist_ok=True)
        write(place, "step,loss\n" + "".join(f"{i},{LOSS[i]}\n" for i in range(6)))
    write(tmp_path, (tmp_path / "metrics.csv").read_text(encoding="utf-8"), "copy.csv")
    (only,) = load_runs(tmp_path)
    assert len(only.own.sources) == 1
    assert sum("is a copy of" in note for note in only.own.notes) == 2


def test_means_and_batches_of_one_training_are_one_run(tmp_path: Path) -> None:
    """What was measured on held-out data proves it; rows of batches lead, and the means are kept beside them."""
    held_out = [3.25, 2.5, 2.125, 1.5]
    means = "".join(f"{epoch},{2 - epoch / 4},{value}\n" for epoch, value in enumerate(held_out))
    write(tmp_path, f"epoch,train_loss,val_loss\n{means}", "loss.csv")
    rows = [{"step": i, "loss": LOSS[i]} for i in range(40)]
    rows += [{"step": 10 * i + 9, "eval_loss": value} for i, value in enumerate(held_out)]
    write(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "log.jsonl")
    run = load_run(tmp_path)
    assert (len(run.series["loss"]), run.series["eval_loss"].steps.tolist()) == (40, [9, 19, 29, 39])
    assert run.others["loss (loss.csv)"].steps.tolist() == [9, 19, 29, 39]
