"""Gaps: where a metric falls silent while the run goes on.

Frames written through pandas leave the cell of a NaN empty, and some trainers leave a NaN out of the row.
Then silence is the only trace. But most silence is layout: eval rows are between train rows, and metrics
are logged at intervals of their own. So a gap must be long against the metric's own interval, the one
overall and the ones around it, and rows of training must have been written meanwhile. Where single values are missing
here and there, it must be longer than their share makes likely, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.shared import FACTOR, ROWS_LONG, ROWS_SHORT, SHARE_HALF
from stabtree.common.stats import median
from stabtree.metrics.table import is_time
from stabtree.run import Gap

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.loaders.table import Column
    from stabtree.run import Series

WATCHED = ("loss", "grad_norm", "lr", "loss_scale")
# What a trainer may write once more when it is done.
EVALUATED = frozenset(("eval_loss", "eval_quality"))
MIN_POINTS = ROWS_SHORT
MIN_ROWS = 3
DENSITY = SHARE_HALF
AROUND = ROWS_SHORT
ALWAYS = ROWS_LONG
# How often single missing values may come together so by chance: anywhere in the log, or right at its end.
BY_CHANCE = 0.001
AT_END_BY_CHANCE = 0.01
# Fewer missing values than this share of a metric are not worth a note.
NOTED_SHARE = 0.01


def find_gaps(
    steps: Ints, metrics: Mapping[str, Column], series: Mapping[str, Series], evaluations: Sequence[Column] = ()
) -> tuple[Gap, ...]:
    """Return the gaps of the watched metrics, in order of their first step.

    Args:
        steps: int64 (n,), the step of each row.
        metrics: what the rows hold, n cells a column.
        series: the same by step.
        evaluations: what was measured on held-out data and no metric was read from, n cells a column.
    """
    gaps: list[Gap] = []
    for metric, column, logged in _watched(metrics, series):
        training, blank = _rows_without(metric, metrics)
        for evaluation in evaluations:
            blank &= ~evaluation.mask
        if column.garbled is not None:
            readable = ~_spoilt(column.garbled, steps > logged.steps[-1])
            training, blank = training & readable, blank & readable
        if metric == "loss" and blank[-1] and not blank[:-1].any() and _is_step(steps, metrics):
            training[-1] = True
        busy = np.setdiff1d(steps[training], logged.steps)
        quiet = np.setdiff1d(steps[training | blank], logged.steps)
        if metric == "loss" and ends_aside(steps, metrics):
            busy, quiet = busy[busy != steps[-1]], quiet[quiet != steps[-1]]
        gaps += _gaps(metric, logged.steps, busy, quiet)
    return tuple(sorted(gaps, key=lambda gap: gap.first_step))


def _watched(metrics: Mapping[str, Column], series: Mapping[str, Series]) -> Iterator[tuple[str, Column, Series]]:
    """Yield the watched metrics that some rows lack, but for those that are logged only when something happens."""
    for metric in WATCHED:
        column, logged = metrics.get(metric), series.get(metric)
        if column is None or column.logged is None or column.sporadic:
            continue
        if logged is not None and len(logged) >= MIN_POINTS:
            yield metric, column, logged


def _spoilt(garbled: Bools, behind: Bools) -> Bools:
    """Return the rows in which something was logged that can't be read; not those of an end that holds nothing else.

    Args:
        garbled: bool (n,), cells that can't be read.
        behind: bool (n,), the rows after the last value.
    """
    if 2 * (garbled & behind).sum() > garbled.sum():
        return garbled & ~behind
    return garbled


def ends_aside(steps: Ints, metrics: Mapping[str, Column]) -> bool:
    """Whether the very last row is the only one at the end without a loss, and holds an evaluation or a rate only.

    A row of the rate alone is one of training where it is due and every loss has a gradient norm beside it: it lacks
    that, too.
    """
    loss = metrics.get("loss")
    if loss is None or loss.logged is None or len(loss.logged) <= MIN_POINTS:
        return False
    if loss.logged[-1] or not loss.logged[-2]:
        return False
    last = {name for name, column in metrics.items() if column.mask[-1] and not is_time(name)}
    if not last <= {*EVALUATED, "lr"}:
        return False
    return not last.isdisjoint(EVALUATED) or not _is_step(steps, metrics)


def _is_step(steps: Ints, metrics: Mapping[str, Column]) -> bool:
    """Whether a last row without a loss is a step of training: as far behind the last one as that was, with norms."""
    logged, norm = metrics["loss"].mask, metrics.get("grad_norm")
    own = steps[logged]
    due = len(own) > 1 and bool(steps[-1] - own[-1] == own[-1] - own[-2])
    return due and norm is not None and bool(norm.mask[logged][-2:].all())


def here_and_there(steps: Ints, metrics: Mapping[str, Column], series: Mapping[str, Series]) -> list[str]:
    """Return a note on each watched metric that lacks single values; arguments as for `find_gaps`."""
    found = []
    for metric, _, logged in _watched(metrics, series):
        training, _ = _rows_without(metric, metrics)
        busy = np.setdiff1d(steps[training], logged.steps)
        intervals = np.diff(logged.steps).astype(np.float64)
        near = intervals <= FACTOR * max(1.0, median(intervals))
        count = int(_between(busy, logged.steps)[1][near].sum())
        if count >= MIN_ROWS and count > NOTED_SHARE * len(logged) and _missing_share(intervals) > NOTED_SHARE:
            found.append(f"{metric} is missing here and there: in {count:,} rows that hold other metrics.")
    return found


def _missing_share(intervals: Floats) -> float:
    """Return the share of a metric's values that are missing one or two at a time."""
    usual = max(1.0, median(intervals))
    near = np.rint(intervals[intervals <= FACTOR * usual] / usual)
    return float((near - 1).clip(0).sum() / max(1.0, near.sum()))


