"""Which column becomes which metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_run
from tests.loaders.make import points, write

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.run import ColumnUse, Run


def uses(run: Run) -> dict[str, ColumnUse]:
    """The columns of the first file by name."""
    return {use.name: use for use in run.sources[0].columns}


def test_the_best_alias_wins(tmp_path: Path) -> None:
    """Of two losses the better name is read, the other is named as ignored."""
    run = load_run(write(tmp_path, "step,epoch_loss,loss\n0,1,2\n1,1,2\n"))
    assert points(run)["loss"] == [(0, 2), (1, 2)]
    assert uses(run)["epoch_loss"].why == "loss is read from loss"


def test_a_column_can_be_named(tmp_path: Path) -> None:
    """The user's word counts over the aliases, for groups too."""
    file = write(tmp_path, "step,loss,nll,w\n0,1,2,3\n1,1,2,3\n")
    run = load_run(file, columns={"loss": "nll", "weight_norm/all": "w"})
    assert points(run)["loss"] == [(0, 2), (1, 2)]
    assert "weight_norm/all" in run.series
    assert uses(run)["loss"].metric is None


@pytest.mark.parametrize(
    ("columns", "where", "hint"),
    [
        ({"los": "nll"}, "--column", "did you mean loss?"),
        ({"lr/group": "nll"}, "--column", "did you mean lr?"),
        ({"accuracy": "nll"}, "--column", ""),
        ({"loss": "train/nl"}, "metrics.csv", "type --column loss=train/nll"),
        ({"loss": "stp"}, "metrics.csv", "its columns are step, train/nll"),
    ],
)
def test_a_wrong_name_gets_the_right_one_back(tmp_path: Path, columns: dict[str, str], where: str, hint: str) -> None:
    """An unknown metric or column is an error with the nearest name."""
    with pytest.raises(StabtreeError) as caught:
        load_run(write(tmp_path, "step,train/nll\n0,1\n1,2\n"), columns=columns)
    assert caught.value.where.endswith(where)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("header", "hint"),
    [
        ("step,badness", "name it: --column loss=badness"),
        ("Wall time,Value", "say what it holds: --column loss=Value, or --column reward=Value"),
        ("step,my badness", "name it: --column 'loss=my badness'"),
        ("step,lr", "name the file that the trainer wrote its loss to"),
    ],
)
def test_no_loss_lists_what_is_there(tmp_path: Path, header: str, hint: str) -> None:
    """Without a loss the error lists the columns and guesses."""
    with pytest.raises(StabtreeError) as caught:
        load_run(write(tmp_path, f"{header}\n0,1\n1,2\n"))
    assert header.split(",")[1] in caught.value.problem
    assert caught.value.hint == hint


def test_names_from_a_file_are_harmless(tmp_path: Path) -> None:
    """A column name can't send escape sequences to the terminal."""
    run = load_run(write(tmp_path, "step,loss,\x1b]0;title\x07\x1b[2Jred\n0,1,2\n1,1,2\n"))
    assert run.sources[0].columns[2].name == "red"


@pytest.mark.parametrize(
    ("column", "optimizer"),
    [("lr-Adam", "adam"), ("lr-AdamW/pg1", "adamw"), ("lr-SGD", "sgd"), ("lr-0", None), ("lr", None)],
)
def test_a_learning_rate_names_its_optimizer(tmp_path: Path, column: str, optimizer: str | None) -> None:
    """A monitor of learning rates calls the column after the optimizer's class."""
    path = write(tmp_path, f"step,loss,{column}\n" + "".join(f"{step},1,0.001\n" for step in range(9)))
    assert load_run(path).setting("optimizer") == optimizer
