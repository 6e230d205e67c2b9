"""A sample of the pairs that `python -m benchmarks.compare` counts: the step told is that of the fault."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import stabtree
from benchmarks import pairs
from stabtree.tools.compare.result import Method, Parted

if TYPE_CHECKING:
    from stabtree.run import Run

STEPS = {  # cases of each kind of fault, cut soon after it
    "phase19/nan-layer": (250, 220),
    "phase19/nan-skipped": (260, 240),
    "phase19/lr-rising": (70, 40),
    "phase19/scale-constant": (40, 0),
    "convergence/weights-still": (40, 0),
    "convergence/gradients-add-up": (40, 0),
}
SEEDS = 120


def trained(name: str, shift: int, steps: int, *, fault: bool) -> Run:
    """A run of the fixtures' trainer, cut to its first steps."""
    recipe = replace(pairs.recipe_of(name, shift, fault=fault), max_steps=steps)
    rows = pairs.rows_of(name, recipe)
    return stabtree.load_run({key: [row[key] for row in rows] for key in rows[0]})


@pytest.mark.parametrize("name", STEPS)
def test_with_one_seed_a_fault_is_told_to_the_row(name: str) -> None:
    """The first row that differs is that of the fault or the next one."""
    steps, began = STEPS[name]
    found = stabtree.compare(
        *(trained(name, 0, steps, fault=fault) for fault in (False, True)),
        diagnosed=False,
    )
    assert (found.method, found.parted) == (Method.SEED, Parted.YES)
    assert found.first is not None
    assert began <= found.first.step <= began + 1


def test_healthy_runs_of_other_seeds_do_not_part() -> None:
    """Neither of two of them is told to part from the other, though not one row is the same."""
    runs = [trained("healthy/noisy", shift, SEEDS, fault=False) for shift in (0, 1000)]
    for good, bad in (runs, runs[::-1]):
        found = stabtree.compare(good, bad, diagnosed=False)
        assert (found.method, found.parted, found.rows) == (Method.HISTORY, Parted.NO, SEEDS)
