"""The logs of one folder as runs: those that are proved to be of one run are put together on one axis of steps."""

from __future__ import annotations

import re
from itertools import chain, combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.passes import remembered
from stabtree.common.shared import ROWS_LONG, SHARE_SOME
from stabtree.common.stats import are_whole, median
from stabtree.common.text import clean
from stabtree.loaders.assemble.run import RANK_NAME
from stabtree.loaders.assemble.steps import MAX_STEP
from stabtree.loaders.paths.read import read_run
from stabtree.run import Gap, Resume, Run, Series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stabtree.common.lazy import Floats, Ints
    from stabtree.loaders.paths.read import Found, LoadOptions
    from stabtree.run import LogLine

    Items = dict[int, "Loaded"]
    Groups = list[list[int]]

T = TypeVar("T")
MAX_COMPARED = 128  # runs of which each is compared with each other one, which takes half a second
PROVING_ROWS = ROWS_LONG  # rows of the same values that prove two logs to be of one run
MIN_WHOLE = 2  # different values that prove a log a copy, of which each row is in the other log at its step
# What two runs never have in common row for row; a learning rate they may.
DISTINCTIVE = ("loss", "reward", "eval_loss", "eval_quality", "grad_norm")
HELD_OUT = frozenset(("eval_loss", "eval_quality"))
MIN_COPIED = 3  # different values of a metric, where all others are the same too, that prove a log a copy
MIN_HELD_OUT = 3  # different values on held-out data, all that two logs hold, that prove them to be of one run
# What each logger measures, or numbers, on its own.
CLOCKS = frozenset({"wall_time", "step_time", "throughput", "gpu_memory", "memory", "data_time", "batch_id"})
OF_A_RANK = frozenset({"name", "checkpoints", "rank"})  # settings that differ between the ranks of one run
# What the name of a rank adds to that of rank 0: `run.rank1.jsonl` beside `run.jsonl`.
_RANK_SUFFIX = re.compile(r"\.rank\d+(?=(?:\.[^./\\]*)?$)")
OVERLAP = SHARE_SOME  # the share of a part's steps that the next one may leave out, and must not have begun in
DIGITS = range(1, 8)  # that a log prints; one with more holds all that single precision has
SMALL = 1e-3  # what is smaller is printed with an exponent
SINGLE = 2e-6  # the rounding of single precision, in which event files hold values
FIRST_ROWS = 64  # rows by which most logs are told apart


class Loaded(Struct, frozen=True):
    """One of the runs that paths hold."""

    name: str  # where it is from: its path, and its name where the path holds several
    run: Run | StabtreeError  # the run, or what is wrong with its log
    path: str = ""  # the path alone
    # The files of a run that is all of them; none for one of several runs in a file, or a logger's folder.
    files: tuple[str, ...] = ()

    @property
    def own(self) -> Run:
        """The run of a log that could be read."""
        if not isinstance(self.run, Run):
            raise TypeError("a log that can't be read is no run")
        return self.run

    @property
    def has_rows(self) -> bool:
        """Whether it is a run of which anything was logged."""
        return isinstance(self.run, Run) and bool(self.run.series)

    @property
    def format(self) -> str:
        """What the first of its logs is."""
        return next((source.format.partition(",")[0] for source in self.own.sources), "")

    @property
    def places(self) -> tuple[str, ...]:
        """Its files; of a logger's folder a path in it, for what folder they share."""
        return self.files or (str(Path(self.path, "log")),)


def joined(found: Sequence[Loaded], options: LoadOptions, cache: dict[str, Found]) -> list[Loaded]:
    """Join the logs that are proved to be of one run, in the place of the first or of the one that says most.

    Args:
        found: the runs, and the logs that can't be read.
        options: how logs are read.
        cache: what was read, by path.
    """
    items = dict(enumerate(found))
    _read_together(items, _ranks, options, cache)
    _merge_same(items)
    _read_together(items, _parts, options, cache)
    _add_asides(items)
    return [items[index] for index in sorted(items)]


def _read_together(
    items: Items, group: Callable[[Items], Groups], options: LoadOptions, cache: dict[str, Found]
) -> None:
    """Read the logs that are ranks or parts of one run as that run, in the place of the first."""
    logs = {index: item for index, item in items.items() if len(item.files) == 1 and item.has_rows}
    for indexes in group(logs):
        paths = tuple(logs[index].path for index in indexes)
        if len(paths) > 1:
            items[indexes[0]] = Loaded(paths[0], read_run(paths, options, cache), paths[0], paths)
        for index in indexes[1:]:
            del items[index]


