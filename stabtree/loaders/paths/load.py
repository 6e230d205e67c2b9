"""`load_run` and `load_runs`: from what a user names to runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import NoLogError, SeveralRunsError, StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.formats import LOADERS, Loader
from stabtree.loaders.paths.options import LoadOptions
from stabtree.loaders.paths.run import read_run, values_run
from stabtree.loaders.paths.several import (
    RunLog,
    deduplicated,
    expanded,
    files_of,
    find_duplicates,
    folders_in,
    group_into_runs,
)
from stabtree.run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.loaders.paths.read import Found

__all__ = ["LOADERS", "Loaded", "Loader", "check_options", "load_run", "load_runs"]

MAX_PARTS = 256  # files of a folder that are read, to see whether they are one run: ranks of one, or parts


@dataclass(frozen=True, slots=True)
class Loaded:
    """One of the runs that paths hold.

    Attributes:
        name: where it is from: its path, and its name where the path holds several.
        run: the run, or what is wrong with its log.
        path: the path alone.
    """

    name: str
    run: Run | StabtreeError
    path: str = ""


def load_run(
    *paths: Any,
    dtype: str | None = None,
    checkpoint_every: int | None = None,
    columns: Mapping[str, str] = MappingProxyType({}),
    step_column: str | None = None,
    format: str | None = None,  # noqa: A002
    run: str | None = None,
    checkpoints: str | Path | None = None,
    ranks: bool = False,
    rerun: Any = None,
) -> Run:
    """Read a run from the files that its trainer wrote, or from values in memory.

    Args:
        paths: a metrics file, a manifest, or the folder of a run; `-` reads standard input. Several files must
            be the ranks of one run, or its parts. Or one DataFrame, mapping of column to values, or list of records.
        dtype: the precision of the run (`fp32`, `fp16`, `bf16`, `fp8`), whatever a manifest says.
        checkpoint_every: steps between two checkpoints, whatever a manifest says.
        columns: metric -> column, for columns whose names are not known: `{"loss": "train/nll"}`.
        step_column: the column that holds the steps.
        format: the name of a loader, where sniffing the content errs.
        run: which run, where a file or folder holds several.
        checkpoints: the folder of the run's checkpoints; their steps are read from their names.
        ranks: whether several paths are the ranks or parts of one run; if not said, that must be proved.
        rerun: another run of the same training, for the questions that compare the two; read with the same options.

    Returns:
        The run. All that was skipped, assumed or changed is in its `notes` and `sources`.

    Raises:
        StabtreeError: where a file can't be read as metrics, or an argument is wrong.
    """
    options = LoadOptions(dtype, checkpoint_every, columns, step_column, format, run, checkpoints)
    found = _load(paths, options, ranks=ranks)
    return found if rerun is None else replace(found, rerun=_load_one(rerun, options))


def load_runs(*paths: str | Path, ranks: bool = False, inner: bool = True, **options: Any) -> tuple[Loaded, ...]:
    """Read every run that paths hold: of files, patterns, folders of runs, and files with several runs.

    Several logs are one run only where that is proved (a rank in their names, a gradient norm that was reduced over all
    of them, stretches of steps that follow each other) or said.

    Args:
        paths: metrics files, manifests, folders, patterns; `-` reads standard input.
        ranks: whether all paths are the ranks of one run.
        inner: whether to look into the folders of one that holds no log.
        options: as of `load_run`.

    Returns:
        The runs in the order of the paths; a log that can't be read is listed with its error.

    Raises:
        StabtreeError: where an argument is wrong, whatever the log.
    """
    how = LoadOptions(**options)
    if ranks:
        return (Loaded(clean(paths[0]), read_run(paths, how, {}), str(paths[0])),)
    return _load_all(paths, how, inner=inner)


def check_options(**options: Any) -> None:
    """Refuse options of `load_run` that are wrong whatever the log.

    Raises:
        StabtreeError: for the first of them.
    """
    options.pop("ranks", None)
    replace(LoadOptions(**options), checkpoints=None).check()


def _load(given: Sequence[Any], options: LoadOptions, *, ranks: bool) -> Run:
    if not given:
        raise StabtreeError("no file to read", hint="name a metrics file, a manifest or the folder of a run")
    if len(given) == 1:
        return _load_one(given[0], options)
    return read_run(given, options, {}) if ranks else _only_run(_load_all(given, options))


def _load_one(given: Any, options: LoadOptions) -> Run:
    """Read the run of one path, or of values in memory.

    Raises:
        StabtreeError: where it can't be read, or holds several logs that are not proved to be one run.
    """
    if not isinstance(given, str | Path):
        return values_run(given, options)
    found = _read(given, options, {})
    if isinstance(found, NoLogError):
        folders, unseen = folders_in(Path(given))
        if len(folders) == 1 and not unseen:
            return _load_one(folders[0], options)
    if isinstance(found, SeveralRunsError) and not found.unseen and 1 < len(found.files) <= MAX_PARTS:
        runs = _load_all([given], options)
        if len(runs) == 1 and isinstance(runs[0].run, Run):
            return runs[0].run
    if isinstance(found, StabtreeError):
        raise found
    return found


def _only_run(loaded: tuple[Loaded, ...]) -> Run:
    """Return the one run that was loaded, or raise its error, or one that says that there are several."""
    if len(loaded) > 1:
        shown = ", ".join(item.name for item in loaded[:4])
        problem = f"these are {len(loaded)} runs: {shown}{', ...' if len(loaded) > 4 else ''}"
        raise SeveralRunsError(problem, hint="name one of them; say --ranks where they are ranks of one run")
    if isinstance(loaded[0].run, StabtreeError):
        raise loaded[0].run
    return loaded[0].run


def _load_all(paths: Sequence[str | Path], options: LoadOptions, *, inner: bool = True) -> tuple[Loaded, ...]:
    """Read every run that paths hold, one after the other; then put together what is proved to be one run."""
    cache: dict[str, Found] = {}
    found: list[Loaded] = []
    for path in deduplicated(list(chain.from_iterable(expanded(str(path)) for path in paths))):
        found += _read_all(str(path), options, cache, inner=inner)
    found = _merge_duplicates(_without_repeated(found))
    return tuple(replace(item, name=clean(item.name)) for item in _join_groups(found, options, cache))


def _read(path: str | Path, options: LoadOptions, cache: dict[str, Found]) -> Run | StabtreeError:
    """Read the one run of a path, or return what is wrong with it."""
    try:
        return read_run([path], options, cache)
    except StabtreeError as error:
        return error


def _read_all(path: str, options: LoadOptions, cache: dict[str, Found], *, inner: bool = True) -> list[Loaded]:
    """Read all runs of one path, each under a name of its own."""
    found = _read(path, options, cache)
    if isinstance(found, SeveralRunsError) and found.files:
        runs = chain.from_iterable(_read_all(file, options, cache) for file in found.files)
        return [*runs, *_not_read(path, found.unseen)]
    if isinstance(found, SeveralRunsError) and found.names:
        return _read_named(path, found.names, options, cache)
    if isinstance(found, NoLogError) and inner:
        return _read_below(path, options, cache) or [Loaded(path, found, path)]
    return [Loaded(path, found, path)]


def _read_named(path: str, names: Sequence[str], options: LoadOptions, cache: dict[str, Found]) -> list[Loaded]:
    """Read the runs of a file of several, by their names."""
    named = [replace(options, run=name) for name in names]
    return [Loaded(f"{path} {one.run}", _read(path, one, cache), path) for one in named]


def _read_below(path: str, options: LoadOptions, cache: dict[str, Found]) -> list[Loaded]:
    """Read the runs in the folders of one that holds no log itself."""
    folders, unseen = folders_in(Path(path))
    runs = chain.from_iterable(_read_all(str(folder), options, cache) for folder in folders)
    logs = [item for item in runs if not isinstance(item.run, NoLogError)]
    return [*logs, *_not_read(path, unseen)]


def _not_read(path: str, count: int) -> list[Loaded]:
    """Return one error for all files of a folder that were not looked at."""
    if not count:
        return []
    problem = f"holds {count:,} more, which were not read"
    error = StabtreeError(problem, where=clean(path), hint="name them by a pattern, some at a time")
    return [Loaded(f"{path} (the rest)", error, path)]


def _without_repeated(found: Sequence[Loaded]) -> list[Loaded]:
    """Drop runs whose files were read before, as where a file is named together with its folder."""
    seen: set[tuple[frozenset[str], str]] = set()
    kept = []
    for item in found:
        if isinstance(item.run, Run):
            key = files_of(item.run), item.name.removeprefix(item.path)
            if key in seen:
                continue
            seen.add(key)
        kept.append(item)
    return kept


def _whole_logs(found: Sequence[Loaded]) -> dict[int, RunLog]:
    """Return, by index, the logs that hold one run each: a run in a file of several is complete as it is."""
    return {
        index: RunLog(item.path, item.run)
        for index, item in enumerate(found)
        if item.path == item.name and isinstance(item.run, Run)
    }


def _merge_duplicates(found: Sequence[Loaded]) -> list[Loaded]:
    """Drop logs of which another one holds everything; of what they hold, it keeps their error lines."""
    logs = _whole_logs(found)
    duplicates = find_duplicates(logs)
    merged = dict(enumerate(found))
    for poorer, richer in duplicates.items():
        merged[richer] = replace(merged[richer], run=_with_lines(logs[richer].run, logs[poorer].run))
    return [item for index, item in merged.items() if index not in duplicates]


def _with_lines(run: Run, printed: Run) -> Run:
    """Return a run with the error lines of another log of it."""
    name = printed.sources[0].path
    note = f"{name} holds the same run with fewer digits or metrics: only its error lines were read."
    return replace(run, lines=run.lines or printed.lines, notes=(*run.notes, note))


def _join_groups(found: Sequence[Loaded], options: LoadOptions, cache: dict[str, Found]) -> list[Loaded]:
    """Join the logs that are proved to be ranks or parts of one run, in the place of the first."""
    logs = _whole_logs(found)
    joined = dict(enumerate(found))
    for first, *others in group_into_runs(logs):
        if others:
            paths = [logs[index].path for index in (first, *others)]
            joined[first] = Loaded(paths[0], read_run(paths, options, cache), paths[0])
        for index in others:
            del joined[index]
    return list(joined.values())
