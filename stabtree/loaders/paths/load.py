"""`load_run` and `load_runs`: from what a user names to runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import NoLogError, SeveralRunsError, StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.assemble.run import run_of
from stabtree.loaders.assemble.several_runs import split
from stabtree.loaders.config import dtype as canonical_dtype
from stabtree.loaders.formats import LOADERS, Loader, by_name
from stabtree.loaders.json.frame import kept_in
from stabtree.loaders.json.values import values_table
from stabtree.loaders.paths.checkpoints import checkpoints_beside, named_checkpoints
from stabtree.loaders.paths.read import Found, one_run, read_files
from stabtree.loaders.paths.several import below, expanded, files_of, once, proved, retold
from stabtree.metrics.names import named
from stabtree.run import Run, Setting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


__all__ = ["LOADERS", "Loaded", "Loader", "check_options", "load_run", "load_runs"]

MOST_PARTS = 256  # files of a folder that are read, to see whether they are one run: ranks of one, or parts


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
        ranks: whether several paths are said to be ranks or parts of one run; else that must be proved.
        rerun: another run of the same training, for the questions that compare the two; read with the same options.

    Returns:
        The run. All that was skipped, assumed or changed is in its `notes` and `sources`.

    Raises:
        StabtreeError: where a file can't be read as metrics, or an argument is wrong.
    """
    options: dict[str, Any] = {
        "dtype": dtype,
        "checkpoint_every": checkpoint_every,
        "columns": columns,
        "step_column": step_column,
        "format": format,
        "run": run,
        "checkpoints": checkpoints,
    }
    if not paths:
        raise StabtreeError("no file to read", hint="name a metrics file, a manifest or the folder of a run")
    alone = len(paths) == 1 or ranks
    found = _loaded(paths, options) if alone else _one(load_runs(*paths, **options))
    return found if rerun is None else replace(found, rerun=_loaded([rerun], options))


def _loaded(given: Sequence[Any], options: Mapping[str, Any]) -> Run:
    if len(given) > 1:
        return _load(given, {}, **options)
    if isinstance(given[0], str | Path):
        return _only(given[0], options)
    names = named(options["columns"], options["step_column"])
    settings = _overrides(options["dtype"], options["checkpoint_every"], options["checkpoints"])
    table = values_table(given[0], names)
    kept = kept_in(given[0])
    told = {**kept.config, **{key: Setting(value, table.path) for key, value in table.config.items()}}
    found = one_run(Found(table.path, split(table, names), told), table.path, options["run"])
    run = kept.added_to(run_of(found.tables, names, found.name, {**found.settings, **settings}))
    return _with_checkpoints(run, ["-"], options["checkpoints"])


def _only(path: str | Path, options: Mapping[str, Any]) -> Run:
    """The run of a path; of a folder with several files also the one that `load_runs` proves them to be.

    Raises:
        StabtreeError: where it can't be read, or holds several runs.
    """
    try:
        return _load([path], {}, **options)
    except NoLogError:
        folders, unseen = below(Path(path))
        if len(folders) != 1 or unseen:
            raise
        return _only(folders[0], options)
    except SeveralRunsError as error:
        if error.unseen or not 1 < len(error.files) <= MOST_PARTS:
            raise
        found = load_runs(path, **options)
        if len(found) == 1 and isinstance(found[0].run, Run):
            return found[0].run
        raise


def _load(
    paths: Sequence[str | Path],
    kept: dict[str, Found],
    *,
    dtype: str | None = None,
    checkpoint_every: int | None = None,
    columns: Mapping[str, str] = MappingProxyType({}),
    step_column: str | None = None,
    format: str | None = None,  # noqa: A002
    run: str | None = None,
    checkpoints: str | Path | None = None,
) -> Run:
    """The run in the files of these paths; `kept` is what was read of each path before, all else as of `load_run`."""
    names = named(columns, step_column)
    overrides = _overrides(dtype, checkpoint_every, checkpoints)
    found = read_files(once(paths), names, format, run, kept)
    made = run_of(found.tables, names, found.name, {**found.settings, **overrides}, found.notes)
    return _with_checkpoints(made, paths, checkpoints)


