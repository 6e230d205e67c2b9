"""How far a loss has come down from its first level, how surely, and how far it should have come by then."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common import shared
from stabtree.common.lazy import np
from stabtree.common.passes import increases, parts, remembered
from stabtree.common.stats import (
    MEDIAN_ERROR,
    NEARLY_ZERO,
    NORMAL_99,
    blocks,
    change_noise,
    interval,
    kendall_z,
    median,
)
from stabtree.common.strength import above, strongest, whether
from stabtree.context.phase import MISSED_ROWS
from stabtree.facts.registry import finite, highest
from stabtree.profile import scatter_of

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.context.model import Context
    from stabtree.run import Run, Series

SURE = 1.645  # errors from a level beyond which it lies once in twenty


def early_rows(count: int) -> int:
    """Return how many of the rows make the first level: a twentieth, three to ten."""
    return max(3, min(10, count // 20))


def first_level(values: Floats, thrown: float) -> float:
    """Return the level at which the loss began: the median of its first rows, a twentieth of them, three to ten.

    Only the first row comes before any update: where the rows after it are `thrown` times as high, the first updates
    drove them up, and the first row is the level.
    """
    early, first = median(values[: early_rows(len(values))]), float(values[0])
    return first if 0 < first * thrown < early else early


class Fall(NamedTuple):
    """How far a series has come down, as shares of the size of its first level; below 0 where it rose.

    Attributes:
        first: the first level.
        low: the lowest level, one that no chance explains.
        high: the highest level.
        low_row: the row at which the lowest level begins.
        burst: the fall from the first row alone, beyond the scatter of rows.
        thrown: whether the first updates drove the loss up, so that the first level is its first row.
        share: the fall that was seen.
        error: its standard error; a few rows know their own scatter badly, and it is wider for them.
        coarse: half of the smallest step of the numbers.
        trend: the Mann-Kendall score of its levels, below 0 for a fall.
        steady: whether each row is lower than the one before, in so many rows that chance would hardly have it so.
    """

    first: float
    low: float
    high: float
    low_row: int
    burst: float
    thrown: bool
    share: float
    error: float
    coarse: float
    trend: float
    steady: bool

    @property
    def room(self) -> float:
        """How far the fall may be from what was seen."""
        return SURE * self.error + self.coarse

    @property
    def at_most(self) -> float:
        """The largest fall that the scatter leaves room for; a rise, by chance, takes little of it away."""
        return max(self.share, -self.error / 2) + self.room

    @property
    def at_least(self) -> float:
        """The smallest fall that the scatter leaves room for."""
        return self.share - self.room

    @property
    def falls(self) -> float:
        """The strength of the statement that it falls, however little: by its levels, or by their trend."""
        steps = strongest(above(-self.trend, shared.TREND_Z), whether(self.steady))
        return strongest(steps, above(self.share, NORMAL_99 * self.error + self.coarse))


@remembered
def fall_of(series: Series, reference: float | None = None, *, rows: int = 0) -> Fall:
    """Return how far a series of at least three finite values has come down.

    Args:
        series: the series.
        reference: the level that it is to come down from; by default its first one.
        rows: how many rows show the first level where the series left it at once; by default as `first_level` has it.
    """
    _, values = finite(series)
    scatter, count = scatter_of(series), len(values)
    rows = rows or early_rows(count)
    medians, starts = blocks(values, min(shared.LEVELS, max(3, count // 3)))
    size = count // len(medians)
    noise = float(scatter.level_noise)
    level = max(change_noise(medians), MEDIAN_ERROR * noise / math.sqrt(size))
    # Few rows know their scatter badly: Student's t, to the first term beyond the normal distribution.
    unsure = 1 + (NORMAL_99**2 + 1) / (4 * max(count - 2, 1))
    smooth = np.convolve(medians, np.ones(3) / 3, mode="valid")
    around = _scatter_until(medians, int(smooth.argmin()) + 3, level)
    dip = float(smooth.min()) + NORMAL_99 * unsure * around / math.sqrt(3)
    third = count // 3
    low = min(median(values[third : 2 * third]), median(values[2 * third :]), dip)
    early, first = median(values[:rows]), first_level(values, shared.FACTOR_SMALL)
    thrown = first < early - SURE * noise
    first = first if thrown else early
    begin, error = _sure_level(values, first, rows, noise) if reference is None else (reference, 0.0)
    scale = max(abs(begin), abs(low) if begin <= 0 else 0.0, NEARLY_ZERO)
    error = math.hypot(error, MEDIAN_ERROR * level / math.sqrt(len(medians) / 3))
    return Fall(
        first=first,
        low=low,
        high=float(medians.max()),
        low_row=int(starts[int(np.argmin(medians))]),
        burst=min(1e9, (float(values[0]) - low - SURE * unsure * noise) / scale),
        thrown=thrown,
        share=max(-1e9, min(1e9, (begin - low) / scale)),
        error=min(1e9, unsure * error / scale),
        coarse=min(1e9, float(scatter.quantum) / 2 / scale),
        trend=kendall_z(medians if count > shared.LEVELS else values),
        steady=count >= shared.ROWS_SHORT and increases(values[::-1]),
    )


def _scatter_until(medians: Floats, end: int, scatter: float) -> float:
    """Return the scatter of levels before a row of them: what a loss does once it has blown up says nothing of it."""
    if end < shared.LEVELS * shared.SHARE_HALF:
        return scatter
    return min(scatter, change_noise(medians[:end]))


def _wide_rows(count: int) -> int:
    """Return how many rows show the first level of a loss that has not left it: a fifth."""
    return max(early_rows(count), count // 5)


def _sure_level(values: Floats, first: float, rows: int, noise: float) -> tuple[float, float]:
    """Return the first level and its error, by more rows where the first few are no higher than theirs explains."""
    few, many = (MEDIAN_ERROR * noise / math.sqrt(count) for count in (rows, _wide_rows(len(values))))
    wide = median(values[: _wide_rows(len(values))])
    return (first, few) if abs(first - wide) > SURE * few else (wide, many)


def begins_late(run: Run, loss: Series) -> str:
    """Return that the beginning is missing, by the rows of the first level: one may be of an attempt before it."""
    steps, _ = finite(loss)
    inner, every = early_rows(len(steps)) // 2, interval(steps)
    first = int(steps[inner] - inner * every)
    if run.by_row or first <= MISSED_ROWS * every:
        return ""
    return f"the log begins at step {first:,}: the loss before that is not known"


def done_share(run: Run, context: Context, loss: Series, lr: Series | None, steps: int) -> float:
    """Return how much of what so many steps at the full rate teach can be expected of a log: 0 to 1.

    A step of a warm-up counts by its rate. Where none is logged, the warm-up is as long as it is configured.
    """
    if run.by_epoch or run.by_row or steps <= 0:
        return 1.0
    at, _ = finite(loss)
    made = (float(int(at[-1]) - int(at[0])) + interval(at)) / run.step_size
    rate = _mean_rate(run, context, lr)
    if rate is None:
        warm = run.setting("warmup_steps")
        warm = float(warm) if isinstance(warm, int | float) and warm > 0 else 0.0
        rate = 1 - warm / (2 * made) if made >= warm else made / (2 * warm)
    return min(1.0, made * rate / steps)


def _mean_rate(run: Run, context: Context, lr: Series | None) -> float | None:
    """Return the mean learning rate as a share of its peak, all after it counted as that; None if not logged."""
    if lr is None or len(finite(lr)[1]) < 2 or highest(lr) <= 0:
        return None
    configured = run.setting("lr")
    configured = float(configured) if isinstance(configured, int | float) else 0.0
    return _mean_peak(lr) / max(highest(lr), context.peak_lr.value or 0.0, configured)


@remembered
def _mean_peak(lr: Series) -> float:
    """Return the mean of the highest rate so far."""
    rates, total = finite(lr)[1], 0.0
    peak = -math.inf
    for part in parts(rates):
        top = float(part.max())
        if top > peak:
            total += float(np.maximum(np.maximum.accumulate(part), peak).sum())
            peak = top
        else:
            total += peak * len(part)
    return total / len(rates)
