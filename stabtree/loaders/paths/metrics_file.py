"""Which file of a run's folder holds its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.errors import NoLogError, SeveralRunsError, StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.assemble.ranks import RANK_NAME
from stabtree.loaders.folder import SETTINGS, size_of
from stabtree.loaders.formats import picked
from stabtree.loaders.json import manifest
from stabtree.loaders.source import glimpse, open_source

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.loaders.formats import Loader
    from stabtree.metrics.names import Names

# A folder may hold a whole data set: the first lines of this many files are looked at,
MAX_FILES = 10_000
# which tell nearly every log;
GLIMPSE_BYTES = 4096
# of those that they leave open so many are looked at whole,
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


def loader_of(file: Path, names: Names, *, whole: bool = True) -> tuple[Loader | None, bool]:
    """The loader that is sure enough of a file to pick it out of a folder, and whether that is certain.

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
    return (picked(open_source(file), names), True) if whole else (None, False)


def pick_file(folder: Path, names: Names) -> tuple[Path, tuple[str, ...]]:
    """The manifest of a run's folder, else its one metrics file; and notes about what could not be looked at.

    Raises:
        StabtreeError: where there is none, or more than one.
    """
    shown = clean(folder)
    try:
        entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise StabtreeError(f"can't be read: {clean(error.strerror)}", where=shown, hint="check its rights") from None
    files = [entry for entry in entries if _is(entry, "file")]
    for name in manifest.NAMES:
        if folder / name in files:
            return folder / name, ()
    odd = [clean(entry.name, 60) for entry in entries if not _is(entry, "file") and not _is(entry, "dir")]
    candidates, closed, unseen = _logs_among(files, names)
    odd += closed
    notes = (f"Not read in the folder, because they are not readable files: {', '.join(odd[:5])}.",) if odd else ()
    if unseen and candidates:
        raise _several(shown, candidates, unseen)
    kinds = {(file.name.partition(".")[0], *RANK_NAME.findall(file.name)) for file in candidates}
    if len(kinds) == 1:
        # A logger with several outputs writes one run as progress.csv and progress.json.
        others = ", ".join(clean(file.name, 60) for file in candidates[1:])
        same = (f"Not read, because they seem to be the same run in another format: {others}.",) if others else ()
        return candidates[0], (*notes, *same)
    raise _several(shown, candidates, 0) if candidates else _none(shown, files, unseen)


def _logs_among(files: list[Path], names: Names) -> tuple[list[Path], list[str], int]:
    """The files that are logs, the names of those that can't be read, and how many nobody could look at."""
    logs, closed = [], []
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
                closed.append(clean(file.name, 60))
            continue
        logs += [file] if loader else []
        unseen += not sure
    return logs, closed, unseen


def _is(entry: Path, kind: str) -> bool:
    """Whether this is a file, or a folder; a link in a loop and what may not be looked at is neither."""
    try:
        return entry.is_file() if kind == "file" else entry.is_dir()
    except OSError:
        return False


def is_hollow(file: Path) -> bool:
    """Whether a file holds nothing on any disk: it is empty, or the system makes it up, as below `/proc`.

    Reading one of the latter may wait forever.
    """
    try:
        return file.stat().st_size == 0
    except OSError:
        return False


def _several(shown: str, candidates: list[Path], unseen: int) -> StabtreeError:
    names = ", ".join(clean(file.name, 60) for file in candidates[:SHOWN])
    more = f" and {len(candidates) - SHOWN} more" if len(candidates) > SHOWN else ""
    return SeveralRunsError(
        f"holds several files that may be metrics: {names}{more}",
        where=shown,
        hint=f"name the one you mean, such as {clean(candidates[0])}",
        files=tuple(str(file) for file in candidates[:MAX_JUDGED]),
        unseen=unseen + max(len(candidates) - MAX_JUDGED, 0),
    )


def _none(shown: str, files: list[Path], unseen: int) -> StabtreeError:
    rest = f"; {unseen:,} more were not looked at" if unseen else ""
    there = ", ".join(clean(file.name, 60) for file in files[:SHOWN]) or "nothing"
    return NoLogError(
        f"holds no file that stabtree can read, only {there}{rest}" if files else "holds no files",
        where=shown,
        hint="name the file that the trainer wrote its metrics to",
    )
