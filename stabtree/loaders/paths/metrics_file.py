"""Which file of a run's folder holds its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.errors import NoLogError, NoRowsError, SeveralRunsError, StabtreeError
from stabtree.common.text import clean, first_few
from stabtree.loaders.assemble.ranks import RANK_NAME
from stabtree.loaders.folder import SETTINGS, is_file, is_folder, size_of
from stabtree.loaders.formats import choose, picked
from stabtree.loaders.json import manifest
from stabtree.loaders.source import NAME_METRICS, glimpse, open_source

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.loaders.formats import Loader
    from stabtree.metrics.names import Names

# A folder may hold a whole data set: the first lines of this many files are looked at,
MAX_FILES = 10_000
# which is enough for nearly every log;
GLIMPSE_BYTES = 4096
# where it is not, so many are looked at whole,
MAX_WHOLE = 100
# and so many runs are judged at once, which takes some seconds.
MAX_JUDGED = 500
SHOWN = 8
# Settings, final values and messages, which trainers and loggers write beside the metrics.
OTHERS = frozenset(
    (
        *SETTINGS,
        "config.json",
        "all_results.json",
        "train_results.json",
        "eval_results.json",
        "wandb-summary.json",
        "wandb-metadata.json",
        "debug-internal.log",
        "generation_config.json",
        "adapter_config.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
    )
)


class _Logs(NamedTuple):
    """The files of a folder that were looked at.

    Attributes:
        logs: those that hold metrics.
        unreadable: the names of those that can't be read.
        unseen: how many were not looked at, or not far enough to tell.
    """

    logs: list[Path]
    unreadable: list[str]
    unseen: int


def loader_of(file: Path, names: Names, *, whole: bool = True) -> tuple[Loader | None, bool]:
    """Return the loader that is sure enough of a file to pick it out of a folder, and whether that is certain.

    Args:
        file: the file.
        names: what its columns mean.
        whole: whether to look at all of it where its first lines leave it open.

    Raises:
        StabtreeError: where it can't be read.
    """
    first = glimpse(file, GLIMPSE_BYTES)
    loader = picked(first, names)
    if loader or size_of(file) <= GLIMPSE_BYTES or (first.binary and not first.packed):
        return loader, True
    if whole:
        return (picked(open_source(file), names), True)
    return (None, False)


def pick_file(folder: Path, names: Names) -> tuple[Path, tuple[str, ...]]:
    """Return the manifest of a run's folder, else its one metrics file; and notes about what could not be read.

    Raises:
        StabtreeError: where there is none, or more than one.
    """
    shown = clean(folder)
    entries = _entries(folder)
    files = [entry for entry in entries if is_file(entry)]
    for name in manifest.NAMES:
        if folder / name in files:
            return folder / name, ()
    found = _find_logs(files, names)
    if not found.logs:
        raise _header_alone(files, names) or _no_log(shown, files, found.unseen)
    kinds = {(file.name.partition(".")[0], *RANK_NAME.findall(file.name)) for file in found.logs}
    if found.unseen or len(kinds) > 1:
        raise _several(shown, found.logs, found.unseen)
    return found.logs[0], _not_read([*_special(entries), *found.unreadable], found.logs[1:])


def _entries(folder: Path) -> list[Path]:
    """Return what is in a folder and not hidden, by name.

    Raises:
        StabtreeError: where it can't be read.
    """
    try:
        return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        problem = f"can't be read: {clean(error.strerror)}"
        raise StabtreeError(problem, where=clean(folder), hint="check its rights") from None


def _special(entries: list[Path]) -> list[str]:
    """Return the names of what is neither a file nor a folder."""
    return [clean(entry.name, 60) for entry in entries if not is_file(entry) and not is_folder(entry)]


def _not_read(unreadable: list[str], same: list[Path]) -> tuple[str, ...]:
    notes = []
    if unreadable:
        notes.append(f"Not read in the folder, because they are not readable files: {', '.join(unreadable[:5])}.")
    if same:  # a logger with several outputs writes one run as progress.csv and progress.json
        others = ", ".join(clean(file.name, 60) for file in same)
        notes.append(f"Not read, because they seem to be the same run in another format: {others}.")
    return tuple(notes)


def _find_logs(files: list[Path], names: Names) -> _Logs:
    logs, unreadable = [], []
    wholes = 0
    unseen = max(len(files) - MAX_FILES, 0)
    for file in files[:MAX_FILES]:
        if file.name in OTHERS or is_hollow(file):
            continue
        try:
            loader, sure = loader_of(file, names, whole=False)
            if not sure and wholes < MAX_WHOLE:
                wholes += 1
                loader, sure = loader_of(file, names)
        except StabtreeError as error:
            if "can't be read" in error.problem:
                unreadable.append(clean(file.name, 60))
            continue
        if loader:
            logs.append(file)
        unseen += not sure
    return _Logs(logs, unreadable, unseen)


def is_hollow(file: Path) -> bool:
    """Whether a file holds nothing on any disk: it is empty, or the system makes it up, as below `/proc`.

    Reading one of the latter may wait forever.
    """
    try:
        return file.stat().st_size == 0
    except OSError:
        return False


def _several(shown: str, logs: list[Path], unseen: int) -> StabtreeError:
    return SeveralRunsError(
        f"holds several files that may be metrics: {first_few([file.name for file in logs], SHOWN)}",
        where=shown,
        hint=f"name the one you mean, such as {clean(logs[0])}",
        files=tuple(str(file) for file in logs[:MAX_JUDGED]),
        unseen=unseen + max(len(logs) - MAX_JUDGED, 0),
    )


def _header_alone(files: list[Path], names: Names) -> StabtreeError | None:
    """Return the error of the first log among files that has a header and no rows."""
    for file in files[:MAX_WHOLE]:
        if file.name in OTHERS or not 0 < size_of(file) <= GLIMPSE_BYTES:
            continue
        try:
            source = glimpse(file, GLIMPSE_BYTES)
            choose(source, names).read(source, names)
        except NoRowsError as error:
            return NoLogError(error.problem, where=error.where, hint=error.hint)
        except StabtreeError:
            continue
    return None


def _no_log(shown: str, files: list[Path], unseen: int) -> StabtreeError:
    if not files:
        return NoLogError("holds no files", where=shown, hint=NAME_METRICS)
    problem = "holds no file that stabtree can read, only " + ", ".join(clean(file.name, 60) for file in files[:SHOWN])
    if unseen:
        problem += f"; {unseen:,} more were not looked at"
    return NoLogError(problem, where=shown, hint=NAME_METRICS)
