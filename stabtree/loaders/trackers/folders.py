"""Runs whose folder holds a small file for each series: of DVCLive, d3rlpy, torchrl, CatBoost and their like.

A file has one or two columns that count, with one column of values or more; it may have no header. The name of a
series is the path of its file below the folder of the run, where `/` in a name made folders.
"""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.folder import SERIES
from stabtree.loaders.source import glimpse, open_source
from stabtree.loaders.tables.cells import is_text
from stabtree.loaders.tables.collected import Collected
from stabtree.metrics.names import EPOCH, STEP
from stabtree.metrics.role import describe_name
from stabtree.metrics.table import is_time, normalize

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names

# Below these folders every file is a series: of DVCLive, and of torchrl's CSVLogger.
HOMES = (("plots", "metrics"), ("scalars",))
_SPLITS = ("train", "training", "val", "valid", "validation", "eval", "evaluation", "test", "dev")
SPLITS = {"learn": "train", **{name: name for name in _SPLITS}}  # CatBoost says learn
NAMELESS = {2: (STEP, ""), 3: (EPOCH, STEP, "")}  # what the columns of a file without a header hold
GLIMPSE_BYTES = 4096
NO_NEXT_STEP = "Every row has the same step, as DVCLive writes it where next_step is not called: rows are counted."


class SeriesFile(NamedTuple):
    """A file of one series, or of some figures of one thing."""

    path: Path
    # What each column holds: `step`, `epoch`, the name of values, or empty for values without one.
    columns: tuple[str, ...]
    header: bool  # whether its first line names the columns

    @property
    def counter(self) -> str:
        """The column that counts."""
        return next(name for name in (STEP, EPOCH) if name in self.columns)

    @property
    def values(self) -> list[str]:
        """The names of the columns that hold values."""
        return [name for name in self.columns if name not in (STEP, EPOCH)]

    @property
    def is_series(self) -> bool:
        """Whether it holds one series, called by the name of the file, or one of the split that is named so."""
        stem = self.path.name.rpartition(".")[0]
        own = {"", normalize(stem)}
        return len(self.values) == 1 and (normalize(self.values[0]) in own or split_of(stem) != "")

    def named(self, column: str, home: Path) -> str:
        """Return what to call a column of values in the run of a folder."""
        stem = self.path.name.rpartition(".")[0]
        above = self.path.parent.relative_to(home).parts
        if not column or normalize(column) == normalize(stem):
            return "/".join((*above, stem))
        return "/".join((*above, split_of(stem) if self.is_series else stem, column))


