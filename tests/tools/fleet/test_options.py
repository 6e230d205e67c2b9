"""What a scan is asked for and can't do is refused in two lines, before anything is read."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stabtree
from tests.cli.command import failed
from tests.conftest import FIXTURES

HEALTHY = str(FIXTURES / "phase19" / "healthy")
ODD = [
    ("jobs", "two", "'two' is not a whole number"),
    ("jobs", 0, "0 is too few"),
    ("jobs", True, "True is not a whole number"),
    ("timeout", "x", "'x' is not a number"),
    ("timeout", float("nan"), "nan seconds are too few"),
    ("engine", None, "None is not an engine"),
    ("engine", ["serial"], "is not an engine"),
    ("address", "tcp://127.0.0.1:8786", "has no scheduler"),
    ("cache", 5, "5 names no file"),
    ("cache", "", "names no file"),
    ("judging", "strict", "does not say how to judge runs"),
    ("ends", 5, "is not a range of steps"),
    ("ends", ("a", "b"), "is not a range of steps"),
    ("ends", (5, 1), "is not a range of steps"),
    ("colums", {}, "did you mean 'columns'"),
    ("columns", 5, "wrong type"),
    ("columns", {"loss": 3}, "not the name of a column"),
    ("format", 7, "wrong type"),
    ("checkpoint_every", "x", "wrong type"),
    ("checkpoint_every", 2.5, "wrong type"),
    ("ranks", "yes", "wrong type"),
    ("rerun", HEALTHY, "not an option of a scan"),
]


@pytest.mark.parametrize(("name", "value", "problem"), ODD, ids=lambda value: str(value)[:20])
def test_an_odd_value_is_an_error_of_ours(name: str, value: Any, problem: str) -> None:
    """In Python as on the command line: it says what is wrong and what to do, and nothing is read."""
    odd: dict[str, Any] = {"engine": "serial", name: value}
    with pytest.raises(stabtree.StabtreeError) as caught:
        stabtree.scan(HEALTHY, **odd)
    assert problem in caught.value.problem
    assert caught.value.hint


@pytest.mark.parametrize(
    "path", [5, None, b"runs", [HEALTHY], dt.date(2026, 1, 1), "", "-"], ids=lambda path: type(path).__name__
)
def test_what_is_no_path_is_an_error_of_ours(path: Any) -> None:
    """Whatever it is: no row of a log that can't be read, which would be taken for one of a run."""
    with pytest.raises(stabtree.StabtreeError):
        stabtree.scan(path, engine="serial")


def test_numbers_of_numpy_and_paths_are_what_they_are() -> None:
    """A number from an array and a `Path` are as good as any other."""
    how: dict[str, Any] = {"jobs": np.int64(1), "timeout": np.float64(60), "checkpoint_every": np.int64(50)}
    with stabtree.scan(Path(HEALTHY), engine="serial", ends=(0, None), ranks=False, **how) as fleet:
        assert [run.verdict for run in fleet] == ["ok"]


@pytest.mark.parametrize(
    ("words", "where", "hint"),
    [
        (("--engine", "dask", "--scheduler", "tcp://127.0.0.1:1", "--timeout", "5"), "--timeout", "leave it out"),
        (("--scheduler", "tcp://127.0.0.1:1"), "--scheduler", "add --engine dask"),
        (("--no-cache", "--cache", "kept.sqlite"), "--no-cache", "leave one of them out"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words: tuple[str, ...], where: str, hint: str) -> None:
    """None of the two is passed over in silence."""
    cache = () if "--no-cache" in words else ("--no-cache",)
    said = failed("scan", HEALTHY, *cache, *words)
    assert said.startswith(f"error: {where}")
    assert hint in said
