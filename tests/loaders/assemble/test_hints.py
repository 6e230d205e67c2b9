"""What an error proposes to type is never refused."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING

import numpy as np

from stabtree import StabtreeError
from stabtree.loaders import load_run
from tests.loaders.make import write

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NAMES = (
    *("step", "epoch", "loss", "los", "train loss", "badness", "crit", "value", "Value", "Wall time", "metric", "key"),
    *("objective", "mean q", "train_x", "total", "score", "D_A", "lr", "lr_loss", "name", "val/loss_x", "seed", "w"),
)
OPTION = re.compile(r"--(step-column|column) ('[^']*'|\S+?)(?=[,.;]? |[,.;]?$)")


def cells(kind: int, rows: int, random: np.random.Generator) -> list[object]:
    """The cells of a column: numbers, a count, nothing, words, numbers here and there, the same number."""
    count = list(range(rows))
    made = random.normal(2, 1, rows).round(3).tolist()
    some = [value if keep else None for value, keep in zip(made, (random.random(rows) < 0.3).tolist(), strict=True)]
    kinds: tuple[Sequence[object], ...] = (made, count, [None] * rows, ["word"] * rows, some, [1.5] * rows)
    return [*kinds[kind]]


def refuses_steps(path: Path, column: str) -> bool:
    """Whether a column can't be read as the steps; that a table has no loss is another matter."""
    try:
        load_run(path, step_column=column)
    except StabtreeError as error:
        return "--step-column" in error.problem
    return False


def test_a_hint_can_be_typed(tmp_path: Path) -> None:
    """Of 300 made tables, with a wrong name given for some of them: each option of each error is taken and read."""
    random = np.random.default_rng(36)
    taken = 0
    for number in range(300):
        names = random.choice(NAMES, int(random.integers(1, 6)), replace=False).tolist()
        rows = int(random.integers(1, 30))
        table = {name: cells(int(random.integers(6)), rows, random) for name in names}
        lines = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        if number % 2:
            rest = (",".join("" if cell is None else str(cell) for cell in line.values()) for line in lines)
            text = "\n".join([",".join(table), *rest]) + "\n"
        path = write(tmp_path, text, f"{number}.{'csv' if number % 2 else 'jsonl'}")
        options = [{}, {"columns": {"loss": "bednes"}}, {"step_column": "stp"}][number % 3]
        try:
            load_run(path, **options)  # type: ignore[arg-type]
        except StabtreeError as error:
            for option, typed in OPTION.findall(error.hint):
                taken += 1
                metric, _, column = shlex.split(typed)[0].partition("=")
                if option == "column":
                    assert len(load_run(path, columns={metric: column}).series[metric])
                    continue
                assert not refuses_steps(path, metric)
    assert taken > 50
