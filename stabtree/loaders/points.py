"""Logged values one by one, as event files and MLflow keep them, made into the columns of a table."""

from __future__ import annotations

from itertools import chain, count
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.loaders.table import MAX_CELLS, Column, affordable

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from stabtree.common.lazy import Floats, Ints
    from stabtree.metrics.names import Names


class Points(Struct, frozen=True):
    """Values in the order in which they were written.

    Attributes:
        names: what can be logged.
        name: int64 (n,), which of `names` each value is of.
        step: int64 (n,).
        time: float64 (n,), when it was written, in any unit.
        value: float64 (n,).
    """

    names: tuple[str, ...]
    name: Ints
    step: Ints
    time: Floats
    value: Floats

    @classmethod
    def nothing(cls) -> Points:
        """Return no points at all."""
        none = np.zeros(0, dtype=np.int64)
        return cls((), none, none, np.zeros(0), np.zeros(0))


def merge(parts: Sequence[Points]) -> Points:
    """Return the points of several files in the order in which they were written; each file keeps its own order."""
    if len(parts) == 1:
        return parts[0]
    names = tuple(dict.fromkeys(chain.from_iterable(part.names for part in parts)))
    if not any(len(part.name) for part in parts):
        return replace(Points.nothing(), names=names)
    # A clock that was set back, or a NaN, must not tear a file apart.
    clocks = [np.maximum.accumulate(np.where(np.isfinite(part.time), part.time, -np.inf)) for part in parts]
    order = np.argsort(np.concatenate(clocks), kind="stable")
    index = {name: number for number, name in enumerate(names)}
    own = [np.array([index[name] for name in part.names], dtype=np.int64)[part.name] for part in parts]
    return Points(
        names,
        np.concatenate(own)[order],
        np.concatenate([part.step for part in parts])[order],
        np.concatenate([part.time for part in parts])[order],
        np.concatenate([part.value for part in parts])[order],
    )


def tabulate(
    points: Points, names: Names, *, timed: bool = False, counter: str = "step"
) -> tuple[int, dict[str, Column | None], tuple[str, ...]]:
    """Return the number of rows, the columns, and notes: a row holds what was written of one step without a break.

    The column `counter` is left out where nothing but 0 was logged as a step, which is what loggers write
    that were given none. `timed` says that the times are seconds: they become a column as well.
    """
    if not len(points.name):
        return 0, dict.fromkeys(points.names), ()
    row = _rows(points)
    rows = int(row.max()) + 1
    columns: dict[str, Column | None] = {}
    notes: list[str] = []
    if rows == 1 or points.step.any():
        columns[counter] = _column(row, points.step, rows)
    else:
        notes.append("Every value was logged at step 0.")
    if timed and "wall_time" not in points.names and points.time.any():
        columns["wall_time"] = _column(row, points.time, rows)
    order = np.argsort(points.name, kind="stable")
    ends = np.searchsorted(points.name[order], np.arange(len(points.names) + 1))
    wanted = [index for index, name in enumerate(points.names) if names.wanted(name)]
    held = _affordable(points, wanted, rows, names)
    others = affordable([name for name in points.names if not names.wanted(name)], len(held), rows)
    read = {points.names[index] for index in held}.union(others)
    for index, name in enumerate(points.names):
        own = order[ends[index] : ends[index + 1]]
        columns[_free(name, columns)] = _column(row[own], points.value[own], rows) if name in read else None
    if len(held) < len(wanted):
        notes.append(f"Series left out to save memory: {len(wanted) - len(held):,} of {len(wanted):,}.")
    return rows, columns, tuple(notes)


def _rows(points: Points) -> Ints:
    """Return the row of each point: a new one where the step changes, or a name comes again."""
    change = np.flatnonzero(np.diff(points.step)) + 1
    stretch = np.zeros(len(points.step), dtype=np.int64)
    stretch[change] = 1
    stretch = np.cumsum(stretch)
    cell = stretch * len(points.names) + points.name
    order = np.argsort(cell, kind="stable")
    first = np.flatnonzero(np.diff(cell[order], prepend=-1))
    if len(first) == len(cell):
        return stretch
    again = np.empty_like(cell)
    again[order] = np.arange(len(cell)) - np.repeat(first, np.diff(first, append=len(cell)))
    _, row = np.unique(stretch * (int(again.max()) + 1) + again, return_inverse=True)
    return np.asarray(row, dtype=np.int64)


def _affordable(points: Points, wanted: list[int], rows: int, names: Names) -> frozenset[int]:
    """Return the columns that there is room for, whole metrics before those of single layers."""
    if len(wanted) * rows > MAX_CELLS:
        wanted = sorted(wanted, key=lambda index: "/" in (names.role(points.names[index]) or "/"))
    return frozenset(wanted[: max(8, MAX_CELLS // max(1, rows))])


def _column(row: Ints, value: Ints | Floats, rows: int) -> Column:
    """Return a column of so many rows with these values in some of them."""
    values = np.zeros(rows)
    values[row] = value
    logged = np.zeros(rows, dtype=np.bool_)
    logged[row] = True
    return Column(values, None if logged.all() else logged)


def _free(name: str, taken: Container[str]) -> str:
    """Return the name, with a number behind it if it is taken: `step` is also what the rows' steps are called."""
    numbered = (f"{name} ({number})" for number in count(2))
    return next(free for free in chain([name], numbered) if free not in taken)