def _ranks(logs: Items) -> Groups:
    """Return the keys of logs by run: the names of ranks differ in their number alone, or one is rank 0 without it."""
    groups: dict[str, list[int]] = {}
    for index, log in logs.items():
        groups.setdefault(RANK_NAME.sub("#", _RANK_SUFFIX.sub("", log.path)), []).append(index)
    return [group for group in groups.values() if not _any_contradict([logs[index].own for index in group])]


def _parts(logs: Items) -> Groups:
    """Return the keys of logs by run, where all of them, or all of a folder, are parts that follow each other."""
    folders: dict[Path, list[int]] = {}
    for index, log in logs.items():
        folders.setdefault(Path(log.path).parent, []).append(index)
    for groups in ([list(logs)], [*folders.values()]):
        proved = [group for group in groups if len(group) > 1 and _are_parts([logs[index].own for index in group])]
        if proved:
            return [sorted(group, key=lambda index: _span(logs[index].own)[0]) for group in proved]
    return []


def _are_parts(runs: Sequence[Run]) -> bool:
    """Whether logs hold one stretch of steps each, as those of a run that went on in a new file do."""
    spans = sorted(map(_span, runs))
    sources = chain.from_iterable(run.sources for run in runs)
    axes = {source.steps_from for source in sources}  # steps and epochs share none
    if len(axes) > 1 or any(last <= first for first, last in spans):
        return False
    return all(_follows(later, earlier) for earlier, later in pairwise(spans)) and not _any_contradict(runs)


def _span(run: Run) -> tuple[int, int]:
    """Return the first and last step of a run."""
    steps = [series.steps for series in run.series.values() if len(series)]
    return min(int(s[0]) for s in steps), max(int(s[-1]) for s in steps)


def _follows(part: tuple[int, int], before: tuple[int, int]) -> bool:
    """Whether a part goes on from the one before, each as its first and last step.

    A restart from a checkpoint repeats some steps, however many, and may leave a few out.
    """
    (begin, end), (first, last) = part, before
    slack = OVERLAP * (last - first)
    return first + slack < begin <= last + slack + 1 and end > last


def _any_contradict(runs: Sequence[Run]) -> bool:
    """Whether some logs can't be of one run: their configurations or their learning rates differ."""
    for one, other in combinations(runs, 2):
        here, there = one.get("lr"), other.get("lr")
        if _other_settings(one, other):
            return True
        if here is not None and there is not None:
            _, mine, theirs = np.intersect1d(here.steps, there.steps, assume_unique=True, return_indices=True)
            if not np.allclose(here.values[mine], there.values[theirs], rtol=1e-6, atol=0, equal_nan=True):
                return True
    return False


def _other_settings(one: Run, other: Run) -> bool:
    keys = (one.config.keys() & other.config.keys()) - OF_A_RANK
    return any(one.setting(key) != other.setting(key) for key in keys)


def _merge_same(items: Items) -> None:
    """Merge logs that hold the same values into the one of them that says most, and name mere copies."""
    logs = [index for index, item in items.items() if item.name == item.path and item.has_rows]
    kept: dict[Path, list[int]] = {}  # by folder, where there are too many to compare each with each other one
    for index in sorted(logs, key=lambda index: _detail(items[index].own)):
        others = kept.setdefault(Path(items[index].path).parent if len(logs) > MAX_COMPARED else Path(), [])
        for main in others[:MAX_COMPARED]:
            if (whole := _whole(items[main], items[index])) is not None:
                items[main] = whole
                del items[index]
                break
        else:
            others.append(index)


def _detail(run: Run) -> tuple[bool, int, float, int]:
    """Return how little a log says of its run: whether it has steps, its metrics, the digits of its loss, its rows."""
    values = getattr(run.get("loss"), "values", np.zeros(0))
    return run.by_row, -len(run.series.keys() - CLOCKS), float(rounding(values).max(initial=0.0)), -len(values)


def _whole(item: Loaded, other: Loaded) -> Loaded | None:
    """Return a run with what another log of it adds; None where that is not proved to be of the same run."""
    if _are_copies(item, other):
        note = f"{clean(other.path)} is a copy of {clean(item.path)}: it is not judged again."
        return replace(item, run=replace(item.own, notes=(*item.own.notes, note)))
    # What one logger wrote side by side into folders of their own are runs of their own, however alike.
    here, there = (Path(places[0]).parent for places in (item.places, other.places))
    near = (item.files or other.files) and (here == there or here in there.parents or there in here.parents)
    match = _same_run(item.own, other.own) if item.format != other.format or near else None
    if match is None:
        return None
    run = _with(item.own, other.own, match, resumed=item.format == other.format)
    return replace(item, run=run, files=tuple(dict.fromkeys((*item.places, *other.places))))


