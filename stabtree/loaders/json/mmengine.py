"""The work folder of mmengine: `<time>/vis_data/scalars.json`, a run each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stabtree.loaders.folder import is_file, numbered, runs_of
from stabtree.loaders.json import lines

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.loaders.table import Asked, Table

# A run is named by the time it began: 20240131_235959.
_TIME = re.compile(r"\d{8}_\d{6}")


def folder(path: Path, asked: Asked) -> tuple[Table, ...]:
    """Return the runs in a work folder, or the one whose own folder this is."""
    own = [path / "vis_data" / "scalars.json", path / "scalars.json"]
    first = next((file for file in own if is_file(file)), None)
    if first:
        files = [first]
    else:
        files = [entry / "vis_data" / "scalars.json" for entry in numbered(path, _TIME)]
    return runs_of(files, lambda file: file.parent.parent.name, lines.read, asked.names)
