"""Gaps: where a metric falls silent while the run goes on.

Frames written through pandas leave the cell of a NaN empty, and some trainers leave a NaN out of the row.
Then silence is the only trace. But most silence is layout: eval rows stand between train rows, and metrics
are logged at intervals of their own. So a gap must be long against the metric's own interval, the one
overall and the ones around it, and rows of training must have been written meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.run import Gap

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree._lazy import Bools, Floats, Ints
    from stabtree.loaders.table import Column
    from stabtree.run import Series

WATCHED = ("loss", "grad_norm", "lr", "loss_scale")
MIN_POINTS = 5
MIN_ROWS = 3
FACTOR = 3.0
AROUND = 5


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
        if column and column.logged is not None and logged and len(logged) >= MIN_POINTS:
            others = np.setdiff1d(steps[_of_training(metric, len(steps), metrics)], logged.steps)
            gaps += _gaps(metric, logged.steps, others)
    return tuple(sorted(gaps, key=lambda gap: gap.first_step))


def _of_training(metric: str, rows: int, metrics: Mapping[str, Column]) -> Bools:
    """Rows without the metric that carry another one of training, or nothing: not those of an evaluation."""
    train = np.zeros(rows, dtype=np.bool_)
    evaluated = np.zeros(rows, dtype=np.bool_)
    for name, column in metrics.items():
        logged = np.ones(rows, dtype=np.bool_) if column.logged is None else column.logged
        if name == metric:
            here = logged
        elif name == "eval_loss":
            evaluated |= logged
        else:
            train |= logged
    return ~here & (train | ~evaluated)


def _gaps(metric: str, own: Ints, others: Ints) -> list[Gap]:
    """Gaps between the metric's own steps and after them.

    Args:
        metric: its name.
        own: int64 (n,), the steps at which it was logged.
        others: int64 (m,), steps of training rows without it.
    """
    if not len(others):
        return []
    after = others[others > own[-1]]
    edges = np.append(own, after[-1] + 1) if len(after) else own
    silence = np.diff(edges).astype(np.float64)
    if len(after):
        silence[-1] -= 1
    intervals = np.diff(own).astype(np.float64)
    first = np.searchsorted(others, edges[:-1], side="right")
    rows = np.searchsorted(others, edges[1:], side="left") - first
    found = []
    for place in np.flatnonzero((rows >= MIN_ROWS) & (silence > FACTOR * np.median(intervals))).tolist():
        if silence[place] > FACTOR * _usual(intervals, place):
            span = others[first[place] : first[place] + rows[place]]
            at_end = place == len(intervals)
            found.append(Gap(metric, int(span[0]), int(span[-1]), len(span), at_end))
    return found


def _usual(intervals: Floats, place: int) -> float:
    """The interval to expect around `place`: a log that becomes sparser has not stopped."""
    before = intervals[max(0, place - AROUND) : place]
    after = intervals[place + 1 : place + 1 + AROUND]
    usual = max([float(np.median(part)) for part in (before, after) if len(part)], default=0.0)
    if not len(after) and place < len(intervals) and len(before):
        # The last interval has nothing behind it that would show a change: the one before it has to.
        usual = max(usual, float(before[-1]))
    return usual
