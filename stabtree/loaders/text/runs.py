"""From the rows of a text log to tables: steps for rows that name none, and one table per run."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.counters import Dense, Runs, count_on, counted_on, runs_of
from stabtree.loaders.table import Table
from stabtree.loaders.text.grammar import role
from stabtree.loaders.text.messages import ended_in_error
from stabtree.loaders.text.steps import (
    are_samples,
    bar_steps,
    between,
    locate_events,
    mark_sporadic,
    place,
    place_rounded,
    planned,
    printed_once,
    restore_nan,
    separate_summaries,
    steps,
)
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
BAR = "progress bar"
ROUNDED = "The steps are printed rounded: they are counted on from the exact ones before them."


class _Log(Struct, frozen=True):
    """All rows of a log, n of them."""

    rows: LogRows  # as they were read
    dense: dict[str, Dense]  # the columns by name
    step_name: str  # how the log spells the step
    step: Dense
    epoch: Dense
    rank: Dense
    several_ranks: bool  # whether losses of more than one rank are logged
    losses: Bools  # (n,), the rows that hold a loss
    keep: Bools  # (n,), the rows that hold anything still; the values of the others went to another row
    event: Bools  # (n,), the rows that are overflows
    planned: Mapping[str, int]  # how far the run was to go, as a setting; empty where that is not known
    notes: tuple[str, ...]  # what was assumed


def tables(source: Source, reader: LogReader, notes: tuple[str, ...]) -> tuple[Table, ...]:
    """Return one table for each run of a log.

    Args:
        source: the file.
        reader: what was read of it.
        notes: what was changed while decoding it.
    """
    log = _log(reader, notes)
    runs = Runs() if log.several_ranks else _runs(log)
    if runs.epochs and log.step.logged.any():
        step = Dense(counted_on(log.step, runs), log.step.logged)
        log = replace(log, step=step, planned={}, notes=(*log.notes, runs.epochs_note("The steps")))
    for name in printed_once(log.rows, log.dense, runs.starts):
        del log.dense[name], log.rows.columns[name]
        reader.unread.add(1, *log.rows.printed_at[name])
    parts = _parts(source, reader, log, runs)
    # Nobody can tell which run a line that was not read belongs to: the first one names them all.
    parts[0] = replace(
        parts[0],
        skipped=tuple(reader.skips.first),
        skipped_count=reader.skips.count,
        unread=reader.unread.kinds(),
    )
    return tuple(parts)


def _parts(source: Source, reader: LogReader, log: _Log, runs: Runs) -> list[Table]:
    """Return the table of each run but those that were given up; what such a one ended in is worth a verdict."""
    spans = [*pairwise([*runs.starts, log.rows.count])]
    gone = frozenset(index for index in runs.gone if not reader.errors.between(*spans[index]))
    parts = []
    for begin, end, number, notes in replace(runs, gone=gone).attempts(log.rows.count, partial(_reached, log)):
        table = _table(source, reader, log, begin, end)
        parts.append(replace(table, notes=(*log.notes, *notes), run=number, restarts=runs.meaning))
    # What ended a run did not end the training if another run of the log follows.
    parts[:-1] = [replace(part, lines=tuple(replace(line, at_end=False) for line in part.lines)) for part in parts[:-1]]
    return parts


def _table(source: Source, reader: LogReader, log: _Log, begin: int, end: int) -> Table:
    """Return the rows from `begin` to `end` as a table."""
    kept, columns = _columns(log, np.arange(begin, end))
    first = np.flatnonzero(log.losses[begin:end])[:1] + begin
    lines = reader.errors.between(begin, end, _over(log, begin, end))
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


def _over(log: _Log, begin: int, end: int) -> int:
    """Return the row after the last one of a run; what is printed after its last loss may be of the next run.

    What the last run prints beside its rows, as a summary after an error, does not show that training went on.
    """
    rows = log.losses[begin:end]
    if end == log.rows.count:
        rows = ~log.rows.marked(log.rows.asides)[begin:end]
    last = np.flatnonzero(rows)
    if len(last):
        return begin + int(last[-1]) + 1
    return end


def _log(reader: LogReader, decoding: tuple[str, ...]) -> _Log:
    """Gather the columns of a log and settle the steps of its rows."""
    rows = reader.rows
    dense = {name: rows.dense(name) for name in rows.affordable()}
    losses = np.zeros(rows.count, dtype=np.bool_)
    losses = np.any([losses, *(dense[name].logged for name in _losses(dense, rows))], axis=0)
    event = rows.marked(rows.events)
    notes = [*decoding, *restore_nan(rows, dense, losses, event)]
    epoch = rows.epochs()
    step_name, step = _steps(rows, losses, dense)
    exact = place_rounded(step, rows.dense("rounded"))
    notes += [ROUNDED] * (exact is not step)
    continuous, step = count_on(exact, epoch, losses), exact
    if continuous is not None:
        step = Dense(continuous, exact.logged)
        notes.append("The steps start again in each epoch: they are counted on.")
    separate_summaries(dense, rows, _losses(dense, rows), step.logged, epoch.logged)
    step, epoch, keep, replaced = place(rows, dense, step, epoch, event)
    notes += replaced
    if not epoch.logged.any() and rows.kinds and normalize(step_name) in EPISODES:
        # A score that is logged beside the episode was earned in it.
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
        losses=losses,
        keep=keep,
        event=event,
        planned=planned(rows, step, epoch, counted_on=continuous is not None),
        notes=tuple(notes),
    )


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


def _steps(rows: LogRows, losses: Bools, dense: dict[str, Dense]) -> tuple[str, Dense]:
    """Return what the steps are called, and that of each row."""
    step = steps(rows)
    if not step.logged.any():
        return BAR, bar_steps(rows, losses)
    share, percent = rows.dense("share")
    samples = percent.any() and are_samples(share[percent], rows.dense("share_of").values[percent])
    if samples or _few_are_named(step, [dense[name].logged for name in _losses(dense, rows)]):
        return BAR, Dense.empty(rows.count)
    if rows.anchored:
        step = between(step, losses)
    values, logged = step
    last = np.flatnonzero(~rows.marked(rows.asides))[-3:]
    if rows.trailing and len(last) > 2 and not logged[last[2]] and logged[last[:2]].all():
        # The line that names the step of the last row was never written.
        values[last[2]], logged[last[2]] = 2 * values[last[1]] - values[last[0]], True
    return rows.step_name(), step


def _few_are_named(step: Dense, carriers: list[Bools]) -> bool:
    """Return whether most rows with a loss lack a step, and the steps of the others leave no room for them.

    Args:
        step: of each row, (n,).
        carriers: for each loss, bool (n,): the rows that hold it.
    """
    carriers = [rows for rows in carriers if rows.any()]
    for rows in carriers:
        at = np.flatnonzero(rows & step.logged)
        rises = np.diff(step.values[at])
        has_room = len(rises) > 0 and bool((rises >= np.diff(np.cumsum(rows)[at])).all())
        if len(at) * 2 >= np.count_nonzero(rows) or has_room:
            return False
    return bool(carriers)


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
        column = columns[name] = here[name].column(kept) if name in here else None
        if column and column.bad:
            columns[name] = replace(column, bad_example=log.rows.garbled[name])
    mark_sporadic(columns, here, names, event)
    return kept, {name: found for name, found in columns.items() if found is None or found.count}


def _runs(log: _Log) -> Runs:
    """Return the runs of a log: where what counts its rows is back at its start, and training begins anew."""
    names = log.rows.names
    rates = [cells for name, cells in log.dense.items() if role(name, names).role == "lr"]
    outcomes = [log.dense[name] for name in _losses(log.dense, log.rows)[:MAX_OUTCOMES]]
    if np.any(log.losses & log.step.logged):
        passes = normalize(log.step_name) in EPISODES
        return runs_of(log.step, log.epoch, log.losses, outcomes, rates, passes=passes)
    return runs_of(log.epoch, None, log.losses, outcomes, rates, passes=True)


def _reached(log: _Log, begin: int, end: int) -> tuple[int, str]:
    """Return how many rows of an attempt hold a loss, and how far it came."""
    by_step = log.step.logged[begin:end].any()
    name, counter = (log.step_name, log.step) if by_step else ("epoch", log.epoch)
    held = counter.values[begin:end][counter.logged[begin:end]]
    return int(np.count_nonzero(log.losses[begin:end])), f"{name} {held.max(initial=0.0):,.15g}"
