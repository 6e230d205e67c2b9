"""From the rows of a text log to tables: steps for rows that name none, and one table per run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.counters.levels import Level
from stabtree.loaders.counters.restarts import Evidence, abandoned, classify, running_on
from stabtree.loaders.counters.within import MIN_ROWS, Count, count_on, first_row, is_length, lexicographic
from stabtree.loaders.table import Table, attempt, epochs_note, given_up
from stabtree.loaders.text.asides import place, printed_once
from stabtree.loaders.text.cells import Dense
from stabtree.loaders.text.epochs import separate_summaries, steps_of
from stabtree.loaders.text.lines.grammar import role
from stabtree.loaders.text.messages import ended_in_error
from stabtree.loaders.text.overflows import locate_events, mark_sporadic, restore_nan
from stabtree.metrics.role import describe_name
from stabtree.metrics.table import normalize
from stabtree.metrics.vocabulary import EPISODES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.common.lazy import Bools, Ints
    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Column
    from stabtree.loaders.text.reader import LogReader
    from stabtree.loaders.text.rows import LogRows

MAX_OUTCOMES = 4


@dataclass(frozen=True, slots=True)
class _Log:
    """All rows of a log, n of them.

    Attributes:
        rows: as they were read.
        dense: the columns by name.
        step_name: how the log spells the step.
        step: the step of each row.
        epoch: the epoch of each row.
        rank: the rank of each row.
        several_ranks: whether losses of more than one rank are logged.
        by_episode: whether the rows are the steps of episodes.
        losses: bool (n,), the rows that hold a loss.
        keep: bool (n,), the rows that hold anything still; the values of the others went to another row.
        event: bool (n,), the rows that are overflows.
        planned: how far the run was to go, as a setting; empty where that is not known.
        notes: what was assumed.
    """

    rows: LogRows
    dense: dict[str, Dense]
    step_name: str
    step: Dense
    epoch: Dense
    rank: Dense
    several_ranks: bool
    by_episode: bool
    losses: Bools
    keep: Bools
    event: Bools
    planned: Mapping[str, int]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs of a log.

    Attributes:
        starts: the rows at which they begin, 0 among them.
        gone: the indexes of those that were given up and begun anew.
        meaning: what was decided where the count starts again.
        steps: of each row, counted on where they start again within a run; None where they are as they were logged.
        notes: that they are.
    """

    starts: tuple[int, ...] = (0,)
    gone: frozenset[int] = frozenset()
    meaning: str = ""
    steps: Dense | None = None
    notes: tuple[str, ...] = ()


def tables(source: Source, reader: LogReader, notes: tuple[str, ...]) -> Table | tuple[Table, ...]:
    """Return one table for each run of a log.

    Args:
        source: the file.
        reader: what was read of it.
        notes: what was changed while decoding it.
    """
    log = _log(reader, notes)
    runs = _Runs() if log.several_ranks or log.by_episode else _runs(log)
    if runs.steps is not None:
        log = replace(log, step=runs.steps, planned={}, notes=(*log.notes, *runs.notes))
    for name in printed_once(log.rows, log.dense, runs.starts):
        del log.dense[name], log.rows.columns[name]
        reader.leave(*log.rows.printed_at[name])
    parts: list[Table] = []
    given_up_before: list[str] = []
    count = len(runs.starts) - len(runs.gone)
    for index, (begin, end) in enumerate(pairwise([*runs.starts, log.rows.count])):
        if index in runs.gone and not reader.chatter.errors.between(begin, end):
            given_up_before.append(_given_up(log, begin, end))
            continue
        number = len(parts) + 1
        table = _table(source, reader, log, begin, end)
        own = (*log.notes, *attempt(number, count, begin), *given_up_before)
        parts.append(replace(table, notes=own, run=str(number) if count > 1 else "", restarts=runs.meaning))
        given_up_before = []
    # Nobody can tell which run a line that was not read belongs to: the first one names them all.
    parts[0] = replace(
        parts[0],
        skipped=tuple(reader.skips.first),
        skipped_count=reader.skips.count,
        unread=reader.unread.kinds(),
    )
    if len(parts) == 1:
        return parts[0]
    return tuple(parts)


