"""Finding spikes: the shared eyes of section 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.predicates.registry import finite, per_series
from stabtree.stats import Tail, interval, trailing_moments, upper_tail

if TYPE_CHECKING:
    from stabtree._lazy import Floats, Ints
    from stabtree.run import Series

LEAST_ROWS = 10  # a mean and a sigma of fewer rows say little; the window widens instead
TYPICAL_ROWS = 5  # rows whose median must be back before a guarded recovery counts


@dataclass(frozen=True, slots=True)
class Spike:
    """One excursion of the loss.

    Attributes:
        step: first step above the threshold.
        peak_step: step of its highest value; `peak` is that value.
        height_sigma: the first step's height over `mean` in units of `sigma`, or the peak's if higher.
        mean: mean of the window before it.
        sigma: standard deviation of the window before it.
        expected: how many steps this high chance allows over the whole run.
        recovered_step: first step at which it was back, None if it never was.
        last_good_step: the logged step before it.
    """

    step: int
    peak_step: int
    peak: float
    height_sigma: float
    mean: float
    sigma: float
    expected: float
    recovered_step: int | None
    last_good_step: int


@dataclass(frozen=True, slots=True)
class Search:
    """All spikes of a run, with what the search looked at.

    Attributes:
        spikes: in order of step.
        rows: the window in rows; `widened` says that it spans more steps than asked for.
        judged: how many steps had a full window before them.
        highest: the highest score of all and its step, for explaining a no.
        bar: the score from which a step counted.
    """

    spikes: tuple[Spike, ...]
    rows: int
    widened: bool
    judged: int
    highest: float
    highest_step: int
    bar: float


@per_series
def find(loss: Series, *, window_steps: int, sigma: float, chance: float, back_sigma: float) -> Search:
    """Search a loss series for spikes.

    A step is above when it stands more than `sigma` standard deviations over the mean of the `window_steps`
    before it and, with `chance` below 1, so high that the upper tail of the run's own scores makes fewer
    than `chance` such steps expected. Steps up to the recovery belong to one spike.
    """
    steps, values = finite(loss)
    wanted = max(1, round(window_steps / interval(steps)))
    rows = max(wanted, LEAST_ROWS)
    if len(values) < rows + 2:
        return Search((), rows, rows > wanted, 0, 0.0, 0, sigma)
    mean, spread = trailing_moments(values, rows)
    scores = (values[rows:] - mean) / np.maximum(spread, _resolution(mean))
    tail = upper_tail(scores)
    bar = max(sigma, tail.height(chance)) if chance < 1 else sigma
    top = int(np.argmax(scores))
    spikes = _excursions(steps, values, rows, mean, spread, scores, bar, tail, chance < 1, back_sigma)
    return Search(tuple(spikes), rows, rows > wanted, len(scores), float(scores[top]), int(steps[rows + top]), bar)


def _resolution(mean: Floats) -> Floats:
    """Least credible sigma: a constant (or quantised) loss has none, and float noise is not a spike."""
    return np.maximum(np.abs(mean) * 1e-6, 1e-150)


def _excursions(
    steps: Ints,
    values: Floats,
    rows: int,
    mean: Floats,
    spread: Floats,
    scores: Floats,
    bar: float,
    tail: Tail,
    guarded: bool,
    back_sigma: float,
) -> list[Spike]:
    found: list[Spike] = []
    hits = np.flatnonzero(scores > bar) + rows
    at = 0
    while at < len(hits):
        start = int(hits[at])
        m, s = float(mean[start - rows]), max(float(spread[start - rows]), float(_resolution(mean[start - rows])))
        level = m + back_sigma * s
        back = _first_below(values, start + 1, level, TYPICAL_ROWS if guarded else 1)
        end = back if back is not None else len(values)
        peak = start + int(np.argmax(values[start : max(end, start + 1)]))
        found.append(
            Spike(
                step=int(steps[start]),
                peak_step=int(steps[peak]),
                peak=float(values[peak]),
                height_sigma=(float(values[peak]) - m) / s,
                mean=m,
                sigma=s,
                expected=tail.expected(float(scores[start - rows])),
                recovered_step=int(steps[back]) if back is not None else None,
                last_good_step=int(steps[start - 1]),
            )
        )
        at = int(np.searchsorted(hits, max(end, start + 1)))
    return found


def _first_below(values: Floats, start: int, level: float, rows: int) -> int | None:
    """Index of the first row from `start` on from which the median of `rows` rows is at or below a level."""
    size = 256
    while start < len(values):
        part = values[start : start + size + rows - 1]
        if len(part) < rows:
            return None
        windows = np.lib.stride_tricks.sliding_window_view(part, rows)
        below = np.flatnonzero(np.median(windows, axis=1) <= level)
        if len(below):
            return start + int(below[0])
        start += len(windows)
        size *= 2
    return None
