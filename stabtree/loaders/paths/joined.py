"""The logs of one folder as runs: those that are proved to be of one run are put together on one axis of steps."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.paths.run import read_run
from stabtree.loaders.paths.same_run import (
    CLOCKS,
    RunLog,
    aligned,
    are_copies,
    detail,
    follows,
    named_ranks,
    proved_ranks,
    span,
)
from stabtree.run import Resume, Run, Series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stabtree.loaders.paths.options import LoadOptions
    from stabtree.loaders.paths.read import Found
    from stabtree.loaders.paths.same_run import Alignment
    from stabtree.run import Gap, LogLine

MAX_COMPARED = 128  # runs of which each is compared with each other one, which takes half a second


@dataclass(frozen=True, slots=True)
class Loaded:
    """One of the runs that paths hold.

    Attributes:
        name: where it is from: its path, and its name where the path holds several.
        run: the run, or what is wrong with its log.
        path: the path alone.
        files: the files of a run that is all of them; none for one of several runs in a file, or a logger's folder.
    """

    name: str
    run: Run | StabtreeError
    path: str = ""
    files: tuple[str, ...] = ()


def joined(found: Sequence[Loaded], options: LoadOptions, cache: dict[str, Found]) -> list[Loaded]:
    """Return what was read with the logs of one run joined, in the place of the first or of the one that says most.

    Args:
        found: runs and logs that can't be read.
        options: how logs are read.
        cache: what was read of them, by path.
    """
    items = dict(enumerate(found))
    _join_groups(items, named_ranks, options, cache)
    _merge_copies(items)
    _join_groups(items, proved_ranks, options, cache)
    _add_ending(items)
    _note_single_rows(items)
    return [items[index] for index in sorted(items)]


def _join_groups(
    items: dict[int, Loaded],
    group: Callable[[Mapping[int, RunLog]], list[list[int]]],
    options: LoadOptions,
    cache: dict[str, Found],
) -> None:
    """Join the logs that are ranks or parts of one run, in the place of the first."""
    logs = {
        index: RunLog(item.path, item.run)
        for index, item in items.items()
        if len(item.files) == 1 and isinstance(item.run, Run) and item.run.series
    }
    for first, *others in group(logs):
        if others:
            paths = tuple(logs[index].path for index in (first, *others))
            items[first] = Loaded(paths[0], read_run(paths, options, cache), paths[0], paths)
        for index in others:
            del items[index]


def _merge_copies(items: dict[int, Loaded]) -> None:
    """Merge logs that hold the same values into the one of them that says most."""
    whole = [index for index, item in items.items() if item.name == item.path and _has_rows(item)]
    if len(whole) <= MAX_COMPARED:
        groups = [whole]
    else:
        folders: dict[Path, list[int]] = {}
        for index in whole:
            folders.setdefault(Path(items[index].path).parent, []).append(index)
        groups = [group for group in folders.values() if len(group) <= MAX_COMPARED]
    for group in groups:
        if len(group) < 2:
            continue
        kept: list[int] = []
        for index in sorted(group, key=lambda one: detail(_run(items[one])), reverse=True):
            if not any(_merge_into(items, main, index) for main in kept):
                kept.append(index)


def _run(item: Loaded) -> Run:
    if isinstance(item.run, StabtreeError):
        raise TypeError("a log that can't be read is no run")
    return item.run


def _has_rows(item: Loaded) -> bool:
    return isinstance(item.run, Run) and bool(item.run.series)


def _merge_into(items: dict[int, Loaded], main: int, copy: int) -> bool:
    """Merge a log into another one; return whether the two are proved to be of one run."""
    here, there = items[main], items[copy]
    alignment = aligned(_run(here), _run(there))
    if alignment is None or not (_may_be_one(here, there) or are_copies(_run(here), _run(there))):
        return False
    run = merged(_run(here), _run(there), alignment)
    if _format(here) == _format(there):
        run = replace(run, resumes=tuple(dict.fromkeys((*run.resumes, *_resumed(_run(here), _run(there), alignment)))))
    items[main] = replace(here, run=run, files=tuple(dict.fromkeys((*_files(here), *_files(there)))))
    del items[copy]
    return True


def _resumed(one: Run, other: Run, alignment: Alignment) -> Iterator[Resume]:
    """Yield the resume between two logs of one logger, of which the later one repeats steps and goes beyond."""
    if not np.array_equal(alignment.here, alignment.there):
        return
    (first, last), (begin, end) = sorted((span(one), span(other)))
    if begin <= last and follows(begin, end, first, last):
        yield Resume(last, begin, len(alignment.here))


def _may_be_one(one: Loaded, other: Loaded) -> bool:
    """Whether two logs may be of one run as far as their places show.

    What one logger wrote side by side into folders of their own are runs of their own, however alike.
    """
    if _format(one) != _format(other):
        return True
    if not (one.files or other.files):
        return False
    folders = [Path(_files(item)[0]).parent for item in (one, other)]
    return folders[0] == folders[1] or folders[0] in folders[1].parents or folders[1] in folders[0].parents


def _format(item: Loaded) -> str:
    """Return what the first of a run's logs is."""
    return next((source.format.partition(",")[0] for source in _run(item).sources), "")


def _files(item: Loaded) -> tuple[str, ...]:
    """Return the files of a run; of a logger's folder a path in it, for what folder they share."""
    return item.files or (str(Path(item.path, "log")),)


