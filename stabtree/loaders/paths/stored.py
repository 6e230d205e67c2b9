"""What is stored of a run: its checkpoints by their names, its files by their hashes, and the lines of its steps."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from functools import cache, lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.files import Input
from stabtree.common.text import clean
from stabtree.frameworks.load import frameworks
from stabtree.loaders.folder import is_folder
from stabtree.loaders.source import open_source
from stabtree.loaders.tables.delimited import find_layout, split

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stabtree.run import FileUse, Run

MAX_NAMED = 100_000
MAX_BESIDE = 10_000  # of a folder that nobody named, fewer entries are read
QUIET_SECONDS = 2.0  # some file systems count whole seconds
_NUMBER = r"[-_=.]?(\d{1,12})(?!\d)"
# global_step500, step_1000.pt, iter_0001000; what single trainers write otherwise is in their files.
_STEP = rf"(?:step|steps|iter|iteration|update){_NUMBER}"
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
MAX_HASHED = 1 << 30  # bytes: a second's work, where reading as much takes half a minute
FORMATS = ("csv", "jsonl", "text", "trainer_state")  # those with a line for each row
MAX_LENGTH = 100_000  # characters of a line that is searched


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
        problem = "holds no name with a step in it, such as checkpoint-500 or step_1000.pt"
        hint = "name the folder that holds them, or the distance between them: --checkpoint-every STEPS"
        raise StabtreeError(problem, where=where, hint=hint)
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
    homes: dict[Path, None] = {}
    for path in map(Path, paths):
        folder = path if is_folder(path) else path.parent
        homes[folder.parent if _FOLDER.fullmatch(folder.name) else folder] = None
    for home in homes:
        for inner in ("", *HOMES, *OUTPUTS):
            names = _saved(os.path.join(home, inner), bare=inner in HOMES)  # noqa: PTH118 - a dozen for each log
            found = (_by_epoch if by_epoch else _in_steps)(names, last_step or 0)
            if found:
                return {step: clean(home / inner / name) for step, name in sorted(found.items())}
    return {}


def _saved(folder: str, *, bare: bool) -> tuple[str, ...]:
    """Return the names in a folder that a trainer would give to checkpoints; mere numbers only where `bare`."""
    try:
        status = os.lstat(folder)
        if stat.S_ISLNK(status.st_mode):
            return ()
        # What is saved within the same tick of the clock would not show in the time of a folder.
        changing = time.time() - status.st_mtime <= QUIET_SECONDS
        return _names(folder, bare, status.st_mtime_ns, time.time_ns() * changing)
    except OSError:
        return ()


@lru_cache(maxsize=64)
def _names(folder: str, bare: bool, _changed: int, _now: int) -> tuple[str, ...]:
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
    names = map(re.escape, chain.from_iterable(one.checkpoint_steps for one in frameworks().values()))
    patterns = [name.replace(r"\{step\}", r"(\d{1,12})").replace(r"\{epoch\}", r"\d+") for name in names]
    return re.compile("|".join([_STEP, *patterns]), re.IGNORECASE)


def _last_number(pattern: re.Pattern[str], name: str) -> int | None:
    numbers = [int(next(filter(None, found.groups()))) for found in pattern.finditer(name)]
    return next(reversed(numbers), None)


def _by_step(names: Iterable[str]) -> dict[int, str]:
    """Return names by the step in each, or by a number that is not said to count epochs."""
    steps = {}
    for name in names:
        step = _last_number(_step(), name)
        if step is None and not _EPOCH.search(name):
            bare = _BARE.fullmatch(name)
            step = _last_number(_EITHER, name)
            if bare:
                step = int(bare[1])
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
    sure = {epoch: name for name in names if (epoch := _last_number(_EPOCH, name)) is not None}
    others = _by_step(name for name in names if not _step().search(name))
    if sure or max(others, default=0) > last_epoch + 1:
        return sure
    return others


def with_inputs(run: Run) -> Run:
    """Return the run with its files, each hashed as it is stored now; one that has them keeps them."""
    if run.inputs:
        return run
    return replace(run, inputs=tuple(hashed(source.path) for source in run.sources))


def hashed(path: str) -> Input:
    """Return a file with its size and hash, or why it has none."""
    file = Path(path)
    try:
        if not file.is_file():
            return Input(path, reason="a folder" if file.is_dir() else "not a file")
        with file.open("rb") as stream:
            if os.fstat(stream.fileno()).st_size > MAX_HASHED:
                return Input(path, reason=f"larger than {MAX_HASHED:,} bytes")
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            return Input(path, stream.tell(), digest)
    except (OSError, ValueError) as error:
        return Input(path, reason=f"can't be read again: {getattr(error, 'strerror', None) or error}")


def with_places(run: Run, steps: Iterable[int]) -> Run:
    """Return the run with the lines in which some of its steps were logged, found by reading the log once more.

    Where a step was logged again after a resume, it is the later line, whose values counted.
    """
    source = next(iter(run.sources), None)
    if source is None or run.by_row or not source.format.startswith(FORMATS):
        return run
    try:
        return replace(run, places=_lines_of(source, {str(step): step for step in steps}))
    except (StabtreeError, OSError, ValueError):  # gone since, or standard input
        return run


def _lines_of(used: FileUse, wanted: dict[str, int]) -> dict[int, int]:
    """Return step -> line number, for the steps that are wanted by their texts."""
    if not wanted:
        return {}
    source = open_source(used.path)
    # After its name: `"step": 12`, `step=12`, `step 12/100`; in a table in its column.
    name = re.escape(used.steps_from)
    steps_in = re.compile(rf"(?<!\w){name}\W{{1,4}}(\d{{1,19}})(?![\d.]{{0,20}}[1-9])", re.IGNORECASE).findall
    if used.format.startswith("csv"):
        layout = find_layout(source.head)
        if layout is None or used.steps_from not in layout.names:
            return {}
        steps_in = partial(_cell, layout.delimiter, layout.names.index(used.steps_from))
    found: dict[int, int] = {}
    number = 0
    for line in source.lines():
        number += 1 + line.count("\n")
        if len(line) <= MAX_LENGTH and any(text in line for text in wanted):
            found.update({wanted[text]: number for text in steps_in(line) if text in wanted})
    return found


def _cell(delimiter: str, column: int, line: str) -> list[str]:
    return [cell.strip(' "').removesuffix(".0") for cell in split(line, delimiter)[column : column + 1]]