def _are_copies(item: Loaded, other: Loaded) -> bool:
    """Whether two logs hold the same rows of the same series under the same settings."""
    one, two = item.own, other.own
    if one.series.keys() != two.series.keys() or _other_settings(one, two) or RANK_NAME.search(Path(other.path).name):
        return False
    pairs = [(series, two.series[name]) for name, series in one.series.items()]
    return max(_distinct(here.values) for here, _ in pairs) >= MIN_COPIED and all(
        np.array_equal(here.steps, there.steps) and np.array_equal(here.values, there.values, equal_nan=True)
        for here, there in pairs
    )


class SameRun(NamedTuple):
    """How two logs of one run go together."""

    here: Ints  # the steps of the rows that they share, int64 (n,) and rising, as the one log counts them
    there: Ints  # the same rows as the other log counts them
    # The metrics that each log measures on its own, such as a mean over an epoch and the last batch.
    apart: frozenset[str] = frozenset()

    @property
    def is_shared(self) -> bool:
        """Whether both logs count alike."""
        return np.array_equal(self.here, self.there)

    def moved(self, steps: Ints) -> Ints:
        """Return steps of the other log as steps of the one; beyond the shared rows at their usual distance."""
        if self.is_shared:
            return steps
        ratio = float(median(np.diff(self.here)) / max(median(np.diff(self.there)), 1))
        moved = np.interp(steps, self.there, self.here)
        for outside, at in ((steps < self.there[0], 0), (steps > self.there[-1], -1)):
            moved = np.where(outside, self.here[at] + (steps - self.there[at]) * ratio, moved)
        return np.rint(moved).astype(np.int64)


def _same_run(one: Run, other: Run) -> SameRun | None:
    """Return how two logs hold the same values; None where that is not proved, or some value differs.

    Either each of the shared steps has the same values, and these are many or all of one log; or the rows are the
    same from the first on, as where one log counts steps and the other one none. Where the training losses differ,
    as a mean over an epoch differs from a batch, all values measured on held-out data must be the same.
    """
    if one.ranks or other.ranks:
        return None
    apart = set[str]()
    for metric in DISTINCTIVE:
        here, there = one.get(metric), other.get(metric)
        if not (here and there):
            continue
        match = _aligned(one, other, here, there, held_out=metric in HELD_OUT)
        if match is not None and (metric in HELD_OUT or not apart):
            match = match._replace(apart=frozenset(apart))
            if _agree(one, other, match):
                return match
            return None
        # Where one log alone holds a value that is not finite, it would be hidden.
        if metric in HELD_OUT or np.isfinite(here.values).all() != np.isfinite(there.values).all():
            return None
        apart.add(metric)
    return None


def _agree(one: Run, other: Run, match: SameRun) -> bool:
    """Whether every metric is the same wherever both logs hold it."""
    for name in (one.series.keys() & other.series.keys()) - CLOCKS - match.apart:
        mine, theirs = one.series[name], other.series[name]
        _, at, there_at = np.intersect1d(mine.steps, match.moved(theirs.steps), return_indices=True)
        if len(at) and not alike(mine.values[at], theirs.values[there_at]):
            return False
    return True


def _aligned(one: Run, other: Run, here: Series, there: Series, *, held_out: bool) -> SameRun | None:
    """Return the steps of the rows in which two series of one metric have the same values, if those are a proof."""
    begins = _begin_alike(here, there)
    if not begins and np.array_equal(here.steps, there.steps):
        return None
    if not (one.by_row or other.by_row or one.by_epoch != other.by_epoch):
        steps, mine, theirs = np.intersect1d(here.steps, there.steps, assume_unique=True, return_indices=True)
        proof = MIN_WHOLE if len(steps) == min(len(here), len(there)) else PROVING_ROWS
        if _prove(here.values[mine], there.values[theirs], proof):
            return SameRun(steps, steps)
    count = min(len(here), len(there))
    proof = MIN_HELD_OUT if held_out and len(here) == len(there) else PROVING_ROWS
    if begins and _prove(here.values[:count], there.values[:count], proof):
        return SameRun(here.steps[:count], there.steps[:count])
    return None


