"""Passes over long arrays: in parts that fit the processor's cache, and remembered of what never changes."""

from __future__ import annotations

import math
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar
from weakref import WeakKeyDictionary, ref

from stabtree.common.lazy import np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stabtree.common.lazy import Bools, Floats, Ints

    class Valued(Protocol):
        """What holds values that nobody writes to: a series, or a column of a file."""

        @property
        def values(self) -> Floats:
            """The values, float64 (n,)."""


P = ParamSpec("P")
T = TypeVar("T")
V = TypeVar("V")
A = TypeVar("A", bound="Floats | Ints")

PART = 1 << 14


def parts(values: V) -> Iterator[V]:
    """Yield an array in consecutive views of up to `PART` entries."""
    array: Any = values
    for begin in range(0, len(array), PART):
        yield array[begin : begin + PART]


def rows_before(steps: Ints, step: float) -> int:
    """Return how many of the steps, which rise, come before one."""
    return int(np.searchsorted(steps, math.ceil(step)))  # a float would have all steps copied


def rows_upto(steps: Ints, step: float) -> int:
    """Return how many of the steps, which rise, come before one or are it."""
    return int(np.searchsorted(steps, math.floor(step), side="right"))


def row_of(steps: Ints, step: float) -> slice:
    """Return the row of a step, among steps that rise; an empty range where it is not among them."""
    return slice(rows_before(steps, step), rows_upto(steps, step))


def changes(values: Floats | Ints, test: Callable[[Any, Any], Bools]) -> Ints:
    """Return the rows whose value passes a test against the one before it, such as `np.equal`: int64 (m,)."""
    found = [np.zeros(0, dtype=np.int64)]
    for begin in range(0, len(values) - 1, PART):
        part = values[begin : begin + PART + 1]
        found.append(np.flatnonzero(test(part[1:], part[:-1])) + (begin + 1))
    return np.concatenate(found)


def remembered(function: Callable[Concatenate[V, P], T]) -> Callable[Concatenate[V, P], T]:
    """Remember what a pure function of an object found, for as long as that lives: many questions ask the same."""
    known: WeakKeyDictionary[V, dict[Any, T]] = WeakKeyDictionary()

    @wraps(function)
    def recalled(of: V, /, *args: P.args, **options: P.kwargs) -> T:
        found = known.setdefault(of, {})
        key = (args, tuple(sorted(options.items())))
        if key not in found:
            found[key] = function(of, *args, **options)
        return found[key]

    return recalled


def remembered_of_frozen(function: Callable[[A], T]) -> Callable[[A], T]:
    """Remember what a pure function of an array found, for as long as that lives and where nobody can write to it."""
    known: dict[int, tuple[ref[A], T]] = {}

    @wraps(function)
    def recalled(values: A, /) -> T:
        if values.flags.writeable:
            return function(values)
        key = id(values)
        found = known.get(key)
        if found is None or found[0]() is not values:
            found = known[key] = ref(values, lambda _: known.pop(key, None)), function(values)
        return found[1]

    return recalled


@remembered_of_frozen
def increases(values: Floats | Ints) -> bool:
    """Return whether each value is above the one before it."""
    return not len(changes(values, lambda later, early: ~(later > early)))


def never_falls(values: Floats | Ints) -> bool:
    """Return whether no value is below the one before it."""
    return not len(changes(values, lambda later, early: ~(later >= early)))


class Extremes(NamedTuple):
    """The range of the finite values, from infinity to minus infinity where there are none.

    Attributes:
        lowest: the lowest one.
        highest: the highest one.
        finite: whether there are no others.
    """

    lowest: float
    highest: float
    finite: bool


_EXTREMES: WeakKeyDictionary[Valued, Extremes] = WeakKeyDictionary()


def extremes(of: Valued) -> Extremes:
    """Return the range of the finite values of a series or a column."""
    if of not in _EXTREMES:
        values = of.values
        lowest, highest = _range(values)
        finite = not len(values) or (-math.inf < lowest and highest < math.inf)  # not so where one is NaN
        if not finite:
            found = [_range(part[np.isfinite(part)]) for part in parts(values)]
            lowest, highest = min(low for low, _ in found), max(high for _, high in found)
        _EXTREMES[of] = Extremes(lowest, highest, finite)
    return _EXTREMES[of]


def hand_on(of: Valued, to: Valued) -> None:
    """Let the extremes of an object be known of another one, if both hold the same values."""
    if of.values is to.values:
        _EXTREMES[to] = extremes(of)


def _range(values: Floats) -> tuple[float, float]:
    return float(values.min(initial=math.inf)), float(values.max(initial=-math.inf))


def rows_at_end(rows: Ints, size: int) -> int:
    """Return how many of some rows, in rising order, are the last of `size` without another between them."""
    return int(np.count_nonzero(rows[::-1] == np.arange(size - 1, size - 1 - len(rows), -1)))


def last_sound_row(of: Valued, end: int) -> int:
    """Return the last row before row `end` whose value is finite, -1 where there is none."""
    broken = broken_rows(of)
    return end - 1 - rows_at_end(broken[: np.searchsorted(broken, end)], end)


def stretches_of(rows: Ints) -> tuple[Ints, Ints]:
    """Return the first rows of the stretches that some rows, in rising order, make, and how many each has: (m,)."""
    begins = np.flatnonzero(np.diff(rows, prepend=-2) > 1)
    return rows[begins], np.diff(np.append(begins, len(rows)))


@remembered
def broken_rows(of: Valued) -> Ints:
    """Return the rows of a series or a column whose value is not finite, int64 (n,)."""
    if extremes(of).finite:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(~np.isfinite(of.values))


@remembered
def sound_rows(of: Valued) -> slice | Bools:
    """Return an index of the finite values: a range, which needs no copy, where only the last ones are not finite."""
    broken, size = broken_rows(of), len(of.values)
    if rows_at_end(broken, size) == len(broken):
        return slice(size - len(broken))
    return np.isfinite(of.values)
