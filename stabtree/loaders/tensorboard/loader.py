"""TensorBoard: event files, alone or in the folders of a run, and which folders are one run."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.shared import FACTOR_SMALL, SHARE_MOST
from stabtree.common.stats import median
from stabtree.common.text import clean, first_few
from stabtree.loaders.config import read_config
from stabtree.loaders.counters import interval
from stabtree.loaders.folder import EVENTS, entries, settings_file, shown
from stabtree.loaders.source import MAX_BYTES, Sure, chunks, open_source
from stabtree.loaders.table import Points, Table, merge, tabulate
from stabtree.loaders.tensorboard.events import HEADER, EventFile, length_of
from stabtree.metrics.role import describe_name
from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from stabtree.common.lazy import Ints
    from stabtree.loaders.source import Source
    from stabtree.metrics.names import Names

# A run from scratch logs its first row at step 0, at 1, or after one interval; a later first row is a resume's.
LATE = FACTOR_SMALL
# What a resume may change: how far it goes; the precision is that of the weights, which only a checkpoint shows.
CHANGES = frozenset({"name", "max_steps", "dtype", "checkpoints"})
OTHER_AXIS = 1.5  # how far apart two counts of one training end
MIN_PLACED = 3
TRAIN = frozenset({"train", "training"})
EVAL = frozenset({"val", "valid", "validation", "eval", "evaluation", "dev", "test"})
# Tags that name what they were measured on.
_EXPLICIT = ("eval", "val", "test", "dev", "train")
# `add_hparams` writes its event file into a sub-folder that is named after the time.
_TIME = re.compile(r"\d{9,10}(\.\d+)?")
MAX_FILES = 2000
_BY_ITERATION = re.compile(r"evaluation_(.+)_vs_iterations")
_BY_EPOCH = re.compile(r"(eval_)?epoch_.+")
# The length of its first record is a number of eight bytes, most of them zero.
SNIFFED = 16

# A folder, by the names of the folders that lead to it from the one that was asked for.
Parts = tuple[str, ...]


class Events(Struct, frozen=True):
    """What one event file holds, or several of one run."""

    points: Points  # in the order in which they were written
    config: Mapping[str, Any]  # hyperparameters in it, canonical keys
    notes: tuple[str, ...]  # what could not be read
    lost_share: float = 0.0  # of the most damaged file
    files: int = 0  # that hold scalars

    @property
    def steps(self) -> dict[str, Ints]:
        """The steps of each tag that was logged more than once, the most frequent first."""
        steps = {tag: self.points.step[self.points.name == at] for at, tag in enumerate(self.points.names)}
        several = [(tag, own) for tag, own in steps.items() if len(own) > 1]
        return dict(sorted(several, key=lambda item: -len(item[1])))

    @property
    def times(self) -> tuple[float, float]:
        """When its first and its last value were written."""
        times = self.points.time[np.isfinite(self.points.time)]
        return (float(times.min()), float(times.max())) if len(times) else (float("inf"), float("inf"))


def together(parts: Sequence[Events]) -> Events:
    """Return the events of all parts; of several values of a setting the first part's counts."""
    return Events(
        merge([part.points for part in parts]),
        dict(chain.from_iterable(part.config.items() for part in reversed(parts))),
        tuple(dict.fromkeys(chain.from_iterable(part.notes for part in parts))),
        max(part.lost_share for part in parts),
        sum(part.files for part in parts),
    )


def sniff(source: Source, _names: Names) -> Sure:
    """Return how surely this is an event file."""
    if len(source.data) >= HEADER and length_of(source.data[:HEADER]) is not None:
        return Sure.SURELY
    named = source.file is not None and EVENTS in source.file.name
    if named and source.binary and b"\0\0\0\0" in source.data[:64]:
        return Sure.MAYBE
    return Sure.NO


def read(source: Source, names: Names) -> Table:
    """Read the scalars of one event file.

    Raises:
        StabtreeError: if it holds none.
    """
    events = _read(source)
    if source.file:
        events = _with_columns(events, source.file.absolute().parent, "")
    return _table(source.path, events, names, source.packed)


def _read(source: Source) -> Events:
    notes: list[str] = []
    file = EventFile(MAX_BYTES if source.packed else source.size)
    file.read(chunks(source, notes))
    config, mistakes = read_config(file.config)
    points, held_out = _once(file.points())
    notes += (*file.notes(), *mistakes, *held_out)
    return Events(points, config, tuple(notes), file.lost / max(1, file.size), int(len(points.name) > 0))


