"""The runs of a unit, and what is further down: nothing that looks like a log is left out."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import NoLogError, StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders import Loaded, load_run, load_runs
from stabtree.loaders.folder import is_file, size_of
from stabtree.loaders.json import trainer_state
from stabtree.loaders.paths import trainer_output
from stabtree.loaders.paths.inputs import with_inputs
from stabtree.loaders.paths.metrics_file import loader_of
from stabtree.loaders.paths.several import PROVING_ROWS, ROUNDED
from stabtree.loaders.source import glimpse
from stabtree.loaders.wandb.loader import is_messages
from stabtree.metrics.names import named
from stabtree.run import Run
from stabtree.tools.fleet import find
from stabtree.tools.fleet.find import Unit, place
from stabtree.tools.fleet.remote.addresses import is_address
from stabtree.tools.fleet.remote.mirror import mirrored

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.common.lazy import Floats
    from stabtree.run import Series
    from stabtree.tools.fleet.find import Listing

MAX_ABOVE = 8
PRINTED = (".log", ".out", ".err")
DEEP = frozenset({"tfevents", "wandb", "mlflow"})
"""Formats whose loaders look for all runs of their own below a folder."""
SAME = 0.98  # share of a log's rows that another one holds too, where it repeats it
DISTINCTIVE = ("loss", "eval_loss", "reward", "grad_norm")
"""What two runs never have in common row for row; a learning rate they may."""


@dataclass(frozen=True, slots=True)
class UnitContents:
    """What a unit holds.

    Attributes:
        loaded: its runs, or what is wrong with them.
        further: what is below, still to be read.
    """

    loaded: tuple[Loaded, ...] = ()
    further: tuple[Unit, ...] = ()


def read_unit(unit: Unit, how: Mapping[str, Any], roots: Sequence[str] = ()) -> UnitContents:
    """Read a unit.

    Args:
        unit: a folder, or loose logs of one.
        how: options of `load_run`.
        roots: the folders that are scanned, resolved.

    Raises:
        StabtreeError: for an option that is wrong whatever the log.
    """
    if is_address(unit.folder):
        with mirrored(unit) as (mirror, near):
            found = read_unit(near, how)
            loaded = tuple(mirror.without_mirror(with_file_ids(item)) for item in found.loaded)
            return UnitContents((*loaded, *mirror.refused), mirror.addressed(found.further))
    if unit.files:
        loaded = load_runs(*unit.paths, **how)
        return UnitContents(_without_repeats(loaded, unit, how))
    try:
        listing = find.listed(unit.folder, roots)
    except OSError as error:
        hint = "check its rights, or leave it out"
        problem = StabtreeError(f"can't be looked into: {error.strerror}", where=clean(unit.folder), hint=hint)
        return UnitContents((Loaded(clean(unit.folder), problem, unit.folder),))
    return _folder(unit, listing, how)


def _folder(unit: Unit, listing: Listing, how: Mapping[str, Any]) -> UnitContents:
    """Return a folder: those of one run, of many logs, of runs further down."""
    if find.is_logged(unit.folder, listing):
        loaded = () if unit.read else load_runs(unit.folder, inner=False, **how)
        return UnitContents(_without_repeats(loaded, unit, how))
    listing.files = [name for name in listing.files if clean(place(unit.folder, name)) not in unit.read]
    logs = [name for name in listing.files if find.may_be_log(name)]
    if len(logs) > find.MAX_LOOSE:
        return UnitContents((), (*_parted(unit, logs, how), *_below(unit, listing)))
    logs = [name for name in logs if _is_log(place(unit.folder, name), how)]
    if unit.read:  # its folder as a whole would be read again
        loose = (Unit(unit.folder, tuple(logs), unit.above),) if logs else ()
        return UnitContents((), (*loose, *_below(unit, listing)))
    if logs or find.is_of_loggers(unit.folder, listing):
        return _run_folder(unit, listing, logs, how)
    return UnitContents((), _below(unit, listing))


def with_file_ids(item: Loaded) -> Loaded:
    """Return a run with what identifies its files, while they are here."""
    if isinstance(item.run, Run):
        return replace(item, run=with_inputs(item.run))
    return item


def _parted(unit: Unit, logs: list[str], how: Mapping[str, Any]) -> list[Unit]:
    """Return the logs of a folder of many; only of those whose names say nothing the content is asked."""
    sure = [name for name in logs if find.is_log(name) or _is_log(place(unit.folder, name), how)]
    return [replace(part, above=unit.above) for part in find.parts(unit.folder, sure)]


def _is_log(path: str, how: Mapping[str, Any]) -> bool:
    """Return whether a file is a log by its name, or by its content."""
    names = named(how.get("columns") or {}, how.get("step_column"))
    name = os.path.basename(path)  # noqa: PTH119 - a path that may be none
    if size_of(Path(path)) == 0:
        return find.is_log(name) and find.ending(name) not in PRINTED
    try:
        if find.is_log(name):
            return not (name.startswith("debug") and is_messages(glimpse(Path(path), 1024)))
        return loader_of(Path(path), names)[0] is not None
    except StabtreeError:
        return find.is_log(name)


def _run_folder(unit: Unit, listing: Listing, logs: list[str], how: Mapping[str, Any]) -> UnitContents:
    """Return the runs of a folder that holds logs, with those of its logs that none of them was read from."""
    loaded = [item for item in load_runs(unit.folder, inner=False, **how) if not isinstance(item.run, NoLogError)]
    runs = [item.run for item in loaded if isinstance(item.run, Run)]
    read = _read_by(runs)
    loaded += _unread_logs(unit, logs, loaded, runs, how)
    if not loaded:  # states that can't be read, each a copy of the last
        states = [str(file) for _, file in trainer_state.checkpoints(Path(unit.folder)) if is_file(file)]
        if states:
            loaded += load_runs(states[0], **how)
    direct = tuple(path for path in (place(unit.folder, name) for name in logs) if clean(path) in read)
    return UnitContents(_without_repeats(loaded, unit, how), _below(unit, listing, direct, read))


def _unread_logs(
    unit: Unit, logs: list[str], loaded: Sequence[Loaded], runs: Sequence[Run], how: Mapping[str, Any]
) -> list[Loaded]:
    """Read those logs of a folder that none of its runs was read from, without those that are part of a run."""
    read, named = _read_by(runs), {item.path for item in loaded}
    folder_was_read = clean(unit.folder) in read
    one = len(runs) == 1 and sum(find.ending(name) in PRINTED for name in logs) == 1
    found: list[Loaded] = []
    for name in logs:
        path = place(unit.folder, name)
        if clean(path) in read or path in named or (folder_was_read and find.EVENTS in name):
            continue
        found += [item for item in load_runs(path, **how) if not _is_part(item, path, runs, one=one)]
    return found


def _read_by(runs: Sequence[Run]) -> dict[str, str]:
    """Return the files and folders that runs were read from, each with the format it was read as."""
    sources = chain.from_iterable(run.sources for run in runs)
    return {source.path: source.format.partition(",")[0] for source in sources}


def _is_part(item: Loaded, path: str, runs: Sequence[Run], *, one: bool) -> bool:
    """Return whether a log beside a run is of that run: what it printed, or the same again."""
    if isinstance(item.run, StabtreeError):
        # Of what one run printed only the end may tell something, and that was read with it.
        return one and find.ending(path) in PRINTED
    printed = "text" in _read_by([item.run]).values()
    return (one and printed) or any(repeats(item.run, run) for run in runs)


def _below(
    unit: Unit, listing: Listing, direct: tuple[str, ...] = (), read: Mapping[str, str] = MappingProxyType({})
) -> tuple[Unit, ...]:
    """Return the folders further down, each with what in it was read already."""
    is_trainer = "trainer_state" in read.values()  # which writes event files of the same numbers
    above = unit.above
    if len(direct) <= MAX_ABOVE:
        above = (*above, *direct)[-MAX_ABOVE:]
    events = tuple(path for path, kind in read.items() if kind == "tfevents")
    found = []
    for name in (*listing.folders, *listing.linked):
        path = place(unit.folder, name)
        is_own = is_trainer and name == trainer_output.EVENTS
        if is_own or clean(path) in unit.read or read.get(clean(path), "tfevents") != "tfevents":
            continue
        gone = [one for one in (*read, *unit.read) if one.startswith(f"{clean(path)}{os.sep}")]
        if events:
            gone += _events_below(path, events)
        if find.is_copy(name):  # of what it holds of the log only what is no copy counts
            gone.append(clean(place(path, trainer_state.NAME)))
            if set(find.files_in(path)) <= {trainer_state.NAME}:
                continue
        found.append(Unit(path, (), above, tuple(gone), unit.linked or name in listing.linked))
    return tuple(found)


def _events_below(folder: str, read: Sequence[str]) -> Iterator[str]:
    """Yield the event files below a folder that are below one that was read as a whole."""
    for top, _, files in os.walk(folder):
        if any(f"{clean(top)}{os.sep}".startswith(f"{folder_read}{os.sep}") for folder_read in read):
            yield from (clean(place(top, name)) for name in files if find.EVENTS in name)


def with_lost(path: str, loaded: Sequence[Loaded], how: Mapping[str, Any]) -> Sequence[Loaded]:
    """Return the runs of a folder, with those below it that `load_runs` left unread.

    It looks no further down where logs are in the folder itself, and a loader that looks for its own below finds no
    others.

    Args:
        path: what was named.
        loaded: what `load_runs` found there.
        how: options of `load_run`.
    """
    read = _read_by([item.run for item in loaded if isinstance(item.run, Run)])
    unit, root = Unit(str(Path(path))), os.path.realpath(path)
    try:
        listing = find.listed(unit.folder, [root])
    except OSError:  # a file
        return loaded
    if not read or not (listing.folders or listing.linked):
        return loaded
    if any(find.may_be_log(name) and _is_log(place(unit.folder, name), how) for name in listing.files):
        return [*loaded, *_read_all(read_unit(unit, how, [root]).further, how, root)]
    if DEEP & set(read.values()):
        found = _read_all((unit,), how, root)
        if len(found) > len(loaded):
            return found
    return loaded


def _read_all(units: Sequence[Unit], how: Mapping[str, Any], root: str) -> list[Loaded]:
    """Return the runs of units, and of all that is below them in one folder."""
    waiting, found = deque(units), list[Loaded]()
    while waiting:
        got = read_unit(waiting.popleft(), how, [root])
        waiting.extend(one for one in got.further if not one.linked)
        found += got.loaded
    return found


def _without_repeats(loaded: Sequence[Loaded], unit: Unit, how: Mapping[str, Any]) -> tuple[Loaded, ...]:
    """Return the runs that no log of the folders above holds."""
    if not unit.above:
        return tuple(loaded)
    options = _hashable(how)
    others = list(chain.from_iterable(_above(path, options) for path in unit.above))
    return tuple(
        item
        for item in loaded
        if isinstance(item.run, StabtreeError) or not any(repeats(item.run, run) for run in others)
    )


def _hashable(how: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted({**how, "columns": tuple(sorted((how.get("columns") or {}).items()))}.items()))


@lru_cache(maxsize=MAX_ABOVE)
def _above(path: str, how: tuple[tuple[str, Any], ...]) -> tuple[Run, ...]:
    """Return the run of a log above, read once for all that is below."""
    options = dict(how)
    try:
        return (load_run(path, **(options | {"columns": dict(options["columns"])})),)
    except StabtreeError:
        return ()


def repeats(run: Run, other: Run) -> bool:
    """Whether a log holds nothing but what another one holds: the same values, in as many digits as are printed."""
    pairs = {metric: (run.series[metric], other.series[metric]) for metric in run.series.keys() & other.series.keys()}
    same = {metric for metric, pair in pairs.items() if _same(*pair)}
    if any(metric in same and len(np.unique(run.series[metric].values)) >= PROVING_ROWS for metric in DISTINCTIVE):
        return True
    # A loss that does not move, or a short log, proves nothing alone.
    return "loss" in same and len(same) > 1 and same == pairs.keys()


def _same(one: Series, other: Series) -> bool:
    """Return whether the values of a series are all in another one, step by step or row by row."""
    _, mine, theirs = np.intersect1d(one.steps, other.steps, assume_unique=True, return_indices=True)
    count = min(len(one), len(other))
    by_step, by_row = (one.values[mine], other.values[theirs]), (one.values[:count], other.values[:count])
    return any(_alike(*pair, len(one)) for pair in (by_step, by_row))


def _alike(here: Floats, there: Floats, rows: int) -> bool:
    """Return whether the rows that two logs share are the same, and nearly all of one."""
    if len(here) < max(3, SAME * rows):
        return False
    return bool(np.isclose(here, there, ROUNDED, ROUNDED / 10, equal_nan=True).mean() >= SAME)