def _rows_without(metric: str, metrics: Mapping[str, Column]) -> tuple[Bools, Bools]:
    """Return the rows without a metric: with another one of training in them, and with nothing known in them."""
    logged = metrics[metric].mask
    training = np.zeros(len(logged), dtype=np.bool_)
    evaluated = np.zeros(len(logged), dtype=np.bool_)
    for name, column in metrics.items():
        if name in EVALUATED or column.sporadic:
            evaluated |= column.mask
        elif name != metric and not is_time(name):
            training |= column.mask
    return training & ~logged, ~(logged | training | evaluated)


def _gaps(metric: str, own: Ints, busy: Ints, quiet: Ints) -> list[Gap]:
    """Return the gaps between the metric's own steps and after them.

    Args:
        metric: its name.
        own: int64 (n,), the steps at which it was logged.
        busy: int64 (m,), steps without it at which something else of training was logged.
        quiet: int64 (k,), these and the steps at which nothing known was logged at all. Such rows may come
            from an evaluation in unknown columns, so they count only where they are as dense as the metric.
    """
    if not len(quiet):
        return []
    last = busy[busy > own[-1]]
    intervals = np.diff(own).astype(np.float64)
    share = _missing_share(intervals)
    if metric == "loss" and 0 < len(last) <= MIN_ROWS and _always_there(own, busy):
        # A trainer that stops at its first NaN leaves one row without a loss, or two.
        if share ** len(last) < AT_END_BY_CHANCE:
            return [Gap(metric, int(last[0]), int(last[-1]), len(last), at_end=True)]
        return []
    usual = max(1.0, median(intervals))
    silence, edges = intervals, own
    if quiet[-1] > own[-1]:
        silence, edges = np.append(intervals, quiet[-1] - own[-1]), np.append(own, quiet[-1] + 1)
    first, rows = _between(quiet, edges)
    enough = (_between(busy, edges)[1] >= MIN_ROWS) | (rows >= np.maximum(MIN_ROWS, DENSITY * silence / usual))
    unlikely = len(own) * share ** np.maximum(1.0, np.rint(silence / usual) - 1) < BY_CHANCE
    found = []
    for index in np.flatnonzero(enough & unlikely & (silence > FACTOR * usual)).tolist():
        if silence[index] > FACTOR * _usual(intervals, index):
            span = quiet[first[index] : first[index] + rows[index]]
            found.append(Gap(metric, int(span[0]), int(span[-1]), len(span), at_end=index == len(intervals)))
    return found


def _always_there(own: Ints, busy: Ints) -> bool:
    """Whether each of the last rows of training holds the metric, so that one without it is an event."""
    return len(own) >= ALWAYS and not ((busy > own[-ALWAYS]) & (busy < own[-1])).any()


def _between(steps: Ints, edges: Ints) -> tuple[Ints, Ints]:
    """Return, of the steps strictly between each two edges, the index of the first and the count."""
    first = np.searchsorted(steps, edges[:-1], side="right")
    return first, np.searchsorted(steps, edges[1:], side="left") - first


def _usual(intervals: Floats, index: int) -> float:
    """Return the interval to expect around `index`: a log that becomes sparser has not stopped."""
    before = intervals[max(0, index - AROUND) : index]
    after = intervals[index + 1 : index + 1 + AROUND]
    usual = max([median(part) for part in (before, after) if len(part)], default=0.0)
    if not len(after) and index < len(intervals) and len(before):
        # The last interval has nothing behind it that would show a change: the one before it has to.
        usual = max(usual, float(before[-1]))
    return usual
