"""Tables as a run: ranks separated or parts put together, resumes resolved, gaps found, placeholders interpreted."""

from __future__ import annotations

import re
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.common.passes import broken_rows, hand_on, increases
from stabtree.common.shared import ROWS_SHORT, SHARE_MOST
from stabtree.common.stats import median
from stabtree.common.text import clean
from stabtree.loaders.assemble.columns import to_rows
from stabtree.loaders.assemble.course import find_gaps, history, interpret
from stabtree.loaders.table import Column, unless_all
from stabtree.metrics.names import NO_COURSE, is_single, nonfinite_losses
from stabtree.metrics.role import Ranking
from stabtree.run import Run, Series, Setting, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.common.lazy import Ints
    from stabtree.loaders.assemble.columns import MetricRows
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names
    from stabtree.run import Gap, Resume

RANK_NAME = re.compile(r"(?:rank|worker|process|proc|gpu|device)[-_.]?(\d+)", re.IGNORECASE)
_LOGGED_BY = {"log_interval": ("loss",), "eval_every": ("eval_loss", "eval_quality")}
_LR_OF = re.compile(r"(?:^|/)lr-([A-Z][A-Za-z]*)")


class Assembled(Struct, frozen=True):
    """The series of one rank, or of all, and what was found on the way; `others` are those of no metric."""

    series: Mapping[str, Series] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    ranks: Mapping[str, Mapping[str, Series]] = field(default_factory=dict)
    resumes: tuple[Resume, ...] = ()
    notes: tuple[str, ...] = ()
    others: Mapping[str, Series] = field(default_factory=dict)


def run_of(
    tables: Sequence[Table], names: Names, called: str, settings: Mapping[str, Setting], notes: Sequence[str] = ()
) -> Run:
    """Return the run in some tables, one for each file, or of values in memory.

    It is named as it is `called` if its settings, with their sources, have no name; `notes` say what was assumed.
    """
    tables = [_without_course(table, names) for table in tables]
    silent = [table for table in tables if not table.rows and table.lines]  # they hold the error a run ended in alone
    alone = len(tables) - len(silent) == 1
    rows = [to_rows(table, names, alone=alone) for table in tables if table not in silent]
    made = _assemble(rows) if rows else Assembled()
    settings = {**_told_by_names(rows), **settings}
    name = settings.pop("name", None)
    settings, contradictions = _as_logged(settings, made.series, rows)
    series, meanings = interpret(made.series, settings)
    read = chain(*(table.notes for table in silent), *(part.notes for part in rows))
    others = {f"{name} (column)" if name in series else name: one for name, one in made.others.items()}
    every_note = (*notes, *read, *made.notes, *meanings, *contradictions, *_lost(rows, made))
    return Run(
        name=str(name.value) if name else called,
        series=series,
        others={name: one if one.metric == name else replace(one, metric=name) for name, one in others.items()},
        config=settings,
        gaps=made.gaps,
        ranks={rank: interpret(own, settings)[0] for rank, own in made.ranks.items()},
        resumes=made.resumes,
        lines=tuple(chain.from_iterable(table.lines for table in tables)),
        sources=tuple(part.source for part in rows),
        epoch_ends=dict(chain.from_iterable(part.epoch_ends.items() for part in rows)),
        saved=dict(chain.from_iterable(part.saved.items() for part in rows)),
        loss_ranking=next((part.choice.ranking for part in rows if part.choice.ranking.candidates), Ranking()),
        written={name: one for name, one in made.series.items() if series.get(name, one) is not one},
        notes=tuple(dict.fromkeys(every_note)),
    )


def _without_course(table: Table, names: Names) -> Table:
    """Return a table of final values as lines, if one of its losses is not finite: that is worth a verdict."""
    if not is_single(table.columns, table.rows, names):
        return table
    lines = nonfinite_losses({name: float(one.values[0]) for name, one in table.columns.items() if one and one.count})
    if not lines:
        return table
    return replace(table, rows=0, columns={}, lines=(*table.lines, *lines), notes=(*table.notes, NO_COURSE))


def _told_by_names(rows: Sequence[MetricRows]) -> dict[str, Setting]:
    """Return the settings that names of columns tell: how the loss moves by nature, and the optimizer of `lr-AdamW`."""
    told = {}
    if kind := next((part.choice.kind for part in rows if part.choice.kind), ""):
        told["loss_kind"] = Setting(kind, "the loss's name")
    for column in chain.from_iterable(part.source.columns for part in rows):
        if column.metric == "lr" and (match := _LR_OF.search(column.name)):
            told.setdefault("optimizer", Setting(match[1].lower(), f"column {clean(column.name, 40)}"))
    return told


