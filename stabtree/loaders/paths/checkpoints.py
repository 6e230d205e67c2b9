"""The checkpoints of a run, from the names of their files and folders; none of them is opened."""

from __future__ import annotations

import os
import re
import stat
import time
from functools import cache, lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.frameworks.load import frameworks
from stabtree.loaders.folder import is_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MAX_NAMED = 100_000
# Of a folder that nobody named, fewer entries are read.
MAX_BESIDE = 10_000
QUIET_SECONDS = 2.0  # no limit: some file systems count whole seconds
_NUMBER = r"[-_=.]?(\d{1,12})(?!\d)"
# global_step500, step_1000.pt, iter_0001000; what single trainers write otherwise is in their files.
_STEP = rf"(?:step|steps|iter|iteration|update){_NUMBER}"
_FIELDS = {r"\{step\}": r"(\d{1,12})", r"\{epoch\}": r"\d+"}
_EPOCH = re.compile(rf"(?:epoch|epochs){_NUMBER}", re.IGNORECASE)
# checkpoint-500, ckpt1000.pth, 1000: in what a log counts, steps or epochs.
_EITHER = re.compile(rf"(?:checkpoint|ckpt|chkpt|model|state|weights|snapshot){_NUMBER}", re.IGNORECASE)
_BARE = re.compile(r"(\d{1,12})(?:\.(?:pt|pth|ckpt|bin|safetensors))?")
# Pieces of a checkpoint, and what is saved beside the weights in one.
_PIECE = re.compile(
    r"-of-\d|rng_state|random_state|optim|schedul|scaler|sampler|rank|log|\.tfevents|metric", re.IGNORECASE
)
_WEIGHTS = re.compile(
    r"\.(?:pt|pth|pth\.tar|pt\.tar|tar|ckpt|bin|safetensors|zip|pkl|npz|msgpack|h5|hdf5|keras|pdparams|nemo)",
    re.IGNORECASE,
)
_SAVED_FOLDER = re.compile(
    r"(?:(?:tmp-)?checkpoint|ckpt|global_?step|iter|iteration|step|update|epoch)[-_=.]?\d.*(?<!_log)", re.IGNORECASE
)
# Where trainers put checkpoints, beside or below the log.
HOMES = ("checkpoints", "checkpoint", "ckpts", "ckpt", "weights", "models", "saved_models", "save", "saves")
OUTPUTS = ("out", "output", "outputs", "results")
# A log of steps that is so many times as long as the highest number of a checkpoint has checkpoints by epoch.
FAR = 10


def named_checkpoints(folder: Path) -> Mapping[int, str]:
    """Return the checkpoints in a folder that a user named, as their paths by step.

    Raises:
        StabtreeError: where it is no folder, or no name in it holds a step.
    """
    shown = clean(folder)
    try:
        found = _by_step(name for name, _ in _listed(folder, MAX_NAMED))
    except OSError as error:
        raise StabtreeError(
            f"can't be read: {clean(error.strerror)}",
            where=f"--checkpoints {shown}",
            hint="name the folder that holds them",
        ) from None
    if not found:
        raise StabtreeError(
            "holds no name with a step in it, such as checkpoint-500 or step_1000.pt",
            where=f"--checkpoints {shown}",
            hint="name the folder that holds them, or the distance between them: --checkpoint-every STEPS",
        )
    return {step: clean(folder / name) for step, name in sorted(found.items())}


def checkpoints_beside(paths: Iterable[str], *, by_epoch: bool, last_step: int | None) -> Mapping[int, str]:
    """Return the checkpoints that are stored with a run's log, as their paths by step, or by epoch if that is logged.

    Searched are the folders that were read or that hold what was read, and folders in them with a name that trainers
    use for checkpoints. Links are not followed, and only names are read.

    Args:
        paths: files and folders, the nearest to the log first.
        by_epoch: whether the log counts epochs.
        last_step: the last step, or epoch, of the log.
    """
    number = _by_epoch if by_epoch else _in_steps
    for home in dict.fromkeys(_home(Path(path)) for path in paths):
        for inner in ("", *HOMES, *OUTPUTS):
            names = _saved(os.path.join(home, inner), bare=inner in HOMES)  # noqa: PTH118 - a dozen for each log
            found = number(names, last_step) if names else {}
            if found:
                return {step: clean(home / inner / name) for step, name in sorted(found.items())}
    return {}


