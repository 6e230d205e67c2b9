"""What a program printed beside the metrics of its run: only there it says what it ended in."""

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
NOTES = (".txt",)  # may be printed, or notes of a person: only metrics in it tell


def ending_of(folder: Path, names: Names, run: str) -> tuple[Table, ...]:
    """The error lines at the end of what was printed, as a table without rows; none where it did not end in an error.

    Of two printed logs nobody can tell which is of the run, and a text without metrics may be of anything.

    Args:
        folder: the folder of one run.
        names: what the names in the log mean.
        run: the name of the run.
    """
    files = [folder / name for name in entries(folder)[1] if name.endswith((*PRINTED, *NOTES)) and name not in OTHERS]
    logs = [file for file in files if not is_hollow(file)]
    if len(logs) != 1:
        return ()
    try:
        loader = by_name("text") if logs[0].name.endswith(PRINTED) else loader_of(logs[0], names)[0]
        read = loader.read(open_source(logs[0]), names) if loader and loader.name == "text" else ()
    except StabtreeError:
        return ()
    last = read[-1:] if isinstance(read, tuple) else (read,)
    told = f"How the run ended was read from {clean(logs[0].name, 60)}, which lies beside its metrics."
    return tuple(
        replace(table, rows=0, columns={}, config={}, skipped=(), skipped_count=0, notes=(told,), run=run)
        for table in last
        if table.ended_in_error
    )
