"""From rows to a run: ranks separated or parts put together, resumes resolved, gaps found."""

from __future__ import annotations

import re
from dataclasses import field, replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.lazy import np
from stabtree.common.passes import broken_rows, hand_on, increases
from stabtree.common.text import clean
from stabtree.loaders.assemble.gaps import ends_aside, find_gaps, here_and_there
from stabtree.loaders.assemble.history import history
from stabtree.loaders.table import Column
from stabtree.run import Series

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.loaders.assemble.columns import MetricRows
    from stabtree.run import Gap, Resume

RANK_NAME = re.compile(r"(?:rank|worker|process|proc|gpu|device)[-_.]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Assembled:
    """The series of one rank, or of all, and what was found on the way; `others` are those of no metric."""

    series: Mapping[str, Series]
    gaps: tuple[Gap, ...] = ()
    ranks: Mapping[str, Mapping[str, Series]] | None = None
    resumes: tuple[Resume, ...] = ()
    notes: tuple[str, ...] = ()
    others: Mapping[str, Series] = field(default_factory=dict)


def assemble(files: Sequence[MetricRows]) -> Assembled:
    """Return one run from the rows of one file, of several ranks, or of several parts."""
    note: tuple[str, ...] = ()
    if len(files) == 1:
        rows = files[0]
        if rows.ranks is None:
            return _single(rows)
        by_rank = {str(rank): rows.pick(rows.ranks == rank) for rank in np.unique(rows.ranks).tolist()}
    elif _are_parts(files):
        ordered = sorted(files, key=lambda rows: int(rows.steps.min()) if len(rows.steps) else 0)
        whole = _single(_concatenate(ordered))
        names = ", ".join(rows.source.path for rows in ordered)
        stitched = f"The files are parts of one run, read in this order: {names}."
        return replace(whole, notes=(stitched, *whole.notes))
    else:
        by_rank = dict(zip(_rank_names(files), files, strict=True))
        note = (f"The files are {len(files)} ranks of one run: its series are the mean over the ranks.",)
    return _ranked(by_rank, note)


def _single(rows: MetricRows) -> Assembled:
    """Return the run of one rank."""
    loss = rows.metrics.get("loss")
    past = history(rows.steps, None if loss is None else loss.logged, _broken(rows))
    current = rows if past.keep is None else rows.pick(past.keep)
    series, repeated = _series(current.steps, current.metrics, current.origins)
    others, _ = _series(current.steps, current.others, {name: name for name in current.others})
    gaps = find_gaps(current.steps, current.metrics, series, current.evaluations)
    notes = past.notes
    if repeated:
        notes = (*notes, f"Steps that are logged more than once: {repeated}, the later value counts.")
    rate = current.metrics.get("lr")
    if rate and rate.mask[-1] and ends_aside(current.steps, current.metrics):
        notes = (*notes, f"The last row, of step {int(current.steps[-1]):,}, holds no loss.")
    notes = (*notes, *here_and_there(current.steps, current.metrics, series))
    return Assembled(series, gaps, None, past.resumes, notes, others)


def _broken(rows: MetricRows) -> Bools:
    """Return which rows hold a value of a metric that is not finite, bool (n,)."""
    broken = np.zeros(len(rows.steps), dtype=np.bool_)
    for column in rows.metrics.values():
        if column.logged is None:
            broken[broken_rows(column)] = True
        else:
            broken |= column.logged & ~np.isfinite(column.values)
    return broken


def _concatenate(files: Sequence[MetricRows]) -> MetricRows:
    """Return the rows of all files below each other; a metric that a file lacks is not logged there."""
    sizes = [len(rows.steps) for rows in files]
    metrics = _below([rows.metrics for rows in files], sizes)
    others = _below([rows.others for rows in files], sizes)
    origins: dict[str, str] = {}
    for rows in reversed(files):
        origins.update(rows.origins)
    steps = np.concatenate([rows.steps for rows in files])
    return replace(files[0], steps=steps, metrics=metrics, others=others, origins=origins, ranks=None)


def _below(files: Sequence[Mapping[str, Column]], sizes: Sequence[int]) -> dict[str, Column]:
    """Return the columns of files with so many rows, joined by name."""
    joined = {}
    for name in dict.fromkeys(chain.from_iterable(files)):
        joined[name] = _joined([own.get(name) or _nothing(rows) for own, rows in zip(files, sizes, strict=True)])
    return joined


def _joined(parts: Sequence[Column]) -> Column:
    logged = np.concatenate([part.mask for part in parts])
    labels: dict[float, str] = {}
    for part in parts:
        labels.update(part.labels)
    return Column(
        np.concatenate([part.values for part in parts]),
        None if logged.all() else logged,
        sporadic=any(part.sporadic for part in parts),
        labels=labels,
    )


def _nothing(rows: int) -> Column:
    return Column(np.zeros(rows), np.zeros(rows, dtype=np.bool_))


def _series(rows: Ints, columns: Mapping[str, Column], origins: Mapping[str, str]) -> tuple[dict[str, Series], int]:
    """Return each column on its own steps, and how many steps some column has more than once; `rows` are the steps."""
    whole: tuple[Ints, Ints | None] | None = None
    series: dict[str, Series] = {}
    repeated = 0
    for metric, column in columns.items():
        if column.logged is None:
            # What is logged in every row shares one array of steps.
            whole = whole or _order(rows)
            steps, order = whole
            own, values = rows, column.values
        else:
            own, values = rows[column.logged], column.values[column.logged]
            steps, order = _order(own)
        if len(steps):
            repeated = max(repeated, len(values) - len(steps))
            if len(values) > len(steps) and not np.isfinite(values).all():
                order = _worst_of_each(own, values)
            found = _frozen(metric, steps, values if order is None else values[order], origins[metric])
            hand_on(column, found)
            series[metric] = replace(found, labels=column.labels) if column.labels else found
    return series, repeated


def _order(steps: Ints) -> tuple[Ints, Ints | None]:
    """Return strictly increasing steps, and which rows they are of; of several rows of one step the last."""
    if increases(steps):
        return steps, None
    order = np.argsort(steps, kind="stable")
    ordered = steps[order]
    last = np.append(ordered[1:] != ordered[:-1], True)
    return ordered[last], order[last]


def _worst_of_each(steps: Ints, values: Floats) -> Ints:
    """Return which row to keep of each step: one that is not finite (a micro-batch, a rank), else the last."""
    order: Ints = np.lexsort((np.arange(len(steps)), ~np.isfinite(values), steps))
    kept: Ints = order[np.append(steps[order][1:] != steps[order][:-1], True)]
    return kept


def _frozen(metric: str, steps: Ints, values: Floats, origin: str) -> Series:
    """Return a series whose arrays nobody can write to."""
    steps.flags.writeable = False
    values.flags.writeable = False
    return Series(metric, steps, values, clean(origin, 80))


def _are_parts(files: Sequence[MetricRows]) -> bool:
    """Whether the files hold one stretch of steps each, as a run that went on in a new file does."""
    if all(RANK_NAME.search(rows.source.path) for rows in files):
        return False
    spans = sorted((int(rows.steps.min()), int(rows.steps.max())) for rows in files)
    for (first, last), (begin, end) in pairwise(spans):
        # A restart from a checkpoint repeats some steps, however many; ranks begin together.
        together = begin - first <= 0.05 * (last - first)
        if begin <= last and together and last - begin >= 0.5 * min(last - first, end - begin):
            return False
    return True


def _rank_names(files: Sequence[MetricRows]) -> list[str]:
    """Return the ranks' numbers as in the file names, else their indices."""
    stems = [re.split(r"[\\/]", rows.source.path)[-1] for rows in files]
    named = [next(iter(RANK_NAME.findall(stem)), "") for stem in stems]
    if any(named) and named.count("") == 1:
        named = [name or "0" for name in named]  # `run.jsonl` beside `run.rank1.jsonl`
    if not all(named):
        named = [["", *re.findall(r"\d+", stem)][-1] for stem in stems]
    numbers = {str(int(name)): None for name in named if name}
    if len(numbers) == len(files):
        return list(numbers)
    return [str(index) for index in range(len(files))]


def _ranked(by_rank: Mapping[str, MetricRows], notes: tuple[str, ...]) -> Assembled:
    """Return the run of several ranks: the mean over the ranks at each step, so that a NaN on one is seen."""
    singles = {rank: _single(rows) for rank, rows in sorted(by_rank.items(), key=lambda item: int(item[0]))}
    series = _means([single.series for single in singles.values()])
    merged = _concatenate([replace(rows, others={}) for rows in by_rank.values()])
    # A rank that falls silent alone is hidden by the others in the merged rows.
    gaps = [*(single.gaps for single in singles.values()), find_gaps(merged.steps, merged.metrics, series)]
    own_notes = dict.fromkeys(chain.from_iterable(single.notes for single in singles.values()))
    return Assembled(
        series=series,
        gaps=tuple(dict.fromkeys(chain.from_iterable(gaps))),
        ranks={rank: single.series for rank, single in singles.items()},
        resumes=tuple(dict.fromkeys(chain.from_iterable(single.resumes for single in singles.values()))),
        notes=(*notes, *_early_ranks(singles), *own_notes),
        others=_means([single.others for single in singles.values()]),
    )


def _means(ranks: Sequence[Mapping[str, Series]]) -> dict[str, Series]:
    """Return the mean over the ranks of each of their series."""
    parts: dict[str, list[Series]] = {}
    for own in chain.from_iterable(rank.items() for rank in ranks):
        parts.setdefault(own[0], []).append(own[1])
    return {name: _mean(name, own) for name, own in parts.items()}


def _early_ranks(singles: Mapping[str, Assembled]) -> Iterator[str]:
    """Yield a note if the loss of some ranks ends long before that of the others."""
    ends = {rank: int(single.series["loss"].steps[-1]) for rank, single in singles.items() if "loss" in single.series}
    last = max(ends.values(), default=0)
    early = [rank for rank, end in ends.items() if end < last - 0.1 * last]
    if early:
        yield f"The loss of rank {', '.join(early[:8])} ends before that of the others, at step {ends[early[0]]}."


def _mean(metric: str, parts: Sequence[Series]) -> Series:
    if metric == "batch_id" or len(parts) == 1:
        return parts[0]
    steps, index = np.unique(np.concatenate([part.steps for part in parts]), return_inverse=True)
    values = np.concatenate([part.values for part in parts])
    with np.errstate(over="ignore", invalid="ignore"):
        totals = np.bincount(index, weights=values)
        return _frozen(metric, steps, totals / np.bincount(index), parts[0].origin)
