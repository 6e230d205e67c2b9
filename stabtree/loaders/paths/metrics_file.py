"""Which file of a run's folder holds its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.errors import NoLogError, SeveralRunsError, StabtreeError
from stabtree.loaders.folder import SETTINGS
from stabtree.loaders.json import manifest
from stabtree.loaders.source import Source, open_source
from stabtree.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# A folder may hold a whole data set; this many files of it are looked at.
MAX_FILES = 500
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


def pick_file(folder: Path, known: Callable[[Source], bool]) -> tuple[Path, tuple[str, ...]]:
    """The manifest of a run's folder, else its one metrics file; and notes about what could not be looked at.

    Args:
        folder: where to look.
        known: whether some loader is sure enough of a source.

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
    candidates = []
    for file in files[:MAX_FILES]:
        try:
            if file.name not in OTHERS and not is_hollow(file) and known(open_source(file)):
                candidates.append(file)
        except StabtreeError as error:
            if "can't be read" in error.problem:
                odd.append(clean(file.name, 60))
    notes = (f"Not looked at in the folder, being no files that can be read: {', '.join(odd[:5])}.",) if odd else ()
    if len({file.name.partition(".")[0] for file in candidates}) == 1:
        # A logger with several outputs writes one run as progress.csv and progress.json.
        others = ", ".join(clean(file.name, 60) for file in candidates[1:])
        same = (f"Taken for the same run in another format, and not read: {others}.",) if others else ()
        return candidates[0], (*notes, *same)
    raise _several(shown, candidates, len(files) - MAX_FILES) if candidates else _none(shown, files)


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
        files=tuple(str(file) for file in candidates),
        unseen=max(unseen, 0),
    )


def _none(shown: str, files: list[Path]) -> StabtreeError:
    there = ", ".join(clean(file.name, 60) for file in files[:SHOWN]) or "nothing"
    return NoLogError(
        f"holds no file that stabtree can read, only {there}" if files else "holds no files",
        where=shown,
        hint="name the file that the trainer wrote its metrics to",
    )
