"""One excursion of a loss above its level, from its first row to where it is back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stabtree.common.lazy import np
from stabtree.common.stats import running_medians

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints


class Excursion(Struct, frozen=True):
    """One excursion of the loss.

    Attributes:
        step: first step above the threshold.
        peak_step: step of its highest value; `peak` is that value.
        height_sigma: the first step's height over `mean` in units of `sigma`, or the peak's if higher.
        mean: mean of the window before it.
        sigma: standard deviation of the window before it.
        expected: how many steps this high chance allows over the whole run.
        recovered_step: first step at which it was back, None if it never was.
        last_good_step: the logged step before it.
        shift_sigma: how far the median of the rows from it on is above `mean` where the level shifts; else 0.
    """

    step: int
    peak_step: int
    peak: float
    height_sigma: float
    mean: float
    sigma: float
    expected: float
    recovered_step: int | None
    last_good_step: int
    shift_sigma: float = 0.0


class Search(Struct, frozen=True):
    """All spikes of a run, with what the search looked at.

    Attributes:
        spikes: in order of step.
        rows: the window in rows; `widened` says that it spans more steps than asked for.
        judged: how many steps had a full window before them.
        highest: the highest score of all and its step, for explaining a no.
        bar: the score from which a step counted.
        expected: how many steps as high as the highest chance allows.
    """

    spikes: tuple[Excursion, ...]
    rows: int
    widened: bool
    judged: int
    highest: float
    highest_step: int
    bar: float
    expected: float = 1.0


class Bounds(Struct, frozen=True):
    """Where an excursion begins, peaks and ends, in rows.

    Attributes:
        row: its first row.
        peak: that of its highest value.
        back: the first row at which it was back, None if it never was.
        end: the row after its last one.
    """

    row: int
    peak: int
    back: int | None
    end: int


def bounds(values: Floats, row: int, level: float, rows: int) -> Bounds:
    """Return the bounds of the excursion from a row to where `rows` rows are back at a level in their median."""
    back = first_below(values, row + 1, level, rows)
    end = back if back is not None else len(values)
    return Bounds(row, row + int(np.argmax(values[row:end])), back, end)


def excursion(
    steps: Ints,
    values: Floats,
    extent: Bounds,
    *,
    mean: float,
    sigma: float,
    height_sigma: float,
    expected: float,
    shift_sigma: float = 0.0,
) -> Excursion:
    """Return the excursion with these bounds; the other arguments are its own attributes."""
    return Excursion(
        step=int(steps[extent.row]),
        peak_step=int(steps[extent.peak]),
        peak=float(values[extent.peak]),
        height_sigma=height_sigma,
        mean=mean,
        sigma=sigma,
        expected=expected,
        recovered_step=int(steps[extent.back]) if extent.back is not None else None,
        last_good_step=int(steps[extent.row - 1]),
        shift_sigma=shift_sigma,
    )


def first_below(values: Floats, start: int, level: float, rows: int) -> int | None:
    """Return the first row from `start` on that is at or below a level, and so is the median of `rows` rows from it."""
    size = 16  # most spikes are back within a few rows; the look ahead doubles for those that are not
    while start < len(values):
        part = values[start : start + size + rows - 1]
        if len(part) < rows:
            return None
        levels = part if rows == 1 else running_medians(part, rows)
        below = np.flatnonzero((levels <= level) & (part[: len(levels)] <= level))
        if len(below):
            return start + int(below[0])
        start += len(levels)
        size *= 2
    return None