def _begin_alike(here: Series, there: Series) -> bool:
    """Whether two series begin with the same values, by which most logs are told apart."""
    (first, off), (other_first, other_off) = _first_rows(here), _first_rows(there)
    rows = min(len(first), len(other_first))  # more rows may show more digits, never fewer
    return _within(first[:rows], other_first[:rows], off[:rows] + other_off[:rows])


def _prove(here: Floats, there: Floats, count: int) -> bool:
    """Whether values are alike, and so many of them different."""
    return len(here) >= count and alike(here, there) and min(_distinct(here), _distinct(there)) >= count


def _distinct(values: Floats) -> int:
    return len(np.unique(values[np.isfinite(values)]))


def alike(here: Floats, there: Floats) -> bool:
    """Whether values are the same in as many digits as both logs hold; a NaN is like a NaN alone."""
    return bool(len(here)) and _within(here, there, rounding(here) + rounding(there))


@remembered
def _first_rows(series: Series) -> tuple[Floats, Floats]:
    """Return the first values of a series, and how far they may be off: each log of a folder is compared with all."""
    values = series.values[:FIRST_ROWS]
    return values, rounding(values)


def _within(here: Floats, there: Floats, rounded: Floats) -> bool:
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(here - there) <= rounded + SINGLE * np.abs(here)
    return bool((off | (here == there) | (np.isnan(here) & np.isnan(there))).all())


def rounding(values: Floats) -> Floats:
    """Return how far values may be off because they were printed with few digits, float64 (n,); 0 where they were not.

    Trainers print so many digits behind the point, or so many in all; Keras does both, by the size of a number.
    """
    sizes = np.abs(np.where(np.isfinite(values), values, 0.0))
    exponents = np.floor(np.log10(np.where(sizes > 0, sizes, 1.0)))
    off = np.zeros(len(values))
    with np.errstate(over="ignore"):
        for shown, places in (sizes[sizes >= SMALL], np.zeros(len(values))), (sizes, exponents):
            scales = places[: len(shown)]
            digits = next((digits for digits in DIGITS if _are_whole(shown * 10.0 ** (digits - scales))), None)
            if digits is not None:
                off = np.maximum(off, 0.51 * 10.0 ** (places - digits))
    return off


def _are_whole(scaled: Floats) -> bool:
    """Whether numbers are whole, as far as double precision shows; a few rule out most."""
    return bool(np.isfinite(scaled).all()) and are_whole(scaled[:FIRST_ROWS]) and are_whole(scaled)


def _with(main: Run, other: Run, match: SameRun, *, resumed: bool) -> Run:
    """Return a run with all that another log of it holds besides, on its own axis of steps.

    Two logs of one logger, of which the later one repeats steps and goes beyond (`resumed`), are parts of the run.
    """
    name = clean(other.sources[0].path) if other.sources else other.name
    series, others = dict(main.series), dict(main.others)
    for metric, theirs in {**other.series, **other.others}.items():
        moved = replace(theirs, steps=match.moved(theirs.steps))
        if metric in match.apart or metric in other.others:
            key = metric if metric in other.others else f"{metric} ({Path(name).name})"
            spelled = any(len(one) == len(moved) and alike(one.values, moved.values) for one in main.others.values())
            if len(moved) > 1 and not spelled:
                others.setdefault(key, replace(moved, metric=key))
        elif metric not in CLOCKS or metric not in series:
            series[metric] = _union(series.get(metric), moved)
    resumes, further = main.resumes, other
    if match.is_shared:
        resumes += other.resumes + (_resumes(main, other, match) if resumed else ())
    else:
        further = replace(other, checkpoints={}, saved={})
    axis = next((source.steps_from for source in main.sources), "")
    return replace(
        main,
        series=series,
        others=others,
        config={**other.config, **main.config},
        gaps=_open_gaps(main, other, match, series),
        resumes=tuple(dict.fromkeys(resumes)),
        lines=_lines_of_both(main, other),
        sources=(*main.sources, *(replace(source, steps_from=axis) for source in other.sources)),
        checkpoints=main.checkpoints or further.checkpoints,
        saved=main.saved or further.saved,
        notes=tuple(dict.fromkeys((*main.notes, _added(name, main, series), *other.notes))),
    )


def _resumes(main: Run, other: Run, match: SameRun) -> tuple[Resume, ...]:
    """Return the resume of a run of which one log goes on from the other."""
    before, part = sorted((_span(main), _span(other)))
    resumed = part[0] <= before[1] and _follows(part, before)
    return (Resume(before[1], part[0], len(match.here)),) if resumed else ()


