"""Shares with their intervals, and the comparison of two tools on the same runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Z_95 = 1.959963984540054
"""The normal quantile of a two-sided 95% interval."""


class Rate(NamedTuple):
    """How many of how many."""

    hits: int
    of: int

    @property
    def share(self) -> float:
        """The share; NaN of none."""
        return self.hits / self.of if self.of else math.nan

    def interval(self, z: float = Z_95) -> tuple[float, float]:
        """Wilson's score interval of the share, from 0 to 1; all of it where there is nothing to count.

        It assumes that the runs are independent of one another. Where several come from one recipe or one repository
        the true interval is wider.
        """
        if not self.of:
            return 0.0, 1.0
        square = z * z / self.of
        middle = (self.share + square / 2) / (1 + square)
        half = z * math.sqrt((self.share * (1 - self.share) + square / 4) / self.of) / (1 + square)
        low = 0.0 if self.hits == 0 else max(0.0, middle - half)
        return low, 1.0 if self.hits == self.of else min(1.0, middle + half)

    def __str__(self) -> str:
        """Counts, share and interval in per cent: `1/75 = 1.3% (0.2 to 7.2)`."""
        if not self.of:
            return "none"
        low, high = self.interval()
        return f"{self.hits}/{self.of} = {self.share:.1%} ({low * 100:.1f} to {high * 100:.1f})"


class Pair(NamedTuple):
    """Two tools on the same runs.

    Attributes:
        both: runs that both answer rightly.
        first: runs that only the first answers rightly.
        second: runs that only the second answers rightly.
        neither: runs that neither does.
    """

    both: int
    first: int
    second: int
    neither: int

    @property
    def chance(self) -> float:
        """McNemar's exact two-sided test: how likely such a difference is where both tools are equally good."""
        differ = self.first + self.second
        tail = sum(math.comb(differ, k) for k in range(min(self.first, self.second) + 1))
        return min(1.0, 2 * tail / (1 << differ))

    def __str__(self) -> str:
        """The counts and the chance in words."""
        return (
            f"both right {self.both}, only the first {self.first}, only the second {self.second}, "
            f"neither {self.neither}; McNemar, exact: p {chance_in_words(self.chance)}"
        )


def chance_in_words(chance: float) -> str:
    """A chance as one tells it; far below what matters, only that it is."""
    return "below 0.0001" if chance < 1e-4 else f"{chance:.2g}"


def pair(first: Mapping[str, bool], second: Mapping[str, bool]) -> Pair:
    """Compare two tools by which of the same runs each answers rightly.

    Raises:
        ValueError: They were not asked about the same runs.
    """
    if set(first) != set(second):
        msg = "the two tools were not scored on the same runs"
        raise ValueError(msg)
    count = [[0, 0], [0, 0]]
    for run, right in first.items():
        count[right][second[run]] += 1
    return Pair(count[1][1], count[1][0], count[0][1], count[0][0])


def rate(answers: Iterable[bool]) -> Rate:
    """How many of some answers are true."""
    held = list(answers)
    return Rate(sum(held), len(held))
