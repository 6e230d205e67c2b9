"""From rows to a run: ranks separated or parts put together, resumes resolved, gaps found."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.assemble.gaps import ends_aside, find_gaps, here_and_there
from stabtree.loaders.assemble.history import history
from stabtree.loaders.table import Column
from stabtree.run import Series

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.common.lazy import Floats, Ints
    from stabtree.loaders.assemble.columns import MetricRows
    from stabtree.run import Gap, Resume

RANK_NAME = re.compile(r"(?:rank|worker|process|proc|gpu|device)[-_.]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Assembled:
    """The series of one rank, or of all, and what was found on the way."""

    series: Mapping[str, Series]
    gaps: tuple[Gap, ...] = ()
    ranks: Mapping[str, Mapping[str, Series]] | None = None
    resumes: tuple[Resume, ...] = ()
    notes: tuple[str, ...] = ()


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
        return Assembled(whole.series, whole.gaps, None, whole.resumes, (stitched, *whole.notes))
    else:
        by_rank = dict(zip(_rank_names(files), files, strict=True))
        note = (f"The files are {len(files)} ranks of one run: its series are the mean over the ranks.",)
    return _ranked(by_rank, note)


def _single(rows: MetricRows) -> Assembled:
    """Return the run of one rank."""
    loss = rows.metrics.get("loss")
    past = history(rows.steps, None if loss is None else loss.logged)
    current = rows if past.keep is None else rows.pick(past.keep)
    series, repeated = _series(current)
    gaps = find_gaps(current.steps, current.metrics, series)
    notes = past.notes
    if repeated:
        notes = (*notes, f"Steps that are logged more than once: {repeated}, the later value counts.")
    rate = current.metrics.get("lr")
    if rate and rate.mask[-1] and ends_aside(current.steps, current.metrics):
        notes = (*notes, f"The last row, of step {int(current.steps[-1]):,}, holds no loss.")
    notes = (*notes, *here_and_there(current.steps, current.metrics, series))
    return Assembled(series, gaps, None, past.resumes, notes)


def _concatenate(files: Sequence[MetricRows]) -> MetricRows:
    """Return the rows of all files below each other; a metric that a file lacks is not logged there."""
    metrics = {}
    for metric in dict.fromkeys(chain.from_iterable(rows.metrics for rows in files)):
        metrics[metric] = _joined([rows.metrics.get(metric) or _nothing(len(rows.steps)) for rows in files])
    origins: dict[str, str] = {}
    for rows in reversed(files):
        origins.update(rows.origins)
    steps = np.concatenate([rows.steps for rows in files])
    return replace(files[0], steps=steps, metrics=metrics, origins=origins, ranks=None)


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


def _series(rows: MetricRows) -> tuple[dict[str, Series], int]:
    """Return each metric on its own steps, and how many steps some metric has more than once."""
    whole: tuple[Ints, Ints | None] | None = None
    series: dict[str, Series] = {}
    repeated = 0
    for metric, column in rows.metrics.items():
        if column.logged is None:
            # What is logged in every row shares one array of steps.
            whole = whole or _order(rows.steps)
            steps, order = whole
            own, values = rows.steps, column.values
        else:
            own, values = rows.steps[column.logged], column.values[column.logged]
            steps, order = _order(own)
        if len(steps):
            repeated = max(repeated, len(values) - len(steps))
            if len(values) > len(steps) and not np.isfinite(values).all():
                order = _worst_of_each(own, values)
            found = _frozen(metric, steps, values if order is None else values[order], rows.origins[metric])
            series[metric] = replace(found, labels=column.labels) if column.labels else found
    return series, repeated


def _order(steps: Ints) -> tuple[Ints, Ints | None]:
    """Return strictly increasing steps, and which rows they are of; of several rows of one step the last."""
    if (steps[1:] > steps[:-1]).all():
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
    parts: dict[str, list[Series]] = {}
    for single in singles.values():
        for metric, own in single.series.items():
            parts.setdefault(metric, []).append(own)
    series = {metric: _mean(metric, own) for metric, own in parts.items()}
    merged = _concatenate(list(by_rank.values()))
    # A rank that falls silent alone is hidden by the others in the merged rows.
    gaps = [*(single.gaps for single in singles.values()), find_gaps(merged.steps, merged.metrics, series)]
    own_notes = dict.fromkeys(chain.from_iterable(single.notes for single in singles.values()))
    return Assembled(
        series=series,
        gaps=tuple(dict.fromkeys(chain.from_iterable(gaps))),
        ranks={rank: single.series for rank, single in singles.items()},
        resumes=tuple(dict.fromkeys(chain.from_iterable(single.resumes for single in singles.values()))),
        notes=(*notes, *_early_ranks(singles), *own_notes),
    )


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
