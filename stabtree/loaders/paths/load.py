"""`load_run` and `load_runs`: from what a user names to runs."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from stabtree.common.errors import NoLogError, SeveralRunsError, StabtreeError
from stabtree.common.text import clean, first_few
from stabtree.loaders.folder import made_up
from stabtree.loaders.formats import LOADERS, Loader
from stabtree.loaders.paths.contents import Ignored, contents
from stabtree.loaders.paths.joined import Loaded, joined
from stabtree.loaders.paths.named import LISTED, below, only_named
from stabtree.loaders.paths.options import LoadOptions
from stabtree.loaders.paths.run import read_run, values_run
from stabtree.loaders.paths.several import expanded, units_of
from stabtree.loaders.source import NAME_METRICS
from stabtree.run import Run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.loaders.paths.find import Unit
    from stabtree.loaders.paths.read import Found

__all__ = ["LOADERS", "Loaded", "Loader", "check_options", "find_runs", "load_run", "load_runs"]

MAX_RUNS = 1000  # that are held in memory at once; far more than anyone starts in one folder


class FoundRuns(NamedTuple):
    """What paths hold.

    Attributes:
        loaded: the runs in the order of the paths, and the logs that could not be read, each with its error.
        ignored: files that may have been logs and hold no metrics.
    """

    loaded: tuple[Loaded, ...]
    ignored: tuple[Ignored, ...]


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
    return found if rerun is None else replace(found, rerun=_load([rerun], options, ranks=False))


def load_runs(*paths: str | Path, ranks: bool = False, **options: Any) -> tuple[Loaded, ...]:
    """Read every run that paths hold: of files, patterns, folders of runs, and files with several runs.

    Several logs are one run only where that is proved (a rank in their names, a gradient norm that was reduced over all
    of them, stretches of steps that follow each other, the same values) or said.

    Args:
        paths: metrics files, manifests, folders, patterns; `-` reads standard input.
        ranks: whether all paths are the ranks of one run.
        options: as of `load_run`.

    Returns:
        The runs in the order of the paths; a log that can't be read is listed with its error.

    Raises:
        StabtreeError: where an argument is wrong, whatever the log.
    """
    return find_runs(*paths, ranks=ranks, **options).loaded


def find_runs(*paths: str | Path, ranks: bool = False, **options: Any) -> FoundRuns:
    """Read every run that paths hold, and name the files that were ignored; otherwise as `load_runs`."""
    how = LoadOptions(**options)
    if ranks:
        return FoundRuns((Loaded(clean(paths[0]), _read_ranks(paths, how), str(paths[0])),), ())
    return _find(paths, how)


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
    if len(given) == 1 and not isinstance(given[0], str | Path):
        return values_run(given[0], options)
    if ranks:
        return _read_ranks(given, options)
    if len(given) == 1 and not os.path.isdir(given[0]):  # noqa: PTH112 - never raises
        return read_run(given, options, {})
    return only_run(_find(given, options).loaded, str(given[0]) if len(given) == 1 else "")


def _read_ranks(given: Sequence[str | Path], options: LoadOptions) -> Run:
    """Read the one run of which paths are the ranks, or the parts."""
    files: list[str | Path] = []
    for path in given:
        found = _find([path], options).loaded if os.path.isdir(path) else ()  # noqa: PTH112
        files += chain.from_iterable(item.files for item in found) if found else [path]
    return read_run(files or given, options, {})


def only_run(loaded: Sequence[Loaded], folder: str) -> Run:
    """Return the one run that was loaded, with a note on each log that could not be read.

    Args:
        loaded: what was found.
        folder: the folder that was named alone; empty for several paths.

    Raises:
        StabtreeError: where there are several runs, or none.
    """
    runs = [item for item in loaded if isinstance(item.run, Run)]
    errors = [item.run for item in loaded if isinstance(item.run, StabtreeError)]
    if len(runs) > 1:
        raise _several(runs, folder, cut=len(loaded) > MAX_RUNS)
    if not runs:
        raise errors[0]
    run = runs[0].run
    if not isinstance(run, Run):
        raise TypeError("a run")
    return replace(run, notes=(*run.notes, *(f"Not read: {error.where} {error.problem}." for error in errors)))


def _several(runs: Sequence[Loaded], folder: str, *, cut: bool) -> SeveralRunsError:
    if not folder:
        shown = first_few([item.name for item in runs], LISTED)
        hint = "name one of them; say --ranks where they are ranks of one run"
        return SeveralRunsError(f"these are {len(runs)} runs: {shown}", hint=hint)
    names = [below(item, folder) for item in runs]
    count = f"at least {len(runs):,}" if cut else f"{len(runs):,}"
    problem = f"holds {count} runs: {first_few(names, LISTED)}"
    return SeveralRunsError(problem, where=clean(folder), hint=f"name one: --run {clean(names[0])!r}")


def _find(paths: Sequence[str | Path], options: LoadOptions) -> FoundRuns:
    """Read every run that paths hold, and put together what is proved to be one run."""
    options.check()
    units = units_of(list(chain.from_iterable(expanded(str(path)) for path in paths)))
    own = replace(options, run=None) if any(not unit.files for unit in units) else options
    roots = [os.path.realpath(unit.folder) for unit in units if not unit.files]
    loaded: list[Loaded] = []
    ignored: list[Ignored] = []
    cache: dict[str, Found] = {}
    for unit in units:
        found = _read_all(unit, own, roots, cache)
        loaded += found.loaded
        ignored += found.ignored
    if len(units) > 1:
        loaded = joined(loaded, own, cache)
    if options.run is not None and own is not options:
        loaded = [only_named(loaded, options.run, paths)]
    return FoundRuns(tuple(loaded), tuple(ignored))


def _read_all(unit: Unit, options: LoadOptions, roots: Sequence[str], cache: dict[str, Found]) -> FoundRuns:
    """Read a unit and all that is below it; of loose logs what was read is kept, to join them with others."""
    if not unit.files and made_up(Path(unit.folder)):
        where = clean(unit.folder)
        raise StabtreeError("is made up by the kernel, and holds no logs", where=where, hint=NAME_METRICS)
    waiting, seen = deque([unit]), set[str]()
    loaded: list[Loaded] = []
    ignored: list[Ignored] = []
    while waiting and len(loaded) < MAX_RUNS:
        one = waiting.popleft()
        if one.linked and not one.files:
            real = os.path.realpath(one.folder)
            if real in seen:
                continue
            seen.add(real)
        found = contents(one, options, roots, cache=cache if unit.files else None)
        loaded += found.loaded
        ignored += found.ignored
        waiting.extendleft(reversed(found.further))
    if waiting:
        problem = f"holds more than {MAX_RUNS:,} runs: {len(waiting):,} folders or groups of logs were not read"
        error = StabtreeError(problem, where=clean(unit.folder), hint=f"stabtree scan {clean(unit.folder)}")
        loaded.append(Loaded(f"{unit.folder} (the rest)", error, unit.folder))
    if not loaded:
        loaded.append(Loaded(unit.folder, _no_log(unit.folder, ignored), unit.folder))
    return FoundRuns(tuple(loaded), tuple(ignored))


def _no_log(folder: str, ignored: Sequence[Ignored]) -> StabtreeError:
    if not ignored:
        return NoLogError("holds no log", where=clean(folder), hint=NAME_METRICS)
    names = first_few([Path(item.path).name for item in ignored], LISTED)
    return NoLogError(f"holds no file that stabtree can read, only {names}", where=clean(folder), hint=NAME_METRICS)
