"""The folders of trainers that write a folder of their own for each run."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.loaders.json import lines as jsonl
from stabtree.loaders.paths.beside import settings_in
from stabtree.loaders.source import open_source
from stabtree.loaders.tables import delimited

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Select, Table

# Far more than anyone starts in one folder, far less than a data set holds.
MOST = 1000
_VERSION = re.compile(r"version_(\d{1,9})")
# mmengine names a run by the time it began: 20240131_235959.
_TIME = re.compile(r"\d{8}_(\d{6})")


def lightning(folder: Path, select: Select, _run: str | None = None) -> tuple[Table, ...]:
    """The runs in the folder of Lightning's CSVLogger: `version_0/metrics.csv` and so on."""
    for place in (folder, folder / "lightning_logs"):
        files = [version / "metrics.csv" for version in _entries(place, _VERSION)]
        if found := _tables(files, lambda file: file.parent.name, delimited.read, select):
            return found
    return ()


def mmengine(folder: Path, select: Select, _run: str | None = None) -> tuple[Table, ...]:
    """The runs in a work folder of mmengine: `<time>/vis_data/scalars.json` each."""
    own = [folder / "vis_data" / "scalars.json", folder / "scalars.json"]
    first = next((file for file in own if file.is_file()), None)
    files = [first] if first else [entry / "vis_data" / "scalars.json" for entry in _entries(folder, _TIME)]
    return _tables(files, lambda file: file.parent.parent.name, jsonl.read, select)


def _entries(folder: Path, pattern: re.Pattern[str]) -> list[Path]:
    """The folders whose names fit, by the number in the name."""
    try:
        named = [(found[0], entry) for entry in folder.iterdir() if (found := pattern.fullmatch(entry.name))]
    except OSError:
        return []
    return [entry for _, entry in sorted(named, key=lambda item: (len(item[0]), item[0]))][:MOST]


def _tables(
    files: list[Path], name: Callable[[Path], str], read: Callable[[Source, Select], Table], select: Select
) -> tuple[Table, ...]:
    """A table for each file that is there, with the configuration beside it; runs by name if they are several."""
    there = [file for file in files if file.is_file()]
    tables = []
    for file in there:
        table = read(open_source(file), select)
        settings, notes = settings_in(file.parent)
        config = {**{key: setting.value for key, setting in settings.items()}, **table.config}
        origin = ", ".join(dict.fromkeys(setting.source for setting in settings.values()))
        tables.append(
            replace(
                table,
                run=name(file) if len(there) > 1 else "",
                config=config,
                config_from=origin,
                notes=(*table.notes, *notes),
            )
        )
    return tuple(tables)