def _with_checkpoints(run: Run, paths: Sequence[str | Path], named_folder: str | Path | None) -> Run:
    """The run with the checkpoints of the folder that the user named, else with those that lie beside its log.

    What the user or a manifest says of them goes before what lies about.
    """
    if named_folder is not None:
        return replace(run, checkpoints=named_checkpoints(Path(named_folder)))
    every = run.config.get("checkpoint_every")
    said = "checkpoints" in run.config or (every and every.source == "--checkpoint-every")
    if said or any(str(path) == "-" for path in paths):
        return run
    places = [*(source.path for source in run.sources), *map(str, paths)]
    beside = checkpoints_beside(places, by_epoch=run.by_epoch, last_step=run.last_step)
    if not beside:
        return run
    where = Setting(tuple(beside), clean(Path(next(iter(beside.values()))).parent))
    return replace(run, checkpoints=beside, config={**run.config, "checkpoints": where})


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


def load_runs(*paths: str | Path, ranks: bool = False, inner: bool = True, **options: Any) -> tuple[Loaded, ...]:
    """Read every run that paths hold: of files, patterns, folders of runs, and files with several runs.

    Several logs are one run only where that is proved (a rank in their names, a gradient norm that was reduced over all
    of them, stretches of steps that follow each other) or said.

    Args:
        paths: metrics files, manifests, folders, patterns; `-` reads standard input.
        ranks: whether all paths are the ranks of one run.
        inner: whether the folders in one that holds no log are looked into.
        options: as of `load_run`.

    Returns:
        The runs in the order of the paths; a log that can't be read stands there with its error.

    Raises:
        StabtreeError: where an argument is wrong, whatever the log.
    """
    if ranks:
        return (Loaded(clean(paths[0]), _load(paths, {}, **options), str(paths[0])),)
    kept: dict[str, Found] = {}
    found: list[tuple[str, str, Run | StabtreeError]] = []
    for path in once([path for given in paths for path in expanded(str(given))]):
        found += _each(str(path), options, kept, inner=inner)
    found = _unlike(found)
    # A run within a file of several is whole already.
    whole = [
        (place, path, run) for place, (path, name, run) in enumerate(found) if path == name and isinstance(run, Run)
    ]
    loaded: list[Loaded | None] = [Loaded(clean(name), run, path) for path, name, run in found]
    again = retold([path for _, path, _ in whole], [run for _, _, run in whole])
    for poorer, richer in again.items():
        loaded[whole[poorer][0]] = None
        name = clean(whole[richer][1])
        loaded[whole[richer][0]] = Loaded(name, _with_lines(whole[richer][2], whole[poorer][2]), whole[richer][1])
    whole = [item for place, item in enumerate(whole) if place not in again]
    for group in proved([path for _, path, _ in whole], [run for _, _, run in whole]):
        if len(group) > 1:
            places, paths_, _ = zip(*(whole[member] for member in group), strict=True)
            for place in places:
                loaded[place] = None
            loaded[places[0]] = Loaded(clean(paths_[0]), _load(paths_, kept, **options), paths_[0])
    return tuple(item for item in loaded if item)


def _with_lines(run: Run, printed: Run) -> Run:
    """A run with the error lines of another log that tells of it."""
    name = printed.sources[0].path
    note = f"{name} holds the same run with fewer digits or metrics: only its error lines were read."
    return replace(run, lines=run.lines or printed.lines, notes=(*run.notes, note))


