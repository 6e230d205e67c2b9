"""Files of final values and of settings are refused with the reason, not read as runs of one point."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_run
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "wandb-summary.json": ('{"train/loss": 2.5, "_step": 26, "_wandb": {"runtime": 3}}', "final values"),
    "copied.json": ('{"train/loss": 2.5, "_step": 26, "_wandb": {"runtime": 3}}', "final values"),
    "all_results.json": ('{\n "train_loss": 2.5,\n "train_runtime": 3,\n "epoch": 1.0\n}', "final values"),
    "eval_results.json": ('{\n "eval_loss": 2.5\n}', "final values"),
    "last.csv": ("loss,accuracy\n2.5,0.3\n", "final values"),
    "runs.csv": ("Name,State,Runtime,train/loss\na,finished,3,2.5\nb,finished,4,2.4\n", "one row for each run"),
    "config.yaml": ("lr:\n  value: 0.1\nbatch_size:\n  value: 8\n", "is a configuration"),
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_no_course_is_refused(tmp_path: Path, name: str) -> None:
    """A single point would look like a clean run."""
    text, problem = FILES[name]
    with pytest.raises(StabtreeError) as caught:
        load_run(write(tmp_path, text, name))
    assert problem in caught.value.problem
    assert "name the" in caught.value.hint


@pytest.mark.parametrize(
    ("head", "guess"), [("step,badness,lr", "loss=badness"), ("Wall time,Step,Value", "loss=Value")]
)
def test_without_a_loss_the_nearest_name_is_offered(tmp_path: Path, head: str, guess: str) -> None:
    """What can't be told by its name or its course is for the user to say."""
    with pytest.raises(StabtreeError) as caught:
        load_run(write(tmp_path, head + "\n" + "".join(f"{i},{i},1\n" for i in range(5))))
    assert head.split(",")[1] in caught.value.problem
    assert guess in caught.value.hint
