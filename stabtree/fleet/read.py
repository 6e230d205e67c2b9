"""The runs of a unit, and what lies further down: nothing that looks like a log is left out."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import NoLogError, StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.fleet import find
from stabtree.fleet.find import Unit, place
from stabtree.fleet.mirror import mirrored
from stabtree.fleet.remote import is_address
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

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.common.lazy import Floats
    from stabtree.fleet.find import Listing
    from stabtree.run import Series

MOST_ABOVE = 8
PRINTED = (".log", ".out", ".err")
DEEP = frozenset({"tfevents", "wandb", "mlflow"})
"""Formats whose loaders look for all runs of their own below a folder."""
SAME = 0.98  # share of a log's rows that another one holds too, where it tells it again
TOLD = ("loss", "eval_loss", "reward", "grad_norm")
"""What two runs never have in common row for row; a learning rate they may."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a unit holds.

    Attributes:
        loaded: its runs, or what is wrong with them.
        further: what lies below, still to be read.
    """

    loaded: tuple[Loaded, ...] = ()
    further: tuple[Unit, ...] = ()


def held(unit: Unit, how: Mapping[str, Any], roots: Sequence[str] = ()) -> Held:
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
            found = held(near, how)
            loaded = tuple(mirror.told(known(item)) for item in found.loaded)
            return Held((*loaded, *mirror.refused), mirror.addressed(found.further))
    if unit.files:
        loaded = load_runs(*unit.paths, **how)
        return Held(_untold(loaded, unit, how))
    try:
        listing = find.listed(unit.folder, roots)
    except OSError as error:
        hint = "check its rights, or leave it out"
        problem = StabtreeError(f"can't be looked into: {error.strerror}", where=clean(unit.folder), hint=hint)
        return Held((Loaded(clean(unit.folder), problem, unit.folder),))
    return _folder(unit, listing, how)


def _folder(unit: Unit, listing: Listing, how: Mapping[str, Any]) -> Held:
    """A folder: those of one run, of many logs, of runs further down."""
    if find.is_logged(unit.folder, listing):
        return Held(() if unit.read else _untold(load_runs(unit.folder, inner=False, **how), unit, how))
    listing.files = [name for name in listing.files if clean(place(unit.folder, name)) not in unit.read]
    logs = [name for name in listing.files if find.may_be_log(name)]
    if len(logs) > find.MOST_LOOSE:
        return Held((), (*_parted(unit, logs, how), *_below(unit, listing)))
    logs = [name for name in logs if _is_log(place(unit.folder, name), how)]
    if unit.read:  # its folder as a whole would be read again
        loose = Unit(unit.folder, tuple(logs), unit.above) if logs else None
        return Held((), (*filter(None, [loose]), *_below(unit, listing)))
    if logs or find.is_of_loggers(unit.folder, listing):
        return _run_folder(unit, listing, logs, how)
    return Held((), _below(unit, listing))


def known(item: Loaded) -> Loaded:
    """A run with what tells its files from others, while they are here."""
    return replace(item, run=with_inputs(item.run)) if isinstance(item.run, Run) else item


def _parted(unit: Unit, logs: list[str], how: Mapping[str, Any]) -> list[Unit]:
    """The logs of a folder of many; only of those whose names say nothing the content is asked."""
    sure = [name for name in logs if find.is_log(name) or _is_log(place(unit.folder, name), how)]
    return [replace(part, above=unit.above) for part in find.parts(unit.folder, sure)]


def _is_log(path: str, how: Mapping[str, Any]) -> bool:
    """Whether a file is a log by its name, or by its content."""
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


def _run_folder(unit: Unit, listing: Listing, logs: list[str], how: Mapping[str, Any]) -> Held:
    """The runs of a folder in which logs lie, with those of its logs that none of them was read from."""
    loaded = [item for item in load_runs(unit.folder, inner=False, **how) if not isinstance(item.run, NoLogError)]
    runs = [item.run for item in loaded if isinstance(item.run, Run)]
    read, told = _read_by(runs), {item.path for item in loaded}
    one = len(runs) == 1 and sum(find.ending(name) in PRINTED for name in logs) == 1
    for name in logs:
        path = place(unit.folder, name)
        if clean(path) in read or path in told or (clean(unit.folder) in read and find.EVENTS in name):
            continue
        loaded += [item for item in load_runs(path, **how) if not _is_part(item, path, runs, one=one)]
    if not loaded:  # states that can't be read, each a copy of the last
        states = [str(file) for _, file in trainer_state.checkpoints(Path(unit.folder)) if is_file(file)]
        loaded += load_runs(states[0], **how) if states else ()
    direct = tuple(place(unit.folder, name) for name in logs if clean(place(unit.folder, name)) in read)
    return Held(_untold(loaded, unit, how), _below(unit, listing, direct, read))


def _read_by(runs: Sequence[Run]) -> dict[str, str]:
    """The files and folders that runs were read from, each with the format it was read as."""
    return {source.path: source.format.partition(",")[0] for run in runs for source in run.sources}


def _is_part(item: Loaded, path: str, runs: Sequence[Run], *, one: bool) -> bool:
    """Whether a log beside a run is of that run: what it printed, or the same again."""
    if isinstance(item.run, StabtreeError):
        # Of what one run printed only the end may tell something, and that was read with it.
        return one and find.ending(path) in PRINTED
    printed = "text" in _read_by([item.run]).values()
    return (one and printed) or any(retells(item.run, run) for run in runs)


def _below(
    unit: Unit, listing: Listing, direct: tuple[str, ...] = (), read: Mapping[str, str] = MappingProxyType({})
) -> tuple[Unit, ...]:
    """The folders further down, each with what in it was read already."""
    mine = {trainer_output.EVENTS} if "trainer_state" in read.values() else set()
    above = (*unit.above, *direct)[-MOST_ABOVE:] if len(direct) <= MOST_ABOVE else unit.above
    events = tuple(path for path, kind in read.items() if kind == "tfevents")
    found = []
    for name in (*listing.folders, *listing.linked):
        path = place(unit.folder, name)
        if name in mine or clean(path) in unit.read or read.get(clean(path), "tfevents") != "tfevents":
            continue
        gone = [one for one in (*read, *unit.read) if one.startswith(f"{clean(path)}{os.sep}")]
        gone += _events_below(path, events) if events else ()
        if find.is_copy(name):  # of what it holds of the log only what is no copy counts
            gone.append(clean(place(path, trainer_state.NAME)))
            if set(find.files_in(path)) <= {trainer_state.NAME}:
                continue
        found.append(Unit(path, (), above, tuple(gone), unit.linked or name in listing.linked))
    return tuple(found)


def _events_below(folder: str, read: Sequence[str]) -> Iterator[str]:
    """The event files below a folder that lie below one that was read as a whole."""
    for top, _, files in os.walk(folder):
        if any(f"{clean(top)}{os.sep}".startswith(f"{place_}{os.sep}") for place_ in read):
            yield from (clean(place(top, name)) for name in files if find.EVENTS in name)


def with_lost(path: str, loaded: Sequence[Loaded], how: Mapping[str, Any]) -> Sequence[Loaded]:
    """The runs of a folder, with those below it that `load_runs` left unread.

    It looks no further down where logs lie in the folder itself, and a loader that looks for its own below finds no
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
        below = _all_held(held(unit, how, [root]).further, how, root)
        return [*loaded, *below] if below else loaded
    if DEEP & set(read.values()):
        found = _all_held((unit,), how, root)
        return found if len(found) > len(loaded) else loaded
    return loaded