def _home(path: Path) -> Path:
    """Return the folder of a path; of a path in a checkpoint the folder that holds the checkpoint."""
    folder = path if is_folder(path) else path.parent
    if folder.name and _SAVED_FOLDER.fullmatch(folder.name):
        return folder.parent
    return folder


def _listed(folder: Path, count: int) -> Iterator[tuple[str, bool]]:
    """Yield the first names in a folder, and whether each is a folder itself and no link."""
    with os.scandir(folder) as listing:
        for entry in islice(listing, count + 1):
            yield entry.name, entry.is_dir(follow_symlinks=False)


def _saved(folder: str, *, bare: bool) -> list[str]:
    """Return the names in a folder that a trainer would give to checkpoints; mere numbers only where `bare`."""
    try:
        status = os.lstat(folder)
        if stat.S_ISLNK(status.st_mode):
            return []
        # What is saved within the same tick of the clock would not show in the time of a folder.
        if time.time() - status.st_mtime < QUIET_SECONDS:
            return _names_of_checkpoints(folder, bare)
        return _once(folder, bare, status.st_mtime_ns)
    except OSError:
        return []


@lru_cache(maxsize=64)
def _once(folder: str, bare: bool, _changed_ns: int) -> list[str]:
    """List a folder once for all logs in it: there may be a hundred thousand."""
    return _names_of_checkpoints(folder, bare)


def _names_of_checkpoints(folder: str, bare: bool) -> list[str]:
    names = []
    for name, inner in _listed(Path(folder), MAX_BESIDE):
        known = _SAVED_FOLDER.fullmatch(name) if inner else _WEIGHTS.search(name) and not _PIECE.search(name)
        if known or (bare and _BARE.fullmatch(name)):
            names.append(name)
    return names


@cache
def _step() -> re.Pattern[str]:
    """Return what finds the step in the name of a checkpoint, by any trainer."""
    patterns = [_STEP]
    for name in chain.from_iterable(one.checkpoint_steps for one in frameworks().values()):
        pattern = re.escape(name)
        for field, digits in _FIELDS.items():
            pattern = pattern.replace(field, digits)
        patterns.append(pattern)
    return re.compile("|".join(patterns), re.IGNORECASE)


def _last_number(pattern: re.Pattern[str], name: str) -> int | None:
    numbers = [int(next(filter(None, found.groups()))) for found in pattern.finditer(name)]
    return numbers[-1] if numbers else None


def _step_of(name: str) -> int | None:
    """Return the step in a name, or a number that is not said to count epochs."""
    step = _last_number(_step(), name)
    if step is not None or _EPOCH.search(name):
        return step
    bare = _BARE.fullmatch(name)
    if bare:
        return int(bare[1])
    return _last_number(_EITHER, name)


def _by_step(names: Iterable[str]) -> dict[int, str]:
    steps = ((_step_of(name), name) for name in names)
    return {step: name for step, name in steps if step is not None}


def _in_steps(names: list[str], last_step: int | None) -> dict[int, str]:
    """Return names by step; none where the numbers count up by one in a log of many steps: then they count epochs."""
    found = _by_step(names)
    numbers = sorted(found)
    sure = any(_step().search(name) for name in found.values())
    one_by_one = numbers and numbers[-1] - numbers[0] == len(numbers) - 1
    if one_by_one and not sure and (last_step or 0) > FAR * numbers[-1]:
        return {}
    return found


def _by_epoch(names: list[str], last_epoch: int | None) -> dict[int, str]:
    """Return names by epoch; by numbers that may count anything only where none is beyond the end of the log."""
    epochs = ((_last_number(_EPOCH, name), name) for name in names)
    sure = {epoch: name for epoch, name in epochs if epoch is not None}
    if sure:
        return sure
    others = _by_step(name for name in names if not _step().search(name))
    if max(others, default=0) <= (last_epoch or 0) + 1:
        return others
    return {}
