"""Where a metric falls silent, and where it only seems to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.loaders import load_run
from stabtree.run import Gap
from tests.loaders.make import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Row = dict[str, float]


def gaps(folder: Path, *rows: Row | None) -> tuple[Gap, ...]:
    """The gaps of JSON rows."""
    content = "".join(json.dumps(row) + "\n" for row in rows if row)
    return load_run(write(folder, content, "a.jsonl")).gaps


def test_a_loss_that_stops_while_the_lr_goes_on(tmp_path: Path) -> None:
    """A NaN left out of the rows to the end is a gap to the end."""
    rows: list[Row] = [{"step": i, "loss": 1.0, "lr": 0.1} if i < 60 else {"step": i, "lr": 0.1} for i in range(100)]
    assert gaps(tmp_path, *rows) == (Gap("loss", 60, 99, 40, at_end=True),)


def eval_rows(i: int) -> list[Row]:
    """Eval rows between the train rows."""
    return [{"step": i, "loss": 1.0, "lr": 0.1}, *([{"step": i, "eval_loss": 1.1}] if i % 5 == 0 else [])]


def eval_rows_of_other_steps(i: int) -> list[Row]:
    """Three evaluations between two train rows."""
    return [{"step": i * 10, "loss": 1.0}, *({"step": i * 10 + k, "eval_loss": 1.1} for k in (3, 5, 7))]


def interval_grows(i: int) -> list[Row]:
    """The loss is logged at every step first, then at every 100th."""
    return [{"step": i, "lr": 0.1} | ({"loss": 1.0} if i < 300 or i % 100 == 0 else {})]


def own_interval(i: int) -> list[Row]:
    """The norm is logged at every 50th step, the loss at every step."""
    return [{"step": i, "loss": 1.0} | ({"grad_norm": 1.0} if i % 50 == 0 else {})]


def unknown_evaluations(i: int) -> list[Row]:
    """Training ends at step 100 and evaluations in unknown columns go on, far apart."""
    return [{"step": i, "loss": 1.0}] if i < 100 else [{"step": i, "wer": 0.5}] if i % 50 == 0 else []


@pytest.mark.parametrize(
    "layout", [eval_rows, eval_rows_of_other_steps, interval_grows, own_interval, unknown_evaluations]
)
def test_sparse_layouts_have_no_gaps(tmp_path: Path, layout: Callable[[int], list[Row]]) -> None:
    """Eval rows, intervals of their own and a changed interval are layout, not silence."""
    rows = [row for i in range(800) for row in layout(i)]
    assert gaps(tmp_path, *rows) == ()


@pytest.mark.parametrize("last", [{"lr": 0.1}, {"eval_loss": 2.0}, {"lr": 0.1, "eval_loss": 2.0}])
def test_a_last_row_of_the_rate_alone_is_no_gap(tmp_path: Path, last: Row) -> None:
    """A trainer that is done may write one more row."""
    rows: list[Row] = [{"step": i, "loss": 1.0, "lr": 0.1} for i in range(100)]
    assert gaps(tmp_path, *rows, {"step": 100, **last}) == ()


def test_cells_that_are_empty_at_random_are_no_gap(tmp_path: Path) -> None:
    """Where a tenth of the cells is missing some stand together by chance; a silence stays one."""
    odd = np.random.default_rng(7).random(2000) < 0.1
    odd[500:503], odd[-1] = True, True
    rows: list[Row] = [{"step": i, "lr": 0.1} | ({} if odd[i] else {"loss": 1.0}) for i in range(2000)]
    assert gaps(tmp_path, *rows) == ()
    silent: list[Row] = [row if not 900 <= row["step"] < 920 else {"step": row["step"], "lr": 0.1} for row in rows]
    assert [(gap.first_step, gap.rows) for gap in gaps(tmp_path, *silent)] == [(900, 20)]
