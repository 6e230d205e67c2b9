"""Gaps: where a metric falls silent while the run goes on.

Frames written through pandas leave the cell of a NaN empty, and some trainers leave a NaN out of the row.
Then silence is the only trace. But most silence is layout: eval rows stand between train rows, and metrics
are logged at intervals of their own. So a gap must be long against the metric's own interval, the one
overall and the ones around it, and rows of training must have been written meanwhile. Where single values are missing
here and there, it must be longer than their share makes likely, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.stats import median
from stabtree.metrics.pace import TIMES
from stabtree.run import Gap

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.loaders.table import Column
    from stabtree.run import Series

WATCHED = ("loss", "grad_norm", "lr", "loss_scale")
# What a trainer may write once more when it is done.
EVALUATED = ("eval_loss", "eval_quality")
ASIDE = (*EVALUATED, "lr")
MIN_POINTS = 5
MIN_ROWS = 3
FACTOR = 3.0
DENSITY = 0.5
AROUND = 5
ALWAYS = 20
# How often single missing values may come together so by chance: anywhere in the log, or right at its end.
BY_CHANCE = 0.001
AT_END_BY_CHANCE = 0.01
# Fewer missing values than this share of a metric are not worth a word.
TOLD_SHARE = 0.01


def find_gaps(steps: Ints, metrics: Mapping[str, Column], series: Mapping[str, Series]) -> tuple[Gap, ...]:
    """The gaps of the watched metrics, in order of their first step.

    Args:
        steps: int64 (n,), the step of each row.
        metrics: what the rows hold, n cells a column.
        series: the same by step.
    """
    gaps: list[Gap] = []
    for metric in WATCHED:
        column, logged = metrics.get(metric), series.get(metric)
        if column and column.sporadic:
            continue
        if column and column.logged is not None and logged and len(logged) >= MIN_POINTS:
            training, blank = _without(metric, column.logged, metrics)
            if column.garbled is not None:
                # What can't be read was logged all the same; the end of a run that holds nothing else is one, though.
                at_end = column.garbled & (steps > logged.steps[-1])
                spoilt = column.garbled & ~at_end if 2 * at_end.sum() > column.garbled.sum() else column.garbled
                training, blank = training & ~spoilt, blank & ~spoilt
            if metric == "loss" and blank[-1] and not blank[:-1].any() and _is_step(steps, metrics):
                training[-1] = True
            busy = np.setdiff1d(steps[training], logged.steps)
            quiet = np.setdiff1d(steps[training | blank], logged.steps)
            if metric == "loss" and ends_aside(steps, metrics):
                busy, quiet = busy[busy != steps[-1]], quiet[quiet != steps[-1]]
            gaps += _gaps(metric, logged.steps, busy, quiet)
    return tuple(sorted(gaps, key=lambda gap: gap.first_step))


def ends_aside(steps: Ints, metrics: Mapping[str, Column]) -> bool:
    """Whether the very last row is the only one at the end without a loss, and holds an evaluation or a rate only.

    A row of the rate alone is one of training where it is due, and a gradient's norm stands beside each loss: it lacks
    that, too.
    """
    loss = metrics.get("loss")
    if loss is None or loss.logged is None or len(loss.logged) <= MIN_POINTS or loss.logged[-1] or not loss.logged[-2]:
        return False
    if any(column.mask[-1] for name, column in metrics.items() if name not in ASIDE and name not in TIMES):
        return False
    evaluated = any(name in EVALUATED and column.mask[-1] for name, column in metrics.items())
    return evaluated or not _is_step(steps, metrics)


def _is_step(steps: Ints, metrics: Mapping[str, Column]) -> bool:
    """Whether a last row without a loss is a step of training: as far behind the last one as that was, with norms."""
    logged, norm = metrics["loss"].mask, metrics.get("grad_norm")
    own = steps[logged]
    due = len(own) > 1 and bool(steps[-1] - own[-1] == own[-1] - own[-2])
    return due and norm is not None and bool(norm.mask[logged][-2:].all())


def here_and_there(steps: Ints, metrics: Mapping[str, Column], series: Mapping[str, Series]) -> list[str]:
    """A word on the watched metrics that lack single values; arguments as for `find_gaps`."""
    found = []
    for metric in WATCHED:
        column, logged = metrics.get(metric), series.get(metric)
        if column and not column.sporadic and column.logged is not None and logged and len(logged) >= MIN_POINTS:
            training, _ = _without(metric, column.logged, metrics)
            busy = np.setdiff1d(steps[training], logged.steps)
            intervals = np.diff(logged.steps).astype(np.float64)
            near = intervals <= FACTOR * max(1.0, median(intervals))
            count = int(_between(busy, logged.steps)[1][near].sum())
            if count >= MIN_ROWS and count > TOLD_SHARE * len(logged) and _missing_share(intervals) > TOLD_SHARE:
                found.append(f"{metric} is missing here and there: in {count:,} rows that hold other metrics.")
    return found


def _missing_share(intervals: Floats) -> float:
    """The share of a metric's values that are missing one or two at a time."""
    usual = max(1.0, median(intervals))
    near = np.rint(intervals[intervals <= FACTOR * usual] / usual)
    return float((near - 1).clip(0).sum() / max(1.0, near.sum()))


