"""The rows of the log that show an incident."""

from __future__ import annotations

import numpy as np

from stabtree.diagnosis.walk import diagnose
from stabtree.report.model.quoted import quoted
from stabtree.tree.load import load_trees
from tests.conftest import make_run


def notes(loss: object) -> dict[int, str]:
    """What the quoted rows of the first finding of a loss are called, by step."""
    run = make_run({"loss": loss})
    found = diagnose(run, load_trees(run)).findings[0]
    table = quoted(run, found)
    assert table is not None
    return {line.step: line.note for line in table.lines}


def test_no_row_is_the_worst_where_none_is_off_its_level() -> None:
    """Rows of exactly 0 are too low, and the highest row after them is an ordinary one."""
    loss = 2.5 + 0.1 * np.random.default_rng(0).standard_normal(300)
    loss[[150, 151, 170, 190, 210]] = 0.0
    assert "worst" not in notes(loss).values()


def test_a_row_that_exploded_is_not_the_last_good_one() -> None:
    """The row before a NaN is a million times the one before it."""
    loss = np.full(200, np.nan)
    loss[:2] = 5.0, 5.2e6
    assert notes(loss)[1] == "row before"
