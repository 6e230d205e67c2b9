"""From the rows of a text log to tables: steps for rows that name none, and one table per run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.stats import median
from stabtree.common.text import clean
from stabtree.loaders.table import MIN_ROWS, Table, are_epochs, attempt, beginnings, epochs_note, running_on
from stabtree.loaders.text.asides import is_aside, place, printed_once, steps
from stabtree.loaders.text.cells import Dense
from stabtree.loaders.text.epochs import are_samples, continuous_steps, from_bar, separate_summaries, unrounded
from stabtree.loaders.text.lines.grammar import role
from stabtree.loaders.text.messages import ended_in_error
from stabtree.loaders.text.overflows import locate_events, mark_sporadic, restore_nan
from stabtree.metrics.likely import EPISODES, guess
from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.common.lazy import Bools, Ints
    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Column
    from stabtree.loaders.text.reader import LogReader
    from stabtree.loaders.text.rows import LogRows

MIN_NEXT_ROWS = 2
MAX_RUNS = 500
BAR = "progress bar"


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
    losses: Bools
    keep: Bools
    event: Bools
    planned: Mapping[str, int]
    notes: tuple[str, ...]


def tables(source: Source, reader: LogReader, notes: tuple[str, ...]) -> Table | tuple[Table, ...]:
    """Return one table for each run of a log.

    Args:
        source: the file.
        reader: what was read of it.
        notes: what was changed while decoding it.
    """
    log = _log(reader, notes)
    starts = [0] if log.several_ranks else _starts(log)
    if len(starts) > 1 and _are_epochs(starts, log):
        step = Dense(running_on(log.step.values, starts), log.step.logged)
        log = replace(log, step=step, notes=(*log.notes, epochs_note("The steps", len(starts))))
        starts = [0]
        log = replace(log, planned={})
    for name in printed_once(log.rows, log.dense, starts):
        del log.dense[name], log.rows.columns[name]
        reader.leave(*log.rows.printed_at[name])
    ends = [*starts[1:], log.rows.count]
    parts = []
    for number, (begin, end) in enumerate(zip(starts, ends, strict=True), 1):
        table = replace(
            _table(source, reader, log, begin, end), notes=(*log.notes, *attempt(number, len(starts), begin))
        )
        parts.append(table if len(starts) == 1 else replace(table, run=str(number)))
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
    losses = np.zeros(rows.count, dtype=np.bool_)
    for name in _losses(dense, rows):
        losses |= dense[name].logged
    event = np.zeros(rows.count, dtype=np.bool_)
    event[rows.events.tolist()] = True
    notes = [*decoding, *restore_nan(rows, dense, losses, event)]
    epoch = rows.epochs()
    step_name, step = _steps(rows, losses, dense)
    exact = unrounded(step, rows.dense("rounded"))
    if exact is not None:
        notes.append("The steps are printed rounded: rows are placed evenly between them.")
        step = Dense(exact, step.logged)
    continuous = continuous_steps(step, epoch, losses)
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
    several_ranks = len(np.unique(rank.values[rank.logged & losses])) > 1
    planned = reader.plan.settings(step, epoch, counted_on=continuous is not None)
    return _Log(
        rows, dense, step_name, step, epoch, rank, several_ranks, losses, placed.keep, event, planned, tuple(notes)
    )


def _losses(dense: Mapping[str, Dense], rows: LogRows) -> list[str]:
    """Return the columns that hold the training loss: the known ones, else those whose names say so."""
    known = [name for name in dense if role(name, rows.names).role == "loss"]
    if known:
        return known
    likely = []
    for name in dense:
        like = None if role(name, rows.names).role else guess(name)
        if like and like.metric == "loss" and not like.held_out:
            likely.append(name)
    return likely


def _steps(rows: LogRows, losses: Bools, dense: dict[str, Dense]) -> tuple[str, Dense]:
    """Return what the steps are called, and that of each row."""
    step = steps(rows)
    if not step.logged.any():
        return BAR, _bar_steps(rows, losses)
    share, percent = rows.dense("share")
    samples = percent.any() and are_samples(share[percent], rows.dense("share_of").values[percent])
    if samples or _few_are_named(step, [dense[name].logged for name in _losses(dense, rows)]):
        return BAR, Dense.empty(rows.count)
    values, logged = step
    last = np.flatnonzero(~is_aside(rows))[-3:]
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
        named = rows & step.logged
        if np.count_nonzero(named) * 2 >= np.count_nonzero(rows) or _has_room(step, named, rows):
            return False
    return bool(carriers)


def _has_room(step: Dense, named: Bools, rows: Bools) -> bool:
    """Return whether the steps that some rows name leave one for each of the rows between them."""
    at = np.flatnonzero(named)
    between = np.diff(np.cumsum(rows)[at])
    rises = np.diff(step.values[at])
    return len(rises) > 0 and bool((rises >= between).all())


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


def _bar_steps(rows: LogRows, losses: Bools) -> Dense:
    """Return steps from the progress bar above each row, if bar and rows were printed in their order."""
    bar = rows.dense("bar")
    at = bar.values[losses]
    gaps = np.diff(at)
    regular = len(at) > 1 and bool(bar.logged[losses].all()) and bool((gaps > 0).all())
    if regular and at[0] and not (gaps != gaps[0]).any() and at[0] % gaps[0] == 0:
        return bar
    below, has = rows.dense("below")
    steps = from_bar(np.where(has, below, np.nan)[losses], rows.dense("below_of").values[losses])
    if steps is not None:
        values = np.zeros(rows.count)
        values[losses] = steps
        return Dense(values, losses)
    if regular and np.count_nonzero(gaps != median(gaps)) <= max(1, 0.1 * len(gaps)):
        return bar
    return Dense.empty(rows.count)


def _starts(log: _Log) -> list[int]:
    """Return the rows at which a run begins: where the log is back at its first step, or before it."""
    step, epoch, losses = log.step, log.epoch, log.losses
    at = np.flatnonzero(losses & step.logged)
    if not len(at):
        at = np.flatnonzero(losses & epoch.logged)
    if len(at) < MIN_ROWS + MIN_NEXT_ROWS or not np.isfinite(epoch.values[at]).all():
        return [0]
    all_steps = step.logged[at].all()
    axis = step.values[at] if all_steps else epoch.values[at]
    if not np.isfinite(axis).all():
        return [0]
    if all_steps and epoch.logged[at].all():
        # Steps that are counted in each epoch go back without being a restart.
        with np.errstate(over="ignore"):
            axis = axis + epoch.values[at] * (axis.max() + 1.0)
        if not np.isfinite(axis).all():
            return [0]
    # A log that goes back before its first line, but not to the start, was resumed from a checkpoint.
    early = 2.0 * median(np.abs(np.diff(axis)))

    def anew(begin: int, index: int) -> bool:
        back = axis[index] == axis[begin] or axis[index] <= min(early, axis[begin])
        return bool(back and axis[index] <= axis[index + 1] <= axis[index - 1])

    starts = beginnings(axis, anew, MIN_NEXT_ROWS)
    if len(starts) <= MAX_RUNS:
        return [0, *(_first_row(int(at[index]), step, losses) for index in starts[1:])]
    return [0]


def _are_epochs(starts: list[int], log: _Log) -> bool:
    """Return whether what looks like several runs are the epochs of one, by its steps and its loss."""
    at = np.flatnonzero(log.step.logged & log.losses)
    begins = np.searchsorted(at, starts).tolist()
    if begins[-1] >= len(at):
        return False
    for name in _losses(log.dense, log.rows):
        values, logged = log.dense[name]
        if logged[at].all():
            return are_epochs(log.step.values[at], begins, values[at])
    return False


def _first_row(row: int, step: Dense, losses: Bools) -> int:
    """Return the first row of the run whose first loss is in `row`."""
    first = step.values[row]
    while row and not losses[row - 1] and (not step.logged[row - 1] or step.values[row - 1] <= first):
        row -= 1
    return row
