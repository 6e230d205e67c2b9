"""A run in a line: its steps, its settings, and when a step was logged."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from stabtree.common.figures import figure
from stabtree.common.passes import row_of
from stabtree.context.find import context_of
from stabtree.metrics.table import all_metrics
from stabtree.report.model.identity import kind
from stabtree.run import UNSCALED

if TYPE_CHECKING:
    from stabtree.common.lazy import Ints
    from stabtree.run import Run, Series

# What most questions need, in the order in which it helps.
WANTED = ("grad_norm", "lr", "loss_scale", "eval_loss", "weight_norm", "batch_id")
CALENDAR = (1e9, 4e9)  # seconds since 1970 in the years of training logs; what is less counts from the run's start


def facts(run: Run) -> str:
    """Return the run in a line: its steps, task and trainer, precision, optimizer and rate, and its name."""
    dtype, optimizer, rate = run.setting("dtype"), run.setting("optimizer"), run.setting("lr")
    shown_rate = f"lr {figure(rate)}" if isinstance(rate, float | int) else ""
    trained = " ".join(filter(None, (str(optimizer or ""), shown_rate)))
    known = (step_range(run), kind(context_of(run)), str(dtype or ""), trained, ranks(run))
    return " · ".join(filter(None, (*known, run.name)))


def ranks(run: Run) -> str:
    """Return how many ranks logged the run; empty where the log names none."""
    if run.ranks:
        return f"{len(run.ranks)} ranks"
    return ""


def step_range(run: Run) -> str:
    """Return the steps of a run, as `steps 0-999`; empty where it has none."""
    first = first_step(run)
    if first is None:
        return ""
    planned = run.setting("max_steps")
    total = ""
    if isinstance(planned, int) and run.last_step is not None and planned > run.last_step + 1:
        total = f" of {planned:,}"
    return f"{run.unit}s {first:,}-{run.last_step:,}{total}"


def first_step(run: Run) -> int | None:
    """Return the first step of the loss, of all series where there is no loss; None where nothing was logged."""
    loss = run.get("loss")
    logged = list(run.series.values()) if loss is None else [loss]
    return min((int(series.steps[0]) for series in logged if len(series)), default=None)


def logged_at(run: Run, step: int) -> datetime | None:
    """Return when a step was logged; None where the log has no calendar time at that step."""
    series = run.get("wall_time")
    if series is None:
        return None
    times = series.values[row_of(series.steps, step)]
    if len(times) and CALENDAR[0] <= times[0] < CALENDAR[1]:
        return datetime.fromtimestamp(float(times[0]), UTC)
    return None


def value_at(series: Series, step: int, missing: str) -> str:
    """Return the value that was logged at a step; `missing` where none was."""
    index = int(series.steps.searchsorted(step))
    if index == len(series) or series.steps[index] != step:
        return missing
    value = float(series.values[index])
    shown = f"{value:.6g}"
    return figure(value, 4) if "e" in shown else shown


def steps_around(series: Series, step: int, before: int, after: int) -> Ints:
    """Return the logged steps before and after a step, itself included: int64 (at most before + 1 + after,)."""
    index = int(series.steps.searchsorted(step))
    return series.steps[max(index - before, 0) : index + after + 1]


def missing(run: Run) -> list[tuple[str, str]]:
    """Return the metrics that most questions need and this run lacks, each with how to log it."""
    names = {name.partition("/")[0] for name in run.series}
    if run.setting("dtype") in UNSCALED:
        names.add("loss_scale")
    logs = {metric.name: metric.log for metric in all_metrics()}
    return [(name, logs[name]) for name in WANTED if name not in names]
