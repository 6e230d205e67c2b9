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
    from collections.abc import Iterable, Mapping

MAX_NAMED = 100_000
MAX_BESIDE = 10_000  # of a folder that nobody named, fewer entries are read
QUIET_SECONDS = 2.0  # some file systems count whole seconds
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
_FOLDER = re.compile(
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
    where = f"--checkpoints {clean(folder)}"
    try:
        with os.scandir(folder) as entries:
            found = _by_step(entry.name for entry in islice(entries, MAX_NAMED))
    except OSError as error:
        problem = f"can't be read: {clean(error.strerror)}"
        raise StabtreeError(problem, where=where, hint="name the folder that holds them") from None
    if not found:
        raise StabtreeError(
            "holds no name with a step in it, such as checkpoint-500 or step_1000.pt",
            where=where,
            hint="name the folder that holds them, or the distance between them: --checkpoint-every STEPS",
        )
    return _sorted(folder, found)


def checkpoints_beside(paths: Iterable[str], *, by_epoch: bool, last_step: int | None) -> Mapping[int, str]:
    """Return the checkpoints that are stored with a run's log, as their paths by step, or by epoch if that is logged.

    Searched are the folders that were read or that hold what was read, and folders in them with a name that trainers
    use for checkpoints. Links are not followed, and only names are read.

    Args:
        paths: files and folders, the nearest to the log first.
        by_epoch: whether the log counts epochs.
        last_step: the last step, or epoch, of the log.
    """
    for home in dict.fromkeys(_home(Path(path)) for path in paths):
        for inner in ("", *HOMES, *OUTPUTS):
            folder = os.path.join(home, inner)  # noqa: PTH118 - a dozen for each log
            names = _saved(folder, bare=inner in HOMES)
            found = _by_epoch(names, last_step or 0) if by_epoch else _in_steps(names, last_step or 0)
            if found:
                return _sorted(home / inner, found)
    return {}


def _sorted(folder: Path, found: Mapping[int, str]) -> dict[int, str]:
    return {step: clean(folder / name) for step, name in sorted(found.items())}


def _home(path: Path) -> Path:
    """Return the folder of a path; of a path in a checkpoint the folder that holds the checkpoint."""
    folder = path if is_folder(path) else path.parent
    return folder.parent if folder.name and _FOLDER.fullmatch(folder.name) else folder


def _saved(folder: str, *, bare: bool) -> tuple[str, ...]:
    """Return the names in a folder that a trainer would give to checkpoints; mere numbers only where `bare`."""
    try:
        status = os.lstat(folder)
        # What is saved within the same tick of the clock would not show in the time of a folder.
        quiet = time.time() - status.st_mtime > QUIET_SECONDS
        state = status.st_mtime_ns if quiet else time.time_ns()
        return () if stat.S_ISLNK(status.st_mode) else _names(folder, bare, state)
    except OSError:
        return ()


@lru_cache(maxsize=64)
def _names(folder: str, bare: bool, _state: int) -> tuple[str, ...]:
    """List a folder once for all logs in it, of which there may be a hundred thousand."""
    names = []
    with os.scandir(folder) as entries:
        for entry in islice(entries, MAX_BESIDE):
            weights = _WEIGHTS.search(entry.name) and not _PIECE.search(entry.name)
            saved = _FOLDER.fullmatch(entry.name) if entry.is_dir(follow_symlinks=False) else weights
            if saved or (bare and _BARE.fullmatch(entry.name)):
                names.append(entry.name)
    return tuple(names)


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


def _by_step(names: Iterable[str]) -> dict[int, str]:
    """Return names by the step in each, or by a number that is not said to count epochs."""
    steps = {}
    for name in names:
        step = _last_number(_step(), name)
        if step is None and not _EPOCH.search(name):
            bare = _BARE.fullmatch(name)
            step = int(bare[1]) if bare else _last_number(_EITHER, name)
        if step is not None:
            steps[step] = name
    return steps


def _in_steps(names: Iterable[str], last_step: int) -> dict[int, str]:
    """Return names by step; none where the numbers count up by one in a log of many steps: then they count epochs."""
    found = _by_step(names)
    numbers = sorted(found)
    one_by_one = numbers and numbers[-1] - numbers[0] == len(numbers) - 1
    if one_by_one and last_step > FAR * numbers[-1] and not any(_step().search(name) for name in found.values()):
        return {}
    return found


def _by_epoch(names: Iterable[str], last_epoch: int) -> dict[int, str]:
    """Return names by epoch; by numbers that may count anything only where none is beyond the end of the log."""
    epochs = ((_last_number(_EPOCH, name), name) for name in names)
    sure = {epoch: name for epoch, name in epochs if epoch is not None}
    others = _by_step(name for name in names if not _step().search(name))
    return sure or (others if max(others, default=0) <= last_epoch + 1 else {})
