"""The same run logged otherwise: pure functions from a run to a run, and a run as the rows of a CSV file."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from numpy.typing import NDArray

    from stabtree.run import Gap, Run, Series

    Rows = list[dict[str, str]]

LOSSES = ("loss", "eval_loss")


def all_steps(run: Run) -> NDArray[np.int64]:
    """Every step at which anything was logged: int64 (n,)."""
    return np.unique(np.concatenate([series.steps for series in run.series.values()]))


def thin(run: Run, every: int, offset: int = 0) -> Run:
    """Only every so many rows, from the row `offset` on; an evaluation is logged whenever there is one."""
    kept = all_steps(run)[offset::every]
    series = {
        name: one if name == "eval_loss" else _where(one, np.isin(one.steps, kept)) for name, one in run.series.items()
    }
    gaps = (replace(gap, rows=gap.rows // every) for gap in run.gaps)
    return replace(run, series=_logged(series), gaps=tuple(gap for gap in gaps if gap.rows))


def averaged(run: Run, every: int) -> Run:
    """Every so many rows, with loss and grad_norm as the mean of the rows since the last one that was logged."""
    thinned = thin(run, every, every - 1)
    series = dict(thinned.series)
    for name in {"loss", "grad_norm"} & series.keys():
        whole, steps = run.series[name], series[name].steps
        edges = np.searchsorted(whole.steps, steps, side="right")
        with np.errstate(invalid="ignore"):  # inf - inf
            means = [part.mean() for part in np.split(whole.values, edges)[:-1]]
        series[name] = replace(series[name], values=np.array(means))
    return replace(thinned, series=series)


def keep(run: Run, metrics: Collection[str]) -> Run:
    """Only these metrics; a grouped one by its name before the slash."""
    series = {name: one for name, one in run.series.items() if name.partition("/")[0] in metrics}
    return replace(run, series=series, gaps=tuple(gap for gap in run.gaps if gap.metric in series))


def without(run: Run, metric: str) -> Run:
    """All metrics but one."""
    return keep(run, {name.partition("/")[0] for name in run.series} - {metric})


def cut(run: Run, last_step: int) -> Run:
    """The log as it stood when a step had been written."""
    series = {name: _where(one, one.steps <= last_step) for name, one in run.series.items()}
    return replace(run, series=_logged(series), gaps=tuple(_cut_gaps(run, last_step)))


def _cut_gaps(run: Run, last_step: int) -> Iterable[Gap]:
    steps = all_steps(run)
    for gap in run.gaps:
        inside = int(((steps >= gap.first_step) & (steps <= min(gap.last_step, last_step))).sum())
        if gap.last_step <= last_step:
            yield gap
        elif inside:
            yield replace(gap, last_step=last_step, rows=inside, at_end=True)


def scaled(run: Run, factor: float) -> Run:
    """The loss in other units: times a factor."""
    return _changed(run, lambda one: replace(one, values=one.values * factor) if one.metric in LOSSES else one)


def shifted(run: Run, steps: int) -> Run:
    """The same rows at later steps."""
    gaps = tuple(replace(gap, first_step=gap.first_step + steps, last_step=gap.last_step + steps) for gap in run.gaps)
    return replace(_changed(run, lambda one: replace(one, steps=one.steps + steps)), gaps=gaps)


def spaced(run: Run, every: int) -> Run:
    """The same rows as those of a run that logs every so many steps."""
    gaps = tuple(replace(gap, first_step=gap.first_step * every, last_step=gap.last_step * every) for gap in run.gaps)
    return replace(_changed(run, lambda one: replace(one, steps=one.steps * every)), gaps=gaps)


def _changed(run: Run, change: Callable[[Series], Series]) -> Run:
    return replace(run, series={name: change(one) for name, one in run.series.items()})


def _where(series: Series, keep: NDArray[np.bool_]) -> Series:
    return replace(series, steps=series.steps[keep], values=series.values[keep])


def _logged(series: Mapping[str, Series]) -> dict[str, Series]:
    return {name: one for name, one in series.items() if len(one)}


def rows(run: Run) -> Rows:
    """A run as the rows of its log, cells as text; what was not logged is empty."""
    steps = all_steps(run)
    columns = {"step": [str(step) for step in steps.tolist()]}
    for name, one in run.series.items():
        cells = [""] * len(steps)
        texts = (str(int(v)) if name == "batch_id" else repr(v) for v in one.values.tolist())
        for place, text in zip(np.searchsorted(steps, one.steps).tolist(), texts, strict=True):
            cells[place] = text
        columns[name] = cells
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def resumed(lines: Rows, start: int, end: int, loss_factor: float = 1.0) -> Rows:
    """Rows `start` to `end` written twice, as after a resume; the first time with another loss."""
    abandoned = [
        {**row, "loss": repr(float(row["loss"]) * loss_factor)} if row["loss"] else row for row in lines[start:end]
    ]
    return [*lines[:start], *abandoned, *lines[start:]]


def renamed(lines: Rows, names: Mapping[str, str]) -> Rows:
    """The same rows under other column names."""
    return [{names.get(name, name): cell for name, cell in row.items()} for row in lines]


def as_csv(lines: Rows) -> str:
    """The text of a CSV file."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue()
