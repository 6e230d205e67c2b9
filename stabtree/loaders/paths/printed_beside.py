"""What a program printed beside the metrics of its run: only there it says how it ended."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.folder import entries
from stabtree.loaders.formats import by_name
from stabtree.loaders.paths.metrics_file import OTHERS, is_hollow, loader_of
from stabtree.loaders.source import open_source

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names

PRINTED = (".log", ".out", ".err")
NOTES = (".txt",)  # printed, or notes of a person: a log only where it holds metrics


def ending_of(folder: Path, names: Names, run: str) -> tuple[Table, ...]:
    """Return the error lines at the end of what was printed, as a table without rows; none where it ended well.

    Of two printed logs either may be of the run, and a text without metrics may be of anything.

    Args:
        folder: the folder of one run.
        names: what the names in the log mean.
        run: the name of the run.
    """
    files = [folder / name for name in entries(folder)[1] if name.endswith((*PRINTED, *NOTES)) and name not in OTHERS]
    logs = [file for file in files if not is_hollow(file)]
    if len(logs) != 1:
        return ()
    last = _last_table(logs[0], names)
    if last is None or not last.ended_in_error:
        return ()
    note = f"How the run ended was read from {clean(logs[0].name, 60)}, which is beside its metrics."
    return (replace(last, rows=0, columns={}, config={}, skipped=(), skipped_count=0, notes=(note,), run=run),)


def _last_table(file: Path, names: Names) -> Table | None:
    """Return the table of the last run in a printed log; None where the file is none."""
    try:
        loader = by_name("text") if file.name.endswith(PRINTED) else loader_of(file, names)[0]
        if loader is None or loader.name != "text":
            return None
        read = loader.read(open_source(file), names)
    except StabtreeError:
        return None
    if isinstance(read, tuple):
        return read[-1] if read else None
    return read