def _once(points: Points) -> tuple[Points, tuple[str, ...]]:
    """Return the scalars of a file of Keras with each evaluation once, under a name of held-out data; and a note.

    While it evaluates, Keras writes every value by epoch, under the name of the training's, and again by iteration.
    """
    copies = {name: f"epoch_{found[1]}" for name in points.names if (found := _BY_ITERATION.fullmatch(name))}
    twice = set(copies.values()).intersection(points.names)
    if not twice:
        return points, ()
    kept = np.array([copies.get(name) not in twice for name in points.names])
    left = (name for name, keep in zip(points.names, kept, strict=True) if keep)
    names = tuple(f"eval_{name}" if name in twice else name for name in left)
    rows = kept[points.name]
    number = (np.cumsum(kept) - 1)[points.name[rows]]
    held_out = Points(names, number, points.step[rows], points.time[rows], points.value[rows])
    text = "The epoch_... are of the validation data: only there does Keras write evaluation_..._vs_iterations too"
    return held_out, (f"{text}, the same values by iteration, which are left out.",)


def _table(path: str, events: Events, names: Names, packed: str = "") -> Table:
    """Return the table of one run.

    Raises:
        StabtreeError: if it holds no scalars.
    """
    points, placing = _placed(events.points)
    by_epoch = bool(points.names) and all(map(_BY_EPOCH.fullmatch, points.names))
    rows, columns, notes = tabulate(points, names, timed=True, counter="epoch" if by_epoch else "step")
    if not rows:
        hints = (*events.notes, "name the event file, or the folder, that the trainer wrote its loss to")
        raise StabtreeError("holds no scalars", where=path, hint=hints[0])
    files = f"{events.files} files" * (events.files > 1)
    return Table(
        path=path,
        format=", ".join(filter(None, ("tfevents", files, packed))),
        rows=rows,
        columns=columns,
        config=events.config,
        notes=(*dict.fromkeys(events.notes), *placing, *notes),
        lost_share=events.lost_share,
    )


def _placed(points: Points) -> tuple[Points, tuple[str, ...]]:
    """Return the points with those tags on the steps of training that count something slower; and a note on them.

    Trainers log training by iteration and evaluations by epoch: the wall times tell at which iteration an epoch ended.
    """
    tags = {at: points.step[points.name == at] for at in range(len(points.names))}
    last = {at: int(steps.max()) for at, steps in tags.items() if len(steps)}
    training = [top for at, top in last.items() if not describe_name(points.names[at]).held_out]
    top = max(training or last.values(), default=0)
    rows = np.isin(points.name, [at for at, own in last.items() if top <= OTHER_AXIS * own <= OTHER_AXIS**2 * top])
    if not rows.any() or not np.isfinite(points.time).all():
        return points, ()
    order = np.argsort(points.time[rows], kind="stable")
    times, steps = points.time[rows][order], np.append(points.step[rows][order], 0)  # 0 before the first of them
    step, moved = points.step.copy(), list[str]()
    for at, own in tags.items():
        there = points.name == at
        if len(own) < MIN_PLACED or OTHER_AXIS * last[at] > top or (np.diff(own) <= 0).any():
            continue
        found = steps[np.searchsorted(times, points.time[there], side="right") - 1]
        rates = np.diff(found) / np.diff(own)
        usual = median(rates)
        if usual >= OTHER_AXIS and ((rates > usual / 2) & (rates < 2 * usual)).mean() >= SHARE_MOST:
            step[there] = found
            moved.append(clean(points.names[at], 60))
    if not moved:
        return points, ()
    what = f"Counted in other steps than training, as in epochs: {first_few(moved, 3)}"
    return replace(points, step=step), (f"{what}; placed by time, at the step of training logged last before.",)


def runs_below(
    path: Path, found: Mapping[Parts, list[str]], names: Names
) -> Iterator[tuple[Path, Table | StabtreeError]]:
    """Yield the folder of each run whose events are below a folder, with its table or what is wrong with it.

    Event files of one folder are one run, and so are `train` and `val` below it; tags of the latter become
    `eval_<tag>`. Other sub-folders are other runs, unless one resumes another.

    Args:
        path: the folder.
        found: the names of event files by the folder below it that they are in.
        names: what the tags mean.
    """
    read = {parts: _files_in(path.joinpath(*parts), listing) for parts, listing in found.items()}
    runs: dict[Parts, list[Events]] = {}
    for parts, files in read.items():
        home = _run_of(parts, read)
        directory, below = path.joinpath(*parts).absolute(), "_".join(parts[len(home) :])
        runs.setdefault(home, []).extend(_with_columns(file, directory, below) for file in files)
    events = {home: together(files) for home, files in runs.items()}
    for homes in _chained(events):
        own = path.joinpath(*homes[0])
        settings = [_settings(path.joinpath(*home)) for home in homes]
        whole = together([*map(events.pop, homes), *settings])
        try:
            table = _table(clean(own), whole, names)
        except StabtreeError as error:
            yield own, error
            continue
        if len(homes) > 1:
            later = ", ".join(map(shown, homes[1:]))
            note = f"{shown(homes[0])} goes on in {later}: one run with its resumes."
            table = replace(table, notes=(note, *table.notes))
        yield own, table