def _all_held(units: Sequence[Unit], how: Mapping[str, Any], root: str) -> list[Loaded]:
    """The runs of units, and of all that lies below them in one folder."""
    waiting, found = deque(units), list[Loaded]()
    while waiting:
        got = held(waiting.popleft(), how, [root])
        waiting.extend(one for one in got.further if not one.linked)
        found += got.loaded
    return found


def _untold(loaded: Sequence[Loaded], unit: Unit, how: Mapping[str, Any]) -> tuple[Loaded, ...]:
    """The runs that no log of the folders above tells."""
    if not unit.above:
        return tuple(loaded)
    others = [run for path in unit.above for run in _above(path, tuple(sorted(_hashable(how).items())))]
    return tuple(
        item
        for item in loaded
        if isinstance(item.run, StabtreeError) or not any(retells(item.run, run) for run in others)
    )


def _hashable(how: Mapping[str, Any]) -> dict[str, Any]:
    return {**how, "columns": tuple(sorted((how.get("columns") or {}).items()))}


@lru_cache(maxsize=MOST_ABOVE)
def _above(path: str, how: tuple[tuple[str, Any], ...]) -> tuple[Run, ...]:
    """The run of a log above, read once for all that lies below."""
    options = dict(how)
    try:
        return (load_run(path, **{**options, "columns": dict(options["columns"])}),)
    except StabtreeError:
        return ()


def retells(run: Run, other: Run) -> bool:
    """Whether a log holds nothing but what another one tells: the same values, in as many digits as are printed."""
    pairs = {metric: (run.series[metric], other.series[metric]) for metric in run.series.keys() & other.series.keys()}
    same = {metric for metric, pair in pairs.items() if _same(*pair)}
    if any(metric in same and len(np.unique(run.series[metric].values)) >= PROVING_ROWS for metric in TOLD):
        return True
    # A loss that stands still, or a short log, proves nothing alone.
    return "loss" in same and len(same) > 1 and same == pairs.keys()


def _same(one: Series, other: Series) -> bool:
    """Whether the values of a series are all in another one, step by step or row by row."""
    _, mine, theirs = np.intersect1d(one.steps, other.steps, assume_unique=True, return_indices=True)
    count = min(len(one), len(other))
    by_step, by_row = (one.values[mine], other.values[theirs]), (one.values[:count], other.values[:count])
    return any(_alike(*pair, len(one)) for pair in (by_step, by_row))


def _alike(here: Floats, there: Floats, rows: int) -> bool:
    """Whether the rows that two logs share are the same, and nearly all of one."""
    if len(here) < max(3, SAME * rows):
        return False
    return bool(np.isclose(here, there, ROUNDED, ROUNDED / 10, equal_nan=True).mean() >= SAME)
