"""Where runs may be below a folder: what of it is one run's, what is a run each, what is further down."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.text import masked
from stabtree.loaders.assemble.ranks import RANK_NAME
from stabtree.loaders.folder import made_up
from stabtree.loaders.json import trainer_state
from stabtree.loaders.paths.metrics_file import OTHERS
from stabtree.loaders.paths.several import expanded
from stabtree.loaders.wandb.loader import of_one_run
from stabtree.tools.fleet.remote.addresses import expanded as expanded_address
from stabtree.tools.fleet.remote.addresses import is_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_LOOSE = 64  # logs of one folder that are compared with each other, to see which are one run
PART = 16  # logs of a larger one that are read together
PACKINGS = (".gz", ".bz2", ".xz", ".zst")
EVENTS = "tfevents"
LOGS = frozenset(
    (".csv", ".tsv", ".jsonl", ".ndjson", ".log", ".out", ".err", ".parquet", ".feather", ".arrow", ".wandb")
)
"""Endings of files that are logs, or should be: one that can't be read is reported."""
_CODE = ".py .pyc .ipynb .sh .bat .ps1 .c .cc .cpp .h .hpp .cu .java .go .rs .jl .m .r .js .ts .css .lock .patch .diff"
_TEXTS = ".yaml .yml .toml .cfg .ini .md .rst .html .htm .xml .proto .tex .bib .jinja .jinja2 .bak .swp .pid .index"
_WEIGHTS = ".pt .pth .ckpt .bin .safetensors .npz .npy .pkl .pickle .h5 .hdf5 .onnx .msgpack .pb .pbtxt .gguf .model"
_PICTURES = ".pdf .png .jpg .jpeg .gif .svg .webp .bmp .tif .tiff .mp4 .avi .wav .mp3 .flac .ttf"
_PACKED = ".zip .tar .tgz .7z .rar .whl .so .dll .exe"
NO_LOGS = frozenset(" ".join((_CODE, _TEXTS, _WEIGHTS, _PICTURES, _PACKED)).split(" "))
"""Endings of files that are never opened: code, pages, weights, pictures, archives."""
PASSED_BY = frozenset(("node_modules", "__pycache__", "site-packages", "venv"))
_COPY = re.compile(r"(checkpoint|global_step)[-_]?\d+")
"""Folders of checkpoints: what they hold of the log is a copy."""
_LOGGED = re.compile(r"(offline-)?run-\S+")


@dataclass(frozen=True, slots=True)
class Unit:
    """What is read together, as plain values: a folder, or loose logs of one.

    Attributes:
        folder: the folder.
        files: names of logs in it; none stand for the folder as a whole.
        above: logs of runs in the folders above, which what is here may repeat.
        read: files and folders below that a run above was read from.
        linked: whether a link led here, so that it may be led to again.
    """

    folder: str
    files: tuple[str, ...] = ()
    above: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
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
    """

    folders: list[str] = field(default_factory=list)
    linked: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


def place(folder: str, name: str) -> str:
    """Return a path, as people type it."""
    if is_address(folder):
        return f"{folder.rstrip('/')}/{name}"
    return str(Path(folder) / name)


def listed(folder: str, roots: Sequence[str] = ()) -> Listing:
    """Return what a folder holds.

    A link to what is below one of the roots is left out: it is come upon there. So is one to a folder above them,
    from which everything would be read, and one to what the kernel makes up.

    Raises:
        OSError: where it may not be looked at.
    """
    found = Listing()
    with os.scandir(folder or ".") as entries:
        for entry in entries:
            if entry.name.startswith(".") or entry.name in PASSED_BY:
                continue
            link = entry.is_symlink()
            if link and (_is_scanned_anyway(entry.path, roots) or _leads_out(entry.path, roots)):
                continue
            try:
                if entry.is_dir():
                    names = found.linked if link else found.folders
                    names.append(entry.name)
                elif entry.is_file():
                    found.files.append(entry.name)
            except OSError:  # a link in a loop
                continue
    for names in (found.folders, found.linked, found.files):
        names.sort()
    return found


def _is_scanned_anyway(path: str, roots: Sequence[str]) -> bool:
    """Return whether a link leads to what a scan of the roots comes upon anyway."""
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


def ending(name: str) -> str:
    """Return the ending of a file's name without that of its packing."""
    *before, last = ("", *Path(name.lower()).suffixes)
    if last in PACKINGS and before:
        return before[-1]
    return last


def is_log(name: str) -> bool:
    """Return whether a file's name says that it is a log."""
    return ending(name) in LOGS or EVENTS in name or name == trainer_state.NAME


def may_be_log(name: str) -> bool:
    """Return whether a file may be a log, as far as its name shows."""
    return name not in OTHERS and (is_log(name) or ending(name) not in NO_LOGS)


def is_copy(folder: str) -> bool:
    """Return whether a folder's name is that of a checkpoint."""
    return _COPY.fullmatch(folder) is not None


def units(paths: Iterable[str]) -> list[Unit]:
    """Return what paths and patterns name, without what is below another of them."""
    given = [str(path) for path in paths]
    far: list[Unit] = []
    near: list[str | Path] = []
    for path in given:
        if is_address(path):
            far += [_remote(*one) for one in expanded_address(path)]
        else:
            near += expanded(path)
    return [*_near(near), *dict.fromkeys(far)]


def _remote(address: str, is_folder: bool) -> Unit:
    folder, _, name = address.rpartition("/")
    if is_folder:
        return Unit(address)
    return Unit(folder, (name,))


def _near(paths: Iterable[str | Path]) -> list[Unit]:
    typed = list(dict.fromkeys(str(Path(path)) for path in paths))
    real = {path: os.path.realpath(path) for path in typed}
    folders = [path for path in typed if os.path.isdir(path)]  # noqa: PTH112 - never raises
    inner = {path for path in typed if any(_within(real[path], real[folder]) for folder in folders)}
    first = {real[path]: path for path in reversed(typed) if path not in inner}
    found = []
    for path in typed:
        if first.get(real[path]) != path:
            continue
        if path in folders:
            found.append(Unit(path))
        else:
            found.append(Unit(str(Path(path).parent), (Path(path).name,)))
    return found


def _within(path: str, folder: str) -> bool:
    """Return whether a scan of the folder comes upon the path."""
    return path != folder and path.startswith(folder.rstrip(os.sep) + os.sep) and _is_scanned_anyway(path, [folder])


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
    if held:
        return [*found, Unit(folder, tuple(held))]
    return found


def is_logged(folder: str, listing: Listing) -> bool:
    """Return whether this is the folder of one run of W&B or of MLflow, of which all within is a part."""
    if of_one_run(listing.folders, listing.files):
        return True
    if _LOGGED.fullmatch(Path(folder).name) and "files" in listing.folders:
        return True
    return "meta.yaml" in listing.files and "metrics" in listing.folders


def is_of_loggers(folder: str, listing: Listing) -> bool:
    """Whether one loader knows the folders in this one as parts of a run, or as runs that may follow each other."""
    folders = listing.folders
    if any(is_copy(name) for name in folders):
        return True
    if not 1 < len(folders) <= MAX_LOOSE:
        return False
    inner = [files_in(place(folder, name)) for name in folders]
    return all(not names or any(EVENTS in name for name in names) for names in inner) and any(inner)


def files_in(folder: str) -> list[str]:
    """Return the names of the logs in a folder; none where nobody may look."""
    try:
        return [name for name in listed(folder).files if is_log(name)]
    except OSError:
        return []
