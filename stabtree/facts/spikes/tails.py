"""How rarely chance alone goes above a height."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.lazy import np
from stabtree.common.stats import SAMPLE, quantiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree.common.lazy import Floats

NEAR = 1e-6  # no limit: the share of a height within which a tail is worked out again
NORMAL_DECAY = (2.3263 - 1.2816) / math.log(10)  # no limit: the decay of a normal sample


def t_tail(height: float, dof: int) -> float:
    """Return the probability that Student's t with `dof` degrees of freedom (1 or more) exceeds a height.

    Abramowitz and Stegun 26.7.3 and 26.7.4; the normal distribution from 200 degrees on.
    """
    if dof >= 200:
        return 0.5 * math.erfc(height / math.sqrt(2))
    angle = math.atan(height / math.sqrt(dof))
    square = math.cos(angle) ** 2
    term = total = 1.0 if dof % 2 == 0 else math.cos(angle)
    for k in range(2 if dof % 2 == 0 else 3, dof - 1, 2):
        term *= square * (k - 1) / k
        total += term
    if dof % 2 == 0:
        inside = math.sin(angle) * total
    else:
        inside = 2 / math.pi * (angle + (math.sin(angle) * total if dof > 1 else 0.0))
    return max(0.0, (1 - inside) / 2)


class Tail(NamedTuple):
    """The upper tail of a sample of scores: how many of `size` chance would put above a height.

    An exponential tail through the 90th and the 99th percentile, so that a heavy-tailed series raises its own bar,
    where a normal tail would cry wolf. It is never thinner than what normal noise gives in windows of `rows` rows:
    Student's t, since a window of ten rows knows its own deviation badly.
    """

    size: int
    at90: float
    decay: float
    rows: int

    def expected(self, height: float) -> float:
        """Return the number of scores above `height` to expect by chance."""
        return self.size * max(self._own(height), _of_noise(height, self.rows))

    def height(self, expected: float) -> float:
        """Return the height above which chance puts `expected` scores; infinite for none."""
        if expected <= 0:
            return math.inf
        noise = _height_of_noise(self.size, self.rows, expected)

        def is_below(height: float) -> bool:
            if self.size * self._own(height) > expected:
                return True
            if abs(height - noise) > NEAR * noise:
                return height < noise
            return self.size * _of_noise(height, self.rows) > expected

        return _last_below(is_below)

    def _own(self, height: float) -> float:
        return 0.1 * math.exp(min(0.0, -(height - self.at90) / self.decay))


def _of_noise(height: float, rows: int) -> float:
    """Return the share of scores of normal noise above a height, each over a window of so many rows."""
    return t_tail(height / math.sqrt(1 + 1 / rows), max(rows - 2, 1))


@lru_cache(maxsize=256)
def _height_of_noise(size: int, rows: int, expected: float) -> float:
    """Return the height above which normal noise puts `expected` of `size` scores: the same for all runs as long."""
    return height_for(lambda height: size * _of_noise(height, rows), expected)


def height_for(expected: Callable[[float], float], wanted: float) -> float:
    """Return the height above which a tail expects so many; infinite for none."""
    return _last_below(lambda height: expected(height) > wanted) if wanted > 0 else math.inf


def _last_below(is_below: Callable[[float], bool]) -> float:
    """Return the height from which on nothing is below, to the last digits."""
    low, high = 0.0, 1.0
    while is_below(high) and high < 1e300:
        low, high = high, 2 * high + 1
    for _ in range(50):
        middle = (low + high) / 2
        if is_below(middle):
            low = middle
        else:
            high = middle
    return high


def upper_tail(scores: Floats, rows: int) -> Tail:
    """Return the tail of at least two scores, without the ones to be tested: the highest, and the last twentieth.

    In a log of 60 rows the highest score alone would move the 99th percentile up to itself, and a run that blows
    up in its last rows would raise its own bar above them. `rows` is the window that each score was measured with.
    """
    early = scores
    if len(scores) >= 40:
        early = scores[: len(scores) - len(scores) // 20]
    indices = np.arange(0, len(early) - 1, 1 + len(early) // SAMPLE)
    others = early[indices + (indices >= np.argmax(early))]
    at90, at99 = quantiles(others, 0.90, 0.99)
    return Tail(len(scores), at90, max((at99 - at90) / math.log(10), NORMAL_DECAY), rows)