def _chained(runs: Mapping[Parts, Events]) -> list[list[Parts]]:
    """Return the folders of each run in the order of time, the runs in the order of their first folders."""
    chains: list[list[Parts]] = []
    whole: list[Events] = []
    for home in sorted(runs, key=lambda home: runs[home].times):
        own = runs[home]
        beside = [at for at, chain in enumerate(chains) if home and chain[0][:-1] == home[:-1]]
        resumed = [at for at in beside if _resumes(whole[at], own)]
        if len(resumed) == 1:
            chains[resumed[0]].append(home)
            whole[resumed[0]] = together([whole[resumed[0]], own])
        else:
            chains.append([home])
            whole.append(own)
    order = list(runs)
    return sorted(chains, key=lambda chain: order.index(chain[0]))


def _resumes(first: Events, later: Events) -> bool:
    """Return whether the later events resume the first: the same tags, from a step within them or right after them.

    Two that end at the same step were both trained to the end: branches, not a run and its resume.
    """
    tags, others = first.steps, later.steps
    shared = next((tag for tag in tags if tag in others), None)
    if shared is None or not (tags.keys() <= others.keys() or others.keys() <= tags.keys()):
        return False
    keys = (first.config.keys() & later.config.keys()) - CHANGES
    if first.times[1] > later.times[0] or any(first.config[key] != later.config[key] for key in keys):
        return False
    before, after = tags[shared], others[shared]
    top = before.max()
    begins_late = after[0] > LATE * max(interval(after), 1.0)
    return bool(begins_late and before[0] < after[0] <= top + LATE * interval(before) and after.max() != top)


def is_events(file: Path) -> bool:
    """Whether a file with the name of an event file is one, and no text."""
    try:
        with file.open("rb") as stream:
            head = stream.read(SNIFFED)
    except OSError:
        return True  # reading it says what is wrong
    return not head or b"\0" in head or not head.isascii()


def _run_of(parts: Parts, read: Mapping[Parts, Sequence[Events]]) -> Parts:
    """Return the folder of the run that the event files in a folder belong to."""
    above = next((parts[:depth] for depth in reversed(range(len(parts))) if parts[:depth] in read), parts)
    # One of those that `add_scalars` makes is named after its one tag and one curve of it.
    tags = set(chain.from_iterable(file.points.names for file in read[parts]))
    if len(tags) == 1 and _of_tag("_".join(parts[len(above) :]), *tags):
        return above
    if parts and _is_part(parts, read):
        return parts[:-1]
    return parts


def _is_part(parts: Parts, found: Mapping[Parts, object]) -> bool:
    """Return whether a folder belongs to the run above it, as `train` and `val` do."""
    home, name = parts[:-1], normalize(parts[-1])
    beside = {normalize(other[-1]) for other in found if other and other[:-1] == home}
    if name in TRAIN:
        return home in found or not EVAL.isdisjoint(beside)
    if name in EVAL:
        return home in found or not TRAIN.isdisjoint(beside)
    return home in found and _TIME.fullmatch(parts[-1]) is not None


def _of_tag(folder_name: str, tag: str) -> bool:
    return folder_name.startswith(tag.replace("/", "_") + "_")


def _files_in(directory: Path, names: Sequence[str]) -> list[Events]:
    """Read the event files of one folder, oldest first."""
    events = []
    for name in sorted(names, key=_written)[:MAX_FILES]:
        try:
            events.append(_read(open_source(directory / name)))
        except StabtreeError as error:
            # A process that died at its start leaves an empty file.
            note = f"Not read: {clean(name, 80)} {clean(error.problem, 80)}."
            events.append(Events(Points.nothing(), {}, (note,)))
    return events


def _with_columns(events: Events, directory: Path, below: str) -> Events:
    """Return the events of a file, tags made columns; `below` is the folder's name below that of the run, or empty."""
    names, (folders, files) = events.points.names, entries(directory.parent)
    # A folder `eval` that was named alone is of a run where something of its training is beside it.
    of_run = below or not TRAIN.isdisjoint(map(normalize, folders)) or any(EVENTS in name for name in files)
    if below and len(names) == 1 and _of_tag(below, names[0]):
        names = (below,)
    elif of_run and normalize(directory.name) in EVAL:
        names = tuple(tag if normalize(tag).startswith(_EXPLICIT) else f"eval_{tag}" for tag in names)
    return replace(events, points=replace(events.points, names=names))


def _written(name: str) -> tuple[int, str]:
    """Return the time in the name of an event file and the name, for sorting."""
    stamp = re.search(EVENTS + r"\.(\d{1,15})", name)
    return (int(stamp[1]) if stamp else 0, name)


def _settings(directory: Path) -> Events:
    """Read Lightning's hparams.yaml beside the event files."""
    values, notes = settings_file(directory / "hparams.yaml")
    config, mistakes = read_config(values)
    return Events(Points.nothing(), config, (*notes, *mistakes))
