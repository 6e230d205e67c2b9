"""Whether a loss has settled: by what it covers after its first rows, and by whether the run has come to its end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.common.files import LogLine
from stabtree.run import Setting
from tests.conftest import ask, make_run

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats

ROWS = 400
NOISE = np.random.default_rng(1).normal(0, 0.01, ROWS)
SLOW = 2.3 - 0.2 * np.arange(ROWS) / ROWS + NOISE
FLAT = 2 + 1.5 * np.exp(-np.arange(ROWS) / 20) + NOISE
COSINE = 1e-3 * (1 + np.cos(np.pi * np.arange(ROWS) / (ROWS - 1))) / 2


def test_a_first_row_far_above_the_rest_hides_no_fall() -> None:
    """A slow fall is small beside the leap of the first steps, and still a fall."""
    loss = np.concatenate([[25.0, 20.0, 9.0], SLOW[3:]])
    assert ask("settled", make_run({"loss": loss})).verdict == "falling"


def test_rows_are_left_out_by_their_steps() -> None:
    """The first ten steps are a fifth of the rows where each of them is logged, and later ones are not."""
    steps = np.concatenate([np.arange(10), np.arange(1, 41) * 100])
    loss = np.concatenate([np.linspace(25, 6, 10), SLOW[::10]])
    run = make_run({"loss": loss}, steps=steps)
    assert ask("settled", run).verdict == "falling"


@pytest.mark.parametrize(
    ("rates", "steps", "lines", "verdict"),
    [
        (np.full(ROWS, 1e-3), None, (), "flat"),
        (COSINE + 2e-4, None, (), "flat"),
        (COSINE, None, (), "finished"),
        (np.full(ROWS, 1e-3), ROWS, (), "finished"),
        (np.full(ROWS, 1e-3), 2 * ROWS, (), "flat"),
        (np.full(ROWS, 1e-3), None, (LogLine(500, "Training complete", at_end=True),), "finished"),
    ],
)
def test_a_run_at_its_end_is_finished(
    rates: Floats, steps: int | None, lines: tuple[LogLine, ...], verdict: str
) -> None:
    """By its schedule, its planned steps, or what the log says; nobody can stop it any more."""
    config = {"max_steps": Setting(steps, "test")} if steps else {}
    run = replace(make_run({"loss": FLAT, "lr": rates}), lines=lines, config=config)
    assert ask("settled", run).verdict == verdict