def _table(source: Source, reader: LogReader, log: _Log, begin: int, end: int) -> Table:
    """Return the rows from `begin` to `end` as a table."""
    kept, columns = _columns(log, np.arange(begin, end))
    first = np.flatnonzero(log.losses[begin:end])[:1] + begin
    lines = reader.chatter.errors.between(begin, end)
    return Table(
        path=source.path,
        format=source.describe("text"),
        rows=len(kept),
        columns=columns,
        config={**log.planned, **reader.config.until(int(first[0]) if len(first) else end)},
        lines=lines,
        ended_in_error=ended_in_error(lines),
        saves=reader.saves.within(begin, end, kept),
    )


def _log(reader: LogReader, decoding: tuple[str, ...]) -> _Log:
    """Gather the columns of a log and settle the steps of its rows."""
    rows = reader.rows
    dense = {name: rows.dense(name) for name in rows.affordable()}
    losses, event = _masks(dense, rows)
    notes = [*decoding, *restore_nan(rows, dense, losses, event)]
    epoch = rows.epochs()
    step_name, step = steps_of(rows, losses, [dense[name].logged for name in _losses(dense, rows)], notes)
    step_name, step, by_episode = _of_episodes(dense, step_name, step)
    continuous = None if by_episode else count_on(Count(*step), Count(*epoch), losses)
    if continuous is not None:
        notes.append("The steps start again in each epoch: they are counted on.")
        step = Dense(continuous, step.logged)
    dense |= separate_summaries(dense, rows, _losses(dense, rows), step.logged, epoch.logged)
    placed = place(rows, dense, step, epoch, event)
    step, epoch = placed.step, placed.epoch
    notes += placed.notes
    if rows.kinds and normalize(step_name) in EPISODES and not epoch.logged.any():
        # A score that is logged beside an episode was earned in it.
        dense[step_name] = step
        rows.wanted(step_name)
    if step.logged.any() and rows.names.role(step_name) != "step":
        notes.append(f"The steps are read from {clean(step_name, 40)!r}.")
        step_name = "step"
    rank = rows.dense("rank")
    return _Log(
        rows=rows,
        dense=dense,
        step_name=step_name,
        step=step,
        epoch=epoch,
        rank=rank,
        several_ranks=len(np.unique(rank.values[rank.logged & losses])) > 1,
        by_episode=by_episode,
        losses=losses,
        keep=placed.keep,
        event=event,
        planned=reader.totals.settings(step, epoch, counted_on=continuous is not None),
        notes=tuple(notes),
    )


def _masks(dense: Mapping[str, Dense], rows: LogRows) -> tuple[Bools, Bools]:
    """Return the rows that hold a loss and those that are overflows, bool (n,) each."""
    losses = np.zeros(rows.count, dtype=np.bool_)
    for name in _losses(dense, rows):
        losses |= dense[name].logged
    event = np.zeros(rows.count, dtype=np.bool_)
    event[rows.events.tolist()] = True
    return losses, event


def _of_episodes(dense: Mapping[str, Dense], step_name: str, step: Dense) -> tuple[str, Dense, bool]:
    """Return the steps, or the episodes if the steps are their lengths; and whether rows are the steps of episodes."""
    episode = next((name for name in dense if normalize(name) in ("episode", "episodes")), "")
    if episode and _counts_steps_of(step, dense[episode]):
        return step_name, step, True
    if episode and _is_length(step, dense[episode]):
        return episode, dense[episode], False
    return step_name, step, False


def _counts_steps_of(step: Dense, episode: Dense) -> bool:
    """Return whether steps begin again with each episode, and nowhere else."""
    both = step.logged & episode.logged
    begins = np.diff(episode.values[both]) != 0
    return bool(begins.any() and not begins.all() and (begins == (np.diff(step.values[both]) <= 0)).all())


