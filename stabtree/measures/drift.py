"""Slow changes and falls of the loss and of what stands beside it, and updates that change nothing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common import shared
from stabtree.common.answer import YES, Answer, Evidence, measured, unknown
from stabtree.common.figures import against, figure
from stabtree.common.lazy import np
from stabtree.common.passes import increases, remembered, rows_before, rows_upto
from stabtree.common.shared import FACTOR_SMALL, above, beyond, whether
from stabtree.common.stats import (
    MEDIAN_ERROR,
    NEARLY_ZERO,
    NORMAL_99,
    blocks,
    change_noise,
    interval,
    kendall_z,
    median,
    unsure,
)
from stabtree.measures.curve import MAX_LEVELS, Rise
from stabtree.measures.registry import Absent, Count, Groups, Unknown, finite, highest, measure, number
from stabtree.profile import scatter_of

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.run import Run, Series


def _stretch(loss: Series, rise: Rise | Absent | Unknown, window_steps: int, *, stretched: bool) -> tuple[int, int]:
    """Return the steps that Q4.2 to Q4.4 look at: the last `window_steps`, stretched back to the low of the rise."""
    last = int(loss.steps[-1])
    start = last - window_steps
    return (min(start, rise.low_step) if stretched and isinstance(rise, Rise) else start), last


def _within(series: Series, start: int, end: int) -> tuple[Ints, Floats]:
    steps, values = finite(series)
    inside = slice(rows_before(steps, start), rows_upto(steps, end))
    return steps[inside], values[inside]


@measure(source="phase19 Q4.1; Mann 1945, Kendall 1975")
def loss_rising(rise: Rise) -> Answer:
    """Has the loss been rising slowly, up to the end?

    Document: monotonic over the last `window_steps` steps (`strict`), which no noisy loss ever is. The
    default tests the trend of block medians from the lowest level to the end: a Mann-Kendall score above
    `trend_z`, an end that is `noise_factor` times the blocks' own scatter
    above the low, and at least `range_share` of all that the loss ever moved. Labelled healthy runs reach 1.5,
    1.4 and 0.11; all three at once none. A rise that has levelled off has no trend any more: one that is far higher
    counts without. Looked at is the whole run, and with higher limits its last 2, 4, 8, ... times `window_steps`.
    """
    good, onset, *_ = rise.left
    return Answer(YES, (rise.evidence,), onset_step=onset, last_good_step=good, strength=rise.strength)


def _ratio(begin: float, end: float) -> float:
    """Return the end over the beginning of something that should be positive, bounded so that it can be printed."""
    if begin <= 0:
        return 1e300 if end > 0 else 1.0
    return float(np.clip(end / begin, -1e300, 1e300))


@measure(source="phase19 Q4.2", min_points=2)
def lr_rising(
    loss: Series, lr: Series, rise: Rise | Absent | Unknown, *, window_steps: Count, stretched: bool, min_factor: float
) -> Answer:
    """Has the learning rate risen while the loss rose?

    Compared are the medians of the first and the last tenth of the stretch over which the loss rises (at
    least `window_steps`); a rise is more than `min_factor`, above any rounding of a logged rate.
    """
    start, last = _stretch(loss, rise, window_steps, stretched=stretched)
    steps, values = _within(lr, start, last)
    if len(values) < 2:
        return unknown(f"lr has fewer than two points in steps {start:,} to {last:,}", "lr")
    part = max(1, len(values) // 10)
    begin, end = median(values[:part]), median(values[-part:])
    ratio = _ratio(begin, end)
    if stretched and isinstance(rise, Rise):
        since, rates = _within(lr, rise.low_step, last)
        part = max(1, len(rates) // 10)
        fallen = _ratio(median(rates[:part]), median(rates[-part:])) if len(rates) > 1 else 1.0
        if fallen < 1:  # it rose before the loss did, as in a warm-up, and not with it
            steps, ratio = since, fallen
            begin, end = median(rates[:part]), median(rates[-part:])
    text = f"lr goes from {figure(begin)} to {figure(end)} ({against(ratio, min_factor)}×) "
    text += f"over steps {int(steps[0]):,} to {int(steps[-1]):,}"
    found = (Evidence(text, "lr", (int(steps[0]), int(steps[-1])), ratio, min_factor),)
    return measured(beyond(ratio - 1, min_factor - 1), found)


@measure(source="phase19 Q4.3", labels=("up", "down", "no"))
def weight_norm_change(
    loss: Series,
    weight_norm: Groups,
    rise: Rise | Absent | Unknown,
    *,
    window_steps: Count,
    stretched: bool,
    factor: float,
) -> Answer:
    """Did the weights of some parameter group double or halve in size?

    `up`: the decay is too low, `down`: too high. Asked only once the loss rises, since early growth of
    that size is true of a quarter of healthy runs. The document looks at the last `window_steps`; where
    `stretched`, every such window since the loss was lowest counts. Logged less often than every `window_steps`,
    it is unknown.
    """
    start, last = _stretch(loss, rise, window_steps, stretched=stretched)
    found: dict[str, tuple[float, int, int]] = {}
    for name, series in weight_norm.items():
        steps, values = _within(series, start, last)
        keep = values > 0
        low = rise.low_step if stretched and isinstance(rise, Rise) else start
        steps, values = steps[keep], values[keep]
        if len(steps) < 2 or interval(steps) > window_steps:
            continue
        # Compared is each row with the first one at most a window before; where the loss still fell they say nothing.
        first = np.searchsorted(steps, steps - window_steps)
        ratio = np.clip(values / values[first], NEARLY_ZERO, 1e300)
        ratio[steps <= low] = 1.0
        row = int(np.argmax(np.abs(np.log(ratio))))
        found[name] = float(ratio[row]), int(steps[first[row]]), int(steps[row])
    if not found:
        why = f"weight norms have no two points within {window_steps} steps of {start:,} to {last:,}"
        return unknown(why, "weight_norm")
    name = max(found, key=lambda key: abs(math.log(found[key][0])))
    times, at, to = found[name]
    bar = factor if times > 1 else 1 / max(factor, NEARLY_ZERO)
    text = f"the norm of {name} changes {against(times, bar)}× from step {at:,} to {to:,} (limit {bar:g}×)"
    evidence = (Evidence(text, f"weight_norm/{name}", (at, to), times, bar),)
    if times > 1:
        return measured(beyond(times, bar), evidence, "up")
    return measured(beyond(1 / times, 1 / bar), evidence, "down")


@measure(source="phase19 Q4.4", min_points=2)
def grad_norm_rising(
    loss: Series,
    grad_norm: Series,
    rise: Rise | Absent | Unknown,
    *,
    window_steps: Count,
    stretched: bool,
    trend_z: float,
    min_factor: float,
) -> Answer:
    """Is the rolling mean of grad_norm trending up while the loss rises?

    Block medians over the stretch over which the loss rises: Mann-Kendall above `trend_z` and an end at
    least `min_factor` times the beginning. Alone it says little, healthy gradients grow too; with a
    rising loss it means that the landscape is getting harder.
    """
    start, last = _stretch(loss, rise, window_steps, stretched=stretched)
    steps, values = _within(grad_norm, start, last)
    count = min(MAX_LEVELS // 2, len(values) // 2)
    if count < 4:
        why = f"grad_norm has {len(values)} finite points in steps {start:,} to {last:,}, 8 are needed"
        return unknown(why, "grad_norm")
    medians, _ = blocks(values, count)
    score = kendall_z(medians)
    begin, end = median(medians[:3]), median(medians[-3:])
    ratio = _ratio(begin, end)
    text = f"grad_norm goes from {figure(begin)} to {figure(end)} ({against(ratio, min_factor)}×, limit "
    text += f"{min_factor:g}×) over steps {int(steps[0]):,} to {int(steps[-1]):,}"
    if ratio >= min_factor and score < trend_z:
        text += ", without a steady trend"
    found = (Evidence(text, "grad_norm", (int(steps[0]), int(steps[-1])), score, trend_z),)
    return measured(min(beyond(score, trend_z), beyond(ratio - 1, min_factor - 1)), found)


SURE = 1.645  # errors from a level beyond which it lies once in twenty


def early_rows(count: int) -> int:
    """Return how many of the rows make the first level: a twentieth, three to ten."""
    return max(3, min(10, count // 20))


def first_level(values: Floats) -> float:
    """Return the level at which the loss began: the median of its first rows, a twentieth of them, three to ten.

    Only the first row comes before any update: where the rows after it are twice as high, the first updates drove them
    up, and the first row is the level.
    """
    early, first = median(values[: early_rows(len(values))]), float(values[0])
    return first if 0 < first * FACTOR_SMALL < early else early


class Fall(NamedTuple):
    """How far a series has come down, as shares of the size of its first level; below 0 where it rose."""

    first: float  # the first level
    low: float  # the lowest level, one that no chance explains
    high: float  # the highest level
    low_row: int  # the row at which the lowest level begins
    burst: float  # the fall from the first row alone, beyond the scatter of rows
    thrown: bool  # whether the first updates drove the loss up, so that the first level is its first row
    share: float  # the fall that was seen
    error: float  # its standard error; a few rows know their own scatter badly, and it is wider for them
    coarse: float  # half of the smallest step of the numbers
    room: float  # how far the fall may be from what was seen
    at_most: float  # the largest fall that the scatter leaves room for; a rise, by chance, takes little of it away
    at_least: float  # the smallest fall that the scatter leaves room for
    falls: float  # the strength of the statement that it falls, however little: by its levels, or by their trend
    trend: float  # the Mann-Kendall score of its levels, below 0 for a fall


@remembered
def fall_of(series: Series, reference: float | None = None, *, rows: int = 0) -> Fall:
    """Return how far a series of at least three finite values has come down.

    Args:
        series: the series.
        reference: the level that it is to come down from; by default its first one.
        rows: how many rows show the first level where the series left it at once; by default as `first_level` has it.
    """
    _, values = finite(series)
    (noise, quantum), count = scatter_of(series), len(values)
    rows = rows or early_rows(count)
    medians, starts = blocks(values, min(shared.LEVELS, max(3, count // 3)))
    size = count // len(medians)

    level = max(change_noise(medians), MEDIAN_ERROR * noise / math.sqrt(size))
    wider = unsure(count - 2, NORMAL_99)
    smooth = np.convolve(medians, np.ones(3) / 3, mode="valid")
    lowest = int(smooth.argmin()) + 3  # what a loss does once it has blown up says nothing of its scatter
    around = level if lowest < shared.LEVELS * shared.SHARE_HALF else min(level, change_noise(medians[:lowest]))
    dip = float(smooth.min()) + NORMAL_99 * wider * around / math.sqrt(3)
    third = count // 3
    low = min(median(values[third : 2 * third]), median(values[2 * third :]), dip)
    early, first = median(values[:rows]), first_level(values)
    thrown = first < early - SURE * noise
    first = first if thrown else early
    begin, error = (first, MEDIAN_ERROR * noise / math.sqrt(rows)) if reference is None else (reference, 0.0)
    many = max(early_rows(count), count // 5)
    if reference is None and abs(first - median(values[:many])) <= SURE * error:
        # More rows show the first level where the first few are no higher than their error explains.
        begin, error = median(values[:many]), MEDIAN_ERROR * noise / math.sqrt(many)
    scale = max(abs(begin), abs(low) if begin <= 0 else 0.0, NEARLY_ZERO)
    error = min(1e9, wider * math.hypot(error, MEDIAN_ERROR * level / math.sqrt(len(medians) / 3)) / scale)
    share, coarse = max(-1e9, min(1e9, (begin - low) / scale)), min(1e9, quantum / 2 / scale)
    trend, room = kendall_z(medians if count > shared.LEVELS else values), SURE * error + coarse
    # So many rows, each lower than the one before, are hardly chance.
    steady = whether(count >= shared.ROWS_SHORT and increases(values[::-1]))
    return Fall(
        first=first,
        low=low,
        high=float(medians.max()),
        low_row=int(starts[int(np.argmin(medians))]),
        burst=min(1e9, (float(values[0]) - low - SURE * wider * noise) / scale),
        thrown=thrown,
        share=share,
        error=error,
        coarse=coarse,
        room=room,
        at_most=max(share, -error / 2) + room,
        at_least=share - room,
        falls=max(above(-trend, shared.TREND_Z), steady, above(share, NORMAL_99 * error + coarse)),
        trend=trend,
    )


def done_share(run: Run, loss: Series, lr: Series | None, steps: int) -> float:
    """Return how much of what so many steps at the full rate teach can be expected of a log: 0 to 1.

    A step of a warm-up counts by its rate. Where none is logged, the warm-up is as long as it is configured. Of epochs
    and rows it takes `ROWS_LONG`, and of a run whose end is planned a third of it.
    """
    if steps <= 0:
        return 1.0
    at, _ = finite(loss)
    made = float(int(at[-1]) - int(at[0])) + interval(at)
    planned = min(1.0, 3 * made / max(run.planned_step + 1, 1.0)) if math.isfinite(run.planned_step) else 1.0
    if run.by_epoch or run.by_row:
        return min(planned, len(at) / shared.ROWS_LONG)
    if lr is not None and len(finite(lr)[1]) > 1 and highest(lr) > 0:
        # The mean of the rate as a share of its peak, all after that counted as the peak.
        rate = float(np.maximum.accumulate(finite(lr)[1]).mean()) / max(highest(lr), number(run, "lr") or 0.0)
    else:
        warm = max(number(run, "warmup_steps") or 0.0, 0.0)
        rate = 1 - warm / (2 * made) if made >= warm else made / (2 * warm)
    return min(planned, max(0.0, made * rate / steps))
