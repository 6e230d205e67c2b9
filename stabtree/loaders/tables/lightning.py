"""The folder of Lightning's CSVLogger: `version_0/metrics.csv` and so on, a run each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stabtree.loaders.folder import numbered, runs_of
from stabtree.loaders.tables import delimited

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.loaders.table import Asked, Table

_VERSION = re.compile(r"version_\d{1,9}")


def folder(path: Path, asked: Asked) -> tuple[Table, ...]:
    """Return the runs in the logger's folder, or in the one above it."""
    for parent in (path, path / "lightning_logs"):
        files = [version / "metrics.csv" for version in numbered(parent, _VERSION)]
        if found := runs_of(files, lambda file: file.parent.name, delimited.read, asked.names):
            return found
    return ()
