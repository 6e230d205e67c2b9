"""Reads what a trainer logged: any supported file, several ranks, or the folder of a run.

A format is one module with `sniff` and `read`, one line in `formats.LOADERS` and its places in `formats.RANKS`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from stabtree.errors import NoLogError, SeveralRunsError, StabtreeError
from stabtree.loaders.assemble.columns import to_rows
from stabtree.loaders.assemble.early_end import early_end
from stabtree.loaders.assemble.placeholders import meant
from stabtree.loaders.assemble.ranks import Assembled, assemble
from stabtree.loaders.assemble.step_size import step_size
from stabtree.loaders.config import dtype as canonical_dtype
from stabtree.loaders.formats import LOADERS, Loader
from stabtree.loaders.paths.checkpoints import checkpoints_beside, named_checkpoints
from stabtree.loaders.paths.read import read_files
from stabtree.loaders.paths.several import below, expanded, files_of, once, proved, retold
from stabtree.metrics.names import named
from stabtree.run import FileUse, Gap, Resume, Run, Setting
from stabtree.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.loaders.assemble.columns import MetricRows
    from stabtree.loaders.paths.read import Found

_LR_OF = re.compile(r"(?:^|/)lr-([A-Z][A-Za-z]*)")

__all__ = ["LOADERS", "Loaded", "Loader", "load_run", "load_runs"]


def load_run(
    *paths: str | Path,
    dtype: str | None = None,
    checkpoint_every: int | None = None,
    columns: Mapping[str, str] = MappingProxyType({}),
    step_column: str | None = None,
    format: str | None = None,  # noqa: A002
    run: str | None = None,
    checkpoints: str | Path | None = None,
    ranks: bool = False,
    rerun: str | Path | None = None,
) -> Run:
    """Read a run from the files that its trainer wrote.

    Args:
        paths: a metrics file, a manifest, or the folder of a run; `-` reads standard input. Several files must
            be the ranks of one run, or its parts.
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
    found = _load(paths, {}, **options) if len(paths) == 1 or ranks else _one(load_runs(*paths, **options))
    return found if rerun is None else replace(found, rerun=_load([rerun], {}, **options))


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
    # A text log may hold nothing but the error that the run ended in.
    silent = [table for table in found.tables if not table.rows and table.lines]
    alone = len(found.tables) - len(silent) == 1
    rows = [to_rows(table, names, alone=alone) for table in found.tables if table not in silent]
    made = assemble(rows) if rows else Assembled({})
    kinds = [part.loss_kind for part in rows if part.loss_kind]
    by_name = {"loss_kind": Setting(kinds[0], "the loss's name")} if kinds else {}
    settings = {**by_name, **_optimizer(rows), **found.settings, **overrides}
    name = settings.pop("name", None)
    series, meanings = meant(made.series, settings)
    size, counted = step_size(series, settings)
    told = [*found.notes, *(note for table in silent for note in table.notes)]
    told += [note for part in rows for note in part.notes]
    made_run = Run(
        name=str(name.value) if name else found.name,
        series=series,
        config=settings,
        gaps=made.gaps,
        ranks={rank: meant(own, settings)[0] for rank, own in (made.ranks or {}).items()},
        resumes=made.resumes,
        lines=tuple(line for table in found.tables for line in table.lines),
        sources=tuple(part.source for part in rows),
        step_size=size,
        epoch_ends={step: epoch for part in rows for step, epoch in part.epoch_ends.items()},
        saved={step: line for part in rows for step, line in part.saved.items()},
        written={name: one for name, one in made.series.items() if name in series and series[name] is not one},
        notes=tuple(dict.fromkeys((*told, *made.notes, *meanings, *counted, *_lost(rows, made)))),
    )
    made_run = replace(made_run, notes=(*made_run.notes, *early_end(made_run)))
    return _with_checkpoints(made_run, paths, checkpoints)