def _open_gaps(main: Run, other: Run, match: SameRun, series: Mapping[str, Series]) -> tuple[Gap, ...]:
    """Return the gaps of both logs that no row of the other one fills."""
    gaps = [*main.gaps]
    for gap in other.gaps if not match.apart else ():
        first, last = match.moved(np.array([gap.first_step, gap.last_step])).tolist()
        gaps.append(replace(gap, first_step=first, last_step=last))
    steps = {metric: one.steps for metric, one in series.items()}
    ends = {
        gap: np.searchsorted(steps.get(gap.metric, steps.get("loss", ())), [gap.first_step, gap.last_step + 1])
        for gap in gaps
    }
    return tuple(gap for gap, (begin, end) in ends.items() if begin == end)


def _union(mine: Series | None, theirs: Series) -> Series:
    """Return the values of two series of one metric; where both hold a step mine count, unless theirs is not finite."""
    steps, values = theirs.steps, theirs.values
    if mine is not None:
        broken = ~np.isfinite(values)
        steps = np.concatenate([steps, mine.steps, steps[broken]])
        values = np.concatenate([values, mine.values, values[broken]])
    order = np.argsort(steps, kind="stable")
    order = order[np.append(np.diff(steps[order]) > 0, True)]
    steps, values = steps[order], values[order]
    steps.flags.writeable = values.flags.writeable = False
    return replace(mine or theirs, steps=steps, values=values)


def _added(name: str, main: Run, series: dict[str, Series]) -> str:
    """Return what a log of the same values added to a run."""
    last = max((int(one.steps[-1]) for one in series.values() if one), default=0)
    more = [metric for metric in series if metric not in main.series]
    rows = max((len(one) - len(main.series.get(metric, ())) for metric, one in series.items()), default=0)
    added = "adds no value"
    if main.last_step is not None and last > main.last_step:
        added = f"goes on from {main.unit} {main.last_step:,} to {last:,}"
    elif more:
        added = f"adds {', '.join(more)}"
    elif rows:
        added = f"adds {rows:,} rows"
    return f"{name} holds the same run, and {added}."


def _lines_of_both(one: Run, other: Run) -> tuple[LogLine, ...]:
    """Return the lines of two logs; what the first one holds is not repeated."""
    texts = {line.text for line in one.lines}
    return (*one.lines, *(line for line in other.lines if line.text not in texts))


def _add_asides(items: Items) -> None:
    """Add to the one run what the logs beside it say that are no runs, and leave these out."""
    runs = [index for index, item in items.items() if item.has_rows and not _is_single_row(item)]
    if len(runs) != 1:
        return
    several_ends = sum(map(_is_silent, items.values())) > 1
    for index, item in list(items.items()):
        main = items[runs[0]]
        if index == runs[0] or (several_ends and _is_silent(item)):
            continue
        if note := _aside(main, item):
            lines, notes = _lines_of_both(main.own, item.own), (*main.own.notes, note)
            items[runs[0]] = replace(main, run=replace(main.own, lines=lines, notes=notes))
            del items[index]


def _is_silent(item: Loaded) -> bool:
    return isinstance(item.run, Run) and not item.run.series


def _aside(main: Loaded, item: Loaded) -> str:
    """Return what a log without a run of its own adds to the one run; nothing where it is not of that run.

    It may hold how that ended, or the last state of a progress bar that wrote over itself.
    """
    if isinstance(item.run, StabtreeError) or not _are_near(main, item):
        return ""
    if item.has_rows:
        return f"Not judged: {clean(item.path)} holds a single row."
    return f"How the run ended was read from {clean(Path(item.path).name, 60)}, which is beside its metrics."


def _is_single_row(item: Loaded) -> bool:
    series = item.own.series.values()
    alone = all(len(one) == 1 and np.isfinite(one.values[0]) for one in series)
    return alone and bool(item.files) and item.format == "text"


def _are_near(run: Loaded, end: Loaded) -> bool:
    """Whether a printed log is in the folder of a run, or in one above; or inside the folder that a logger wrote."""
    folders = set(chain.from_iterable(Path(path).parents for path in run.places))
    inside = not run.files and all(Path(run.path) in Path(path).parents for path in end.places)
    return inside or all(Path(path).parent in folders for path in end.places)


Ends = tuple[int | None, int | None]
OPTION = "--steps"