def _is_length(step: Dense, episode: Dense) -> bool:
    both = step.logged & episode.logged
    return is_length(step.values[both], episode.values[both])


def _losses(dense: Mapping[str, Dense], rows: LogRows) -> list[str]:
    """Return the columns that hold the training loss: the known ones, else those whose names say so."""
    known = [name for name in dense if role(name, rows.names).role == "loss"]
    if known:
        return known
    likely = []
    for name in dense:
        like = describe_name(name)
        if not role(name, rows.names).role and like.loss and not like.held_out:
            likely.append(name)
    return likely


def _columns(log: _Log, span: Ints) -> tuple[Ints, dict[str, Column | None]]:
    """Return which rows of a span remain, and the columns of these rows."""
    here = {name: cells.pick(span) for name, cells in log.dense.items()}
    names, event = log.rows.names, log.event[span]
    step = locate_events(here, names, log.step.pick(span), event)
    kept = np.flatnonzero(log.keep[span])
    columns: dict[str, Column | None] = {log.step_name: step.column(kept)}
    if log.step_name != "epoch":
        columns["epoch"] = log.epoch.pick(span).column(kept)
    if log.several_ranks:
        columns["rank"] = log.rank.pick(span).column(kept)
    for name in log.rows.columns:
        columns[name] = here[name].column(kept) if name in here else None
    mark_sporadic(columns, here, names, event)
    return kept, {name: found for name, found in columns.items() if found is None or found.count}


def _runs(log: _Log) -> _Runs:
    """Return the runs of a log: where what counts its rows is back at its start, and training begins anew."""
    step, epoch, losses = log.step, log.epoch, log.losses
    at = np.flatnonzero(losses & step.logged)
    passes = not len(at)
    if passes:
        at = np.flatnonzero(losses & epoch.logged)
    all_epochs = bool(epoch.logged[at].all() and np.isfinite(epoch.values[at]).all())
    axis = epoch.values[at] if passes else step.values[at]
    if not passes and all_epochs:
        axis = lexicographic(axis, epoch.values[at])
    if len(at) < MIN_ROWS or not np.isfinite(axis).all():
        return _Runs()
    outcomes = [log.dense[name] for name in _losses(log.dense, log.rows)]
    rates = [log.dense[name] for name in log.dense if role(name, log.rows.names).role == "lr"]
    evidence = Evidence(
        axis=axis,
        outcomes=[Level.of(values[at], logged[at]) for values, logged in outcomes[:MAX_OUTCOMES]],
        rate=next((Level.of(values[at], logged[at]) for values, logged in rates), None),
        passes=passes or normalize(log.step_name) in EPISODES,
    )
    found = classify(evidence)
    counter = Count(*(epoch if passes else step))
    runs, epochs = (
        [row and first_row(int(at[row]), counter, losses) for row in rows] for rows in (found.runs, found.epochs)
    )
    gone = frozenset(abandoned(evidence, found.runs))
    if not epochs or passes:
        return _Runs(tuple(runs), gone, found.meaning)
    rows = np.flatnonzero(step.logged)
    values = step.values.copy()
    values[rows] = running_on(values[rows], *(np.searchsorted(rows, starts).tolist() for starts in (epochs, runs)))
    notes = (epochs_note("The steps", len(epochs) + 1),)
    return _Runs(tuple(runs), gone, found.meaning, Dense(values, step.logged), notes)


def _given_up(log: _Log, begin: int, end: int) -> str:
    """Return the note of an attempt that was begun anew."""
    counter = log.step if log.step.logged[begin:end].any() else log.epoch
    held = counter.values[begin:end][counter.logged[begin:end]]
    return given_up(int(np.count_nonzero(log.losses[begin:end])), log.step_name, float(held.max(initial=0.0)))
