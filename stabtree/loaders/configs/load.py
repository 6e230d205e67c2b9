"""A configuration before its run: `load_config`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.loaders.configs.document import HINT, read_document
from stabtree.loaders.configs.settle import settings_of
from stabtree.run import FileUse, Run

if TYPE_CHECKING:
    from stabtree.run import Setting


def load_config(*paths: str | Path) -> Run:
    """Read what a run is going to be from its configuration, before it starts.

    Args:
        paths: the files of one configuration, or its folder; what a later file says goes before an earlier one's.

    Returns:
        A run without series. Its `config` holds what the files say and nothing else.

    Raises:
        StabtreeError: where a file can't be read, or none holds a setting that is known.
    """
    if not paths:
        raise StabtreeError("no configuration to read", hint=HINT)
    settings: dict[str, Setting] = {}
    notes: list[str] = []
    sources = []
    for path in map(Path, paths):
        file = read_document(path)
        more, wrong = settings_of(file)
        settings |= more
        notes += (*file.notes, *wrong)
        sources.append(FileUse(str(path), "configuration", 0))
    return Run(Path(paths[0]).stem, {}, settings, sources=tuple(sources), notes=tuple(notes))
