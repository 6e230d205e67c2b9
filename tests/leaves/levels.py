"""Checks of a metric that stays on the wrong side of a level: runs that lie an eighth beyond each bar, or inside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stabtree.run import Run

if TYPE_CHECKING:
    from tests.leaves.make import Bools, Maker

Build = Callable[..., Run]
BEYOND, INSIDE = 1.12, 0.88
SPARSE = 25  # steps between rows where the check's rows decide, not its steps


@dataclass(frozen=True, slots=True)
class Bar:
    """What a check takes, in the document's numbers.

    Attributes:
        leaf: the leaf it ends at, or the cause that it tells.
        metric: the metric it looks at.
        level: the level; a metric is bad at or above it, or with `low` within it of 0.
        share: how much of the stretch must be bad.
        rows: rows of the stretch at the end of the log, at least.
        steps: steps that it must cover, at least.
        low: whether small values are bad.
        most: the largest value that the metric can have.
        without: a metric that must not be logged.
    """

    leaf: str
    metric: str
    level: float
    share: float
    rows: int
    steps: int
    low: bool = False
    most: float = math.inf
    without: str = ""

    def stretch(self, interval: int) -> int:
        """Rows that are looked at in a log of so many steps between rows."""
        return max(self.rows, self.steps // interval + 1)

    def bad(self, factor: float) -> float:
        """A value so many times beyond the level."""
        return self.level / factor if self.low else min(self.level * factor, self.most)


def _run(bar: Bar, sound: Mapping[str, Any], build: Build, value: float, bad: Bools, interval: int = 1) -> Run:
    columns: dict[str, Any] = {bar.metric: np.where(bad, value, sound[bar.metric])}
    if bar.without:
        columns[bar.without] = None
    return build(interval=interval, **columns)


def _last(sound: Mapping[str, Any], rows: int, count: int) -> Bools:
    """So many bad rows, evenly spread over the last ones of a run: bool (n,)."""
    bad = np.zeros(len(sound["loss"]), dtype=bool)
    bad[-1 - (np.arange(count) * rows) // max(count, 1)] = True
    return bad


def beyond(bar: Bar, sound: Mapping[str, Any], build: Build, interval: int = 1) -> Maker:
    """A run that is bad for hardly longer than the check takes, in hardly more rows, by hardly more."""
    rows = math.ceil(1.05 * bar.stretch(interval))
    count = min(rows, math.ceil(BEYOND * bar.share * rows))
    return partial(_run, bar, sound, build, bar.bad(BEYOND), _last(sound, rows, count), interval)


def sparse(bar: Bar, sound: Mapping[str, Any], build: Build) -> Maker:
    """The same in a log in which the check's rows decide."""
    return beyond(bar, sound, build, SPARSE)


def near(bar: Bar, sound: Mapping[str, Any], build: Build, *, sparsely: bool = True) -> dict[str, Maker]:
    """Runs that lack one thing: the level, the share of rows, or a stretch that is long enough."""
    length = len(sound["loss"])
    always = np.ones(length, dtype=bool)
    some = _last(sound, length, int(0.75 * bar.share * length))  # the end of a spread holds one more than its share
    found: dict[str, Maker] = {f"{bar.leaf}: share of rows": partial(_run, bar, sound, build, bar.bad(BEYOND), some)}
    if bar.level:
        found[f"{bar.leaf}: level"] = partial(_run, bar, sound, build, bar.bad(INSIDE), always)
    for interval, name in ((1, "stretch"), (SPARSE, "sparse stretch"))[: 1 + sparsely]:
        count = int(0.8 * bar.share * bar.stretch(interval))
        last = _last(sound, count, count)
        found[f"{bar.leaf}: {name}"] = partial(_run, bar, sound, build, bar.bad(BEYOND), last, interval)
    return found
