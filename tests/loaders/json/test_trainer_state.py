"""The Hugging Face trainer's state: which rows are points of the run, and which file of a folder is read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_run
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path


def state(steps: int, **more: Any) -> str:
    """A state after so many steps, one row each ten."""
    history = [{"epoch": 0.1, "step": step, "loss": 3 - step / 1000} for step in range(10, steps + 1, 10)]
    return json.dumps({"global_step": steps, "log_history": history, "save_steps": 50, **more}, indent=2)


def test_the_newest_checkpoint_of_a_folder_is_read(tmp_path: Path) -> None:
    """By step, not by name: checkpoint-90 is older than checkpoint-200."""
    for steps in (90, 200, 100):
        (tmp_path / f"checkpoint-{steps}").mkdir()
        write(tmp_path / f"checkpoint-{steps}", state(steps), "trainer_state.json")
    run = load_run(tmp_path)
    assert run.last_step == 200
    assert "newest of 3 states" in " ".join(run.notes)
    write(tmp_path, state(250), "trainer_state.json")
    assert load_run(tmp_path).last_step == 250
    assert load_run(tmp_path / "checkpoint-90").last_step == 90


def test_rows_go_before_defaults(tmp_path: Path) -> None:
    """Epochs without a limit are none, and rows say at which intervals they are."""
    rows = [{"step": 401 * at, "loss": 3 - at / 9, "eval_accuracy": at / 9, "eval_f1": at / 8} for at in range(1, 8)]
    more = {"logging_steps": 500, "eval_steps": 500, "save_steps": 500, "num_train_epochs": 2**63 - 1}
    run = load_run(write(tmp_path, state(0, log_history=rows, **more), "trainer_state.json"))
    assert {key: one.value for key, one in run.config.items()} == {"log_interval": 401, "eval_every": 401}
    assert "log_interval is 500 by trainer_state.json, but loss is logged every 401 steps." in run.notes


def test_a_cut_state_gives_its_whole_rows(tmp_path: Path) -> None:
    """What stands before the cut is read."""
    text = state(500)
    run = load_run(write(tmp_path, text[: len(text) // 2], "trainer_state.json"))
    assert 20 < len(run.series["loss"]) < 30
    assert "complete rows before that were read" in run.notes[0]


def test_a_state_without_rows_is_an_error(tmp_path: Path) -> None:
    """A state that was saved before anything was logged."""
    with pytest.raises(StabtreeError, match="holds no rows"):
        load_run(write(tmp_path, state(0), "trainer_state.json"))
