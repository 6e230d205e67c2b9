"""Rows whose cells are a column further left or right than those above them.

A trainer that stops writing one column, but not its header, turns a loss into a gradient norm. The file proves it if
columns continue, from one row to the next, with the usual values of their neighbours, which are far from their own,
and no column behind them continues as it was; or if one does and another becomes empty at that very row, as it must.
"""

from __future__ import annotations

import math
from enum import Enum, auto
from itertools import chain, pairwise, product
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.shared import FACTOR_SMALL, NOISE_TIMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.loaders.table import Column

# Rows on each side that are compared.
AROUND = 10
# Usual values are alike within the first of these factors, and far apart beyond the second.
ALIKE = FACTOR_SMALL
FAR = NOISE_TIMES
# A column with values in so large a share of the rows is logged in each, one in so small a share is not.
DENSE = 0.8
SPARSE = 0.3
# Rows checked for each column, and columns compared: the metrics that matter come first.
CANDIDATES = 20
COMPARED = 16
# The share of rows lacking a cell that must be nearer to the column on the right.
MOVED = 0.75
LEFT, RIGHT = 1, -1
SIDES = {LEFT: "left", RIGHT: "right"}


class _Change(Enum):
    """What the values of a column show of a shift at a row: nothing, or that they moved, ended or stayed."""

    UNCLEAR = auto()
    MOVED = auto()
    EMPTY = auto()
    SAME = auto()


def shifted_from(columns: Sequence[Column | None]) -> tuple[int, str] | None:
    """Return the first row whose cells are one column too far to a side, and that side; None if none is proved."""
    # A shift leaves a cell empty at one end of the row.
    logged = [column.logged for column in columns if column and column.logged is not None]
    rows = sorted(set(chain.from_iterable(map(_rows_falling_empty, logged))))
    for row, side in product(rows, (LEFT, RIGHT)):
        if _is_proved(columns[:COMPARED], row, side):
            return _first_row(columns[:COMPARED], row, side), SIDES[side]
    return None


def _first_row(columns: Sequence[Column | None], row: int, side: int) -> int:
    """Return the first of the rows up to a proved one that are nearer to it than to those before.

    A column that becomes empty may hold a last value in the first shifted row: an evaluation was due there.
    """
    usual = [
        (column, _usual(column, row - AROUND, row), _usual(column, row, row + AROUND))
        for index, column in enumerate(columns)
        if column and _change(column, _neighbour(columns, index, side), row) is _Change.MOVED
    ]
    while sum(_is_nearer(float(column.values[row - 1]), now, own) for column, own, now in usual) >= len(usual) / 2:
        row -= 1
    return row


def _neighbour(columns: Sequence[Column | None], index: int, side: int) -> Column | None:
    """Return the column on a side of another; None for the first, which holds the steps, and outside of the table."""
    if 0 < index + side < len(columns):
        return columns[index + side]
    return None


def _is_nearer(value: float, one: float, other: float) -> bool:
    """Return whether a value is nearer to one level than to another, by factors if all have one sign."""
    if value * one > 0 and value * other > 0:
        return abs(math.log(value / one)) < abs(math.log(value / other))
    return abs(value - one) < abs(value - other)


def _rows_falling_empty(logged: Bools) -> list[int]:
    """Return the rows from which on a column that was logged in each row is logged no more."""
    counts = np.concatenate(([0], np.cumsum(logged)))
    inside = counts[AROUND:] - counts[:-AROUND]  # in the rows from each row on
    if len(inside) <= AROUND:
        return []
    falls = (inside[:-AROUND] >= DENSE * AROUND) & (inside[AROUND:] <= SPARSE * AROUND)
    edges = logged[AROUND - 1 : -AROUND] & ~logged[AROUND : len(logged) - AROUND + 1]
    return [int(row) + AROUND for row in np.flatnonzero(falls & edges)[:CANDIDATES]]


def _is_proved(columns: Sequence[Column | None], row: int, side: int) -> bool:
    """Return whether the rows from a row on are proved to be one column too far to a side."""
    changes: list[_Change] = []
    for index, column in enumerate(columns):
        change = _change(column, _neighbour(columns, index, side), row)
        if change is _Change.SAME and _Change.MOVED in changes:
            return False
        if change is _Change.SAME:
            changes = []  # what is left of the first missing cell stays where it is
        elif change is not _Change.UNCLEAR:
            changes.append(change)
    return _Change.MOVED in changes and len(changes) > 1


def _change(column: Column | None, neighbour: Column | None, row: int) -> _Change:
    """Compare the values of a column from a row on with its own and its neighbour's before."""
    if not column:
        return _Change.UNCLEAR
    masks = column.mask[max(0, row - AROUND) : row], column.mask[row : row + AROUND]
    if min(map(len, masks)) < AROUND:
        return _Change.UNCLEAR
    before, after = (mask.mean() for mask in masks)
    if before >= DENSE and after <= SPARSE:
        return _Change.EMPTY
    if not neighbour or column.coded or neighbour.coded or min(before, after) < DENSE:
        return _Change.UNCLEAR
    now = _usual(column, row, row + AROUND)
    return _compare(now, _usual(column, row - AROUND, row), _usual(neighbour, row - AROUND, row))


def _compare(now: float, own: float, neighbours: float) -> _Change:
    if _within(now, own, ALIKE) and not _within(now, neighbours, FAR):
        return _Change.SAME
    if _within(now, neighbours, ALIKE) and not _within(now, own, FAR):
        return _Change.MOVED
    return _Change.UNCLEAR


def _usual(column: Column, start: int, end: int) -> float:
    """Return the median of what a column holds in some rows; NaN if it is mostly empty, or no number."""
    values: Floats = column.values[start:end][column.mask[start:end]]
    if len(values) >= DENSE * (end - start):
        return float(np.median(values))
    return float("nan")


def _within(one: float, other: float, factor: float) -> bool:
    return one == other or (one * other > 0 and 1 / factor <= one / other <= factor)


def lack_a_cell_within(columns: Sequence[Column | None], short: Sequence[int]) -> bool:
    """Return whether rows with too few cells lack one before the last: one of theirs looks like that to its right.

    Their cells are compared by size with those of the last whole row before.
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
    """Return the logarithms of the sizes of some cells, NaN where nothing was logged."""
    with np.errstate(all="ignore"):
        return np.where(column.mask[rows], np.log(np.abs(column.values[rows])), np.nan)