def _optimizer(rows: Sequence[MetricRows]) -> dict[str, Setting]:
    """The optimizer by which a monitor of learning rates calls its column, as in `lr-AdamW` and `lr-SGD/pg1`."""
    columns = [column.name for part in rows for column in part.source.columns if column.metric == "lr"]
    found = [(match[1], name) for name in columns if (match := _LR_OF.search(name))]
    return {"optimizer": Setting(found[0][0].lower(), f"column {clean(found[0][1], 40)}")} if found else {}


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


def _lost(rows: Sequence[MetricRows], made: Assembled) -> Iterator[str]:
    """The notes on what was not read, was replaced, or is missing."""
    yield from (_unread(part.source) for part in rows if part.source.skipped_count)
    yield from (_went_back(resume) for resume in made.resumes[:5])
    yield from (_silent(gap) for gap in made.gaps[:5])


@dataclass(frozen=True, slots=True)
class Loaded:
    """One of the runs that paths hold.

    Attributes:
        name: where it is from: its path, and its name where the path holds several.
        run: the run, or what is wrong with its log.
    """

    name: str
    run: Run | StabtreeError


def load_runs(*paths: str | Path, ranks: bool = False, **options: Any) -> tuple[Loaded, ...]:
    """Read every run that paths hold: of files, patterns, folders of runs, and files with several runs.

    Several logs are one run only where that is proved (a rank in their names, a gradient norm that was reduced over all
    of them, stretches of steps that follow each other) or said.

    Args:
        paths: metrics files, manifests, folders, patterns; `-` reads standard input.
        ranks: whether all paths are the ranks of one run.
        options: as of `load_run`.

    Returns:
        The runs in the order of the paths; a log that can't be read stands there with its error.

    Raises:
        StabtreeError: where an argument is wrong, whatever the log.
    """
    if ranks:
        return (Loaded(clean(paths[0]), _load(paths, {}, **options)),)
    kept: dict[str, Found] = {}
    found: list[tuple[str, str, Run | StabtreeError]] = []
    for path in once([path for given in paths for path in expanded(str(given))]):
        found += _each(str(path), options, kept)
    found = _unlike(found)
    # A run within a file of several is whole already.
    whole = [
        (place, path, run) for place, (path, name, run) in enumerate(found) if path == name and isinstance(run, Run)
    ]
    loaded: list[Loaded | None] = [Loaded(clean(name), run) for _, name, run in found]
    again = retold([path for _, path, _ in whole], [run for _, _, run in whole])
    for poorer, richer in again.items():
        loaded[whole[poorer][0]] = None
        loaded[whole[richer][0]] = Loaded(clean(whole[richer][1]), _with_lines(whole[richer][2], whole[poorer][2]))
    whole = [item for place, item in enumerate(whole) if place not in again]
    for group in proved([path for _, path, _ in whole], [run for _, _, run in whole]):
        if len(group) > 1:
            places, paths_, _ = zip(*(whole[member] for member in group), strict=True)
            for place in places:
                loaded[place] = None
            loaded[places[0]] = Loaded(clean(paths_[0]), _load(paths_, kept, **options))
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


def _each(path: str, options: Mapping[str, Any], kept: dict[str, Found]) -> list[tuple[str, str, Run | StabtreeError]]:
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
        folders, unseen = below(Path(path))
        inner = [item for folder in folders for item in _each(str(folder), options, kept)]
        logs = [item for item in inner if not isinstance(item[2], NoLogError)]
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


def _unread(source: FileUse) -> str:
    first = source.skipped[0]
    lines = f"{source.skipped_count:,} line{'s' if source.skipped_count != 1 else ''}"
    return f"Not read of {source.path}: {lines}, the first is line {first.line:,}, which {first.reason}."


def _went_back(resume: Resume) -> str:
    rows = f"{resume.replaced_rows:,} row{'s' if resume.replaced_rows != 1 else ''}"
    return f"A resume: after step {resume.from_step:,} the log goes back to {resume.to_step:,} and replaces {rows}."


def _silent(gap: Gap) -> str:
    rows = f"{gap.rows:,} row{'s' if gap.rows != 1 else ''}"
    return f"{gap.metric} is missing in {rows} of steps {gap.first_step:,} to {gap.last_step:,} while the log goes on."


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