def _as_logged(
    settings: dict[str, Setting], series: Mapping[str, Series], rows: Sequence[MetricRows]
) -> tuple[dict[str, Setting], list[str]]:
    """Return the settings with the intervals of the rows where these differ, and without a checkpoint's that is none.

    So it is where a trainer logs by epochs, and the intervals are its defaults; what the user typed is left alone.
    """
    found, notes = dict(settings), list[str]()
    for key, metrics in _LOGGED_BY.items() if unit_of(part.source for part in rows) == "step" else ():
        given, one = settings.get(key), next((series[metric] for metric in metrics if metric in series), None)
        if given is None or not isinstance(given.value, int) or one is None or len(one) < ROWS_SHORT:
            continue
        apart = np.diff(one.steps)
        usual, saved = int(median(apart)), settings.get("checkpoint_every", given)
        if usual % given.value == 0 or np.count_nonzero(apart == usual) < SHARE_MOST * len(apart):
            continue
        found[key] = Setting(usual, f"rows of {one.metric}")
        notes.append(f"{key} is {given.value:,} by {given.source}, but {one.metric} is logged every {usual:,} steps.")
        if isinstance(saved.value, int) and saved.value % usual and not saved.source.startswith("--"):
            found.pop("checkpoint_every", None)
    return found, notes


def _lost(rows: Sequence[MetricRows], made: Assembled) -> Iterator[str]:
    """Yield the notes on what was not read, was replaced, or is missing."""
    for source in (part.source for part in rows if part.source.skipped_count):
        first, lines = source.skipped[0], _counted(source.skipped_count, "line")
        yield f"Not read of {source.path}: {lines}, the first is line {first.line:,}, which {first.reason}."
    for resume in made.resumes[:5]:
        text = f"after step {resume.from_step:,} the log goes back to {resume.to_step:,}"
        replaced = _counted(resume.replaced_rows, "row")
        if resume.broken_rows:
            replaced += f", {resume.broken_rows:,} of them not finite"
        yield f"A resume: {text} and replaces {replaced}."
    for gap in made.gaps[:5]:
        steps = f"{_counted(gap.rows, 'row')} of steps {gap.first_step:,} to {gap.last_step:,}"
        yield f"{gap.metric} is missing in {steps} while the log goes on."


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' if count != 1 else ''}"


def _assemble(files: Sequence[MetricRows]) -> Assembled:
    """Return one run from the rows of one file, of several ranks, or of several parts."""
    ranks = files[0].ranks
    if len(files) == 1:
        if ranks is None:
            return _single(files[0])
        return _ranked({str(rank): files[0].pick(ranks == rank) for rank in np.unique(ranks).tolist()}, ())
    spans = sorted((int(rows.steps.min()), int(rows.steps.max())) for rows in files)
    # Parts hold one stretch of steps each. A restart from a checkpoint repeats some steps, however many; ranks begin
    # together.
    together = any(
        begin <= min(last, first + 0.05 * (last - first)) and last - begin >= 0.5 * min(last - first, end - begin)
        for (first, last), (begin, end) in pairwise(spans)
    )
    if not together and not all(RANK_NAME.search(rows.source.path) for rows in files):
        ordered = sorted(files, key=lambda rows: int(rows.steps.min()))
        whole = _single(_concatenate(ordered))
        paths = ", ".join(rows.source.path for rows in ordered)
        return replace(whole, notes=(f"The files are parts of one run, read in this order: {paths}.", *whole.notes))
    note = f"The files are {len(files)} ranks of one run: its series are the mean over the ranks."
    return _ranked(dict(zip(_rank_names(files), files, strict=True)), (note,))


def _single(rows: MetricRows) -> Assembled:
    """Return the run of one rank."""
    carries, broken = np.ones(len(rows.steps), dtype=np.bool_), np.zeros(len(rows.steps), dtype=np.bool_)
    if "loss" in rows.metrics:
        carries = rows.metrics["loss"].mask
    for column in rows.metrics.values():
        at = broken_rows(column)
        broken[at[column.mask[at]]] = True
    past = history(rows.steps, carries, broken)
    current = rows if past.keep is None else rows.pick(past.keep)
    series, repeated = _series(current.steps, current.metrics, current.origins)
    others, _ = _series(current.steps, current.others, {name: name for name in current.others})
    notes = past.notes
    if repeated:
        notes = (*notes, f"Steps that are logged more than once: {repeated}, the later value counts.")
    gaps = find_gaps(current.steps, current.metrics, series, current.evaluations)
    return Assembled(series, gaps, resumes=past.resumes, notes=notes, others=others)


