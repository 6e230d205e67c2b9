"""The account of a reading: each series and each kind of line of a run's files is judged, harmless or unexplained."""

from __future__ import annotations

from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from stabtree.common.answer import NO
from stabtree.common.lazy import np
from stabtree.common.text import first_few
from stabtree.metrics.metric import Role
from stabtree.predicates.nonfinite import ASKED, broken_as

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.run import ColumnUse, FileUse, Run

_HARMLESS = frozenset((Role.CLOCK, Role.COUNTER, Role.SETTING, Role.LABEL))
_MAX_NAMED = 3


class Fate(StrEnum):
    """What became of something that a file holds."""

    JUDGED = "judged"
    HARMLESS = "harmless"
    UNEXPLAINED = "unexplained"


class AccountEntry(Struct, frozen=True):
    """A series, or lines of one kind.

    Attributes:
        kind: `series`, `values` (those of a series that are not finite), `cells` (those that could not be read as
            numbers) or `lines`.
        name: the column; of lines the first one, or why it could not be read.
        fate: what became of it.
        count: how many values, cells or lines there are.
        reason: why it is not judged; empty where it is.
        first: the step of the first such value, or the number of the first such line; None where that is not known.
        path: the file.
    """

    kind: str
    name: str
    fate: Fate
    count: int
    reason: str = ""
    first: int | None = None
    path: str = ""


def account(run: Run) -> tuple[AccountEntry, ...]:
    """Return what became of everything in a run's files, in the order of the files.

    Args:
        run: the run.
    """
    return tuple(chain.from_iterable(_of_file(source, run) for source in run.sources))


def unexplained(run: Run) -> tuple[str, ...]:
    """Return in sentences what no verdict may pass over: values that are not finite, cells and lines not read."""
    entries = account(run)
    return (*broken_values(entries, run.unit), *_replaced(run), *_lines(_unexplained(entries, "lines")))


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


def _of_file(source: FileUse, run: Run) -> Iterator[AccountEntry]:
    for use in source.columns:
        yield from _of_column(use, source.path, run)
    if source.skipped_count:
        yield _skipped(source)
    for kind in source.unread:
        fate, reason = Fate.UNEXPLAINED, "hold numbers that were not read"
        if kind.harmless:
            fate, reason = Fate.HARMLESS, "a time, a speed or a size"
        yield AccountEntry("lines", kind.example, fate, kind.count, reason, kind.line or None, source.path)


def _of_column(use: ColumnUse, path: str, run: Run) -> Iterator[AccountEntry]:
    fate, reason = _fate(use)
    yield AccountEntry("series", use.name, fate, use.logged or 0, reason, None, path)
    if use.nonfinite and use.role != Role.LABEL and not _is_judged(use, run):
        first = _first_nonfinite(use, run)
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


def _is_judged(use: ColumnUse, run: Run) -> bool:
    """Return whether a question asks whether a column is finite, and does not leave it at that."""
    name = use.metric or use.name
    series = run.find(name)
    return name in (*ASKED, "step") or (series is not None and broken_as(name, series) != NO)


def _skipped(source: FileUse) -> AccountEntry:
    reason, line = "", None
    if source.skipped:
        reason, line = source.skipped[0].reason, source.skipped[0].line
    return AccountEntry("lines", reason, Fate.UNEXPLAINED, source.skipped_count, "could not be read", line, source.path)


def _first_nonfinite(use: ColumnUse, run: Run) -> int | None:
    series = run.find(use.metric or use.name)
    if series is None:
        return None
    rows = np.flatnonzero(~np.isfinite(series.values))
    if not len(rows):
        return None
    return int(series.steps[rows[0]])


def _values(entries: Iterable[AccountEntry], unit: str) -> Iterator[str]:
    """Yield a sentence on the series that hold values which are not finite, the one that breaks first at the front."""
    ordered = sorted(entries, key=lambda entry: (entry.first is None, entry.first))
    names = list(dict.fromkeys(entry.name for entry in ordered))
    if not names:
        return
    where, verb = "", "hold"
    if ordered[0].first is not None:
        where = f", the first at {unit} {ordered[0].first:,}"
    if len(names) == 1:
        verb = "holds"
    yield f"{first_few(names, _MAX_NAMED)} {verb} values that are not finite{where}; no question judges that."


def _replaced(run: Run) -> Iterator[str]:
    """Yield that rows which later ones replace hold values that are not finite: the run broke, and was resumed."""
    for resume in run.resumes:
        if resume.broken_rows:
            lost = f"of the {resume.replaced_rows:,} rows that were replaced, {resume.broken_rows:,} are not finite"
            yield f"The run broke and was resumed at {run.unit} {resume.to_step:,}: {lost}."


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