def _unlike(found: list[tuple[str, str, Run | StabtreeError]]) -> list[tuple[str, str, Run | StabtreeError]]:
    """The runs without those that were read before, from the folder of a file that was named as well."""
    seen: set[tuple[frozenset[str], str]] = set()
    kept = []
    for path, name, run in found:
        key = (frozenset(), name) if isinstance(run, StabtreeError) else (files_of(run), name.removeprefix(path))
        if isinstance(run, StabtreeError) or key not in seen:
            kept.append((path, name, run))
        seen.add(key)
    return kept


def _one(loaded: tuple[Loaded, ...]) -> Run:
    """The one run that was loaded.

    Raises:
        StabtreeError: its own error, or where there are several.
    """
    if len(loaded) > 1:
        shown = ", ".join(item.name for item in loaded[:4])
        problem = f"these are {len(loaded)} runs: {shown}{', ...' if len(loaded) > 4 else ''}"
        raise SeveralRunsError(problem, hint="name one of them; say --ranks where they are ranks of one run")
    if isinstance(loaded[0].run, StabtreeError):
        raise loaded[0].run
    return loaded[0].run


def _each(
    path: str, options: Mapping[str, Any], kept: dict[str, Found], *, inner: bool = True
) -> list[tuple[str, str, Run | StabtreeError]]:
    """The runs of one path as (path, name, run or error)."""
    try:
        return [(path, path, _load([path], kept, **options))]
    except SeveralRunsError as error:
        if error.files:
            found = [item for file in error.files for item in _each(file, options, kept)]
            return [*found, *_unseen(path, error.unseen)]
        return [(path, f"{path} {name}", _of(path, name, options, kept)) for name in error.names] or [
            (path, path, error)
        ]
    except NoLogError as error:
        folders, unseen = below(Path(path)) if inner else ([], 0)
        deeper = [item for folder in folders for item in _each(str(folder), options, kept)]
        logs = [item for item in deeper if not isinstance(item[2], NoLogError)]
        return [*logs, *_unseen(path, unseen)] or [(path, path, error)]
    except StabtreeError as error:
        return [(path, path, error)]


def _unseen(path: str, count: int) -> list[tuple[str, str, Run | StabtreeError]]:
    """What stands for the files of a folder that nobody looked at."""
    if not count:
        return []
    problem = f"holds {count:,} more, which were not read"
    error = StabtreeError(problem, where=clean(path), hint="name them by a pattern, some at a time")
    return [(path, f"{path} (the rest)", error)]


def _of(path: str, name: str, options: Mapping[str, Any], kept: dict[str, Found]) -> Run | StabtreeError:
    try:
        return _load([path], kept, **{**options, "run": name})
    except StabtreeError as error:
        return error


def check_options(
    *,
    dtype: str | None = None,
    checkpoint_every: int | None = None,
    columns: Mapping[str, str] = MappingProxyType({}),
    step_column: str | None = None,
    format: str | None = None,  # noqa: A002
    **_others: Any,
) -> None:
    """Refuse options of `load_run` that are wrong whatever the log.

    Raises:
        StabtreeError: for the first of them.
    """
    named(columns, step_column)
    _overrides(dtype, checkpoint_every, None)
    if format is not None:
        by_name(format)


def _overrides(dtype: str | None, checkpoint_every: int | None, checkpoints: str | Path | None) -> dict[str, Setting]:
    overrides = {}
    if dtype is not None:
        overrides["dtype"] = Setting(canonical_dtype(dtype), "--dtype")
    if checkpoint_every is not None:
        if isinstance(checkpoint_every, bool) or checkpoint_every < 1:
            raise StabtreeError(
                f"{checkpoint_every} is not a number of steps",
                where="--checkpoint-every",
                hint="give a number from 1 on",
            )
        overrides["checkpoint_every"] = Setting(int(checkpoint_every), "--checkpoint-every")
    if checkpoints is not None:
        overrides["checkpoints"] = Setting(tuple(named_checkpoints(Path(checkpoints))), "--checkpoints")
    return overrides
