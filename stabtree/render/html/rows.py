"""The log's own rows around a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.lazy import np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.run import Run, Series

BEFORE, AFTER = 6, 6
MOST_SERIES = 12


def around(run: Run, step: int, names: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """The heads and the rows of a table: the steps nearest to one, a column a series, the named ones first.

    Args:
        run: the run.
        step: the step in the middle.
        names: series that go first.
    """
    logged = run.series.keys() - {"batch_id"}  # its values are hashes
    known = [name for name in dict.fromkeys([*names, *run.series]) if name in logged][:MOST_SERIES]
    chosen = [run.series[name] for name in known]
    near = np.unique(np.concatenate([_near(series, step) for series in chosen])) if chosen else np.array([], np.int64)
    middle = int(np.searchsorted(near, step))
    steps = near[max(middle - BEFORE, 0) : middle + AFTER + 1].tolist()
    return [run.unit, *known], [[f"{at:,}", *(_cell(series, at) for series in chosen)] for at in steps]


def _near(series: Series, step: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    middle = int(np.searchsorted(series.steps, step))
    return series.steps[max(middle - BEFORE, 0) : middle + AFTER + 1]


def _cell(series: Series, step: int) -> str:
    place = int(np.searchsorted(series.steps, step))
    if place >= len(series) or int(series.steps[place]) != step:
        return ""
    return f"{series.values[place]:.6g}"
