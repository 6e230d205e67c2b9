"""What a folder holds: its entries, the files below it, and the settings that a trainer wrote there."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree.common import yaml12
from stabtree.common.endings import ending_of
from stabtree.common.errors import StabtreeError
from stabtree.common.files import LogLine
from stabtree.common.text import clean
from stabtree.frameworks.recognise import of_model
from stabtree.loaders.config import read_config
from stabtree.run import REDUCED, Setting

if TYPE_CHECKING:
    from collections.abc import Sequence

Settings = dict[str, Setting]

# Runs are a few levels below the folder that one names; a data set or an environment may be beside them.
MAX_DEPTH = 6
MAX_ENTRIES = 50_000
MODEL = "config.json"  # a model's, of which little is about its training; else a trainer's
EVENTS = "tfevents"  # in the name of each event file of TensorBoard
SERIES = (".csv", ".tsv")  # of which a folder may hold one for each series
# The settings of a trainer; nothing else is opened.
SETTINGS = (
    "hparams.yaml",
    "hparams.yml",
    "config.yaml",
    "config.yml",
    "args.yaml",
    "args.json",
    "training_args.json",
    "hparams.json",
    "params.json",
    "params.yaml",
    "adapter_config.json",
    MODEL,
)
MODEL_KEYS = frozenset({"architectures", "model_type"})
# The whole configuration of a large model fits many times.
MAX_SETTINGS = 1 << 20
MAX_STATUS, MAX_LINES, MAX_LINE, MAX_TOLD = 1 << 16, 200, 300, 20  # bytes of a file of a status, lines, and those kept


# The folders that are read now, links resolved, where links out of them are not followed; none where they are.
CLOSED: ContextVar[Sequence[str]] = ContextVar("CLOSED", default=())


def is_within(target: Path, roots: Sequence[str]) -> bool:
    """Whether a path without links is below one of the roots.

    A snapshot of the Hugging Face cache holds links to files in a folder beside that of all snapshots: they count.
    """
    snapshots = target.parent.parent / "snapshots"
    return any(target.is_relative_to(root) or Path(root).is_relative_to(snapshots) for root in roots)


def leads_out(path: Path) -> bool:
    """Whether a file, or the folder that it is in, is a link that leads out of the folders that are read now."""
    roots = CLOSED.get()
    linked = bool(roots) and (os.path.islink(path) or os.path.islink(path.parent))  # noqa: PTH114 - never raises
    return linked and not is_within(Path(os.path.realpath(path)), roots)


def is_file(path: Path) -> bool:
    """Whether a file is there to be read; not where nobody may look, which Python before 3.14 raises an error for."""
    try:
        return path.is_file() and not leads_out(path)
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Whether a folder is there; not where its name is too long or nobody may look: opening it says what is wrong."""
    try:
        return path.is_dir()
    except OSError:
        return False


