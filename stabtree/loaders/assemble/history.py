"""What became of rows whose steps go back: resumes, fresh starts, rows out of order."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from stabtree.common.lazy import np
from stabtree.common.passes import increases, never_falls
from stabtree.run import Resume

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Ints

# A log goes back at a resume, a few times at most; one that goes back more often is out of order.
MAX_RESUMES = 200
# Rows that are merely out of order are at most so many rows from their place.
MAX_NEAR = 10
# A log whose steps go back so often is out of order where no step comes twice: what is resumed runs some steps again.
MIN_BACK = 4
# In so many of its rows none goes back but one that was shuffled, whatever its steps.
SHUFFLED_SHARE, SINGLE_SHARE = 0.2, 0.9


class History(Struct, frozen=True):
    """What became of rows whose steps go back.

    Attributes:
        keep: bool (n,), false for rows of abandoned stretches; None when all are kept.
        resumes: the places where the log goes back, with `replaced_rows`.
        notes: about rows that are merely out of order.
    """

    keep: Bools | None
    resumes: tuple[Resume, ...] = ()
    notes: tuple[str, ...] = ()


def history(steps: Ints, loss_logged: Bools | None, broken: Bools | None = None) -> History:
    """Find resumes among rows in file order.

    A resume goes back over at least two rows and writes at least two steps anew; one that replaces all rows since the
    first is a fresh start, of which only a note is kept. Anything less is a row out of order, which is put in its
    place; so are a few rows that fill the holes which the few rows before them left, as several writers into one file
    leave them, and all rows of a log that was shuffled or put together in another order. Rows that carry the loss
    decide, since eval rows often come late.

    Args:
        steps: int64 (n,), the rows' steps in file order.
        loss_logged: bool (n,), which rows carry the loss; None for all.
        broken: bool (n,), which rows hold a value that is not finite; None for none.
    """
    if increases(steps) or never_falls(steps):
        return History(None)
    seen = steps if loss_logged is None else steps[loss_logged]
    back = np.flatnonzero(np.diff(seen) < 0) + 1
    if not len(back):
        return History(None)
    if len(back) > MAX_RESUMES or _is_disordered(seen, back):
        return History(None, notes=(_order_note(len(back)),))
    return _resumes(steps, loss_logged, back.tolist(), np.zeros(len(steps), bool) if broken is None else broken)


def _resumes(steps: Ints, loss_logged: Bools | None, back: list[int], broken: Bools) -> History:
    """Tell resumes from fresh starts and stray rows at each row with the loss where the log goes `back`."""
    carries = np.ones(len(steps), dtype=np.bool_) if loss_logged is None else loss_logged
    rows = np.flatnonzero(carries)
    seen = steps[rows]
    distinct = np.unique(seen)
    keep = np.ones(len(steps), dtype=np.bool_)
    resumes: list[Resume] = []
    fresh: list[int] = []
    stray = start = 0
    top = int(seen[0])
    for begin, end in pairwise([*back, len(seen)]):
        top = max(top, int(seen[start:begin].max()))
        start = begin
        from_step, to_step = int(seen[begin - 1]), int(seen[begin])
        again = seen[begin : begin + int(np.searchsorted(seen[begin:end], top, side="right"))]
        before = _before(rows[begin], steps, loss_logged, to_step)
        abandoned = np.flatnonzero(keep[:before] & (steps[:before] >= to_step))
        left = abandoned[carries[abandoned]]
        if len(again) < 2 or len(left) < 2 or _fills(again, steps[left], distinct):
            stray += 1
            continue
        if len(left) == np.count_nonzero(keep[:before] & carries[:before]):
            fresh.append(from_step)
            resumes.clear()  # they were of the attempt before
        else:
            lost = int(np.count_nonzero(broken[abandoned]))
            resumes.append(Resume(from_step, to_step, len(abandoned), lost))
        keep[abandoned] = False
        top = to_step
    return History(None if keep.all() else keep, tuple(resumes), _notes(fresh, stray))


def _notes(fresh: list[int], stray: int) -> tuple[str, ...]:
    notes = []
    if fresh:
        ends = ", ".join(f"{step:,}" for step in fresh)
        text = f"The file holds {len(fresh) + 1} runs, each begun anew at the first step: the last is read"
        notes.append(f"{text} (the others end at step {ends}).")
    if stray:
        notes.append(f"Rows out of order: {stray}, put in the place of their step.")
    return tuple(notes)


def _is_disordered(seen: Ints, back: Ints) -> bool:
    """Whether all rows of a log were written once, but are in another order.

    Such a log was shuffled, sorted by the text of its steps, or put together from parts in the wrong order. A run that
    is resumed goes back a few times and repeats steps. Where it logs at other steps afterwards it repeats none, but
    then its steps are closer where it ran twice than elsewhere.

    Args:
        seen: int64 (n,), the steps of the rows in file order.
        back: the rows at which they go back.
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

    A stretch of one row or two is merely out of order.
    """
    edges = [0, *back.tolist(), len(seen)]
    if min(np.diff(edges)) < 3:
        return False
    spans = sorted((int(seen[begin]), int(seen[end - 1])) for begin, end in pairwise(edges))
    usual = 2 * np.median(np.diff(ordered))
    return all(0 < later - end <= usual for (_, end), (later, _) in pairwise(spans))


def _order_note(count: int) -> str:
    times = f"{count:,} time{'s' if count != 1 else ''}"
    return f"The log is out of order: its steps go back {times}. Its rows were put in the order of their steps."


def _fills(again: Ints, left: Ints, distinct: Ints) -> bool:
    """Whether rows that go back fill the holes of those before them, as dense as the steps around are."""
    if len(again) > MAX_NEAR or len(left) > MAX_NEAR:
        return False
    both = np.sort(np.concatenate([again, left]))
    around = distinct[(distinct < both[0]) | (distinct > both[-1])]
    return len(around) > 1 and bool((np.diff(both) > np.median(np.diff(around)) / 2).all())


def _before(row: int, steps: Ints, loss_logged: Bools | None, to_step: int) -> int:
    """Return the first row after the abandoned stretch: eval rows of the new stretch may precede its first loss."""
    while loss_logged is not None and row > 0 and not loss_logged[row - 1] and steps[row - 1] <= to_step:
        row -= 1
    return row