def merged(main: Run, other: Run, alignment: Alignment) -> Run:
    """Return a run with all that another log of it holds besides, on its own axis of steps."""
    series = dict(main.series)
    for metric, theirs in other.series.items():
        if metric in CLOCKS and metric in series:
            continue
        moved = replace(theirs, steps=alignment.moved(theirs.steps))
        series[metric] = _union(main.series.get(metric), moved)
    others = {
        name: replace(one, steps=alignment.moved(one.steps))
        for name, one in other.others.items()
        if name not in main.others
    }
    gaps = [*main.gaps, *(_moved(gap, alignment) for gap in other.gaps)]
    same_axis = np.array_equal(alignment.here, alignment.there)
    axis = main.sources[0].steps_from if main.sources else ""
    path = clean(other.sources[0].path) if other.sources else other.name
    return replace(
        main,
        series=series,
        others={**main.others, **others},
        config={**other.config, **main.config},
        gaps=tuple(dict.fromkeys(gap for gap in gaps if not _filled(gap, series))),
        resumes=tuple(dict.fromkeys((*main.resumes, *(other.resumes if same_axis else ())))),
        lines=_lines_of_both(main, other),
        sources=(*main.sources, *(replace(source, steps_from=axis) for source in other.sources)),
        checkpoints=main.checkpoints or (other.checkpoints if same_axis else {}),
        saved=main.saved or (other.saved if same_axis else {}),
        notes=tuple(dict.fromkeys((*main.notes, _note(path, main, series), *other.notes))),
    )


def _lines_of_both(one: Run, other: Run) -> tuple[LogLine, ...]:
    """Return the lines of two logs; what the first one holds is not repeated."""
    texts = {line.text for line in one.lines}
    return (*one.lines, *(line for line in other.lines if line.text not in texts))


def _note(path: str, main: Run, series: Mapping[str, Series]) -> str:
    """Return what a log of the same values added to a run."""
    last = max((int(one.steps[-1]) for one in series.values() if len(one)), default=0)
    text = f"{path} holds the same run"
    if main.last_step is not None and last > main.last_step:
        return f"{text}, and goes on from {main.unit} {main.last_step:,} to {last:,}."
    more = [name for name in series if name not in main.series]
    if more:
        return f"{text}, and adds {', '.join(more)}."
    added = max((len(one) - len(main.series[name]) for name, one in series.items()), default=0)
    return f"{text}, and adds {added:,} rows." if added else f"{text}, and adds no value."


def _union(mine: Series | None, theirs: Series) -> Series:
    """Return the values of two series of one metric; where both hold a step mine count, unless theirs is not finite."""
    steps, values = theirs.steps, theirs.values
    if mine is not None:
        broken = ~np.isfinite(values)
        steps = np.concatenate([steps, mine.steps, steps[broken]])
        values = np.concatenate([values, mine.values, values[broken]])
    order = np.argsort(steps, kind="stable")
    last = np.append(np.diff(steps[order]) > 0, True)
    steps, values = steps[order][last], values[order][last]
    steps.flags.writeable = values.flags.writeable = False
    return replace(mine or theirs, steps=steps, values=values)


def _moved(gap: Gap, alignment: Alignment) -> Gap:
    first, last = alignment.moved(np.array([gap.first_step, gap.last_step])).tolist()
    return replace(gap, first_step=first, last_step=last)


def _filled(gap: Gap, series: Mapping[str, Series]) -> bool:
    """Whether another log holds what was missing."""
    one = series.get(gap.metric)
    return one is not None and bool(((one.steps >= gap.first_step) & (one.steps <= gap.last_step)).any())


def _add_ending(items: dict[int, Loaded]) -> None:
    """Add the error lines of a log without metrics to the one run that it lies beside."""
    runs = [index for index, item in items.items() if _has_rows(item)]
    ends = [index for index, item in items.items() if isinstance(item.run, Run) and not item.run.series]
    if not (len(runs) == len(ends) == 1):
        return
    (run,), (end,) = runs, ends
    if not _are_near(items[run], items[end]):
        return
    name = clean(Path(items[end].path).name, 60)
    printed = _run(items.pop(end))
    note = f"How the run ended was read from {name}, which is beside its metrics."
    own = _run(items[run])
    items[run] = replace(items[run], run=replace(own, lines=_lines_of_both(own, printed), notes=(*own.notes, note)))


def _note_single_rows(items: dict[int, Loaded]) -> None:
    """Drop printed logs of a single row beside a run, which show nothing by themselves, and say so in its notes.

    A progress bar that writes over itself leaves its last state alone. Error lines are of the run if there is one.
    """
    single = [index for index, item in items.items() if _is_single_row(item)]
    runs = [index for index, item in items.items() if _has_rows(item) and index not in single]
    for index in single:
        beside = next((run for run in runs if _are_near(items[run], items[index])), None)
        lines = _run(items[index]).lines
        if beside is None or (lines and len(runs) > 1):
            continue
        run = _run(items[beside])
        note = f"Not judged: {clean(items[index].path)} holds a single row."
        items[beside] = replace(items[beside], run=replace(run, lines=(*run.lines, *lines), notes=(*run.notes, note)))
        del items[index]


def _is_single_row(item: Loaded) -> bool:
    """Whether a printed log holds one row, of finite values."""
    if not (item.files and _has_rows(item)) or _format(item) != "text":
        return False
    return all(len(one) == 1 and np.isfinite(one.values).all() for one in _run(item).series.values())


def _are_near(run: Loaded, end: Loaded) -> bool:
    """Whether a printed log is in the folder of a run, or in one above; or inside the folder that a logger wrote."""
    folders = set(chain.from_iterable(_above(path) for path in _files(run)))
    inside = not run.files and all(Path(run.path) in Path(path).parents for path in _files(end))
    return inside or all(Path(path).parent in folders for path in _files(end))


def _above(path: str) -> Iterator[Path]:
    return iter(Path(path).parents)
