"""Rows whose cells stand a column further left or right than those above them.

A trainer that stops writing one column, but not its header, makes a gradient's norm of a loss. The file proves it
where columns go on, from one row to the next, with the usual values of their neighbours, which are far from their own,
and no column behind them goes on as it was; or where one does and another falls empty at that very row, as it must.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from stabtree.common.lazy import np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.loaders.table import Column

# Rows on each side that are compared.
AROUND = 10
# Usual values are alike within the first of these factors, and far from each other beyond the second.
ALIKE = 1.5
FAR = 2.0
# A column that stands in so many of the rows is logged in each, one that does in so few is not.
DENSE = 0.8
SPARSE = 0.3
# Of a column so many places are looked at, and so many columns: the metrics that matter stand first.
CANDIDATES = 20
COMPARED = 16
# Of rows that lack a cell, so many are nearer to the column on the right.
MOVED = 0.75
LEFT, RIGHT = 1, -1
SIDES = {LEFT: "left", RIGHT: "right"}


def shifted_from(columns: Sequence[Column | None]) -> tuple[int, str] | None:
    """The first row whose cells stand one column too far to a side, and that side; None where no such is proved."""
    # A shift leaves a cell empty at one end of the row.
    ends = {row for column in columns if column and column.logged is not None for row in _falls_empty(column.logged)}
    for row in sorted(ends):
        for side in (LEFT, RIGHT):
            if _proved(columns[:COMPARED], row, side):
                return _begin(columns[:COMPARED], row, side), SIDES[side]
    return None


def _begin(columns: Sequence[Column | None], row: int, side: int) -> int:
    """The first of the rows that end at a row which is proved to be shifted, and are nearer to it than to those before.

    What falls empty may hold a last value in the first shifted row: an evaluation was due there.
    """
    usual = [
        (column, _usual(column, row - AROUND, row), _usual(column, row, row + AROUND))
        for place, column in enumerate(columns)
        if column and 0 < place + side < len(columns) and _of(column, columns[place + side], row) == "moved"
    ]
    while sum(_nearer(float(column.values[row - 1]), now, own) for column, own, now in usual) >= len(usual) / 2:
        row -= 1
    return row


def _nearer(value: float, one: float, other: float) -> bool:
    """Whether a value is nearer to one level than to another, by factors where all have one sign."""
    if value * one > 0 and value * other > 0:
        return abs(math.log(value / one)) < abs(math.log(value / other))
    return abs(value - one) < abs(value - other)


def _falls_empty(logged: Bools) -> list[int]:
    """The rows from which on a column that was logged in each row is so no more."""
    counts = np.concatenate(([0], np.cumsum(logged)))
    inside = counts[AROUND:] - counts[:-AROUND]  # in the rows from each row on
    if len(inside) <= AROUND:
        return []
    falls = (inside[:-AROUND] >= DENSE * AROUND) & (inside[AROUND:] <= SPARSE * AROUND)
    edges = logged[AROUND - 1 : -AROUND] & ~logged[AROUND : len(logged) - AROUND + 1]
    return [int(row) + AROUND for row in np.flatnonzero(falls & edges)[:CANDIDATES]]


def _proved(columns: Sequence[Column | None], row: int, side: int) -> bool:
    """Whether the rows from a row on are proved to stand one column too far to a side."""
    moved: list[str] = []
    for place, column in enumerate(columns):
        other = columns[place + side] if 0 < place + side < len(columns) else None
        said = _of(column, other, row)
        if said == "own" and "moved" in moved:
            return False
        if said == "own":
            moved = []  # what stands left of the first cell that is missing stays where it is
        elif said:
            moved.append(said)
    return "moved" in moved and len(moved) > 1


def _of(column: Column | None, other: Column | None, row: int) -> str:
    """What a column says of a shift at a row: `moved`, `empty`, `own` where it goes on as it was, or nothing."""
    if not column:
        return ""
    before, after = column.mask[max(0, row - AROUND) : row], column.mask[row : row + AROUND]
    if len(before) < AROUND or len(after) < AROUND:
        return ""
    if before.mean() >= DENSE and after.mean() <= SPARSE:
        return "empty"
    if column.coded or not other or other.coded or min(before.mean(), after.mean()) < DENSE:
        return ""
    own, now = _usual(column, row - AROUND, row), _usual(column, row, row + AROUND)
    theirs = _usual(other, row - AROUND, row)
    if _within(now, own, ALIKE) and not _within(now, theirs, FAR):
        return "own"
    return "moved" if _within(now, theirs, ALIKE) and not _within(now, own, FAR) else ""


def _usual(column: Column, start: int, end: int) -> float:
    """The median of what a column holds in some rows; NaN where it is mostly empty, or no number."""
    values: Floats = column.values[start:end][column.mask[start:end]]
    return float(np.median(values)) if len(values) >= DENSE * (end - start) else float("nan")


def _within(one: float, other: float, factor: float) -> bool:
    return one == other or (one * other > 0 and 1 / factor <= one / other <= factor)


def lack_a_cell_within(columns: Sequence[Column | None], short: Sequence[int]) -> bool:
    """Whether rows that have too few cells lack one before the last: one of theirs looks like that to its right.

    Compared are their cells with those of the last whole row before, in size.
    """
    rows = np.asarray(short)
    for left, right in pairwise(columns[:COMPARED]):
        if left and right and not left.coded and not right.coded:
            whole = np.ones(len(left.values), dtype=np.bool_)
            whole[rows] = False
            above = np.maximum.accumulate(np.where(whole, np.arange(len(whole)), 0))[rows]
            cells = np.array([_sizes(left, rows), _sizes(left, above), _sizes(right, above)])
            now, own, theirs = cells[:, np.isfinite(cells).all(axis=0)]
            if np.count_nonzero(np.abs(now - own) > np.abs(now - theirs)) > MOVED * len(now):
                return True
    return False


def _sizes(column: Column, rows: Ints) -> Floats:
    """The logarithms of the sizes of some cells, NaN where nothing was logged."""
    with np.errstate(all="ignore"):
        return np.where(column.mask[rows], np.log(np.abs(column.values[rows])), np.nan)
