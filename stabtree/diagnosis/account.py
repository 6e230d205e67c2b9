"""The account of a reading: each series and each kind of line of a run's files is judged, harmless or unexplained."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Struct

from stabtree.common.answer import NO
from stabtree.common.lazy import np
from stabtree.common.text import first_few
from stabtree.measures.nonfinite import ASKED, broken_as
from stabtree.metrics.metric import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.run import ColumnUse, Run

_HARMLESS = frozenset((Role.CLOCK, Role.COUNTER, Role.SETTING, Role.LABEL))
_MAX_NAMED = 3


class Fate(StrEnum):
    """What became of something that a file holds."""

    JUDGED = "judged"
    HARMLESS = "harmless"
    UNEXPLAINED = "unexplained"


class AccountEntry(Struct, frozen=True):
    """A series, or lines of one kind."""

    kind: Annotated[
        Literal["series", "values", "cells", "lines"],
        "A series, values not finite, cells that are no numbers, or lines.",
    ]
    name: Annotated[str, "The column; of lines the first one, or why it could not be read."]
    fate: Annotated[Fate, "What became of it."]
    count: Annotated[int, "How many values, cells or lines there are."]
    reason: Annotated[str, "Why it is not judged; empty where it is."] = ""
    first: Annotated[int | None, "The step of the first such value, or the number of the first such line."] = None
    path: Annotated[str, "The file."] = ""


def account(run: Run) -> tuple[AccountEntry, ...]:
    """Return what became of everything in a run's files, in the order of the files.

    Args:
        run: the run.
    """
    found: list[AccountEntry] = []
    for source in run.sources:
        path = source.path
        for use in source.columns:
            found += _of_column(use, path, run)
        for first in source.skipped[:1]:
            what = (source.skipped_count, "could not be read", first.line, path)
            found.append(AccountEntry("lines", first.reason, Fate.UNEXPLAINED, *what))
        for kind in source.unread:
            fate, reason = Fate.UNEXPLAINED, "hold numbers that were not read"
            if kind.harmless:
                fate, reason = Fate.HARMLESS, "a time, a speed, a size or source code"
            found.append(AccountEntry("lines", kind.example, fate, kind.count, reason, kind.line or None, path))
    return tuple(found)


def unexplained(run: Run) -> tuple[str, ...]:
    """Return in sentences what no verdict may pass over: values that are not finite, cells and lines not read."""
    entries = account(run)
    broken = [*broken_values(entries, run.unit)]
    for resume in run.resumes:  # the run broke, and was resumed
        if resume.broken_rows:
            lost = f"of the {resume.replaced_rows:,} rows that were replaced, {resume.broken_rows:,} are not finite"
            broken.append(f"The run broke and was resumed at {run.unit} {resume.to_step:,}: {lost}.")
    return (*broken, *_lines(_unexplained(entries, "lines")))


def not_read(run: Run) -> tuple[str, ...]:
    """Return in sentences which cells and lines of a run's files were not read."""
    entries = account(run)
    return (*_cells(_unexplained(entries, "cells")), *_lines(_unexplained(entries, "lines")))


def broken_values(entries: Iterable[AccountEntry], unit: str) -> tuple[str, ...]:
    """Return in sentences which series of an account hold values that are not finite, or cells that were not read.

    Args:
        entries: the account.
        unit: what the steps of the run are called.
    """
    every = tuple(entries)
    return (*_values(_unexplained(every, "values"), unit), *_cells(_unexplained(every, "cells")))


def _unexplained(entries: Iterable[AccountEntry], kind: str) -> list[AccountEntry]:
    return [entry for entry in entries if entry.kind == kind and entry.fate is Fate.UNEXPLAINED]


def _of_column(use: ColumnUse, path: str, run: Run) -> Iterator[AccountEntry]:
    fate, reason = _fate(use)
    yield AccountEntry("series", use.name, fate, use.logged or 0, reason, None, path)
    name = use.metric or use.name
    series = run.find(name) if use.nonfinite and use.role != Role.LABEL else None
    # A question asks whether such a column is finite, and does not leave it at that.
    judged = name in (*ASKED, "step") or (series is not None and broken_as(name, series) != NO)
    if use.nonfinite and use.role != Role.LABEL and not judged:
        rows = () if series is None else series.steps[~np.isfinite(series.values)].tolist()
        first = next(iter(rows), None)
        yield AccountEntry("values", use.name, Fate.UNEXPLAINED, use.nonfinite, "not finite", first, path)
    if use.misread:
        yield AccountEntry("cells", use.name, Fate.UNEXPLAINED, use.misread, "could not be read as numbers", None, path)


def _fate(use: ColumnUse) -> tuple[Fate, str]:
    if use.metric:
        return Fate.JUDGED, ""
    if use.logged == 0:
        return Fate.HARMLESS, use.why
    if use.role in _HARMLESS:
        return Fate.HARMLESS, f"a {use.role}"
    return Fate.UNEXPLAINED, use.why


def _values(entries: Iterable[AccountEntry], unit: str) -> Iterator[str]:
    """Yield a sentence on the series that hold values which are not finite, the one that breaks first at the front."""
    ordered = sorted(entries, key=lambda entry: (entry.first is None, entry.first))
    names = list(dict.fromkeys(entry.name for entry in ordered))
    if not names:
        return
    where, verb = "", "hold" + "s" * (len(names) == 1)
    if ordered[0].first is not None:
        where = f", the first at {unit} {ordered[0].first:,}"
    yield f"{first_few(names, _MAX_NAMED)} {verb} values that are not finite{where}; no question judges that."


def _cells(entries: list[AccountEntry]) -> Iterator[str]:
    count = sum(entry.count for entry in entries)
    if count:
        names = list(dict.fromkeys(entry.name for entry in entries))
        yield f"{count:,} cell{'s' * (count != 1)} could not be read as numbers: in {first_few(names, _MAX_NAMED)}."


def _lines(entries: list[AccountEntry]) -> Iterator[str]:
    """Yield a sentence on the lines that hold numbers and were not read."""
    count = sum(entry.count for entry in entries)
    if not count:
        return
    first = min((entry.first for entry in entries if entry.first is not None), default=None)
    where, noun = "", "lines that hold numbers were"
    if first is not None:
        where = f", the first is line {first:,}"
    if count == 1:
        noun = "line that holds numbers was"
    yield f"{count:,} {noun} not read{where} (`stabtree inspect`)."
