"""The runs of a unit, and what lies further down: nothing that looks like a log is left out."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import NoLogError, StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.fleet import find
from stabtree.fleet.find import Unit, place
from stabtree.fleet.mirror import mirrored
from stabtree.fleet.remote import is_address
from stabtree.loaders import Loaded, load_run, load_runs
from stabtree.loaders.folder import size_of
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
    from collections.abc import Iterator, Mapping, Sequence, Set

    from stabtree.common.lazy import Floats
    from stabtree.fleet.find import Listing
    from stabtree.run import Series

MOST_ABOVE = 8
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
        return Held(_untold(loaded, unit, how) if unit.above else loaded)
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
        return Held((), (*_parted(unit, logs, how), *_below(unit, listing, ())))
    logs = [name for name in logs if _is_log(place(unit.folder, name), how)]
    if unit.read:  # its folder as a whole would be read again
        loose = Unit(unit.folder, tuple(logs), unit.above) if logs else None
        return Held((), (*filter(None, [loose]), *_below(unit, listing, ())))
    if logs or find.is_of_loggers(unit.folder, listing):
        return _run_folder(unit, listing, logs, how)
    return Held((), _below(unit, listing, ()))


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
        return find.is_log(name) and find.ending(name) not in (".log", ".out", ".err")
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
    read = {source.path for run in runs for source in run.sources}
    told = {item.path for item in loaded}
    events = any(source.format.startswith("tfevents") for run in runs for source in run.sources)
    alone = len(runs) == 1 and not isinstance(runs[0], StabtreeError)
    for name in logs:
        path = place(unit.folder, name)
        if clean(path) in read or path in told or (events and find.EVENTS in name):
            continue
        loaded += [item for item in load_runs(path, **how) if not _is_part(item, path, runs, alone=alone)]
    found = tuple(loaded)
    direct = tuple(place(unit.folder, name) for name in logs if clean(place(unit.folder, name)) in read)
    below = _below(unit, listing, direct, read=read, events=events)
    return Held(_untold(found, unit, how) if unit.above else found, below)


def _is_part(item: Loaded, path: str, runs: Sequence[Run], *, alone: bool) -> bool:
    """Whether a log beside a run is of that run: what it printed, or the same again."""
    if isinstance(item.run, StabtreeError):
        # Of what one run printed only the end may tell something, and that was read with it.
        return alone and find.ending(path) in (".log", ".out", ".err")
    printed = any(source.format.partition(",")[0] == "text" for source in item.run.sources)
    return (alone and printed) or any(retells(item.run, run) for run in runs)


def _below(
    unit: Unit, listing: Listing, direct: tuple[str, ...], *, read: Set[str] = frozenset(), events: bool = False
) -> tuple[Unit, ...]:
    """The folders further down, but those of checkpoints, whose logs are copies."""
    mine = {trainer_output.EVENTS} if any(trainer_state.NAME in path for path in read) else set()
    above = (*unit.above, *direct)[-MOST_ABOVE:] if len(direct) <= MOST_ABOVE else unit.above
    found = []
    for name in (*listing.folders, *listing.linked):
        path = place(unit.folder, name)
        if find.is_copy(name) or name in mine or clean(path) in {*read, *unit.read}:
            continue
        gone = tuple(one for one in (*read, *unit.read) if one.startswith(f"{clean(path)}{os.sep}"))
        gone += tuple(map(clean, _events_below(path))) if events else ()
        linked = unit.linked or name in listing.linked
        found.append(Unit(path, (), above, gone, linked))
    return tuple(found)


def _events_below(folder: str) -> Iterator[str]:
    for top, _, files in os.walk(folder):
        yield from (os.path.join(top, name) for name in files if find.EVENTS in name)  # noqa: PTH118


def _untold(loaded: Sequence[Loaded], unit: Unit, how: Mapping[str, Any]) -> tuple[Loaded, ...]:
    """The runs that no log of the folders above tells."""
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
