"""Pairs of a healthy log and one that does worse, or no worse, from a known row on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tests.conftest import make_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.run import Run

KINDS = ("better then worse", "late climb", "NaN after a climb", "slower start", "the same")
NO_WORSE = KINDS[3:]


class Pair(NamedTuple):
    """A pair of runs of different seeds.

    Attributes:
        kind: which of `KINDS`.
        good: the healthy runs.
        bad: the other one.
        first_worse: the first row whose expected loss is higher than the healthy one, to the end; None for no such row.
    """

    kind: str
    good: list[Run]
    bad: Run
    first_worse: int | None


def made_pairs(seed: int, each: int = 8, good_runs: int = 1) -> Iterator[Pair]:
    """Yield as many pairs of each kind: 200 to 4,000 rows of a falling or a flat loss, with a noise of 1 to 5%."""
    dice = np.random.default_rng(seed)
    for kind in KINDS:
        for _ in range(each):
            rows, noise = int(np.exp(dice.uniform(np.log(200), np.log(4001)))), dice.uniform(0.01, 0.05)
            at, x = int(rows * dice.uniform(0.3, 0.85)), np.arange(rows)
            course = 1.8 + dice.choice([0.0, 2.5]) * np.exp(-x / (rows * dice.uniform(0.03, 0.25)))
            factor = _factor(dice, kind, at, rows)
            good = [_noisy(dice, course, noise) for _ in range(good_runs)]
            no_worse = np.flatnonzero(factor <= 1)
            first_worse = None if kind in NO_WORSE else int(no_worse[-1]) + 1
            yield Pair(kind, good, _noisy(dice, course * factor, noise), first_worse)


def _noisy(dice: np.random.Generator, course: np.ndarray, noise: float) -> Run:
    return make_run({"loss": course * np.exp(noise * dice.normal(size=len(course)))})


def _factor(dice: np.random.Generator, kind: str, at: int, rows: int) -> np.ndarray:
    """Return how many times the healthy loss the other one is expected to be in each row, (rows,)."""
    x, factor = np.arange(rows), np.ones(rows)
    since = np.maximum(x - at + 1, 0) / (rows - at)
    climb = 1 + dice.uniform(0.6, 3.0) * since ** dice.choice([1.0, 1.0, 0.8])
    if kind == "better then worse":
        step = 1 + dice.uniform(0.15, 1.0) * (since > 0)
        factor = np.where(x < at, 1, step if dice.random() < 0.5 else climb)
        factor[: int(at * dice.choice([0.1, 0.6, 1.0]))] = 1 - dice.uniform(0.03, 0.15)
    elif kind == "late climb":
        factor = climb
    elif kind == "NaN after a climb":
        factor = np.where(x >= at + 0.7 * (rows - at), np.nan, climb)
    elif kind == "slower start":
        factor = 1 + dice.uniform(0.2, 1.0) * np.maximum(1 - x / (rows * dice.uniform(0.1, 0.4)), 0)
    return factor
