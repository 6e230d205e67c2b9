"""TensorBoard: event files, alone or in the folders of a run."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.config import read_config
from stabtree.loaders.folder import entries, find, settings_file, shown, size_of
from stabtree.loaders.packed.unpack import MAX_BYTES, chunks
from stabtree.loaders.points import Points, merge, tabulate
from stabtree.loaders.source import Sure, open_source
from stabtree.loaders.table import Table
from stabtree.loaders.tensorboard.records import HEADER, RecordReader, length_of
from stabtree.loaders.tensorboard.resumes import Stretch, chained
from stabtree.loaders.tensorboard.scalars import Scalars
from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Asked
    from stabtree.metrics.names import Names

MARK = "tfevents"
TRAIN = frozenset({"train", "training"})
EVAL = frozenset({"val", "valid", "validation", "eval", "evaluation", "dev", "test"})
# Tags that tell themselves what they were measured on.
_SPOKEN = ("eval", "val", "test", "dev", "train")
# `add_hparams` writes its event file into a sub-folder that is named after the time.
_TIME = re.compile(r"\d{9,10}(\.\d+)?")
MAX_FILES = 2000
# The length of its first record is a number of eight bytes, most of them zero.
SNIFFED = 16


@dataclass(frozen=True, slots=True)
class Events:
    """What one event file holds.

    Attributes:
        points: its scalars.
        config: hyperparameters in it, canonical keys.
        notes: what could not be read.
        lost_share: the share of the file that is damaged.
    """

    points: Points
    config: Mapping[str, Any]
    notes: tuple[str, ...]
    lost_share: float = 0.0


def sniff(source: Source, _names: Names) -> Sure:
    """How surely this is an event file."""
    if len(source.data) >= HEADER and length_of(source.data[:HEADER]) is not None:
        return Sure.SURELY
    named = source.file is not None and MARK in source.file.name
    return Sure.MAYBE if named and source.binary and b"\0\0\0\0" in source.data[:64] else Sure.NO


def read(source: Source, names: Names) -> Table:
    """The scalars of one event file.

    Raises:
        StabtreeError: where it holds none.
    """
    events = _read(source)
    if source.file:
        events = _placed(events, source.file.absolute().parent, "")
    return _table(source.path, [events], names, source.packed)


def _read(source: Source) -> Events:
    notes: list[str] = []
    reader = RecordReader(stored=MAX_BYTES if source.packed else source.size)
    scalars = Scalars(reader.damage)
    for block in reader.read(chunks(source, notes)):
        scalars.add(block)
    notes += reader.damage.notes()
    if scalars.crowded:
        notes.append(f"The file has more than {len(scalars.names):,} tags: {scalars.crowded:,} values were left out.")
    config, mistakes = read_config(scalars.config)
    return Events(scalars.points(), config, (*notes, *mistakes), reader.damage.share)


def _table(path: str, parts: Sequence[Events], names: Names, packed: str = "", run: str = "") -> Table:
    """The table of one run.

    Raises:
        StabtreeError: where it holds no scalars.
    """
    points = merge([part.points for part in parts])
    rows, columns, notes = tabulate(points, names, timed=True)
    told = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    if not rows:
        raise StabtreeError(
            "holds no scalars",
            where=path,
            hint=told[0] if told else "name the event file, or the folder, that the trainer wrote its loss to",
        )
    count = sum(bool(len(part.points.name)) for part in parts)
    files = f"{count} files" if count > 1 else ""
    return Table(
        path=path,
        format=", ".join(part for part in ("tfevents", files, packed) if part),
        rows=rows,
        columns=columns,
        config={key: value for part in reversed(parts) for key, value in part.config.items()},
        notes=(*told, *notes, *_held_out(points.names)),
        run=run,
        lost_share=max(part.lost_share for part in parts),
    )


def _held_out(tags: Collection[str]) -> tuple[str, ...]:
    """The note where Keras wrote the file while it evaluated: its loss of the epoch is that of held-out data."""
    if not {"epoch_loss", "evaluation_loss_vs_iterations"} <= set(tags):
        return ()
    text = "epoch_loss is the loss on the validation data"
    return (f"{text}: beside it stands evaluation_loss_vs_iterations, which Keras writes there alone.",)


def folder(path: Path, asked: Asked) -> tuple[Table, ...]:
    """The run of a folder, or several; of several only that asked for is read.

    Event files of one folder are one run, and so are `train` and `val` below it; tags of the latter become
    `eval_<tag>`. Other sub-folders are other runs, unless one goes on where another was stopped.

    Raises:
        StabtreeError: where the run holds no scalars.
    """
    found, notes = _event_files(path)
    runs: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for parts in found:
        runs.setdefault(_run_of(parts, found, path), []).append(parts)

    @cache
    def events_of(home: tuple[str, ...]) -> list[Events]:
        return [event for place in runs[home] for event in _folder_events(path, place, home, found[place])]

    def whole(homes: Sequence[tuple[str, ...]]) -> Stretch:
        return _stretch([event for home in homes for event in events_of(home)])

    heads = {home: _head_of(path, places, found) for home, places in runs.items()} if len(runs) > 1 else {}
    chains = chained(heads, whole) if heads else [[home] for home in runs]
    tables = []
    for chain in chains:
        name = shown(chain[0]) if len(chains) > 1 else ""
        if name == (asked.run or "") or len(chains) == 1:
            events = [event for home in chain for event in events_of(home)]
            settings = [_settings(path.joinpath(*home)) for home in chain]
            table = _table(clean(path), [*events, *settings], asked.names, run=name)
            tables.append(replace(table, notes=(*notes, *_resumed(chain), *table.notes)))
        else:
            tables.append(Table(clean(path), "tfevents", 0, {}, run=name))
    return tuple(tables)


def _event_files(path: Path) -> tuple[dict[tuple[str, ...], list[str]], tuple[str, ...]]:
    """The event files below a folder, by the folder that they lie in, and notes; text that is named so is none."""
    found, notes = find(path, MARK)
    kept = {
        parts: [name for name in files if not _is_text(path.joinpath(*parts, name))] for parts, files in found.items()
    }
    return {parts: files for parts, files in kept.items() if files}, notes


def _is_text(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            head = stream.read(SNIFFED)
    except OSError:
        return False
    return bool(head) and b"\0" not in head and head.isascii()


def _head_of(path: Path, places: Sequence[tuple[str, ...]], found: Mapping[tuple[str, ...], list[str]]) -> Stretch:
    """How the events of a run begin: the first part of the oldest file of each of its folders."""
    heads = []
    for place in places:
        file = path.joinpath(*place, min(found[place], key=_written))
        heads.append(_read_head(file, size_of(file)))
    return Stretch(merge([head.points for head in heads]), {})


# A folder of many runs is gone through once for each of them.
@lru_cache(maxsize=MAX_FILES)
def _read_head(file: Path, _size: int) -> Events:
    scalars = Scalars(RecordReader().damage)
    try:
        head = open_source(file).data
    except StabtreeError:
        head = b""
    for block in RecordReader().read([head]):
        scalars.add(block)
    return Events(scalars.points(), {}, ())


def _stretch(events: Sequence[Events]) -> Stretch:
    config = {key: value for event in reversed(events) for key, value in event.config.items()}
    return Stretch(merge([event.points for event in events]), config)


def _resumed(chain: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    if len(chain) < 2:
        return ()
    return (f"{shown(chain[0])} goes on in {', '.join(shown(home) for home in chain[1:])}: one run with its resumes.",)


def _run_of(parts: tuple[str, ...], found: Mapping[tuple[str, ...], object], path: Path) -> tuple[str, ...]:
    """The folder of the run that the event files in a folder belong to."""
    if not parts:
        return parts
    home, name = parts[:-1], normalize(parts[-1])
    above = next((parts[:depth] for depth in range(len(parts) - 1, -1, -1) if parts[:depth] in found), None)
    if above is not None and _is_curve(path.joinpath(*parts), "_".join(parts[len(above) :])):
        return above
    beside = {normalize(other[-1]) for other in found if other and other[:-1] == home} - {name}
    if (name in TRAIN and (home in found or beside & EVAL)) or (name in EVAL and (home in found or beside & TRAIN)):
        return home
    return home if home in found and _TIME.fullmatch(parts[-1]) else parts


def _is_curve(place: Path, name: str) -> bool:
    """Whether a folder is one of those that `add_scalars` makes: named after its one tag and one curve of it."""
    files = [place / file for file in entries(place)[1] if MARK in file]
    names = _read_head(files[0], size_of(files[0])).points.names if files else ()
    return len(names) == 1 and _of_tag(name, names[0])


def _of_tag(folder_name: str, tag: str) -> bool:
    return folder_name.startswith(tag.replace("/", "_") + "_")


def _folder_events(path: Path, parts: tuple[str, ...], home: tuple[str, ...], names: Sequence[str]) -> list[Events]:
    """The event files of one folder, oldest first, as those of the run whose folder is `home`."""
    place, below = path.joinpath(*parts), "_".join(parts[len(home) :])
    events = []
    for name in sorted(names, key=_written)[:MAX_FILES]:
        try:
            found = _read(open_source(place / name))
        except StabtreeError as error:
            # A process that died at its start leaves an empty file.
            found = Events(Points.nothing(), {}, (f"Not read: {clean(name, 80)} {clean(error.problem, 80)}.",))
        events.append(_placed(found, place.absolute(), below))
    return events


def _placed(events: Events, place: Path, below: str) -> Events:
    """The events with their tags as the columns of the run that the folder belongs to.

    Args:
        events: of one file.
        place: its folder.
        below: the folder's name below that of the run; empty for the run's own.
    """
    names = events.points.names
    if below and len(names) == 1 and _of_tag(below, names[0]):
        names = (below,)
    elif normalize(place.name) in EVAL and (below or _is_beside_training(place)):
        names = tuple(tag if normalize(tag).startswith(_SPOKEN) else f"eval_{tag}" for tag in names)
    return replace(events, points=replace(events.points, names=names))


def _is_beside_training(place: Path) -> bool:
    """Whether a folder `eval` that was named alone is that of a run, and not a run that someone called so."""
    folders, files = entries(place.parent)
    return any(normalize(name) in TRAIN for name in folders) or any(MARK in name for name in files)


def _written(name: str) -> tuple[int, str]:
    """The time in the name of an event file, for sorting."""
    stamp = re.search(MARK + r"\.(\d{1,15})", name)
    return (int(stamp[1]) if stamp else 0, name)


def _settings(place: Path) -> Events:
    """Lightning's hparams.yaml beside the event files."""
    values, notes = settings_file(place / "hparams.yaml")
    config, mistakes = read_config(values)
    return Events(Points.nothing(), config, (*notes, *mistakes))