class SeriesFolder(NamedTuple):
    """The files of a run."""

    path: Path  # the folder of the run
    home: Path  # the folder below which a path is a name
    files: list[SeriesFile]  # its series
    others: list[str]  # what else is of the run: events that hold the same

    def read(self, names: Names) -> tuple[Table, ...]:
        """Read the run.

        Raises:
            StabtreeError: if none of its files holds a value.
        """
        found, notes = Collected(), list[str]()
        read: list[tuple[SeriesFile, list[list[str]]]] = []
        for file in self.files:
            try:
                read.append((file, list(_rows(file))))
            except StabtreeError as error:
                notes.append(f"Not read: {clean(file.path.name, 80)} {clean(error.problem, 80)}.")
        counter = max((file.counter for file, _ in read), default=EPOCH)  # a step where there is one
        counts = {file: [row[file.columns.index(file.counter)] for row in rows] for file, rows in read}
        longest = max(map(len, counts.values()), default=0)
        still = longest > 1 and all(len(set(steps)) == 1 for steps in counts.values() if len(steps) > 1)
        if still:
            notes.append(NO_NEXT_STEP)
            counter = "row"
            # A series of fewer rows is spread over the others', each row as late as it may have been written.
            counts = {
                file: [str((place + 1) * longest // len(steps) - 1) for place in range(len(steps))]
                for file, steps in counts.items()
            }
        for file, rows in read:
            for column in file.values:
                name, place = file.named(column, self.home), file.columns.index(column)
                for row, step in zip(rows, counts[file], strict=True):
                    found.add(name, step, row[place])
        kind = f"csv, {len(self.files)} files of one series each"
        return (found.table(clean(self.path), kind, names, counter=counter, notes=tuple(notes)),)


def runs(top: str, files: Mapping[str, Sequence[str]], names: Names) -> Iterator[SeriesFolder]:
    """Yield the runs that are kept so below a folder.

    Args:
        top: the folder.
        files: the names of the files in each folder, by its path.
        names: what columns mean.
    """
    tables = {
        Path(folder): [Path(folder, name) for name in listing if name.lower().endswith(SERIES)]
        for folder, listing in files.items()
    }
    groups: dict[tuple[Path, Path], list[Path]] = {}
    for folder, own in tables.items():
        if own:
            groups.setdefault(_home(folder, Path(top), tables), []).extend(own)
    for (path, home), own in groups.items():
        found = [glance(file, names) for file in own]
        kept = [file for file in found if file]
        series = [file for file in kept if file.is_series]
        if len(kept) < len(found) or len(series) < (2 if path == home else 1):
            continue
        known = [name for file in series if _is_known(name := file.named(file.values[0], home), names)]
        # Of names that differ in a number alone each is of another run.
        if not known or len({re.sub(r"\d+", "#", name) for name in known}) < len(known):
            continue
        splits = {file.path.name.partition("_")[0] for file in series if split_of(file.path.name)}
        events = [
            str(Path(folder, name))
            for folder, listing in files.items()
            if Path(folder).parent == home and Path(folder).name in splits
            for name in listing
            if "tfevents" in name
        ]
        yield SeriesFolder(path, home, kept, events)


def _is_known(name: str, names: Names) -> bool:
    reading = describe_name(name)
    return bool(names.metric(name) or reading.loss or reading.named or reading.metric)


def split_of(stem: str) -> str:
    """Return the split of data that a name begins with; empty where it begins with none."""
    word = re.split(r"[^a-z]", stem.lower(), maxsplit=1)[0]
    return SPLITS.get(word, "")


def _home(folder: Path, top: Path, tables: Mapping[Path, list[Path]]) -> tuple[Path, Path]:
    """Return the folder of the run that a folder's files are of, and the one below which a path is a name."""
    inside = [place for place in (folder, *folder.parents) if place.is_relative_to(top)]
    for home in inside:
        for parts in HOMES:
            if home.parts[-len(parts) :] == parts:
                above = [home, *home.parents][len(parts)]
                return (above if above in inside else home), home
    home = folder
    while home != top and (home.name.lower() in SPLITS or tables.get(home.parent)):
        home = home.parent
    return home, home


def glance(file: Path, names: Names) -> SeriesFile | None:
    """Return what a file's first lines show it to hold; None if that is no series."""
    try:
        source = glimpse(file, GLIMPSE_BYTES)
    except StabtreeError:
        return None
    rows = [line.split(_delimiter(file)) for line in source.head.split("\n") if line.strip()]
    if source.binary or not rows or any(len(row) != len(rows[0]) for row in rows[:-1]):
        return None
    if not all(map(is_text, rows[0])):
        columns = NAMELESS.get(len(rows[0]), ())
        if columns and all(row[columns.index(STEP)].strip().isdecimal() for row in rows[:-1] or rows):
            return SeriesFile(file, columns, header=False)
        return None
    roles = [names.role(name.strip()) for name in rows[0]]
    columns = tuple(
        role if role in (STEP, EPOCH) else "-" * is_time(name) or name.strip()
        for name, role in zip(rows[0], roles, strict=True)
    )
    counts = len(set(columns) & {STEP, EPOCH})
    if not counts or len(set(columns)) == counts or any(map(is_text, chain.from_iterable(rows[1:2]))):
        return None
    return SeriesFile(file, columns, header=True)


def _delimiter(file: Path) -> str:
    return "\t" if file.name.lower().endswith(".tsv") else ","


def _rows(file: SeriesFile) -> Iterator[list[str]]:
    """Yield the rows of a file that are whole."""
    for place, line in enumerate(open_source(file.path).lines()):
        row = line.split(_delimiter(file.path))
        if len(row) == len(file.columns) and (place or not file.header):
            yield row
