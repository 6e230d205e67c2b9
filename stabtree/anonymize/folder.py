"""The folder of a run without names: its logs and settings, in folders that are laid out as they were."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.anonymize.anonymize import SCALARS, anonymized
from stabtree.anonymize.scalars import scalars
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.folder import MAX_DEPTH, entries
from stabtree.loaders.formats import choose
from stabtree.loaders.source import open_source
from stabtree.loaders.tensorboard.loader import EVAL, MARK
from stabtree.metrics.names import Names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.anonymize.scrub import Scrub

# One for each rank of a large run; a data set holds more.
MAX_FILES = 2000
# What is text by its name, be it settings or what a program printed.
_TEXTS = (".csv", ".tsv", ".json", ".jsonl", ".yaml", ".yml", ".toml", ".txt", ".log", ".out", ".err")
# MLflow keeps a value a file in folders of these names.
_VALUES = ("metrics", "params", "tags")
# What no name has on Windows, where the folder may be unpacked.
_REFUSED = re.compile(r'[<>:"|?*\\\x00-\x1f]|[. ]$')


@dataclass(slots=True)
class Rewriting:
    """Rewrites a folder, a file at a time.

    Attributes:
        folder: what to read.
        out: where to write to.
        scrub: takes the names out, the same way in all files.
        written: the files that were written, relative to `out`.
        left: those that were left out, relative to `folder`.
        notes: what there is to say of single files.
    """

    folder: Path
    out: Path
    scrub: Scrub
    written: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Write all that is a log or a setting.

        Raises:
            StabtreeError: where the folder holds more files than a run has.
            OSError: where a file can't be written.
        """
        files = list(self._files())
        if len(files) > MAX_FILES:
            raise StabtreeError(
                f"holds more than {MAX_FILES:,} files", where=clean(self.folder), hint="name the folder of one run"
            )
        together = {file for folder, events in _sides(files) if self._write_events(folder) for file in events}
        for file in files:
            if file in together:
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
        """Write the event files of a run that has a folder for training and one for validation, if they are one."""
        own = folder.relative_to(self.folder)
        try:
            lines = scalars(str(folder), self.scrub, MARK, None)
        except StabtreeError:
            return False
        place = self._place(own / "events", SCALARS)
        self._put(place, lines)
        self.notes.append(f"The event files of one run in {clean(own)} were written as one file of JSON lines.")
        return True

    def _write(self, file: Path) -> None:
        own = file.relative_to(self.folder)
        try:
            found = anonymized(file, self.scrub)
            self._put(self._place(own, found.ending), found.pieces)
        except StabtreeError as error:
            self.left.append(clean(own))
            self.notes.append(f"{clean(own)} was left out: it {clean(error.problem, 120)}.")
            return
        self.notes += [f"{clean(own)}: {note}" for note in found.notes if found.format != "manifest"]

    def _put(self, place: Path, pieces: Iterable[bytes]) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("wb") as stream:
            stream.writelines(pieces)
        self.written.append(clean(place.relative_to(self.out)))

    def _place(self, own: Path, ending: str) -> Path:
        """Where a file goes: by its name, without the names in it."""
        words = [self.scrub.text(part) for part in own.parts]
        if own.parent.name not in _VALUES:  # there a file's name is that of a metric
            words = [_REFUSED.sub(lambda found: f"%{ord(found[0]):02X}", word) for word in words]
        named = Path(*words)
        place = self.out / named.with_name(named.name + ending)
        # Ids that differ in their case alone have one stand-in.
        others = (place.with_name(f"{number}-{place.name}") for number in range(2, MAX_FILES + 2))
        return next(one for one in chain([place], others) if not one.exists())


def _sides(files: list[Path]) -> Iterator[tuple[Path, list[Path]]]:
    """Folders in which event files of training and of validation lie in folders of their own, and these files."""
    events = [file for file in files if MARK in file.name]
    for folder in dict.fromkeys(file.parent.parent for file in events):
        inside = [file for file in events if file.is_relative_to(folder)]
        sides = {file.parent.name.lower() for file in inside}
        if len(sides) > 1 and all(file.parent.parent == folder for file in inside) and sides & EVAL:
            yield folder, inside


def _is_wanted(file: Path) -> bool:
    """Whether a file is a log, a setting or what a program printed; weights, code and pictures are none."""
    if file.suffix.lower() in _TEXTS or file.parent.name in _VALUES:
        return True
    try:
        choose(open_source(file), Names())
    except StabtreeError:
        return False
    return True
