"""The runs of a file: the rows at which they begin, those that were given up, and steps counted on within each."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.lazy import np
from stabtree.loaders.counters.restarts import MIN_JUDGED, classify
from stabtree.loaders.counters.starts import interval
from stabtree.loaders.counters.within import Count, first_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.loaders.counters.starts import Counted

# An attempt that was given up is followed by a run of so many times its rows; two of about one length both ended.
MUCH_LONGER = 4


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of a file.

    Attributes:
        starts: the rows at which they begin, 0 among them.
        epochs: the rows at which the counter starts again within a run.
        gone: the indexes of the runs that were given up and begun anew.
        meaning: what was decided where the counter starts again, and how sure it is.
    """

    starts: tuple[int, ...] = (0,)
    epochs: tuple[int, ...] = ()
    gone: frozenset[int] = frozenset()
    meaning: str = ""


def divide(rows: Ints, evidence: Counted, counter: Count, carries: Bools) -> Runs:
    """Return the runs of a file of n rows.

    Args:
        rows: int64 (m,), the rows that carry the loss.
        evidence: what was logged in them.
        counter: what counts the rows, (n,).
        carries: bool (n,), the rows that carry the loss.
    """
    found = classify(evidence)

    def first(index: int) -> int:
        return first_row(int(rows[index]), counter, carries) if index else 0

    return Runs(
        starts=tuple(map(first, found.runs)),
        epochs=tuple(map(first, found.epochs)),
        gone=frozenset(abandoned(evidence, found.runs)),
        meaning=found.meaning,
    )


def abandoned(evidence: Counted, runs: Sequence[int]) -> tuple[int, ...]:
    """Return which runs are attempts that were given up: too short to judge, and done again by a far longer one.

    What is not finite in them is evidence, so that such an attempt is none.

    Args:
        evidence: the rows.
        runs: the rows at which the runs begin.
    """
    axis, found = evidence.axis, []
    later = (len(axis), len(axis))
    for index, (begin, end) in reversed([*enumerate(pairwise([*runs, len(axis)]))]):
        after = axis[slice(*later)]
        again = MUCH_LONGER * (end - begin) <= len(after) and axis[begin] >= after[0] and axis[end - 1] <= after.max()
        finite = all(level.is_finite(begin, end) for level in evidence.outcomes)
        if end - begin < MIN_JUDGED and again and finite:
            found.append(index)
        else:
            later = (begin, end)
    return tuple(found)


def counted_on(counter: Count, runs: Runs) -> Floats:
    """Return the steps of a file, counted on where they start again within a run.

    Args:
        counter: the steps of each row, (n,); one or more rows for each step.
        runs: the runs, whose epochs say where that is.
    """
    counted = np.array(counter.values, dtype=np.float64)
    added = previous = 0.0
    anew = frozenset(runs.starts)
    for begin, end in pairwise([*sorted({*anew, *runs.epochs}), len(counted)]):
        held = np.flatnonzero(counter.logged[begin:end]) + begin
        if not len(held):
            continue
        part = counter.values[held]
        added = 0.0 if begin in anew else previous - float(part[0])
        counted[held] = part + added
        previous = float(counted[held].max()) + max(1.0, np.ceil(interval(part)))
    return counted
