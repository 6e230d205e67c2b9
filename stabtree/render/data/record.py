"""An outcome as a record: plain values that a table, a cache or another machine can hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean, in_words
from stabtree.diagnosis.result import Diagnosis
from stabtree.judging.outcome import UNREAD
from stabtree.judging.record import Record
from stabtree.render.data import machine
from stabtree.render.report.advice import do_now
from stabtree.render.report.words import badge, headline, main_finding, title
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.judging.outcome import Outcome
    from stabtree.run import Run

STRETCHES = 16  # of a small line, each with its lowest and its highest value
MOST_PROBLEM = 90


def record(outcome: Outcome, path: str, *, seconds: float = 0.0, whole: bool = True) -> Record:
    """What became of one run of many.

    Args:
        outcome: the outcome, whose name is the path, with the run's name behind it where the path holds several.
        path: what was read.
        seconds: how long that took.
        whole: whether what only machines read is wanted; it takes longer than the rest.
    """
    found, run = outcome.found, outcome.name.removeprefix(path).strip()
    if isinstance(found, StabtreeError):
        data = _compact({"source": outcome.name, "path": outcome.name, **machine.error(found)})
        problem = clean(found.problem, MOST_PROBLEM)
        return Record(path, run, UNREAD, UNREAD, title=problem, data=data, seconds=seconds)
    main = main_finding(found)
    onset = main.onset_step if main else None
    line, mark = spark(found.run, onset)
    return Record(
        path=path,
        run=run,
        verdict=str(found.verdict),
        badge=badge(found),
        partial=found.partial,
        leaf=main.leaf.id if main else "",
        section=main.section if main else "",
        title=headline(found) if badge(found) == Severity.OK else title(found),
        onset_step=onset,
        unit=main.unit if main else found.run.unit,
        more=max(len(found.findings) - 1, 0) if main else 0,
        rows=sum(source.rows for source in found.run.sources),
        last_step=found.run.last_step,
        restart_step=main.restart.checkpoint_step if main and main.restart else None,
        first=_first(found),
        notes=found.run.notes,
        spark=line,
        mark=mark,
        data=_compact({"source": outcome.name, **machine.to_dict(found)}) if whole else b"",
        seconds=seconds,
    )


def records(outcomes: Iterable[Outcome], *, whole: bool = True) -> Iterator[Record]:
    """What became of runs that are at hand, in their order; `whole` as of `record`."""
    for outcome in outcomes:
        sources = outcome.found.run.sources if isinstance(outcome.found, Diagnosis) else ()
        holds_it = next((source.path for source in sources if outcome.name.startswith(f"{source.path} ")), outcome.name)
        yield record(outcome, holds_it, whole=whole)


def _compact(document: dict[str, Any]) -> bytes:
    """JSON in one line."""
    import orjson

    try:
        return orjson.dumps(document)
    except TypeError:  # a whole number of over 64 bits, a name of a file that is no UTF-8
        return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()


def _first(found: Diagnosis) -> str:
    """The first thing to do that is not going back, which has a step of its own."""
    main = main_finding(found)
    if main is None:
        return f"Log {in_words(found.log_next[0].names)}" if found.log_next and not found.findings else ""
    return next((action.text for action in do_now(main, found.timeline) if action.fix), "")


def spark(run: Run, onset: int | None = None) -> tuple[tuple[float | None, ...], int | None]:
    """The loss in a few values, the lowest and the highest of each stretch in their order, and the place of a step.

    Args:
        run: the run.
        onset: the step whose place is wanted.
    """
    series = run.get("loss")
    if series is None or not len(series.values):
        return (), None
    told: list[float | None] = []
    mark = None
    stretches = min(len(series.values), STRETCHES)
    for steps, values in zip(*(np.array_split(each, stretches) for each in (series.steps, series.values)), strict=True):
        if onset is not None and mark is None and steps[-1] >= onset:
            mark = len(told)
        finite = values[np.isfinite(values)]
        if not len(finite):
            told += [None, None]
            continue
        first, last = sorted((int(finite.argmin()), int(finite.argmax())))
        told += [float(finite[first]), float(finite[last])]
    return tuple(told), mark
