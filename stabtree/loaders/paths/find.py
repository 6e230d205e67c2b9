"""Where logs may be below some paths: folders that are read as a whole, and those that are too large for it."""

from __future__ import annotations

import os
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.common.text import masked
from stabtree.loaders.assemble.ranks import RANK_NAME
from stabtree.loaders.folder import made_up
from stabtree.loaders.json import manifest, trainer_state
from stabtree.loaders.paths import trainer_output
from stabtree.loaders.paths.kinds import EVENTS, PASSED_BY, is_copy, is_log
from stabtree.loaders.source import open_source

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

MAX_TOGETHER = 64  # logs below a folder that are compared with each other, to see which are of one run
PART = 16  # logs of a larger folder that are read together
PLACES = frozenset(
    (
        *(
            "log",
            "logs",
            "out",
            "output",
            "outputs",
            "results",
            "checkpoints",
            "metrics",
            "slurm",
            "stdout",
            "csv",
            "files",
        ),
        *("tb", "tensorboard", "events", "runs", "wandb", "mlruns", "lightning_logs", "tb_logs", "csv_logs"),
        *("train", "training", "val", "valid", "validation", "eval", "test"),
    )
)
"""What people and trainers call the folders that the logs of one run are spread over."""
MAX_ENTRIES = 5_000  # entries below a folder that is read as a whole


@dataclass(frozen=True, slots=True)
class Unit:
    """What is read together, as plain values: a folder with all below it, or loose logs of one.

    Attributes:
        folder: the folder.
        files: names of logs in it; none stand for the folder as a whole.
        named: whether somebody named these files, so that each is read or refused.
        linked: whether a link led here, so that it may be led to again.
    """

    folder: str
    files: tuple[str, ...] = ()
    named: bool = False
    linked: bool = False

    @property
    def path(self) -> str:
        """What to call it."""
        if len(self.files) == 1:
            return masked(place(self.folder, self.files[0]))
        return masked(self.folder)

    @property
    def paths(self) -> tuple[str, ...]:
        """Its logs, or the folder."""
        return tuple(place(self.folder, name) for name in self.files) or (self.folder,)


@dataclass(slots=True)
class Listing:
    """What a folder holds, names in order, without what is hidden.

    Attributes:
        folders: its sub-folders.
        linked: links to folders.
        files: its files.
        special: what is neither: pipes, sockets, links that lead nowhere.
    """

    folders: list[str] = field(default_factory=list)
    linked: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    special: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.folders) + len(self.linked) + len(self.files) + len(self.special)


