"""An outcome as a record: plain values that a table, a cache or another machine can hold."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean, in_words
from stabtree.diagnosis.result import Diagnosis
from stabtree.judging.outcome import UNREAD
from stabtree.report import json as machine
from stabtree.report.advice import do_now
from stabtree.report.words import badge, headline, main_finding, title
from stabtree.tools.fleet.record import Record
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.diagnosis.result import Incident
    from stabtree.judging.outcome import Outcome
    from stabtree.run import Run

STRETCHES = 16  # of a small line, each with its lowest and its highest value
MAX_PROBLEM = 90


def record(outcome: Outcome, path: str, *, seconds: float = 0.0, whole: bool = True) -> Record:
    """Return what became of one run of many.

    Args:
        outcome: the outcome, whose name is the path, with the run's name behind it where the path holds several.
        path: what was read.
        seconds: how long that took.
        whole: whether what only machines read is wanted; it takes longer than the rest.
    """
    found, run = outcome.found, outcome.name.removeprefix(path).strip()
    if isinstance(found, StabtreeError):
        data = _compact({"source": outcome.name, "path": outcome.name, **machine.error(found)})
        problem = clean(found.problem, MAX_PROBLEM)
        return Record(path, run, UNREAD, UNREAD, title=problem, data=data, seconds=seconds)
    main = main_finding(found)
    of_main: dict[str, Any] = {"unit": found.run.unit}
    if main:
        of_main = _of_main(found, main)
    line, mark = spark(found.run, of_main.get("onset_step"))
    return Record(
        path=path,
        run=run,
        verdict=str(found.verdict),
        badge=badge(found),
        partial=found.partial,
        title=headline(found) if badge(found) == Severity.OK else title(found),
        rows=sum(source.rows for source in found.run.sources),
        last_step=found.run.last_step,
        first=_first(found),
        notes=found.run.notes,
        spark=line,
        mark=mark,
        data=_compact({"source": outcome.name, **machine.to_dict(found)}) if whole else b"",
        seconds=seconds,
        **of_main,
    )


def _of_main(found: Diagnosis, main: Incident) -> dict[str, Any]:
    """Return what a record says of the main finding."""
    values: dict[str, Any] = {
        "leaf": main.leaf.id,
        "section": main.section,
        "onset_step": main.onset_step,
        "unit": main.unit,
        "more": max(len(found.findings) - 1, 0),
    }
    if main.restart:
        values["restart_step"] = main.restart.checkpoint_step
    return values


def records(outcomes: Iterable[Outcome], *, whole: bool = True) -> Iterator[Record]:
    """Yield what became of runs that are at hand, in their order; `whole` as of `record`."""
    for outcome in outcomes:
        if isinstance(outcome.found, Diagnosis):
            sources = outcome.found.run.sources
        else:
            sources = ()
        holds_it = next((source.path for source in sources if outcome.name.startswith(f"{source.path} ")), outcome.name)
        yield record(outcome, holds_it, whole=whole)


def _compact(document: dict[str, Any]) -> bytes:
    """Return JSON in one line."""
    import orjson

    try:
        return orjson.dumps(document)
    except TypeError:  # a whole number of over 64 bits, a name of a file that is no UTF-8
        return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()


def _first(found: Diagnosis) -> str:
    """Return the first thing to do that is not going back, which has a step of its own."""
    main = main_finding(found)
    if main is None:
        if found.log_next and not found.findings:
            return f"Log {in_words(found.log_next[0].names)}"
        return ""
    return next((action.text for action in do_now(main) if action.fix), "")


def spark(run: Run, onset: int | None = None) -> tuple[tuple[float | None, ...], int | None]:
    """The loss in a few values, the lowest and the highest of each stretch in their order, and the place of a step.

    Args:
        run: the run.
        onset: the step whose place is wanted.
    """
    series = run.get("loss")
    if series is None or not len(series.values):
        return (), None
    points: list[float | None] = []
    mark = None
    rows, stretches = len(series.values), min(len(series.values), STRETCHES)
    size, longer = divmod(rows, stretches)
    ends = [(place + 1) * size + min(place + 1, longer) for place in range(stretches)]
    whole = bool(np.isfinite(series.values).all())
    for begin, end in pairwise((0, *ends)):
        if onset is not None and mark is None and series.steps[end - 1] >= onset:
            mark = len(points)
        finite = series.values[begin:end]
        if not whole:
            finite = finite[np.isfinite(finite)]
        if not len(finite):
            points += [None, None]
            continue
        first, last = sorted((int(finite.argmin()), int(finite.argmax())))
        points += [float(finite[first]), float(finite[last])]
    return tuple(points), mark
