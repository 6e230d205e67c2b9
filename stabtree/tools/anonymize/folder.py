"""The folder of a run without names: its logs and settings, in the same layout."""

from __future__ import annotations

import re
from dataclasses import field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.folder import MAX_DEPTH, entries
from stabtree.loaders.formats import choose
from stabtree.loaders.paths.find import Unit, tree_of
from stabtree.loaders.paths.loggers import Claims
from stabtree.loaders.source import open_source
from stabtree.loaders.tensorboard.loader import EVAL, MARK
from stabtree.metrics.names import Names
from stabtree.tools.anonymize.anonymize import SCALARS, anonymized
from stabtree.tools.anonymize.scalars import lines_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.tools.anonymize.scrub import Scrub

# Enough for one file per rank of a large run; a data set holds more.
MAX_FILES = 2000
# Text files by name: settings and what programs print.
_TEXTS = (".csv", ".tsv", ".json", ".jsonl", ".yaml", ".yml", ".toml", ".txt", ".log", ".out", ".err")
# MLflow keeps each value in a file of its own, in folders of these names.
_VALUES = ("metrics", "params", "tags")
# Not allowed in names on Windows, where the folder may be unpacked.
_REFUSED = re.compile(r'[<>:"|?*\\\x00-\x1f]|[. ]$')


@dataclass(slots=True)
class Rewriting:
    """A folder that is rewritten file by file.

    Attributes:
        folder: the folder to read.
        out: the folder to write to.
        scrub: takes the names out, the same way in all files.
        written: the files that were written, relative to `out`.
        left: the files that were left out, relative to `folder`.
        notes: notes on single files.
    """

    folder: Path
    out: Path
    scrub: Scrub
    written: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Write all logs and settings.

        Raises:
            StabtreeError: if the folder holds more files than a run has.
            OSError: if a file can't be written.
        """
        files = list(self._files())
        if len(files) > MAX_FILES:
            raise StabtreeError(
                f"holds more than {MAX_FILES:,} files", where=clean(self.folder), hint="name the folder of one run"
            )
        merged: set[Path] = set()
        for folder, events in _event_folders(files):
            if self._write_events(folder):
                merged.update(events)
        for file in files:
            if file in merged:
                continue
            if _is_wanted(file):
                self._write(file)
            else:
                self.left.append(clean(file.relative_to(self.folder)))

    def _files(self) -> Iterator[Path]:
        open_ = [self.folder]
        for folder in open_:
            folders, files = entries(folder)
            yield from (folder / name for name in files)
            if len(folder.relative_to(self.folder).parts) < MAX_DEPTH:
                open_ += [folder / name for name in folders]

    def _write_events(self, folder: Path) -> bool:
        """Write the event files for training and validation as one file; False if they are not of one run."""
        relative = folder.relative_to(self.folder)
        claims = list(Claims(tree_of(Unit(str(folder))), Names(), MARK))
        if len(claims) != 1 or isinstance(claims[0].found, StabtreeError):
            return False
        self._put(self._target(relative / "events", SCALARS), lines_of(claims[0].found, self.scrub))
        self.notes.append(f"The event files of one run in {clean(relative)} were written as one file of JSON lines.")
        return True

    def _write(self, file: Path) -> None:
        relative = file.relative_to(self.folder)
        try:
            found = anonymized(file, self.scrub)
            self._put(self._target(relative, found.suffix), found.pieces)
        except StabtreeError as error:
            self.left.append(clean(relative))
            self.notes.append(f"{clean(relative)} was left out: it {clean(error.problem, 120)}.")
            return
        if found.format != "manifest":
            self.notes += [f"{clean(relative)}: {note}" for note in found.notes]

    def _put(self, target: Path, pieces: Iterable[bytes]) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as stream:
            stream.writelines(pieces)
        self.written.append(clean(target.relative_to(self.out)))

    def _target(self, relative: Path, suffix: str) -> Path:
        """Return the path to write a file to, without the names in its own path."""
        words = [self.scrub.text(part) for part in relative.parts]
        if relative.parent.name not in _VALUES:  # there a file's name is that of a metric
            words = [_REFUSED.sub(lambda found: f"%{ord(found[0]):02X}", word) for word in words]
        named = Path(*words)
        target = self.out / named.with_name(named.name + suffix)
        # Ids that differ only in case have the same stand-in.
        others = (target.with_name(f"{number}-{target.name}") for number in range(2, MAX_FILES + 2))
        return next(one for one in chain([target], others) if not one.exists())


def _event_folders(files: list[Path]) -> Iterator[tuple[Path, list[Path]]]:
    """Yield folders that hold event files of training and of validation in subfolders, and these files."""
    events = [file for file in files if MARK in file.name]
    for folder in dict.fromkeys(file.parent.parent for file in events):
        inside = [file for file in events if file.is_relative_to(folder)]
        sides = {file.parent.name.lower() for file in inside}
        if len(sides) > 1 and all(file.parent.parent == folder for file in inside) and sides & EVAL:
            yield folder, inside


def _is_wanted(file: Path) -> bool:
    """Return whether a file is a log, a setting or what a program printed, not weights, code or pictures."""
    if file.suffix.lower() in _TEXTS or file.parent.name in _VALUES:
        return True
    try:
        choose(open_source(file), Names())
    except StabtreeError:
        return False
    return True
