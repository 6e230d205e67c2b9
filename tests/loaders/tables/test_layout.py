"""Which lines are a header, and which tables are no log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_run
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("north", "south", "east", "west", "upper", "lower", "inner", "outer")


def test_the_index_of_a_data_frame_needs_no_name(tmp_path: Path) -> None:
    """A frame of one column is written as two, the first of which has an empty name."""
    text = ",loss\n" + "".join(f"{i},{9 - i}.5\n" for i in range(9))
    assert load_run(write(tmp_path, text, "loss.csv")).series["loss"].values.tolist() == [9.5 - i for i in range(9)]


def test_a_row_for_each_of_several_things_is_no_log(tmp_path: Path) -> None:
    """A table whose first column names another thing in every row is refused; a phase that repeats is none."""
    results = "site,loss\n" + "".join(f"{name},0.{i}5\n" for i, name in enumerate(NAMES, 1))
    with pytest.raises(StabtreeError, match="table of results: 'site' names another thing"):
        load_run(write(tmp_path, results, "results.csv"))
    phases = "phase,step,loss\n" + "".join(f"{NAMES[i % 2]},{i},0.{i}5\n" for i in range(1, 9))
    assert len(load_run(write(tmp_path, phases, "phases.csv")).series["loss"]) == 8
