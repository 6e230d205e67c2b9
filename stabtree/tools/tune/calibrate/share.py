"""How often something happens, as far as so few runs can tell."""

from __future__ import annotations

from math import exp, lgamma, log, log1p
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

CHANCE = 0.05
ROUNDS = 60  # halvings: to the last bit of a share


@dataclass(frozen=True, slots=True)
class Share:
    """How many of how many, with the shares that would show as much (exact, 95%)."""

    count: int
    of: int

    @property
    def low(self) -> float:
        """The lowest share that is in accord with it."""
        if not self.count:
            return 0.0
        return _where(lambda share: 1 - _chance_of_at_most(self.count - 1, self.of, share), CHANCE / 2)

    @property
    def high(self) -> float:
        """The highest share that is in accord with it; where it was never seen about 3/n, the rule of three."""
        if self.count == self.of:
            return 1.0
        tail = CHANCE
        if self.count:
            tail = CHANCE / 2
        return _where(lambda share: -_chance_of_at_most(self.count, self.of, share), -tail)


def _chance_of_at_most(count: int, of: int, share: float) -> float:
    """Return the chance of at most so many."""
    ways = (lgamma(of + 1) - lgamma(k + 1) - lgamma(of - k + 1) for k in range(count + 1))
    return sum(exp(way + k * log(share) + (of - k) * log1p(-share)) for k, way in enumerate(ways))


def _where(grows: Callable[[float], float], level: float) -> float:
    """Return where a function that grows with the share comes to a level."""
    low, high = 0.0, 1.0
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        if grows(middle) < level:
            low = middle
        else:
            high = middle
    return high
