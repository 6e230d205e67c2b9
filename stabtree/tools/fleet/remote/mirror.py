"""Remote runs on this machine for as long as they are read: all their names, and the content of what may be a log."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.common.text import masked
from stabtree.loaders import Loaded
from stabtree.loaders.folder import MAX_SETTINGS
from stabtree.loaders.json import manifest
from stabtree.loaders.paths.find import (
    MAX_TOGETHER,
    NO_LOGS,
    PASSED_BY,
    Unit,
    ending,
    is_log,
    may_be_log,
    place,
    tree_of,
)
from stabtree.tools.fleet.remote.addresses import Remote, asked, expanded, listed, opened, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stabtree.tools.fleet.remote.addresses import Listed

T = TypeVar("T")
MAX_BYTES = 1 << 30  # of one file that is fetched
MAX_ENTRIES = 5_000  # of a run's folder; what is further down is a run of its own
DEPTH = 3
# Large, and never a log whatever their endings say.
SKIPPED = frozenset(("tokenizer.json", "vocab.json", "merges.txt", "added_tokens.json", "model.safetensors.index.json"))


@dataclass(slots=True)
class Mirror:
    """A folder of this machine in which remote files are at the paths that they have there.

    Attributes:
        root: the folder.
        prefixes: what comes before the path in an address, by the folder below the root.
        refused: what was not fetched, as rows.
        unlisted: folders here of which not even the names were fetched.
    """

    root: str
    prefixes: dict[str, str] = field(default_factory=dict)
    refused: list[Loaded] = field(default_factory=list)
    unlisted: set[str] = field(default_factory=set)

    def place(self, remote: Remote) -> str:
        """Return where a remote file or folder is here."""
        for home, prefix in self.prefixes.items():
            if prefix == remote.prefix:
                return f"{home}/{remote.path}"
        home = f"{self.root}/{len(self.prefixes)}"
        self.prefixes[home] = remote.prefix
        return f"{home}/{remote.path}"

    def without_mirror(self, value: T) -> T:
        """Return a value whose texts name the addresses instead of places here, without passwords."""
        return _with_texts(value, lambda text: masked(self._addressed(text)))

    def addressed(self, value: T) -> T:
        """Return the same with addresses that can be opened."""
        return _with_texts(value, self._addressed)

    def _addressed(self, text: str) -> str:
        if self.root in text:
            for home, prefix in self.prefixes.items():
                text = text.replace(f"{home}/", prefix)
        return text

    def outline(self, folder: Remote) -> list[tuple[Remote, Listed]]:
        """Lay out the names in a folder and below it, with holes for contents; the files that may be fetched."""
        wanted = []
        for here, entries, refused in walked(folder):
            os.makedirs(self.place(here), exist_ok=True)  # noqa: PTH103 - a path of ours
            self.unlisted.discard(self.place(here))
            for name in refused:
                self._refuse(here.inner(name), "its name would lead out of the folder, or is not a file name")
            for entry in entries:
                inner = here.inner(entry.name)
                if entry.folder:
                    os.makedirs(self.place(inner), exist_ok=True)  # noqa: PTH103
                    self.unlisted.add(self.place(inner))
                elif not is_wanted(entry):
                    self._lay_out(inner, 0)
                elif entry.size > MAX_BYTES:
                    self._refuse(inner, f"is {entry.size / 2**30:.1f} GiB, more than is fetched")
                else:
                    self._lay_out(inner, entry.size)
                    wanted.append((inner, entry))
        return wanted

    def _lay_out(self, remote: Remote, size: int) -> None:
        """Make a file of the size of a remote one, without its content."""
        with open(self.place(remote), "wb") as hole:  # noqa: PTH123
            hole.truncate(size)

    def fetch(self, files: Sequence[Remote]) -> None:
        """Fill in the contents of files of one file system.

        Raises:
            StabtreeError: where one can't be read.
        """
        if files:
            with asked(files[0].address):
                files[0].system.get([file.stored for file in files], [self.place(file) for file in files])

    def _refuse(self, remote: Remote, problem: str) -> None:
        where = shown(remote.address)
        hint = "copy it here, and name the copy"
        self.refused.append(Loaded(where, StabtreeError(problem, where=where, hint=hint), where))


def is_wanted(entry: Listed) -> bool:
    """Return whether a file may be a log or the settings of a run, as far as its name shows."""
    if entry.name.endswith((".yaml", ".yml")):
        return 0 < entry.size <= MAX_SETTINGS
    return entry.size > 0 and entry.name not in SKIPPED and ending(entry.name) not in NO_LOGS


def walked(folder: Remote, depth: int = DEPTH) -> Iterator[tuple[Remote, list[Listed], list[str]]]:
    """Yield what is in a folder and, where it holds few folders, below it; without what is hidden."""
    waiting, seen = [(folder, 0)], 0
    for here, level in waiting:
        found, refused = listed(here)
        entries = [one for one in found if not one.name.startswith(".") and one.name not in PASSED_BY]
        yield here, entries, refused
        seen += len(entries)
        inner = [here.inner(entry.name) for entry in entries if entry.folder]
        if level < depth and len(inner) <= MAX_TOGETHER and seen <= MAX_ENTRIES:
            waiting += [(one, level + 1) for one in inner]


@contextmanager
def _mirror() -> Iterator[Mirror]:
    with tempfile.TemporaryDirectory(prefix="stabtree-", ignore_cleanup_errors=True) as root:
        yield Mirror(os.path.realpath(root))


@contextmanager
def mirrored(unit: Unit) -> Iterator[tuple[Mirror, Unit]]:
    """A remote unit on this machine.

    Raises:
        StabtreeError: where it can't be read.
    """
    folder = opened(unit.folder)
    with _mirror() as mirror:
        wanted = mirror.outline(folder)
        home = mirror.place(folder)
        near = Unit(home, unit.files, named=unit.named)
        mirror.fetch(_read_of(mirror, near, wanted))
        yield mirror, near


def _read_of(mirror: Mirror, near: Unit, wanted: Sequence[tuple[Remote, Listed]]) -> list[Remote]:
    """Return the files of which the content is asked for: of loose logs their own, of a folder all that is read now."""
    if near.files:
        return [file for file, entry in wanted if _is_beside(mirror, near, file, entry)]
    own = place(near.folder, manifest.NAMES[0])
    before = [file for file, _ in wanted if mirror.place(file) == own]
    mirror.fetch(before)  # it names the folders of its run
    tree = tree_of(near, unlisted=mirror.unlisted)
    crowded = {folder for folder, one in tree.listings.items() if sum(map(is_log, one.files)) > MAX_TOGETHER}
    found = []
    for file, entry in wanted:
        folder = mirror.place(file).rpartition("/")[0]
        if file not in before and folder in tree.listings and not (folder in crowded and is_log(entry.name)):
            found.append(file)
    return found


def _is_beside(mirror: Mirror, near: Unit, file: Remote, entry: Listed) -> bool:
    """Return whether a file is one of some loose logs, or the settings beside them."""
    if mirror.place(file).rpartition("/")[0] != near.folder:
        return False
    return entry.name in near.files or not may_be_log(entry.name) or entry.name == manifest.NAMES[0]


@contextmanager
def fetched(paths: Sequence[str]) -> Iterator[tuple[list[str], Mirror]]:
    """Paths of which every address is replaced by a place of this machine that holds what is there.

    Raises:
        StabtreeError: where one can't be read.
    """
    with _mirror() as mirror:
        places = []
        for path in paths:
            if "://" not in path:
                places.append(path)
                continue
            for address, is_folder in expanded(path):
                if is_folder:
                    mirror.fetch([file for file, _ in mirror.outline(opened(address))])
                else:
                    _fetch_log(mirror, address)
                places.append(mirror.place(opened(address)))
        yield places, mirror


def _fetch_log(mirror: Mirror, address: str) -> None:
    """Fetch a single log, with what is beside it and belongs to it."""
    folder, _, name = address.rpartition("/")
    home = opened(folder)
    wanted = mirror.outline(home)
    mirror.fetch(_read_of(mirror, Unit(mirror.place(home), (name,)), wanted))
    mirror.unlisted.clear()


def stamp(unit: Unit, *, deep: bool) -> str:
    """A hash of names, sizes and what differs when they were written again; empty where the address holds a password.

    Args:
        unit: a remote unit.
        deep: whether what is below the folder counts too.
    """
    if masked(unit.folder) != unit.folder:
        return ""
    digest = hashlib.sha256()
    try:
        for here, entries, _ in walked(opened(unit.folder), DEPTH * deep):
            for entry in entries:
                digest.update(repr((here.path, entry)).encode("utf-8", "surrogateescape"))
    except StabtreeError:
        return ""
    return digest.hexdigest()


def _with_texts(value: T, change: Callable[[str], str]) -> T:
    """Return a value with all texts in it changed; what holds none that changes stays the same object."""
    new: Any = value
    if isinstance(value, str):
        new = change(value)
    elif isinstance(value, StabtreeError):
        new = type(value)(change(value.problem), where=change(value.where), hint=change(value.hint))
    elif isinstance(value, tuple):
        new = _tuple_with_texts(value, change)
    elif isinstance(value, Mapping):
        new = {_with_texts(key, change): _with_texts(item, change) for key, item in value.items()}
    elif is_dataclass(value) and not isinstance(value, type):
        new = _fields_with_texts(value, change)
    return new  # type: ignore[no-any-return]


def _tuple_with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a tuple, named or not, with all texts in it changed."""
    found = [_with_texts(item, change) for item in value]
    if all(one is other for one, other in zip(found, value, strict=True)):
        return value
    if hasattr(value, "_fields"):
        return type(value)(*found)
    return tuple(found)


def _fields_with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a dataclass with all texts in its fields changed."""
    now = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
    then = {name: _with_texts(item, change) for name, item in now.items()}
    changed = {name: item for name, item in then.items() if item is not now[name]}
    if changed:
        return replace(value, **changed)
    return value
