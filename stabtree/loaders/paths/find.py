"""Where logs may be below some paths: which files may be logs, and which folders are read as a whole."""

from __future__ import annotations

import glob
import os
import re
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.text import masked
from stabtree.loaders.assemble.run import RANK_NAME
from stabtree.loaders.folder import EVENTS, SETTINGS, is_within, made_up
from stabtree.loaders.json import manifest, trainer_state
from stabtree.loaders.source import open_source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

PACKINGS = (".gz", ".bz2", ".xz", ".zst")
SERIES_HOMES = frozenset(("metrics", "scalars"))  # where loggers that do so keep them
SWANLAB = "runs.swanlab"  # the database of its runs, whose values are in their folders
RUNS = "runs"  # where the Hugging Face trainer writes events if nobody says otherwise
PRINTED = (".log", ".out", ".err")  # what a program printed, which may hold no metrics at all
# Endings of files that are logs, or should be: one that can't be read is reported.
LOGS = frozenset((*PRINTED, ".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".feather", ".arrow", ".wandb"))
# Endings of files that are never opened: code, pages, weights, pictures, archives.
_NO_LOGS = (
    ".py .pyc .ipynb .sh .bat .ps1 .c .cc .cpp .h .hpp .cu .java .go .rs .jl .m .r .js .ts .css .lock .patch .diff "
    ".yaml .yml .toml .cfg .ini .md .rst .html .htm .xml .proto .tex .bib .jinja .jinja2 .bak .swp .pid .index "
    ".pt .pth .ckpt .bin .safetensors .npz .npy .pkl .pickle .h5 .hdf5 .onnx .msgpack .pb .pbtxt .gguf .model "
    ".pdf .png .jpg .jpeg .gif .svg .webp .bmp .tif .tiff .mp4 .avi .wav .mp3 .flac .ttf "
    ".tar .tgz .7z .rar .whl .so .dll .exe"
)
NO_LOGS = frozenset(_NO_LOGS.split(" "))
PASSED_BY = frozenset(("node_modules", "__pycache__", "site-packages", "venv"))
# Settings, final values, vocabularies and a logger's own messages, which lie beside metrics and hold none.
_OTHERS = (
    "all_results.json train_results.json eval_results.json wandb-summary.json wandb-metadata.json debug-core.log "
    "debug-internal.log generation_config.json preprocessor_config.json tokenizer.json tokenizer_config.json "
    "special_tokens_map.json added_tokens.json vocab.json merges.txt requirements.txt"
)
OTHERS = frozenset((*SETTINGS, *_OTHERS.split(" ")))
# What people and trainers call the folders that the logs of one run are spread over.
_PLACES = (
    "log logs out output outputs results checkpoints metrics slurm stdout csv files tb tensorboard events runs "
    "wandb mlruns lightning_logs tb_logs csv_logs train training val valid validation eval test "
    "dvclive plots scalars"
)
PLACES = frozenset(_PLACES.split(" "))
_COPY = re.compile(r"(checkpoint|global_step)[-_]?\d+")
MAX_TOGETHER = 64  # logs below a folder that are compared with each other, to see which are of one run
PART = 16  # logs of a larger folder that are read together
MAX_ENTRIES = 5_000  # entries below a folder that is read as a whole


class Unit(Struct, frozen=True):
    """What is read together, as plain values: a folder with all below it, or loose logs of one."""

    folder: str  # the folder
    files: tuple[str, ...] = ()  # names of logs in it; none stand for the folder as a whole
    named: bool = False  # whether somebody named these files, so that each is read or refused

    @property
    def path(self) -> str:
        """What to call it."""
        return masked(place(self.folder, self.files[0]) if len(self.files) == 1 else self.folder)

    @property
    def paths(self) -> tuple[str, ...]:
        """Its logs, or the folder."""
        return tuple(place(self.folder, name) for name in self.files) or (self.folder,)


class Listing(Struct):
    """The names in a folder, in order and without what is hidden."""

    folders: list[str] = field(default_factory=list)
    linked: list[str] = field(default_factory=list)  # links to folders
    files: list[str] = field(default_factory=list)
    # Pipes, sockets, and links that are dead or lead out of the roots and are not followed.
    special: list[str] = field(default_factory=list)


class FolderTree(Struct):
    """What is read together of a folder and all below it."""

    top: str  # the folder
    roots: Sequence[str]  # the folders that are read, links resolved
    follow: bool  # whether links are followed out of these
    # What each folder holds, by its path; those above before those in them.
    listings: dict[str, Listing] = field(default_factory=dict)
    further: list[Unit] = field(default_factory=list)  # what is too much for that, and is read on its own
    closed: dict[str, str] = field(default_factory=dict)  # folders that nobody may look into, with the reason

    def add(self, folder: str) -> Listing:
        """Look into a folder, unless it may not be looked into or the kernel makes it up."""
        listing = Listing()
        if folder == self.top or not made_up(Path(folder)):
            try:
                listing = self.listings[folder] = listed(folder, self.roots, follow=self.follow)
            except OSError as error:
                self.closed[folder] = error.strerror or type(error).__name__
        return listing


def ending(name: str) -> str:
    """Return the ending of a file's name without that of its packing."""
    _, *parts = name.lower().lstrip(".").split(".")  # as `Path.suffixes`, in a tenth of the time
    if parts and f".{parts[-1]}" in PACKINGS:
        parts.pop()
    return f".{parts[-1]}" if parts and parts[-1] else ""


def is_log(name: str) -> bool:
    """Return whether a file's name says that it is a log."""
    return ending(name) in LOGS or EVENTS in name or name == trainer_state.NAME


def may_be_log(name: str) -> bool:
    """Return whether a file may be a log, as far as its name shows."""
    return name not in OTHERS and (is_log(name) or ending(name) not in NO_LOGS)


def is_copy(folder: str) -> bool:
    """Return whether a folder's name is that of a checkpoint, whose log is a copy of the run's."""
    return _COPY.fullmatch(folder) is not None


def place(folder: str, name: str) -> str:
    """Return a path, as people type it."""
    if "://" in folder:
        return f"{folder.rstrip('/')}/{name}"
    return os.path.join(folder, name).removeprefix(f".{os.sep}")  # noqa: PTH118 - a hundred thousand times


def listed(folder: str, roots: Sequence[str] = (), *, follow: bool = True) -> Listing:
    """Return what a folder holds.

    Raises:
        OSError: where it may not be looked at.
    """
    found = Listing()
    with os.scandir(folder or ".") as entries:
        for entry in sorted(entries, key=attrgetter("name")):
            if is_hidden(entry.name):
                continue
            names: list[str] | None = found.special
            if entry.is_symlink():
                names = _names_of_link(entry, found, roots, follow=follow)
            elif entry.is_dir():
                names = found.folders
            elif entry.is_file():
                names = found.files
            if names is not None:
                names.append(entry.name)
    return found


def is_hidden(name: str) -> bool:
    """Return whether nothing by this name is looked at."""
    return name.startswith(".") or name in PASSED_BY


def _names_of_link(link: os.DirEntry[str], found: Listing, roots: Sequence[str], *, follow: bool) -> list[str] | None:
    """Return the names in a listing that a link is one of, if any.

    It is none of them where it leads to what is read anyway, to a folder above the roots, from which everything would
    be read, or to what the kernel makes up.
    """
    target = Path(os.path.realpath(link.path))
    if _is_read_anyway(target, roots) or made_up(target) or any(target in Path(root).parents for root in roots):
        return None
    with suppress(OSError):  # a link in a loop
        if follow or is_within(target, roots):
            if link.is_dir():
                return found.linked
            if link.is_file():
                return found.files
    return found.special


def _is_read_anyway(target: Path, roots: Sequence[str]) -> bool:
    """Return whether a path without links is found below the roots anyway."""
    below = [target.relative_to(root).parts for root in roots if target.is_relative_to(root)]
    return any(not any(map(is_hidden, parts)) for parts in below)


def tree_of(unit: Unit, roots: Sequence[str], *, follow: bool, whole: bool = True) -> FolderTree:
    """Return a folder with all below it where its logs may be of one run; else with the folders of its own run alone.

    Args:
        unit: the folder.
        roots: the folders that are read, links resolved.
        follow: whether links are followed out of these.
        whole: whether all below it may be of one run.
    """
    tree = FolderTree(unit.folder, roots, follow)
    waiting, entries, logs = [unit.folder], 0, 0
    while waiting:
        folder = waiting.pop()
        listing = tree.add(folder)
        entries += sum(map(len, (listing.folders, listing.linked, listing.files, listing.special)))
        logs += len(list(filter(is_log, listing.files))) * (not is_copy(Path(folder).name))
        too_many = len(tree.listings) > 1 and (logs > MAX_TOGETHER or entries > MAX_ENTRIES)
        if whole and (too_many or (folder == unit.folder and not _belongs_together(folder, listing))):
            return tree_of(unit, roots, follow=follow, whole=False)
        own = set(listing.folders) if whole or folder != unit.folder else set(_homes(folder, listing))
        apart = [name for name in listing.folders if name not in own]
        tree.further += [Unit(place(folder, name)) for name in (*apart, *listing.linked)]
        waiting += [place(folder, name) for name in reversed(listing.folders) if name in own]
    return tree


def _belongs_together(folder: str, listing: Listing) -> bool:
    """Whether what is below a folder may be of one run: beside a log, or by the names and contents of its folders."""
    names = listing.folders
    if any(is_log(name) or "log" in name for name in listing.files) or any(map(is_copy, names)):
        return True
    if PLACES.intersection(map(str.lower, names)) or (names and all(map(RANK_NAME.search, names))):
        return True
    try:  # a run that is resumed writes events to a new folder
        inner = [listed(place(folder, name)).files for name in names] if 1 < len(names) <= MAX_TOGETHER else []
    except OSError:
        return False
    return bool(inner) and all(any(EVENTS in name for name in files) for files in inner)


def _homes(folder: str, listing: Listing) -> Iterator[str]:
    """Yield the folders in one that hold the log of a run which that folder is of, or copies of it."""
    if manifest.NAMES[0] in listing.files:
        try:
            named = manifest.parse(open_source(Path(folder, manifest.NAMES[0]))).files
        except StabtreeError:  # reported where it is read
            named = ()
        yield from (file.relative_to(folder).parts[0] for file in named)
    copies = [name for name in listing.folders if is_copy(name)]
    yield from copies
    if copies or trainer_state.NAME in listing.files:
        yield RUNS
    if any(name.endswith(".wandb") for name in listing.files):
        yield "files"
    if SWANLAB in listing.files:
        yield from listing.folders
    if "meta.yaml" in listing.files:
        yield from ("metrics", "params", "tags")


def parts(folder: str, names: Sequence[str]) -> list[Unit]:
    """Return many logs of one folder, parted by their names; those of one run's ranks stay together."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(RANK_NAME.sub("#", name), []).append(name)
    found: list[list[str]] = []
    for group in groups.values():
        if found and len(found[-1]) + len(group) <= PART:
            found[-1] += group
        else:
            found.append(group)
    return [Unit(folder, tuple(group)) for group in found]


def grouped(units: Iterable[Unit]) -> list[Unit]:
    """Return units with the loose logs of a folder together, as many as are read so; standard input comes first."""
    found, loose = list[Unit](), dict[str, list[str]]()
    for unit in units:
        if unit.files:
            loose.setdefault(unit.folder, []).extend(unit.files)
        else:
            found.append(unit)
    for folder, names in loose.items():
        found += [replace(part, named=True) for part in parts(folder, names)]
    return sorted(found, key=lambda unit: unit.folder != "")


def expanded(path: str) -> list[str]:
    """Return the paths that match a pattern which the shell did not expand; any other path as it is."""
    if path == "-" or not glob.has_magic(path) or Path(path).exists():
        return [path]
    return sorted(glob.glob(path, recursive=True)) or [path]  # noqa: PTH207 - a pattern may be absolute


def deduplicated(paths: Sequence[str | Path]) -> list[str | Path]:
    """Return the paths without those that name a file again, by a link or in another spelling."""
    first: dict[str, str | Path] = {}
    for path in paths:
        first.setdefault(real_path(str(path)), path)
    return list(first.values())


def real_path(path: str) -> str:
    """Return a path with its links resolved; itself where it is none, as with a NUL in it."""
    try:
        return path if path in ("", "-") else os.path.realpath(path)
    except (OSError, ValueError):
        return path


def units_of(paths: Sequence[str]) -> list[Unit]:
    """Return what to read of paths; one that is named twice, or lies below another one, is read once."""
    folders = {path: real_path(path) for path in paths if path and os.path.isdir(path)}  # noqa: PTH112 - never raises
    units: dict[str, Unit] = {}
    for path in paths:
        real = real_path(path)
        if path in ("", "-"):
            units[path] = Unit("", (path,), named=True)
        elif not _is_read_anyway(Path(real), [folder for folder in folders.values() if folder != real]):
            file = Path(path)
            unit = Unit(str(file)) if path in folders else Unit(str(file.parent), (file.name,), named=True)
            units.setdefault(real, unit)
    return list(units.values())
