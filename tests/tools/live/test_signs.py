"""Which rows call for a judgement at once, and when a log is judged otherwise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stabtree.tools.live.cadence import GROWTH, MAX_READS, Cadence
from stabtree.tools.live.signs import LOOKS, RECENT_ROWS, Signs


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("loss", math.nan),
        ("loss", 0.0),
        ("loss", 9.0),
        ("grad_norm", math.inf),
        ("grad_norm", 0.0),
        ("loss_scale", 0.5),
    ],
)
def test_a_sign_calls_for_a_look_at_it_and_at_what_follows(metric: str, value: float) -> None:
    """NaN, inf, an exact zero, a scale below 1 and a leap of the loss call, with some rows after; then no more."""
    signs = Signs()
    calm = {"loss": 2.0, "grad_norm": 1.0, "loss_scale": 1.0}
    assert not any(signs.call(calm) for _ in range(RECENT_ROWS))
    called = [signs.call({**calm, metric: value}) for _ in range(20)]
    assert called == [True] * LOOKS + [False] * (20 - LOOKS)


def test_calm_noise_calls_for_nothing() -> None:
    """Of 10,000 rows of a loss with normal noise hardly any is a leap."""
    signs = Signs()
    loss = 2 + 0.1 * np.random.default_rng(0).standard_normal(10_000)
    assert sum(signs.call({"loss": float(value)}) for value in loss) <= 3 * LOOKS


def test_growth_makes_the_judging_points() -> None:
    """With no time between rows all judgements together read about 1 / GROWTH times the log, and no less often."""
    cadence, read, last = Cadence(), 0, 0
    for size in range(1, 20_000):
        if cadence.due(size, 0.0):
            cadence.judged(size, 0.0, 0.0)
            assert size - last <= max(1, GROWTH * last + 1)
            read, last = read + size, size
    assert read <= 1.1 * size / GROWTH


def test_calls_are_bounded() -> None:
    """Where every row calls, judging reads the log no more than MAX_READS times in all."""
    cadence, read = Cadence(), 0
    for size in range(1, 20_000):
        if cadence.due(size, 0.0, called=True):
            cadence.judged(size, 0.0, 0.0)
            read += size
    assert read <= (MAX_READS + 1 / GROWTH) * size
