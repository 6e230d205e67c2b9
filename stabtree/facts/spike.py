"""Finding spikes: the shared eyes of section 2."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.facts.registry import finite, per_series
from stabtree.stats import NORMAL_99, Tail, interval, trailing_moments, upper_tail

if TYPE_CHECKING:
    from stabtree._lazy import Floats, Ints
    from stabtree.run import Series

LEAST_ROWS = 10  # a mean and a sigma of fewer rows say little; the window widens instead
# Below this share of its own size a loss does not vary: float32 holds 1e-7, and a logged text six digits.
RELATIVE_RESOLUTION = 1e-6
POWER_ROWS = 300  # fewer rows have no hundredth from which a power law could be read
USUAL_EXPONENT = 4.0  # measured: 1.6 to 5 where there are rows enough, median 3.8
SEAM_ROWS = 3
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
def rarity(series: Series, step: int, window_steps: int) -> float:
    """How many rows of the whole run the series' own noise puts as high as the highest around a step."""
    steps, values = finite(series)
    rows = max(round(window_steps / interval(steps)), LEAST_ROWS)
    at = int(np.searchsorted(steps, step)) - rows - 1
    if len(values) < rows + 3 or not 0 <= at < len(values) - rows - 1:
        return float("inf")
    scores = _scores(values, values, rows, True)[2]
    return upper_tail(scores, rows).expected(float(scores[max(at - TYPICAL_ROWS, 0) : at + TYPICAL_ROWS].max()))


def rarest(loss: Series, spike: Spike, window_steps: int) -> float:
    """How many rows as high as a spike's highest one chance allows, however heavy the tail of the run's noise.

    The more pessimistic of two tails: the exponential one of `Tail`, and a power law through the highest hundredth of
    the rows outside of the spike (Hill 1975). Runs of fewer than `POWER_ROWS` rows have no hundredth to
    read it from: theirs goes through the 99th percentile, at least that of normal noise, with the exponent
    `USUAL_EXPONENT`, the median of the labelled healthy runs.
    """
    steps, values = finite(loss)
    rows = max(round(window_steps / interval(steps)), LEAST_ROWS)
    scores = _scores(values, values, rows, True)[2]
    first = int(np.searchsorted(steps, spike.step)) - rows - 1
    end = len(scores)
    if spike.recovered_step is not None:
        end = max(int(np.searchsorted(steps, spike.recovered_step)) - rows - 1, first + 1)
    height = float(scores[first:end].max())
    others = np.delete(scores, slice(first, end))
    least, base, exponent = len(others) / 100, NORMAL_99, USUAL_EXPONENT
    if len(others) >= POWER_ROWS:
        top = np.sort(np.partition(others, -int(least) - 1)[-int(least) - 1 :])
        base = max(float(top[0]), 1e-300)
        exponent = 1 / max(float(np.mean(np.log(np.maximum(top[1:], base) / base))), 1e-3)
    elif len(others):
        base = max(float(np.quantile(others, 0.99)), NORMAL_99)
    power = least * (max(height, base) / base) ** -exponent
    return max(upper_tail(scores, rows).expected(height), float(power))


@per_series
def find(
    loss: Series,
    *,
    window_steps: int,
    sigma: float,
    chance: float,
    back_sigma: float,
    seams: tuple[int, ...] = (),
) -> Search:
    """Search a loss series for spikes.

    A step is above when it stands more than `sigma` standard deviations over the mean of the `window_steps`
    before it. With `chance` below 1 the deviation is that about the window's trend, and the step must stand so
    high that the upper tail of the run's own scores makes fewer than `chance` such steps expected. Steps up to the
    recovery belong to one spike. Once found, the steps of a spike that healed are taken out of the windows
    after it, where they would hide the next one. A rise that runs straight into the NaN at which the run ends
    belongs to section 1 and is no spike, nor is one in the first rows after one of the `seams`, steps at which the
    run was resumed.
    """
    steps, values = finite(loss)
    wanted = max(1, round(window_steps / interval(steps)))
    rows = max(wanted, LEAST_ROWS)
    if len(values) < rows + 3:
        return Search((), rows, rows > wanted, 0, 0.0, 0, sigma)
    guarded = chance < 1
    scored = _scores(values, values, rows, guarded)
    # The tail is that of the first look: with the spikes taken out, their own flanks would stand out in it.
    tail = upper_tail(scored[2], rows)
    bar = min(max(sigma, tail.height(chance)), 1e300) if guarded else sigma
    least = TYPICAL_ROWS if guarded else 1
    scan = _scan(steps, values, scored, rows, tail, bar, back_sigma, least)
    healed = [spike for spike in scan.spikes if spike.recovered_step is not None]
    if healed:
        scored = _scores(values, _without(steps, values, healed, rows), rows, guarded)
        scan = _scan(steps, values, scored, rows, tail, bar, back_sigma, least)
    if not np.isfinite(loss.values[-1]):
        last = int(steps[-1]) - window_steps
        scan = replace(scan, spikes=tuple(s for s in scan.spikes if s.recovered_step is not None or s.step < last))
    spikes = tuple(spike for spike in scan.spikes if not _at_seam(steps, spike.step, seams))
    return replace(scan, widened=rows > wanted, spikes=spikes)


