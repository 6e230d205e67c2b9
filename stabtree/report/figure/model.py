"""A figure as data: strips over one axis of steps, with what is marked on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.lazy import np

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Strip:
    """One series, drawn into columns of equal width.

    Attributes:
        metric: the series.
        lows: float64 (columns,), the lowest finite value of each column; NaN where none falls into it.
        highs: the highest.
        bad: bool (columns,), whether a value that is not finite falls into the column.
        joined: bool (columns,), whether the line goes on from the last filled column before: no value that is not
            finite and no gap is between.
        low: the lower end of the axis, which leaves out what is far off most of the series; values beyond it are drawn
            at the edge, and `clipped_low` is set.
        high: the upper end, and `clipped`.
        log: whether the axis is logarithmic.
        clipped: the highest finite value where it is beyond the axis, else None.
        clipped_low: the lowest one where it is beyond the axis.
        first: whether it moved before all others.
        moved: whether something happened in it at the onset.
        behind: the course of other runs on the same axis, drawn behind it.
    """

    metric: str
    lows: Floats
    highs: Floats
    bad: Bools
    joined: Bools
    low: float
    high: float
    log: bool
    clipped: float | None = None
    clipped_low: float | None = None
    first: bool = False
    moved: bool = True
    behind: Strip | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """A step that is marked on the axis.

    Attributes:
        step: where.
        kind: `onset`, `restart`, `parting` or `first`.
        label: what it is called.
    """

    step: int
    kind: str
    label: str


@dataclass(frozen=True, slots=True)
class Figure:
    """Strips over one axis of steps.

    Attributes:
        first_step: the left end of the axis.
        last_step: the right end, at least one more.
        columns: into how many columns of equal width the axis is cut.
        strips: the series, the most important first.
        marks: what is marked, by step.
        unit: what the axis counts: `step`, or `row`.
    """

    first_step: int
    last_step: int
    columns: int
    strips: tuple[Strip, ...]
    marks: tuple[Mark, ...]
    unit: str = "step"


def column_of(steps: Ints, first: int, last: int, columns: int) -> Ints:
    """Return the column that each step falls into: int64 (steps,)."""
    share = (steps - first) / max(last - first, 1)
    found: Ints = np.clip((share * columns).astype(np.int64), 0, columns - 1)
    return found