@dataclass(slots=True)
class FolderTree:
    """What is read together of a folder and all below it.

    Attributes:
        top: the folder.
        listings: what each folder holds, by its path; those above before those in them.
        further: what is too much for that, and is read on its own.
        closed: folders that nobody may look into, with the reason.
    """

    top: str
    listings: dict[str, Listing] = field(default_factory=dict)
    further: list[Unit] = field(default_factory=list)
    closed: dict[str, str] = field(default_factory=dict)

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield the folder and the name of each file."""
        for folder, listing in self.listings.items():
            for name in listing.files:
                yield folder, name


def place(folder: str, name: str) -> str:
    """Return a path, as people type it."""
    if "://" in folder:
        return f"{folder.rstrip('/')}/{name}"
    if os.name == "posix" and name not in ("", ".") and "/" not in name:
        return f"{_begin_of(folder)}{name}"  # a hundred thousand times, which a `Path` takes long for
    return str(Path(folder) / name)


@lru_cache(maxsize=64)
def _begin_of(folder: str) -> str:
    """Return what the paths in a folder begin with, as people type them."""
    return str(Path(folder) / "_").removesuffix("_")


def listed(folder: str, roots: Sequence[str] = ()) -> Listing:
    """Return what a folder holds.

    A link to what is below one of the roots is left out: it is found there. So is one to a folder above them, from
    which everything would be read, and one to what the kernel makes up.

    Raises:
        OSError: where it may not be looked at.
    """
    found = Listing()
    with os.scandir(folder or ".") as entries:
        for entry in entries:
            if entry.name.startswith(".") or entry.name in PASSED_BY:
                continue
            link = entry.is_symlink()
            if link and (is_read_anyway(entry.path, roots) or _leads_out(entry.path, roots)):
                continue
            _kind_of(entry, found, link=link).append(entry.name)
    for names in (found.folders, found.linked, found.files, found.special):
        names.sort()
    return found


def _kind_of(entry: os.DirEntry[str], found: Listing, *, link: bool) -> list[str]:
    try:
        if entry.is_dir():
            return found.linked if link else found.folders
        return found.files if entry.is_file() else found.special
    except OSError:  # a link in a loop
        return found.special


def is_read_anyway(path: str, roots: Sequence[str]) -> bool:
    """Return whether a link leads to what is found below the roots anyway."""
    target = os.path.realpath(path)
    for root in roots:
        if target == root or target.startswith(root.rstrip(os.sep) + os.sep):
            below = Path(target[len(root) :]).parts
            return not any(part.startswith(".") or part in PASSED_BY for part in below)
    return False


def _leads_out(path: str, roots: Sequence[str]) -> bool:
    """Return whether a link leads above a root, or to what the kernel makes up."""
    target = Path(os.path.realpath(path))
    return made_up(target) or any(target in Path(root).parents for root in roots)


def tree_of(unit: Unit, roots: Sequence[str] = (), unlisted: Collection[str] = ()) -> FolderTree:
    """Return a folder with all below it where its logs may be of one run; else the folder alone.

    Args:
        unit: the folder.
        roots: the folders that are read, links resolved.
        unlisted: folders below it that are read on their own.
    """
    tree = FolderTree(unit.folder)
    waiting, entries, logs = [unit.folder], 0, 0
    while waiting:
        folder = waiting.pop()
        listing = _listed(tree, folder, roots)
        if folder == unit.folder and not _belongs_together(folder, listing):
            return _alone(unit, roots)
        entries += len(listing)
        if not is_copy(Path(folder).name):
            logs += sum(map(is_log, listing.files))
        if len(tree.listings) > 1 and (logs > MAX_TOGETHER or entries > MAX_ENTRIES):
            return _alone(unit, roots)
        own = [place(folder, name) for name in listing.folders]
        tree.further += [Unit(path) for path in own if path in unlisted]
        tree.further += [Unit(place(folder, name), linked=True) for name in listing.linked]
        waiting += [path for path in reversed(own) if path not in unlisted]
    return tree


def _belongs_together(folder: str, listing: Listing) -> bool:
    """Whether what is below a folder may be of one run: beside a log, or by the names and contents of its folders."""
    names = listing.folders
    if any(is_log(name) or "log" in name for name in listing.files) or any(map(is_copy, names)):
        return True
    if PLACES.intersection(map(str.lower, names)) or (names and all(map(RANK_NAME.search, names))):
        return True
    # A run that is resumed writes events to a new folder.
    return 1 < len(names) <= MAX_TOGETHER and all(_holds_events(place(folder, name)) for name in names)


def _holds_events(folder: str) -> bool:
    try:
        return any(EVENTS in name for name in listed(folder).files)
    except OSError:
        return False


def _listed(tree: FolderTree, folder: str, roots: Sequence[str]) -> Listing:
    """Return what a folder holds, and add it to the tree; nothing where it may not be looked into."""
    if folder != tree.top and made_up(Path(folder)):
        return Listing()
    try:
        tree.listings[folder] = listed(folder, roots)
    except OSError as error:
        tree.closed[folder] = error.strerror or type(error).__name__
        return Listing()
    return tree.listings[folder]


def _alone(unit: Unit, roots: Sequence[str]) -> FolderTree:
    """Return a folder with the folders in which its own run keeps its log; all others are read on their own."""
    tree = FolderTree(unit.folder)
    top = _listed(tree, unit.folder, roots)
    own = set(_homes(unit.folder, top))
    tree.further += [Unit(place(unit.folder, name), linked=unit.linked) for name in top.folders if name not in own]
    waiting = [place(unit.folder, name) for name in top.folders if name in own]
    while waiting:
        folder = waiting.pop()
        inner = _listed(tree, folder, roots)
        waiting += [place(folder, name) for name in reversed(inner.folders)]
    linked = ((folder, name) for folder, listing in tree.listings.items() for name in listing.linked)
    tree.further += [Unit(place(*link), linked=True) for link in linked]
    return tree


def _homes(folder: str, listing: Listing) -> Iterator[str]:
    """Yield the folders in one that hold the log of a run which that folder is of, or copies of it."""
    if manifest.NAMES[0] in listing.files:
        yield from _folders_named(Path(folder, manifest.NAMES[0]))
    copies = [name for name in listing.folders if is_copy(name)]
    yield from copies
    if copies or trainer_state.NAME in listing.files:
        yield trainer_output.EVENTS
    if any(name.endswith(".wandb") for name in listing.files):
        yield "files"
    if "meta.yaml" in listing.files:
        yield from ("metrics", "params", "tags")


def _folders_named(file: Path) -> Iterator[str]:
    """Yield the folders beside a manifest that the files it names are in."""
    try:
        files = manifest.parse(open_source(file)).files
    except StabtreeError:  # reported where it is read
        return
    for one in files:
        yield one.relative_to(file.parent).parts[0]


def parts(folder: str, names: Sequence[str]) -> list[Unit]:
    """Return many logs of one folder, parted by their names; those of one run's ranks stay together."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(RANK_NAME.sub("#", name), []).append(name)
    found: list[Unit] = []
    held: list[str] = []
    for group in groups.values():
        if held and len(held) + len(group) > PART:
            found.append(Unit(folder, tuple(held)))
            held = []
        held += group
    return [*found, Unit(folder, tuple(held))] if held else found