def _series(rows: Ints, columns: Mapping[str, Column], origins: Mapping[str, str]) -> tuple[dict[str, Series], int]:
    """Return each column on its own steps, and how many steps some column has more than once; `rows` are the steps."""
    whole = _order(rows)  # what is logged in every row shares one array of steps
    series: dict[str, Series] = {}
    repeated = 0
    for metric, column in columns.items():
        own, values, (steps, order) = rows, column.held, whole
        if column.logged is not None:
            own = rows[column.logged]
            steps, order = _order(own)
        if not len(steps):
            continue
        repeated = max(repeated, len(values) - len(steps))
        if len(values) > len(steps) and not np.isfinite(values).all():
            # Of each step a value that is not finite (of a micro-batch) counts, else the last one.
            order = np.lexsort((np.arange(len(own)), ~np.isfinite(values), own))
            order = order[np.append(own[order][1:] != own[order][:-1], True)]
        one = _frozen(metric, steps, values if order is None else values[order], origins[metric])
        hand_on(column, one)
        series[metric] = replace(one, labels=column.labels) if column.labels else one
    return series, repeated


def _order(steps: Ints) -> tuple[Ints, Ints | None]:
    """Return strictly increasing steps, and which rows they are of; of several rows of one step the last."""
    if increases(steps):
        return steps, None
    order = np.argsort(steps, kind="stable")
    order = order[np.append(np.diff(steps[order]) != 0, True)]
    return steps[order], order


def _frozen(metric: str, steps: Ints, values: np.ndarray, origin: str) -> Series:
    """Return a series whose arrays nobody can write to."""
    steps.flags.writeable = False
    values.flags.writeable = False
    return Series(metric, steps, values, clean(origin, 80))


def _concatenate(files: Sequence[MetricRows]) -> MetricRows:
    """Return the rows of all files below each other; a metric that a file lacks is not logged there."""
    nothing = [Column(np.zeros(len(rows.steps)), np.zeros(len(rows.steps), dtype=np.bool_)) for rows in files]

    def below(columns: Sequence[Mapping[str, Column]]) -> dict[str, Column]:
        joined = {}
        for name in dict.fromkeys(chain.from_iterable(columns)):
            parts = [own.get(name) or empty for own, empty in zip(columns, nothing, strict=True)]
            values = np.concatenate([part.values for part in parts])
            logged = np.concatenate([part.mask for part in parts])
            labels = dict(chain.from_iterable(part.labels.items() for part in parts))
            sporadic = any(part.sporadic for part in parts)
            joined[name] = Column(values, unless_all(logged), sporadic=sporadic, labels=labels)
        return joined

    metrics, others = below([rows.metrics for rows in files]), below([rows.others for rows in files])
    origins = dict(chain.from_iterable(rows.origins.items() for rows in reversed(files)))
    steps = np.concatenate([rows.steps for rows in files])
    return replace(files[0], steps=steps, metrics=metrics, others=others, origins=origins, ranks=None)


def _rank_names(files: Sequence[MetricRows]) -> list[str]:
    """Return the ranks' numbers as in the file names, else their indices; `run.jsonl` beside `run.rank1.jsonl` is 0."""
    named = [next(iter(RANK_NAME.findall(re.split(r"[\\/]", rows.source.path)[-1])), "") for rows in files]
    numbers = list(dict.fromkeys(int(name or "0") for name in named))
    return list(map(str, numbers if len(numbers) == len(files) else range(len(files))))


def _ranked(by_rank: Mapping[str, MetricRows], notes: tuple[str, ...]) -> Assembled:
    """Return the run of several ranks: the mean over the ranks at each step, so that a NaN on one is seen."""
    singles = {rank: _single(rows) for rank, rows in sorted(by_rank.items(), key=lambda item: int(item[0]))}
    every = singles.values()
    return Assembled(
        series=_means([single.series for single in every]),
        gaps=tuple(dict.fromkeys(chain(*(single.gaps for single in every)))),
        ranks={rank: single.series for rank, single in singles.items()},
        resumes=tuple(dict.fromkeys(chain(*(single.resumes for single in every)))),
        notes=tuple(dict.fromkeys(chain(notes, *(single.notes for single in every)))),
        others=_means([single.others for single in every]),
    )


def _means(ranks: Sequence[Mapping[str, Series]]) -> dict[str, Series]:
    """Return the mean over the ranks of each of their series; batches have none."""
    means = {}
    for metric in dict.fromkeys(chain.from_iterable(ranks)):
        parts = [rank[metric] for rank in ranks if metric in rank]
        means[metric] = parts[0]
        if metric != "batch_id" and len(parts) > 1:
            steps, index = np.unique(np.concatenate([part.steps for part in parts]), return_inverse=True)
            with np.errstate(over="ignore", invalid="ignore"):
                totals = np.bincount(index, weights=np.concatenate([part.values for part in parts]))
                means[metric] = _frozen(metric, steps, totals / np.bincount(index), parts[0].origin)
    return means
