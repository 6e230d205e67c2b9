"""The steps of a table's rows, and what to do where they go back."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.run import ROW_NUMBER, Resume

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.loaders.table import Column

# Above this a float64 no longer holds every whole number: no step, a broken cell.
MAX_STEP = 2.0**53
# A column of steps may hold some broken cells; one with more fractions than this holds no steps.
MAX_FRACTIONAL = 0.01
# A log goes back at a resume, a few times at most; one that goes back more often is out of order.
MAX_RESUMES = 200
# Rows that are merely out of order stand no more than so many rows from their place.
MAX_NEAR = 10
# A log whose steps go back so often is out of order where no step comes twice: what is resumed runs some steps again.
MIN_BACK = 4
# In so many of its rows none goes back but one that was shuffled, whatever its steps.
SHUFFLED_SHARE, SINGLE_SHARE = 0.2, 0.9


@dataclass(frozen=True, slots=True)
class Steps:
    """The step of each row.

    Attributes:
        values: int64 (n,), meaningless where `keep` is false.
        keep: bool (n,), false for rows whose step can't be one; None when all are kept.
        source: what they were read from.
        notes: what was assumed.
        lost: rows whose step is not known, and whose loss is hidden by another one.
    """

    values: Ints
    keep: Bools | None
    source: str
    notes: tuple[str, ...] = ()
    lost: int = 0


def row_numbers(rows: int, why: str) -> Steps:
    """Rows counted from 0, for a table without usable steps."""
    return Steps(np.arange(rows, dtype=np.int64), None, ROW_NUMBER, (f"{why}: rows are numbered from 0.",))


def from_column(name: str, column: Column, losses: Bools | None = None) -> Steps | str:
    """The steps that a column holds; the reason in words when it holds none.

    Args:
        name: the column's.
        column: its cells.
        losses: bool (n,), which rows hold a loss; None where that does not matter.
    """
    logged, values, shown = column.logged, column.values, clean(name, 40)
    if logged is None and values.min() >= 0 and values.max() < MAX_STEP:
        steps = values.astype(np.int64)
        if (steps == values).all():
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
    return _mended(name, values, present, good, present if losses is None else losses)


def _mended(name: str, values: Floats, present: Bools, good: Bools, losses: Bools) -> Steps:
    """Rows without a step take the one of the row before; rows with an impossible one are left out.

    Rows with a loss of their own stand between two steps, where these leave room for all of them at even intervals.
    """
    usable = present & good
    last = np.maximum.accumulate(np.where(usable, np.arange(len(values)), -1))
    first = int(np.argmax(usable))
    filled = values[np.where(last < 0, first, last)].astype(np.int64)
    broken = present & ~good
    notes = []
    shown = clean(name, 40)
    empty = int(np.count_nonzero(~present))
    lost = 0
    if empty:
        placed, lost = _between(filled, usable, losses & ~broken)
        if placed:
            notes.append(f"Rows without a step in column {shown}: {placed}, placed evenly between those with one.")
        if empty > placed:
            told = f"Rows without a step in column {shown}: {empty - placed}, read with the step of the row before"
            notes.append(f"{told}{f', which hides {lost} values of the loss' if lost else ''}.")
    if broken.any():
        count = int(np.count_nonzero(broken))
        notes.append(f"Rows with an impossible step in {shown}: {count} skipped, the first has {values[broken][0]:g}.")
    return Steps(filled, ~broken if broken.any() else None, name, tuple(notes), lost)


def _between(filled: Ints, usable: Bools, losses: Bools) -> tuple[int, int]:
    """Give rows with a loss but no step one of their own, in place; how many got one, and how many should have.

    Between two steps all get one where they then stand at even intervals, and none should where there is no room for
    them, as for the parts of a batch; behind the last one all get one where no more follow than elsewhere.
    """
    rows = np.flatnonzero(losses)
    known = np.flatnonzero(usable[rows])
    if len(known) < 2:
        return 0, 0
    steps, counts = filled[rows[known]], np.diff(known)
    apart = np.diff(steps)
    room = (counts > 1) & (apart >= counts)
    each = np.where(room | (counts == 1), apart // counts, 0)
    usual = int(np.median(each[each > 0])) if (each > 0).any() else 0
    tail = len(rows) - int(known[-1])
    last = tail > 1 and usual > 0 and tail <= counts.max()
    even = np.flatnonzero(room & (apart == each * counts)).tolist()
    groups = [(place, int(counts[place]), int(each[place])) for place in even]
    placed = 0
    for place, count, width in [*groups, *([(len(counts), tail, usual)] if last else [])]:
        at = rows[known[place] + 1 : known[place] + count]
        filled[at] = steps[place] + width * np.arange(1, count)
        placed += count - 1
    shared = int((counts - 1)[(counts > 1) & ~room].sum())
    if not usual and tail <= counts.max():
        shared += tail - 1
    return placed, len(rows) - len(known) - int(known[0]) - shared - placed


def restarts_with(steps: Ints, epochs: Floats) -> bool:
    """Whether the steps are counted within the epoch: back to their start each time the epoch rises."""
    rises = np.flatnonzero(np.diff(epochs) > 0) + 1
    if not len(rises):
        return False
    back = steps[rises] < steps[rises - 1]
    # The last epoch may be cut short, but nothing else may make the steps go back.
    return (
        bool(back.all()) and np.count_nonzero(np.diff(steps) < 0) == len(rises) and len(set(steps[rises].tolist())) <= 2
    )


@dataclass(frozen=True, slots=True)
class History:
    """What became of rows whose steps go back.

    Attributes:
        keep: bool (n,), false for rows of abandoned stretches; None when all are kept.
        resumes: the places where the log goes back, with `replaced_rows`.
        notes: about rows that are merely out of order.
    """

    keep: Bools | None
    resumes: tuple[Resume, ...] = ()
    notes: tuple[str, ...] = ()


def history(steps: Ints, loss_logged: Bools | None) -> History:
    """Find resumes among rows in file order.

    A resume goes back over at least two rows and writes at least two steps anew; one that replaces all rows since the
    first is a fresh start, of which only a note is kept. Anything less is a row out
    of order, which is put in its place; so are a few rows that fill the holes which the few rows before them
    left, as several writers into one file leave them, and all rows of a log that was shuffled or put together in
    another order. Rows that carry the loss decide, since eval rows often come late.

    Args:
        steps: int64 (n,), the rows' steps in file order.
        loss_logged: bool (n,), which rows carry the loss; None for all.
    """
    if (steps[1:] >= steps[:-1]).all():
        return History(None)
    carries = np.ones(len(steps), dtype=np.bool_) if loss_logged is None else loss_logged
    rows = np.flatnonzero(carries)
    seen = steps[rows]
    back = np.flatnonzero(np.diff(seen) < 0) + 1
    if not len(back):
        return History(None)
    if len(back) > MAX_RESUMES or _is_disordered(seen, back):
        return History(None, notes=(_order_note(back),))
    keep = np.ones(len(steps), dtype=np.bool_)
    resumes: list[Resume] = []
    fresh: list[int] = []
    distinct = np.unique(seen)
    stray = 0
    top = int(seen[0])
    start = 0
    for begin, end in zip(back.tolist(), [*back[1:].tolist(), len(seen)], strict=True):
        top = max(top, int(seen[start:begin].max()))
        to_step = int(seen[begin])
        again = int(np.searchsorted(seen[begin:end], top, side="right"))
        before = _before(rows[begin], steps, loss_logged, to_step)
        abandoned = keep[:before] & (steps[:before] >= to_step)
        left = steps[:before][abandoned & carries[:before]]
        if again >= 2 and len(left) >= 2 and not _fills(seen[begin : begin + again], left, distinct):
            if len(left) == np.count_nonzero(keep[:before] & carries[:before]):
                fresh.append(int(seen[begin - 1]))
                resumes.clear()  # they were of the attempt before
            else:
                resumes.append(Resume(int(seen[begin - 1]), to_step, int(np.count_nonzero(abandoned))))
            keep[:before][abandoned] = False
            top = to_step
        else:
            stray += 1
        start = begin
    notes = (f"Rows out of order: {stray}, put in the place of their step.",) if stray else ()
    if fresh:
        ends = ", ".join(f"{step:,}" for step in fresh)
        text = f"The file holds {len(fresh) + 1} runs, each begun anew at the first step: the last is read"
        notes = (f"{text} (the others end at step {ends}).", *notes)
    return History(None if keep.all() else keep, tuple(resumes), notes)


def _is_disordered(seen: Ints, back: Ints) -> bool:
    """Whether all rows of a log were written once, and stand in another order than they were.

    Such a log was shuffled, sorted by the text of its steps, or put together from parts in the wrong order. A run that
    is resumed goes back a few times and repeats steps. Where it logs at other steps afterwards it repeats none, but
    then its steps lie closer where it ran twice than elsewhere.

    Args:
        seen: int64 (n,), the steps of the rows in file order.
        back: the places at which they go back.
    """
    ordered = np.sort(seen)
    apart = np.diff(ordered)
    repeated = int(np.count_nonzero(apart == 0))
    if len(back) >= max(MIN_BACK, SHUFFLED_SHARE * len(seen)) and repeated <= (1 - SINGLE_SHARE) * len(seen):
        return True
    if repeated or not (apart > np.median(apart) / 2).all():
        return False
    texts = list(map(str, seen.tolist()))
    return len(back) >= MIN_BACK or _are_parts(seen, back, ordered) or texts == sorted(texts)


def _are_parts(seen: Ints, back: Ints, ordered: Ints) -> bool:
    """Whether stretches of a log follow each other without a break once they are in order; arguments as above.

    A stretch of one row or two is one out of its place.
    """
    begins = [0, *back.tolist()]
    ends = [*(place - 1 for place in back.tolist()), len(seen) - 1]
    if min(end - begin for begin, end in zip(begins, ends, strict=True)) < 2:
        return False
    spans = sorted((int(seen[begin]), int(seen[end])) for begin, end in zip(begins, ends, strict=True))
    usual = 2 * np.median(np.diff(ordered))
    return all(0 < later - end <= usual for (_, end), (later, _) in pairwise(spans))


def _order_note(back: Ints) -> str:
    times = f"{len(back):,} time{'s' if len(back) != 1 else ''}"
    return f"The log is out of order: its steps go back {times}. Its rows were put in the order of their steps."


def _fills(again: Ints, left: Ints, distinct: Ints) -> bool:
    """Whether rows that go back stand in the holes of those before them, as dense as the steps around are."""
    if len(again) > MAX_NEAR or len(left) > MAX_NEAR:
        return False
    both = np.sort(np.concatenate([again, left]))
    around = distinct[(distinct < both[0]) | (distinct > both[-1])]
    return len(around) > 1 and bool((np.diff(both) > np.median(np.diff(around)) / 2).all())


def _before(row: int, steps: Ints, loss_logged: Bools | None, to_step: int) -> int:
    """The first row after the abandoned stretch: eval rows of the new stretch may precede its first loss."""
    while loss_logged is not None and row > 0 and not loss_logged[row - 1] and steps[row - 1] <= to_step:
        row -= 1
    return row
