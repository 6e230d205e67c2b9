"""From the rows of a text log to tables: steps for rows that name none, and the runs told apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.stats import median
from stabtree.common.text import clean
from stabtree.loaders.table import (
    MIN_ROWS,
    Column,
    Skips,
    Table,
    are_epochs,
    attempt,
    beginnings,
    epochs_note,
    running_on,
)
from stabtree.loaders.text.epochs import are_samples, counted_on, from_bar, summaries
from stabtree.loaders.text.grammar import role
from stabtree.loaders.text.overflows import hidden_nan, mark_sporadic, place_events
from stabtree.loaders.text.rows import SKIPPED_NAN, column
from stabtree.metrics.likely import EPISODES, guess
from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.loaders.source import Source
    from stabtree.loaders.text.reader import LogReader
    from stabtree.loaders.text.rows import LogRows

MIN_NEXT_ROWS = 2
MAX_RUNS = 500
BAR = "progress bar"
SUMMED = "epoch_loss"


@dataclass(frozen=True, slots=True)
class _Log:
    """All rows of a log: each pair is (values, logged) over them."""

    rows: LogRows
    dense: dict[str, tuple[Floats, Bools]]
    step_name: str
    step: tuple[Floats, Bools]
    epoch: tuple[Floats, Bools]
    rank: tuple[Floats, Bools]
    event: Bools


def tables(source: Source, reader: LogReader, notes: tuple[str, ...]) -> Table | tuple[Table, ...]:
    """One table for each run of a log.

    Args:
        source: the file.
        reader: what was read of it.
        notes: what was changed while decoding it.
    """
    rows, telling = reader.rows, reader.chatter.telling
    dense = {name: rows.dense(name) for name, wanted in rows.columns.items() if wanted or name == SKIPPED_NAN}
    losses = np.zeros(rows.count, dtype=np.bool_)
    for name in _losses(dense, rows):
        losses |= dense[name][1]
    event = np.zeros(rows.count, dtype=np.bool_)
    event[np.frombuffer(rows.events, dtype=np.int64) if rows.events else []] = True
    notes = (*notes, *hidden_nan(rows, dense, losses, event))
    epoch, epoch_logged = rows.epochs()
    step_name, step, logged = _steps(rows, losses, dense)
    found = counted_on(step, logged, epoch, epoch_logged, losses)
    if found is not None:
        notes = (*notes, "The steps start again in each epoch: they are counted on.")
        step = found
    dense |= _apart(dense, rows, logged, epoch_logged)
    if rows.kinds and normalize(step_name) in EPISODES and not epoch_logged.any():
        # What a score is told beside says that it was earned.
        dense[step_name] = step, logged
        rows.columns[step_name] = True
    if logged.any() and rows.names.role(step_name) != "step":
        notes, step_name = (*notes, f"The steps are read from {clean(step_name, 40)!r}."), "step"
    rank = rows.dense("rank")
    several_ranks = len(np.unique(rank[0][rank[1] & losses])) > 1
    starts = [0] if several_ranks else _starts(step, logged, (epoch, epoch_logged), losses)
    if len(starts) > 1 and _are_epochs(starts, step, logged & losses, dense, rows):
        notes = (*notes, epochs_note("The steps", len(starts)))
        step, starts = running_on(step, starts), [0]
    log = _Log(rows, dense, step_name, (step, logged), (epoch, epoch_logged), rank, event)
    parts = []
    for number, (begin, end) in enumerate(zip(starts, [*starts[1:], rows.count], strict=True), 1):
        kept, columns = _columns(log, np.arange(begin, end), several_ranks=several_ranks)
        # Nobody can tell which run a line that was not read belongs to: the first one names them all.
        mine = reader.skips if number == 1 else Skips()
        parts.append(
            Table(
                path=source.path,
                format=source.describe("text"),
                rows=len(kept),
                columns=columns,
                config=reader.config.until(
                    int(np.argmax(losses[begin:end])) + begin if losses[begin:end].any() else end
                ),
                skipped=tuple(mine.first),
                skipped_count=mine.count,
                notes=(*notes, *attempt(number, len(starts), begin)),
                lines=telling.between(begin, end),
                ended_in_error=telling.ended_in_error(begin, end),
                run="" if len(starts) == 1 else str(number),
                saves=reader.saves.within(begin, end, kept),
            )
        )
    return parts[0] if len(parts) == 1 else tuple(parts)


def _losses(dense: Mapping[str, tuple[Floats, Bools]], rows: LogRows) -> list[str]:
    """The columns that hold the training loss: the known ones, else those whose names say that they hold a loss."""
    known = [name for name in dense if role(name, rows.names).role == "loss"]
    others = {name: guess(name) for name in dense if not known and not role(name, rows.names).role}
    return known or [name for name, like in others.items() if like and like.metric == "loss" and not like.held_out]


def _steps(rows: LogRows, losses: Bools, dense: dict[str, tuple[Floats, Bools]]) -> tuple[str, Floats, Bools]:
    """What the steps are called, and (values, logged) of each row."""
    step, logged = rows.dense("step")
    if not logged.any():
        return (BAR, *_bar_steps(rows, losses))
    share, percent = rows.dense("share")
    carriers = [has for name in _losses(dense, rows) if (has := dense[name][1]).any()]
    few = bool(carriers) and all(
        np.count_nonzero(has & logged) * 2 < np.count_nonzero(has) and not _room(step, has & logged, has)
        for has in carriers
    )
    if few or (percent.any() and are_samples(share[percent], rows.dense("share_of")[0][percent])):
        return BAR, np.zeros(rows.count), np.zeros(rows.count, dtype=np.bool_)
    if rows.trailing and len(step) > 2 and not logged[-1] and logged[-3:-1].all():
        # The line that names the step of the last row was never written.
        step[-1], logged[-1] = 2 * step[-2] - step[-3], True
    return rows.step_name(), step, logged


def _room(step: Floats, named: Bools, rows: Bools) -> bool:
    """Whether the steps that some rows name leave one for each of the rows between them."""
    places = np.flatnonzero(named)
    between = np.diff(np.cumsum(rows)[places])
    rises = np.diff(step[places])
    return len(rises) > 0 and bool((rises >= between).all())


def _apart(
    dense: dict[str, tuple[Floats, Bools]], rows: LogRows, step_logged: Bools, epoch_logged: Bools
) -> dict[str, tuple[Floats, Bools]]:
    """The loss of lines that sum up an epoch, apart from that of its batches where both go by one name."""
    apart: dict[str, tuple[Floats, Bools]] = {}
    for name in _losses(dense, rows):
        values, logged = dense[name]
        sums = summaries(logged, step_logged, epoch_logged)
        # A column of a known name would come before those of its batches.
        summed = SUMMED if role(name, rows.names).role else f"{name} of the epoch"
        if sums is not None and summed not in dense:
            rows.columns[summed] = True
            apart |= {name: (values, logged & ~sums), summed: (values, sums)}
    return apart


def _columns(log: _Log, span: Ints, *, several_ranks: bool) -> tuple[Ints, dict[str, Column | None]]:
    """The columns of one run, and which rows of its span they have."""
    here = {name: (values[span], logged[span]) for name, (values, logged) in log.dense.items()}
    names = log.rows.names
    kept, own = place_events(here, names, log.step[0][span], log.step[1][span], log.event[span])
    columns: dict[str, Column | None] = {log.step_name: column(*own, kept)}
    if log.step_name != "epoch":
        columns["epoch"] = column(log.epoch[0][span], log.epoch[1][span], kept)
    if several_ranks:
        columns["rank"] = column(log.rank[0][span], log.rank[1][span], kept)
    for name, wanted in log.rows.columns.items():
        columns[name] = column(*here[name], kept) if wanted else None
    mark_sporadic(columns, here, names, log.event[span])
    return kept, {name: found for name, found in columns.items() if found is None or found.count}


def _bar_steps(rows: LogRows, losses: Bools) -> tuple[Floats, Bools]:
    """Steps from the progress bar above each row, where bar and rows were printed in their order."""
    bar, seen = rows.dense("bar")
    at = bar[losses]
    gaps = np.diff(at)
    regular = len(at) > 1 and bool(seen[losses].all()) and bool((gaps > 0).all())
    if regular and at[0] and not (gaps != gaps[0]).any() and at[0] % gaps[0] == 0:
        return bar, seen
    below, has = rows.dense("below")
    carry = np.flatnonzero(losses)
    steps = from_bar(np.where(has, below, np.nan)[carry], rows.dense("below_of")[0][carry])
    if steps is not None:
        placed = np.zeros(rows.count)
        placed[carry] = steps
        return placed, losses
    if regular and np.count_nonzero(gaps != median(gaps)) <= max(1, 0.1 * len(gaps)):
        return bar, seen
    return np.zeros(rows.count), np.zeros(rows.count, dtype=np.bool_)


def _starts(step: Floats, logged: Bools, epoch: tuple[Floats, Bools], losses: Bools) -> list[int]:
    """The rows at which a run begins: where the log is back at its first step, or before it."""
    at = np.flatnonzero(losses & logged) if (losses & logged).any() else np.flatnonzero(losses & epoch[1])
    if len(at) < MIN_ROWS + MIN_NEXT_ROWS:
        return [0]
    axis = step[at] if logged[at].all() else epoch[0][at]
    if not (np.isfinite(axis).all() and np.isfinite(epoch[0][at]).all()):
        return [0]
    if logged[at].all() and epoch[1][at].all():
        # Steps that are counted in each epoch go back without being a restart.
        with np.errstate(over="ignore"):
            axis = axis + epoch[0][at] * (axis.max() + 1.0)
        if not np.isfinite(axis).all():
            return [0]
    # A log that goes back before its first line, but not to the start, was resumed from a checkpoint.
    early = 2.0 * median(np.abs(np.diff(axis)))

    def anew(begin: int, place: int) -> bool:
        back = axis[place] == axis[begin] or axis[place] <= min(early, axis[begin])
        return bool(back and axis[place] <= axis[place + 1] <= axis[place - 1])

    starts = beginnings(axis, anew, MIN_NEXT_ROWS)
    return (
        [0, *(_first_row(int(at[place]), step, logged, losses) for place in starts[1:])]
        if len(starts) <= MAX_RUNS
        else [0]
    )


def _are_epochs(
    starts: list[int], step: Floats, carries: Bools, dense: dict[str, tuple[Floats, Bools]], rows: LogRows
) -> bool:
    """Whether what looks like several runs are the epochs of one, by its steps and its loss."""
    at = np.flatnonzero(carries)
    places = np.searchsorted(at, starts).tolist()
    whole = (values[at] for values, has in map(dense.__getitem__, _losses(dense, rows)) if has[at].all())
    loss = next(whole, None)
    return loss is not None and places[-1] < len(at) and are_epochs(step[at], places, loss)


def _first_row(row: int, step: Floats, logged: Bools, losses: Bools) -> int:
    """The first row of the run whose first loss stands in `row`."""
    first = step[row]
    while row and not losses[row - 1] and (not logged[row - 1] or step[row - 1] <= first):
        row -= 1
    return row
