"""The steps of a table's rows: which column holds them, and what to do where it is broken."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.passes import PART, extremes, remembered
from stabtree.common.text import clean
from stabtree.run import ROW_NUMBER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.loaders.table import Column, Table

# Above this a float64 no longer holds every whole number: no step, a broken cell.
MAX_STEP = 2.0**53
# A column of steps may hold some broken cells; one with more fractions than this holds no steps.
MAX_FRACTIONAL = 0.01
# An epoch may come twice where a run was begun anew; where more do, rows are no epochs.
MAX_REPEATED = 0.1


@dataclass(frozen=True, slots=True)
class Steps:
    """The step of each row.

    Attributes:
        values: int64 (n,), meaningless where `keep` is false.
        keep: bool (n,), false for rows whose step can't be one; None when all are kept.
        source: what they were read from.
        notes: what was assumed.
        lost: rows whose step is not known, so that another one hides their loss.
    """

    values: Ints
    keep: Bools | None
    source: str
    notes: tuple[str, ...] = ()
    lost: int = 0


def row_numbers(rows: int, why: str) -> Steps:
    """Return rows counted from 0, for a table without usable steps."""
    return Steps(np.arange(rows, dtype=np.int64), None, ROW_NUMBER, (f"{why}: rows are numbered from 0.",))


def from_column(name: str, column: Column, losses: Bools | None = None) -> Steps | str:
    """Return the steps that a column holds; if it holds none, the reason in words.

    Args:
        name: the column's.
        column: its cells.
        losses: bool (n,), which rows hold a loss; None where that does not matter.
    """
    values, shown = column.values, clean(name, 40)
    steps = whole_steps(column)
    if steps is not None:
        return Steps(steps, None, name)
    with np.errstate(invalid="ignore"):
        whole = values == np.floor(values)
        good = whole & (values >= 0) & (values < MAX_STEP)
    present = column.mask
    if not present.any():
        return f"column {shown} holds no number"
    if np.count_nonzero(present & np.isfinite(values) & ~whole) > MAX_FRACTIONAL * np.count_nonzero(present):
        return f"column {shown} holds fractions"
    if not (present & good).any():
        return f"column {shown} holds no step"
    return _filled(name, values, present, good, present if losses is None else losses)


@remembered
def whole_steps(column: Column) -> Ints | None:
    """Return the steps of a column, int64 (n,), where every cell of it holds one; frozen."""
    found = extremes(column)
    if column.logged is not None or not (found.finite and found.lowest >= 0 and found.highest < MAX_STEP):
        return None
    steps = np.empty(len(column.values), np.int64)
    for begin in range(0, len(steps), PART):
        part = column.values[begin : begin + PART]
        steps[begin : begin + PART] = part
        if (steps[begin : begin + PART] != part).any():
            return None
    steps.flags.writeable = False
    return steps


def _filled(name: str, values: Floats, present: Bools, good: Bools, losses: Bools) -> Steps:
    """Give rows without a step the one of the row before, and leave out rows with an impossible one.

    Rows with a loss of their own are put between two steps, if there is room for all of them at even intervals.
    """
    usable = present & good
    last = np.maximum.accumulate(np.where(usable, np.arange(len(values)), -1))
    first = int(np.argmax(usable))
    filled = values[np.where(last < 0, first, last)].astype(np.int64)
    broken = present & ~good
    notes = []
    shown = clean(name, 40)
    empty = int(np.count_nonzero(~present))
    hidden = 0
    if empty:
        placed, hidden = _place_between(filled, usable, losses & ~broken)
        if placed:
            notes.append(f"Rows without a step in column {shown}: {placed}, placed evenly between those with one.")
        if empty > placed:
            text = f"Rows without a step in column {shown}: {empty - placed}, read with the step of the row before"
            notes.append(f"{text}, which hides {hidden} values of the loss." if hidden else f"{text}.")
    if not broken.any():
        return Steps(filled, None, name, tuple(notes), hidden)
    count = int(np.count_nonzero(broken))
    notes.append(f"Rows with an impossible step in {shown}: {count} skipped, the first has {values[broken][0]:g}.")
    return Steps(filled, ~broken, name, tuple(notes), hidden)


def _place_between(filled: Ints, usable: Bools, losses: Bools) -> tuple[int, int]:
    """Give rows with a loss but no step one of their own, in place; return how many got one, and how many lack one.

    Between two steps all get one if that puts them at even intervals, and none is missing if there is no room for
    them, as for the parts of a batch; after the last step all get one if no more follow than elsewhere.
    """
    rows = np.flatnonzero(losses)
    known = np.flatnonzero(usable[rows])
    if len(known) < 2:
        return 0, 0
    steps, counts = filled[rows[known]], np.diff(known)
    apart = np.diff(steps)
    room = (counts > 1) & (apart >= counts)
    widths = np.where(room | (counts == 1), apart // counts, 0)
    usual = int(np.median(widths[widths > 0])) if (widths > 0).any() else 0
    tail = len(rows) - int(known[-1])
    even = np.flatnonzero(room & (apart == widths * counts)).tolist()
    groups = [(index, int(counts[index]), int(widths[index])) for index in even]
    if tail > 1 and usual and tail <= counts.max():
        groups.append((len(counts), tail, usual))
    placed = 0
    for index, count, width in groups:
        at = rows[known[index] + 1 : known[index] + count]
        filled[at] = steps[index] + width * np.arange(1, count)
        placed += count - 1
    shared = int((counts - 1)[(counts > 1) & ~room].sum())
    if not usual and tail <= counts.max():
        shared += tail - 1
    return placed, len(rows) - len(known) - int(known[0]) - shared - placed


def steps_of(table: Table, used: Mapping[str, str], columns: Mapping[str, Column], *, asked: bool) -> Steps:
    """Return the steps of a table: from their column, else from epochs, else row numbers; the notes say which and why.

    Args:
        table: the table.
        used: by role the name of its column.
        columns: by role its column, if that was read.
        asked: whether the user named the column of the steps.

    Raises:
        StabtreeError: where the column that the user named holds no steps.
    """
    epochs = columns.get("epoch")
    if "step" not in used:
        return _from_epochs(table, used, epochs)
    name = used["step"]
    found: Steps | str = "the step column was not read"
    if "step" in columns:
        loss = columns.get("loss") if "rank" not in used else None
        found = from_column(name, columns["step"], None if loss is None else loss.mask)
    if isinstance(found, str):
        if asked:
            problem = found.replace("column", "--step-column", 1)
            raise StabtreeError(problem, where=table.path, hint="name another one")
        return row_numbers(table.rows, found[0].upper() + found[1:])
    return found


def _from_epochs(table: Table, used: Mapping[str, str], epochs: Column | None) -> Steps:
    why = "No column holds the step"
    if epochs is None or not _is_full(epochs):
        return row_numbers(table.rows, why)
    name = used["epoch"]
    found = from_column(name, epochs)
    if isinstance(found, str) or np.count_nonzero(np.diff(found.values) == 0) > MAX_REPEATED * len(found.values):
        return row_numbers(table.rows, f"{why}, and {name} is not another one in every row")
    return replace(found, notes=(f"{why}: {name} is used instead.",))


def _is_full(column: Column) -> bool:
    """Whether every cell holds a finite number."""
    return column.logged is None and extremes(column).finite
