"""The checkpoints of a run, from what their files and folders are called; none of them is opened."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MOST = 100_000
# A folder in which someone only looks: what lies further on is left.
MOST_BESIDE = 10_000
_NUMBER = r"[-_=.]?(\d{1,12})(?!\d)"
# global_step500, step_1000.pt, iter_0001000, rl_model_2000_steps.zip; fairseq's checkpoint_2_500.pt has both.
_STEP = re.compile(
    rf"(?:step|steps|iter|iteration|update){_NUMBER}|_(\d{{1,12}})_steps|checkpoint_\d+_(\d+)\.", re.IGNORECASE
)
_EPOCH = re.compile(rf"(?:epoch|epochs){_NUMBER}", re.IGNORECASE)
# checkpoint-500, ckpt1000.pth, 1000: in what a log counts, steps or epochs.
_EITHER = re.compile(rf"(?:checkpoint|ckpt|chkpt|model|state|weights|snapshot){_NUMBER}", re.IGNORECASE)
_BARE = re.compile(r"(\d{1,12})(?:\.(?:pt|pth|ckpt|bin|safetensors))?")
# Pieces of a checkpoint, and what lies beside the weights in one.
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
    """The checkpoints in a folder that a user named, as their paths by step.

    Raises:
        StabtreeError: where it is no folder, or no name in it tells a step.
    """
    shown = clean(folder)
    try:
        found = dict(_by_step(name for name, _ in _listed(folder, MOST)))
    except OSError as error:
        raise StabtreeError(
            f"can't be read: {clean(error.strerror)}",
            where=f"--checkpoints {shown}",
            hint="name the folder they lie in",
        ) from None
    if not found:
        raise StabtreeError(
            "holds no name with a step in it, such as checkpoint-500 or step_1000.pt",
            where=f"--checkpoints {shown}",
            hint="name the folder they lie in, or the distance between them: --checkpoint-every STEPS",
        )
    return {step: clean(folder / name) for step, name in sorted(found.items())}


def checkpoints_beside(places: Iterable[str], *, by_epoch: bool, last_step: int | None) -> Mapping[int, str]:
    """The checkpoints that lie with a run's log, as their paths by step, or by epoch where the log counts epochs.

    Looked at are the folders that were read or that hold what was read, and folders in them that are called as trainers
    call the homes of checkpoints. Links are not followed, and only names are read.

    Args:
        places: files and folders, the nearest to the log first.
        by_epoch: whether the log counts epochs.
        last_step: the last step, or epoch, of the log.
    """
    for home in dict.fromkeys(_home(Path(place)) for place in places):
        for folder in (home, *(home / name for name in (*HOMES, *OUTPUTS))):
            names = _saved(folder, bare=folder != home and folder.name in HOMES)
            found = _by_epoch(names, last_step) if by_epoch else _in_steps(names, last_step)
            if found:
                return {step: clean(folder / name) for step, name in sorted(found.items())}
    return {}


def _home(place: Path) -> Path:
    """The folder of a place; of what lies in a checkpoint the folder that this one lies in."""
    try:
        folder = place if place.is_dir() else place.parent
    except OSError:
        folder = place.parent
    return folder.parent if folder.name and _SAVED_FOLDER.fullmatch(folder.name) else folder


def _listed(folder: Path, most: int) -> Iterator[tuple[str, bool]]:
    """The names in a folder, and whether each is a folder itself and no link."""
    with os.scandir(folder) as listing:
        for place, entry in enumerate(listing):
            yield entry.name, entry.is_dir(follow_symlinks=False)
            if place >= most:
                break


def _saved(folder: Path, *, bare: bool) -> list[str]:
    """The names in a folder that a trainer would give to checkpoints; mere numbers only where `bare`."""
    names = []
    try:
        if folder.is_symlink():
            return []
        for name, inner in _listed(folder, MOST_BESIDE):
            known = _SAVED_FOLDER.fullmatch(name) if inner else _WEIGHTS.search(name) and not _PIECE.search(name)
            if known or (bare and _BARE.fullmatch(name)):
                names.append(name)
    except OSError:
        return []
    return names


def _found(pattern: re.Pattern[str], name: str) -> int | None:
    numbers = [int(next(filter(None, found.groups()))) for found in pattern.finditer(name)]
    return numbers[-1] if numbers else None


def _either(name: str) -> int | None:
    bare = _BARE.fullmatch(name)
    return int(bare[1]) if bare else _found(_EITHER, name)


def _by_step(names: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The names that tell a step, or a number of which nothing says that it counts epochs."""
    for name in names:
        step = _found(_STEP, name)
        step = _either(name) if step is None and not _EPOCH.search(name) else step
        if step is not None:
            yield step, name


def _in_steps(names: list[str], last_step: int | None) -> dict[int, str]:
    """By step; nothing where the numbers count up by one in a log of many steps: then they count epochs."""
    found = dict(_by_step(names))
    numbers = sorted(found)
    sure = any(_STEP.search(name) for name in found.values())
    one_by_one = numbers and numbers[-1] - numbers[0] == len(numbers) - 1
    return {} if one_by_one and not sure and (last_step or 0) > FAR * numbers[-1] else found


def _by_epoch(names: list[str], last_epoch: int | None) -> dict[int, str]:
    """By epoch; numbers of which nothing says what they count do where none lies beyond the log."""
    sure = {epoch: name for name in names if (epoch := _found(_EPOCH, name)) is not None}
    others = {number: name for number, name in _by_step(names) if not _STEP.search(name)}
    return sure or (others if max(others, default=0) <= (last_epoch or 0) + 1 else {})
