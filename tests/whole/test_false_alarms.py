"""Healthy runs are called healthy: simulated ones of every shape, in numbers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

from stabtree.common.answer import NO, UNKNOWN
from stabtree.diagnosis.walk import diagnose
from stabtree.measures.start import double_softmax
from stabtree.tree.load import load_trees
from tests.conftest import make_run, measures_of

if TYPE_CHECKING:
    from stabtree.run import Run

TREE = load_trees()
SEVERE = ("warning", "critical")


def healthy(seed: int, min_rows: int = 60, max_rows: int = 3000) -> Run:
    """A healthy run: length, interval, noise and its tail, schedule and decay of the loss all drawn at random."""
    rng = np.random.default_rng(seed)
    rows, every = int(rng.integers(min_rows, max_rows)), int(rng.choice([1, 1, 1, 5, 10, 50]))
    at = np.arange(rows) / rows
    floor, start, speed = rng.uniform(0.01, 2), rng.uniform(2, 10), rng.uniform(2, 30)
    level = floor + start * np.exp(-speed * at)
    if rng.random() < 0.3:
        level *= np.where(at > rng.uniform(0.4, 0.8), rng.uniform(0.6, 0.95), 1.0)
    noise = rng.standard_t(4, rows) if rng.random() < 0.4 else rng.normal(size=rows)
    if rng.random() < 0.3:
        noise = np.convolve(noise, np.ones(5) / np.sqrt(5), mode="same")
    width = rng.choice([0.003, 0.01, 0.03, 0.1])
    loss = level * (1 + width * noise) if rng.random() < 0.5 else level + width * noise
    if rng.random() < 0.2:
        loss = np.round(loss, 2)
    lr = np.minimum(at / 0.05, 0.5 * (1 + np.cos(np.pi * at))) * 1e-3
    grad_norm = rng.uniform(0.1, 3) * np.exp(rng.normal(0, 0.3, rows))
    return make_run({"loss": loss, "lr": lr, "grad_norm": grad_norm}, steps=np.arange(rows) * every)


def alarms(count: int, *rows: int) -> list[tuple[int, str]]:
    """The seeds below `count` that raise an alarm, with what they are called."""
    found = ((seed, diagnose(healthy(seed, *rows), TREE)) for seed in range(count))
    return [(seed, d.findings[0].leaf.id) for seed, d in found if d.verdict in SEVERE]


def test_at_max_one_healthy_run_in_a_hundred_raises_an_alarm() -> None:
    """200 simulated healthy runs give at most 2 warnings; `python -m tests.whole.test_false_alarms 2000` runs more."""
    assert len(alarms(200)) <= 2


def test_short_ones_are_judged_and_raise_no_more_alarms() -> None:
    """200 of 8 to 99 rows, an epoch a row or a few evaluations, give at most 2 warnings, and each gets a verdict."""
    assert len(alarms(200, 8, 100)) <= 2
    assert all(diagnose(healthy(seed, 8, 40), TREE).verdict != UNKNOWN for seed in range(50))


def fine_tuning(seed: int) -> Run:
    """A fine-tuning of a language model whose vocabulary nobody knows, as far as its loss shows it."""
    rng = np.random.default_rng(seed)
    rows, start = int(rng.integers(100, 1000)), rng.uniform(1.8, 4)
    end, pace = start * rng.uniform(0.5, 0.85), rows * rng.uniform(0.03, 0.4)
    noise = rng.normal(0, rng.uniform(0.01, 0.05), rows)
    return make_run({"loss": end + (start - end) * np.exp(-np.arange(rows) / pace) + noise})


def test_no_fine_tuning_is_taken_for_a_softmax_taken_twice() -> None:
    """None of 150 whose loss begins near the logarithm of some number of classes, as nearly all do."""
    stated = {**TREE.questions["O12"].params, **TREE.questions["O12"].advanced}
    told = {double_softmax.ask(measures_of(fine_tuning(seed)), stated).verdict for seed in range(150)}
    assert told == {NO}


if __name__ == "__main__":
    sys.stdout.write(f"{alarms(int(sys.argv[1]))}\n")
