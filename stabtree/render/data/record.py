"""An outcome as a record: plain values that a table, a cache or another machine can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.judging.outcome import UNREAD
from stabtree.judging.record import Record
from stabtree.render.data import machine
from stabtree.render.report.words import badge, main_finding, title

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.judging.outcome import Outcome
    from stabtree.run import Run

SPARK = 32  # values of a small line
MOST_PROBLEM = 90


def record(outcome: Outcome, path: str, *, seconds: float = 0.0) -> Record:
    """What became of one run of many.

    Args:
        outcome: the outcome, whose name is the path, with the run's name behind it where the path holds several.
        path: what was read.
        seconds: how long that took.
    """
    import orjson

    found, run = outcome.found, outcome.name.removeprefix(path).strip()
    if isinstance(found, StabtreeError):
        data = orjson.dumps({"path": outcome.name, **machine.error(found)})
        problem = clean(found.problem, MOST_PROBLEM)
        return Record(path, run, UNREAD, UNREAD, title=problem, data=data, seconds=seconds)
    main = main_finding(found)
    return Record(
        path=path,
        run=run,
        verdict=str(found.verdict),
        badge=badge(found),
        partial=found.partial,
        leaf=main.leaf.id if main else "",
        section=main.section if main else "",
        title=title(found),
        onset_step=main.onset_step if main else None,
        more=max(len(found.findings) - 1, 0) if main else 0,
        rows=sum(source.rows for source in found.run.sources),
        last_step=found.run.last_step,
        restart_step=_restart_step(found),
        notes=found.run.notes,
        spark=spark(found.run),
        data=orjson.dumps({"path": outcome.name, **machine.to_dict(found)}),
        seconds=seconds,
    )


def _restart_step(found: Diagnosis) -> int | None:
    main = main_finding(found)
    return main.restart.checkpoint_step if main and main.restart else None


def spark(run: Run) -> tuple[float, ...]:
    """The loss in a few finite values: the lowest and the highest of each stretch, in their order."""
    series = run.get("loss")
    values = series.values[np.isfinite(series.values)] if series is not None else np.empty(0)
    if len(values) <= SPARK:
        return tuple(values.tolist())
    told: list[float] = []
    for part in np.array_split(values, SPARK // 2):
        first, last = sorted((int(part.argmin()), int(part.argmax())))
        told += [float(part[first]), float(part[last])]
    return tuple(told)
