"""`--reports DIR`: a report of each run that calls for one, which the page of all runs links to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from stabtree.cli.output.write import write
from stabtree.cli.shell.printing import notify
from stabtree.common.errors import StabtreeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.judging.judge import Judging
    from stabtree.loaders.paths.stretch import Ends
    from stabtree.tools.fleet.record import Record


def address(folder: Path | None, page: Path | None) -> str:
    """Return the folder as the page links to it; empty where there is none."""
    if folder is None:
        return ""
    try:
        return quote(os.path.relpath(folder.resolve(), page.parent if page else None).replace(os.sep, "/"))
    except ValueError:  # on another drive
        return folder.resolve().as_uri()


def write_reports(
    records: Iterable[Record], folder: Path, judging: Judging, how: Mapping[str, Any], ends: Ends | None
) -> None:
    """Write a file for each run that has a report.

    Args:
        records: the runs.
        folder: where to; it is made where it is not there.
        judging: how runs are judged.
        how: how logs are read.
        ends: the steps that are judged.

    Raises:
        StabtreeError: where one can't be written.
    """
    from stabtree.tools.fleet.outputs.reports import reports

    lost = 0

    def again(record: Record) -> Diagnosis | StabtreeError:
        nonlocal lost
        found = _diagnosed(record, judging, how, ends)
        lost += isinstance(found, StabtreeError)
        return found

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"the folder can't be made: {error.strerror}"
        raise StabtreeError(problem, where=f"--reports {folder}", hint="name another folder") from None
    for name, text in reports(records, again):
        write(folder / name, text, "--reports")
    if lost:
        notify(f"note: {lost:,} logs could not be read again, and have no report")


def _diagnosed(
    record: Record, judging: Judging, how: Mapping[str, Any], ends: Ends | None
) -> Diagnosis | StabtreeError:
    """Return what is found in a run that was scanned, read once more."""
    from stabtree.loaders import load_runs
    from stabtree.loaders.paths.stretch import cut

    try:
        loaded = load_runs(record.path, **how)
    except StabtreeError as error:
        return error
    known = [item for item in loaded if item.name == record.name] or list(loaded)
    if len(known) != 1:
        return StabtreeError("holds other runs than it did", where=record.path)
    return judging.outcome(cut(known[0], ends)).found