def _at_seam(steps: Ints, step: int, seams: tuple[int, ...]) -> bool:
    """Whether a step is among the first rows after a seam."""
    return any(0 <= int(np.searchsorted(steps, step)) - int(np.searchsorted(steps, seam)) < SEAM_ROWS for seam in seams)


def _without(steps: Ints, values: Floats, healed: list[Spike], rows: int) -> Floats:
    """The values with every healed spike replaced by the rows before it, so that their scatter stays the run's own."""
    level = values.copy()
    for spike in healed:
        back = spike.recovered_step if spike.recovered_step is not None else spike.step
        start, end = (int(np.searchsorted(steps, step)) for step in (spike.step, back))
        level[start:end] = np.resize(level[start - rows : start], end - start)
    return level


def _scores(values: Floats, level: Floats, rows: int, guarded: bool) -> tuple[Floats, Floats, Floats]:
    """Mean and sigma of the window of `level` before each value, and its height above: three of (n - rows - 1,).

    The first belongs to the first value with more than `rows` before it, the document's t > 100. Where `guarded`,
    sigma is the scatter about the window's trend.
    """
    mean, spread = (part[1:] for part in trailing_moments(level, rows, detrend=guarded))
    spread = np.maximum(spread, np.maximum(np.abs(mean) * RELATIVE_RESOLUTION, 1e-150))
    return mean, spread, (values[rows + 1 :] - mean) / spread


def _scan(
    steps: Ints,
    values: Floats,
    scored: tuple[Floats, Floats, Floats],
    rows: int,
    tail: Tail,
    bar: float,
    back_sigma: float,
    least: int,
) -> Search:
    """All excursions above `bar`; the median of `least` rows must be back for one to have healed."""
    mean, spread, scores = scored
    top = int(np.argmax(scores))
    found: list[Spike] = []
    hits = np.flatnonzero(scores > bar)
    at = 0
    while at < len(hits):
        hit = int(hits[at])
        row, m, s = hit + rows + 1, float(mean[hit]), float(spread[hit])
        back = _first_below(values, row + 1, m + back_sigma * s, least)
        end = back if back is not None else len(values)
        peak = row + int(np.argmax(values[row:end]))
        found.append(
            Spike(
                step=int(steps[row]),
                peak_step=int(steps[peak]),
                peak=float(values[peak]),
                height_sigma=(float(values[peak]) - m) / s,
                mean=m,
                sigma=s,
                expected=tail.expected(float(scores[hit])),
                recovered_step=int(steps[back]) if back is not None else None,
                last_good_step=int(steps[row - 1]),
            )
        )
        at = int(np.searchsorted(hits, end - rows - 1))
    return Search(tuple(found), rows, False, len(scores), float(scores[top]), int(steps[rows + 1 + top]), bar)


def _first_below(values: Floats, start: int, level: float, rows: int) -> int | None:
    """Index of the first row from `start` on that is at or below a level, and the median of `rows` rows with it."""
    size = 16  # most spikes are back within a few rows; the look ahead doubles for those that are not
    while start < len(values):
        part = values[start : start + size + rows - 1]
        if len(part) < rows:
            return None
        levels = part if rows == 1 else np.median(np.lib.stride_tricks.sliding_window_view(part, rows), axis=1)
        below = np.flatnonzero((levels <= level) & (part[: len(levels)] <= level))
        if len(below):
            return start + int(below[0])
        start += len(levels)
        size *= 2
    return None