def size_of(path: Path) -> int:
    """Return the size of a file, 0 where it can't be read."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def made_up(folder: Path) -> bool:
    """Whether the kernel makes up a folder, as /proc: its files are what other processes hold."""
    try:
        return folder.stat().st_dev == os.stat("/proc/self/stat").st_dev  # noqa: PTH116 - a place, not a path
    except OSError:
        return False


def entries(folder: Path) -> tuple[list[str], list[str]]:
    """Return the names of the sub-folders, without links, which may lead back, and of the regular files; both sorted.

    A folder that can't be read is empty, and links that are not followed are left out.
    """
    folders, files = [], []
    with suppress(OSError), os.scandir(folder) as listing:
        for entry in islice(listing, MAX_ENTRIES):
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
                continue
            with suppress(OSError):  # a link in a loop
                if entry.is_file() and not leads_out(folder / entry.name):
                    files.append(entry.name)
    return sorted(folders), sorted(files)


def shown(parts: tuple[str, ...]) -> str:
    """Return the path of a folder below another, safe to print."""
    return clean("/".join(parts), 80) or "."


def settings_in(folder: Path) -> tuple[Settings, tuple[str, ...]]:
    """Return the configuration from the trainer's files in a folder; of two with one setting the first counts.

    A file that can't be read is no error, only a note: nobody asked for it.
    """
    settings: Settings = {}
    notes: list[str] = []
    for name in SETTINGS:
        found, unread = settings_file(folder / name)
        if name == MODEL and not MODEL_KEYS.isdisjoint(found):
            # What a model's configuration says of the run that trains it: its classes, and weights of 16 bits. Weights
            # of 32 bits are those of mixed precision too; a vocabulary may be one that the loss is not over.
            model = {key: value for key, value in of_model(found).items() if key != "vocab_size"}
            reduced = read_config(model)[0].get("dtype") in REDUCED
            found = {key: value for key, value in model.items() if reduced or key == "n_classes"}
        config, wrong = read_config(found) if found else ({}, [])
        settings = {**{key: Setting(value, name) for key, value in config.items()}, **settings}
        notes += (*unread, *wrong)
    return settings, tuple(notes)


# What schedulers, launchers and trackers call the file that says how a job ended; `FAILED` may be empty.
_STATUS = re.compile(
    r"(?:\.|_)?(?:(?:job|run|task|trial|train(?:ing)?)[._-])?(?:status|state|exit[._-]?(?:code|status)|return[._-]?code|rc"
    r"|error|failed|failure|crashed|killed|aborted)(?:\.(?:json|ya?ml|txt))?|wandb-metadata\.json|meta\.yaml",
    re.IGNORECASE,
)
_TOLD = re.compile(
    r"(?:job|run|final)?[ _-]?(?:state|status|phase|exit[ _-]?(?:code|status)|return[ _-]?code|reason|error)",
    re.IGNORECASE,
)
# Of MLflow's RunStatus, those of a run that has ended; a file store writes the number.
STATUSES = {"3": "FINISHED", "4": "FAILED", "5": "KILLED"}
INSIDE = ("files", "output")  # where W&B and SageMaker put it


def status_in(folder: Path) -> tuple[LogLine, ...]:
    """Return what files in the folder of a run say of how it ended, besides its logs."""
    found = []
    for home in (folder, *(folder / name for name in INSIDE)):
        with suppress(OSError):
            for name in _statuses(home, home.stat().st_mtime_ns):
                lines = (text[:MAX_LINE] for text in _told(home / name)[-MAX_LINES:])
                told = [f"{text} ({clean(name, 60)})" for text in lines if ending_of(text, last=True)]
                found += [LogLine(0, clean(text, 300), at_end=True) for text in told[-MAX_TOLD:]]
    return tuple(found)


@lru_cache(maxsize=16)
def _statuses(folder: Path, _modified: int) -> tuple[str, ...]:
    """Return the names of such files, but not of links; a folder of many logs is asked once for each of them."""
    return tuple(name for name in entries(folder)[1] if _STATUS.fullmatch(name) and not (folder / name).is_symlink())


def _told(path: Path) -> list[str]:
    """Return what a file of a status says, in lines as a log would have them."""
    with suppress(OSError):
        if path.suffix in (".json", ".yaml", ".yml"):
            values, spelled = settings_file(path)[0], STATUSES if path.name == "meta.yaml" else {}
            return [f"{key}: {spelled.get(str(value), value)}" for key, value in values.items() if _TOLD.fullmatch(key)]
        with path.open("rb") as stream:
            text = stream.read(MAX_STATUS).decode("utf-8", "replace").strip()
        if not text:
            return [f"status: {path.stem}"]
        return [f"exit code: {text}"] if text.removeprefix("-").isdigit() else text.splitlines()
    return []


def settings_file(path: Path) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the settings in a file, `{value: ...}` of W&B and SwanLab unwrapped; and a note if it can't be read."""
    try:
        if not path.is_file():
            return {}, ()
        if leads_out(path):
            raise ValueError("it is a link that leads outside the folder")
        if path.stat().st_size > MAX_SETTINGS:
            raise ValueError("larger than 1 MiB")
        text = path.read_text(encoding="utf-8", errors="replace")
        yaml = path.suffix in (".yaml", ".yml")
        content = yaml12.parse(text, path.name).value if yaml else json.loads(text)
        if not isinstance(content, Mapping):
            raise ValueError("it holds no settings")
    except (StabtreeError, OSError, ValueError, RecursionError) as error:
        problem = error.problem if isinstance(error, StabtreeError) else error
        return {}, (f"{clean(path.name)} beside the metrics was not used: {clean(problem, 160)}.",)
    found = {str(key): inner for key, inner in content.items() if key not in ("_wandb", "wandb_version")}
    for key, inner in found.items():
        if isinstance(inner, Mapping) and "value" in inner and set(inner) <= {"value", "desc", "sort"}:
            found[key] = inner["value"]
    return found, ()