def _without(metric: str, logged: Bools, metrics: Mapping[str, Column]) -> tuple[Bools, Bools]:
    """Rows without the metric: with another one of training in them, and with nothing known in them."""
    training = np.zeros(len(logged), dtype=np.bool_)
    evaluated = np.zeros(len(logged), dtype=np.bool_)
    for name, column in metrics.items():
        if name in EVALUATED:
            evaluated |= column.mask
        elif name != metric and name not in TIMES:
            training |= column.mask
    return training & ~logged, ~(logged | training | evaluated)


def _gaps(metric: str, own: Ints, busy: Ints, quiet: Ints) -> list[Gap]:
    """Gaps between the metric's own steps and after them.

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
    after = int(quiet[-1]) if quiet[-1] > own[-1] else None
    silence = intervals if after is None else np.append(intervals, after - own[-1])
    edges = own if after is None else np.append(own, after + 1)
    first, rows = _between(quiet, edges)
    enough = (_between(busy, edges)[1] >= MIN_ROWS) | (rows >= np.maximum(MIN_ROWS, DENSITY * silence / usual))
    unlikely = len(own) * share ** np.maximum(1.0, np.rint(silence / usual) - 1) < BY_CHANCE
    found = []
    for place in np.flatnonzero(enough & unlikely & (silence > FACTOR * usual)).tolist():
        if silence[place] > FACTOR * _usual(intervals, place):
            span = quiet[first[place] : first[place] + rows[place]]
            found.append(Gap(metric, int(span[0]), int(span[-1]), len(span), place == len(intervals)))
    return found


def _always_there(own: Ints, busy: Ints) -> bool:
    """Whether the metric stood in each of its last rows of training, so that one without it is an event."""
    return len(own) >= ALWAYS and not ((busy > own[-ALWAYS]) & (busy < own[-1])).any()


def _between(steps: Ints, edges: Ints) -> tuple[Ints, Ints]:
    """Of the steps strictly between each two edges, the place of the first and the count."""
    first = np.searchsorted(steps, edges[:-1], side="right")
    return first, np.searchsorted(steps, edges[1:], side="left") - first


def _usual(intervals: Floats, place: int) -> float:
    """The interval to expect around `place`: a log that becomes sparser has not stopped."""
    before = intervals[max(0, place - AROUND) : place]
    after = intervals[place + 1 : place + 1 + AROUND]
    usual = max([median(part) for part in (before, after) if len(part)], default=0.0)
    if not len(after) and place < len(intervals) and len(before):
        # The last interval has nothing behind it that would show a change: the one before it has to.
        usual = max(usual, float(before[-1]))
    return usual