def stretch_of(text: str | None) -> Ends | None:
    """Return the first and the last step of `A:B`, None for an open end; None without the option.

    Raises:
        StabtreeError: if the text is not of that form, or ends before it begins.
    """
    if text is None:
        return None
    shown, ends = repr(clean(text, 40)), re.fullmatch(r"\s*(\d{0,16})\s*:\s*(\d{0,16})\s*", text, re.ASCII)
    first, last = (int(end) if end else None for end in ends.groups()) if ends else (None, None)
    if first is last is None or max(first or 0, last or 0) >= MAX_STEP:
        hint = f"type {OPTION} 500:800, {OPTION} 500: or {OPTION} :800"
        raise StabtreeError(f"{shown} is not of the form A:B", where=OPTION, hint=hint)
    if first is not None and last is not None and first > last:
        raise StabtreeError(f"{shown} ends before it begins", where=OPTION, hint=f"type {OPTION} {last}:{first}")
    return first, last


def cut(loaded: Loaded, ends: Ends | None) -> Loaded:
    """Return a loaded run cut to the range of steps; with its error if no step is in it."""
    if ends is None or isinstance(loaded.run, StabtreeError):
        return loaded
    try:
        return replace(loaded, run=stretch(loaded.run, *ends))
    except StabtreeError as error:
        return replace(loaded, run=error)


def stretch(run: Run, first: int | None = None, last: int | None = None) -> Run:
    """Return the run as if its log held the rows of these steps alone, both included; a note says so.

    Checkpoints from before it are kept: a run can go back to them. An error line that ends the log is left out where
    the stretch ends before it; no other line has a step, so those are kept.

    Raises:
        StabtreeError: where it holds no row.
    """
    rows = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *(one.steps for one in run.series.values())]))
    low = int(rows.min(initial=MAX_STEP)) if first is None else first
    high = int(rows.max(initial=0)) if last is None else last
    inside = rows[(rows >= low) & (rows <= high)]
    if not len(inside):
        asked = ":".join("" if end is None else str(end) for end in (first, last))
        hint = f"the log has steps {rows[0]:,} to {rows[-1]:,}" if len(rows) else "the log has no rows"
        raise StabtreeError(f"no row of {run.name} lies in it", where=f"{OPTION} {asked}", hint=hint)
    series = _cut_series(run.series, low, high)
    config = dict(run.config)
    listed = config.get("checkpoints")
    if listed and isinstance(listed.value, tuple):
        config["checkpoints"] = replace(listed, value=tuple(_up_to(high, dict.fromkeys(listed.value))))
    goes_on = high < rows[-1]
    note = f"Judged: steps {low:,} to {high:,} only ({OPTION})"
    note += f"; {len(rows) - len(inside):,} of {len(rows):,} rows lie outside."
    return replace(
        run,
        series=series,
        config=config,
        ranks={rank: _cut_series(own, low, high) for rank, own in run.ranks.items()},
        written=_cut_series(run.written, low, high),
        gaps=tuple(_cut_gaps(run.gaps, series, inside)),
        resumes=tuple(item for item in run.resumes if low < item.to_step <= high),
        checkpoints=_up_to(high, run.checkpoints),
        saved=_up_to(high, run.saved),
        epoch_ends={step: epoch for step, epoch in run.epoch_ends.items() if low <= step <= high},
        lines=tuple(line for line in run.lines if not (line.at_end and goes_on)),
        goes_on=bool(goes_on),
        notes=(note, *run.notes),
    )


def _up_to(high: int, steps: Mapping[int, T]) -> dict[int, T]:
    return {step: value for step, value in steps.items() if step <= high}


def _cut_series(series: Mapping[str, Series], low: int, high: int) -> dict[str, Series]:
    cut_to = {}
    for name, one in series.items():
        span = slice(*np.searchsorted(one.steps, [low, high + 1]).tolist())
        if span.start < span.stop:
            cut_to[name] = replace(one, steps=one.steps[span], values=one.values[span])
    return cut_to


def _cut_gaps(gaps: Sequence[Gap], series: Mapping[str, Series], inside: Ints) -> Iterator[Gap]:
    """Yield the part of each gap within a stretch, if the metric was logged in it before."""
    for gap in gaps:
        within = inside[(inside >= gap.first_step) & (inside <= gap.last_step)]
        if gap.metric in series and len(within) and series[gap.metric].steps[0] < within[0]:
            at_end = bool(gap.at_end or gap.last_step > inside[-1])
            yield Gap(gap.metric, int(within[0]), int(within[-1]), min(gap.rows, len(within)), at_end)
