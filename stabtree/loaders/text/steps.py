"""What counts the rows of a text log: steps, samples, positions of a bar, episodes; and the runs that this shows.

Values that were printed beside the rows of training, and updates that were skipped, get their steps here too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.common.shared import SHARE_MOST
from stabtree.common.stats import median
from stabtree.loaders.counters import MIN_ROWS, Dense
from stabtree.loaders.text import grammar
from stabtree.loaders.text.grammar import role
from stabtree.loaders.text.rows import SKIPPED_NAN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.loaders.table import Column
    from stabtree.loaders.text.rows import LogRows
    from stabtree.metrics.names import Names


# Nearly all gaps are alike; the first and the last may not be.
MIN_SHARE = SHARE_MOST
# PyTorch's examples count samples, in batches of a multiple of this.
BATCH = 8
# Fewer of them are batches.
MANY_SAMPLES = 1000
# Batches have so many times as many rows as the lines that sum up an epoch.
DENSER = 3
SUMMED = "epoch_loss"


def place_rounded(step: Dense, rounded: Dense) -> Dense:
    """Return steps where some are printed as `2K`: counted on from exact ones before them, else as they are.

    Args:
        step: of each row, (n,).
        rounded: to what each was rounded, (n,); not logged where it is exact.
    """
    at = np.flatnonzero(step.logged)
    units = np.where(rounded.logged, rounded.values, 0.0)[at]
    if not units.any():
        return step
    printed = step.values[at]
    first = int(np.argmax(units > 0))
    found = np.array(step.values)
    every = np.diff(printed[:first])
    if len(every) and every[0] > 0 and (every == every[0]).all():
        counted = printed[first - 1] + every[0] * (np.arange(len(at)) - first + 1)
        if (np.abs(counted - printed)[first:] < units[first:]).all():
            found[at[first:]] = counted[first:]
            return Dense(found, step.logged)
    return step


def are_samples(done: Floats, total: Floats) -> bool:
    """Return whether positions in the epoch count samples, as `[640/60000 (1%)]` does, and not batches.

    Args:
        done: float64 (n,), of rows that also print the share in percent.
        total: float64 (n,).
    """
    if len(done) < MIN_ROWS or total.min() < MANY_SAMPLES or (done >= total - 1).any():
        return False
    gaps = np.diff(done)
    rises = gaps[gaps > 0]
    return len(rises) > 0 and bool((rises % BATCH == 0).all())


def from_bar(done: Floats, total: Floats) -> Floats | None:
    """Return the steps of evenly spaced rows by the bar that is drawn anew below each; None if unsure.

    Args:
        done: float64 (n,), the bar below each row with a loss; NaN if there is none.
        total: float64 (n,), the length of that bar.
    """
    count = len(done)
    bars = total[np.isfinite(done)]
    if len(bars) < MIN_ROWS:
        return None
    lengths, counts = np.unique(bars, return_counts=True)
    known = np.flatnonzero(np.isfinite(done) & (total == lengths[np.argmax(counts)]))
    if len(known) < max(MIN_ROWS, MIN_SHARE * count):
        return None
    at = done[known]
    gaps = np.diff(at) / np.diff(known)
    usual = median(gaps)
    if usual <= 0 or np.count_nonzero(gaps == usual) < MIN_SHARE * len(gaps) - 1:
        return None
    steps = np.round(np.interp(np.arange(count), known, at))
    after = np.arange(known[-1] + 1, count)
    steps[after] = at[-1] + usual * (after - known[-1])
    return steps


def separate_summaries(
    dense: dict[str, Dense], rows: LogRows, losses: list[str], step_logged: Bools, epoch_logged: Bools
) -> None:
    """Separate the loss of lines that sum up an epoch, and name no step, from that of its batches of the same name."""
    for name in losses:
        values, logged = dense[name]
        sums = logged & ~step_logged & epoch_logged
        few = np.count_nonzero(sums)
        # A column of a known name would come before those of its batches.
        summed = SUMMED if role(name, rows.names).role else f"{name} of the epoch"
        if few and np.count_nonzero(logged & step_logged) >= DENSER * few and summed not in dense:
            rows.wanted(summed)
            dense |= {name: Dense(values, logged & ~sums), summed: Dense(values, sums)}


def bar_steps(rows: LogRows, losses: Bools) -> Dense:
    """Return steps from the progress bar above each row, if bar and rows were printed in their order."""
    bar = rows.dense("bar")
    few = np.count_nonzero(losses) < MIN_ROWS <= rows.count
    if few and bar.logged.all() and (np.diff(bar.values) >= 0).all():
        return bar
    at = bar.values[losses]
    gaps = np.diff(at)
    rises = len(at) > 1 and bool(bar.logged[losses].all() & (gaps > 0).all())
    # Where a row is missing, the others still stand at multiples of their distance.
    if rises and at[0] and not (at % median(gaps)).any():
        return bar
    below, has = rows.dense("below")
    steps = from_bar(np.where(has, below, np.nan)[losses], rows.dense("below_of").values[losses])
    if steps is not None:
        values = np.zeros(rows.count)
        values[losses] = steps
        return Dense(values, losses)
    return bar if rises else Dense.empty(rows.count)


def steps(rows: LogRows) -> Dense:
    """Return the step of each row, of asides those that are spelled like those of the other rows."""
    values, logged = rows.dense("step")
    beside = rows.aside_steps.get(rows.step_name())
    if beside and (logged.any() or not rows.own):
        at = np.frombuffer(beside.rows, dtype=np.int64)
        values[at], logged[at] = np.frombuffer(beside.values, dtype=np.float64), True
    return Dense(values, logged)


def between(step: Dense, losses: Bools) -> Dense:
    """Return the steps of the rows that hold a loss, counted back from those below them that some lines name."""
    at = np.flatnonzero(losses)
    named = np.flatnonzero(step.logged[at])
    every = np.diff(step.values[at[named]]) / np.diff(named) if len(named) > 1 else np.zeros(1)
    usual = median(every)
    if usual < 1 or usual % 1 or np.count_nonzero(every == usual) < MIN_SHARE * len(every) - 1:
        return step
    anchor = named[np.minimum(np.searchsorted(named, np.arange(len(at))), len(named) - 1)]
    found = step.values[at[anchor]] - usual * (anchor - np.arange(len(at)))
    values, logged = step.values.copy(), step.logged.copy()
    values[at], logged[at] = found, True
    return Dense(values, logged)


def place(
    rows: LogRows, dense: Mapping[str, Dense], step: Dense, epoch: Dense, event: Bools
) -> tuple[Dense, Dense, Bools, tuple[str, ...]]:
    """Write the values of asides into the row of training before them, or that of the step or epoch that they name.

    Returns:
        Step and epoch of each row, (n,); which rows hold anything still, bool (n,); a note on what was replaced.

    What finds its cell taken stays a row of its own where steps are logged. Without steps rows are counted, which are
    those of training: of several values between two of them the later counts, or one that is not finite.

    Args:
        rows: the rows of the log.
        dense: its columns, which are written to.
        step: of each row, (n,).
        epoch: of each row, (n,).
        event: bool (n,), the rows that are overflows.
    """
    keep = np.ones(rows.count, dtype=np.bool_)
    aside = rows.marked(rows.asides)
    main = np.flatnonzero(~aside & ~event)
    if not aside.any() or not len(main):
        return step, epoch, keep, ()
    at = np.flatnonzero(aside)
    before = np.maximum(np.searchsorted(main, at) - 1, 0)
    if step.logged[main].any():
        after = np.minimum(before + 1, len(main) - 1)
        target = _of_step(step, epoch, at, main[before], main[after])
        keep[at] = target < 0
        for column in dense.values():
            _fold_free(column, at, target, keep)
        return _filled(step, main, at), _filled(epoch, main, at), keep, ()
    target = main[before]
    if epoch.logged[main].all():
        epochs, first, counts = np.unique(epoch.values[main], return_index=True, return_counts=True)
        found = np.minimum(np.searchsorted(epochs, epoch.values[at]), len(epochs) - 1)
        named = epoch.logged[at] & (epochs[found] == epoch.values[at]) & (counts[found] == 1)
        target = np.where(named, main[first[found]], target)  # the only row of the epoch, else the row before
    replaced = sum(_fold(column, at, target) for column in dense.values())
    keep[at] = False
    text = f"{replaced:,} values were printed twice between two rows; the later one is used."
    return step, epoch, keep, (text,) * (replaced > 0)


def _filled(axis: Dense, main: Ints, at: Ints) -> Dense:
    """Return steps or epochs with those of the row before for the asides that name none."""
    named = main[axis.logged[main]]
    empty = at[~axis.logged[at]]
    if not len(named) or not len(empty):
        return axis
    before = named[np.maximum(np.searchsorted(named, empty) - 1, 0)]
    values, logged = axis.values.copy(), axis.logged.copy()
    values[empty], logged[empty] = values[before], True
    return Dense(values, logged)


def _of_step(step: Dense, epoch: Dense, at: Ints, before: Ints, after: Ints) -> Ints:
    """Return the row that each aside belongs to, of those around it: of its step, or the one before; -1 for neither."""
    named = step.logged[at]
    found = np.where(named, -1, before)
    for row in (after, before):
        same = named & step.logged[row] & (step.values[row] == step.values[at])
        other = epoch.logged[row] & epoch.logged[at] & (epoch.values[row] != epoch.values[at])
        found = np.where(same & ~other, row, found)
    return found


def _fold_free(column: Dense, at: Ints, target: Ints, keep: Bools) -> None:
    """Move the first value for each target row into it if its cell is free; mark the rows of the others."""
    values, logged = column
    held = logged[at] & (target >= 0)
    cells, into = at[held], target[held]
    rows, first = np.unique(into, return_index=True)
    first = first[~logged[rows]]
    values[into[first]], logged[into[first]], logged[cells[first]] = values[cells[first]], True, False
    keep[cells[logged[cells]]] = True


def _fold(column: Dense, at: Ints, target: Ints) -> int:
    """Move the values of asides into their target rows; return how many gave way to another one."""
    values, logged = column
    held = logged[at]
    cells, into = at[held], target[held]
    if not len(cells):
        return 0
    several = int(np.count_nonzero(logged[np.unique(into)])) + len(into) - len(np.unique(into))
    lasting = logged[into] & ~np.isfinite(values[into])
    # What is written last counts.
    order = np.argsort(~np.isfinite(values[cells]), kind="stable")
    order = order[~lasting[order]]
    values[into[order]], logged[into], logged[cells] = values[cells[order]], True, False
    return several


def printed_once(rows: LogRows, dense: Mapping[str, Dense], starts: Sequence[int]) -> list[str]:
    """Return the columns that began beside the rows, at one place of any run, and are no score: they are no series.

    Args:
        rows: the rows of the log.
        dense: its columns.
        starts: the row at which each run begins.
    """
    aside = rows.marked(rows.asides)
    if aside.all():
        return []
    place_of = np.cumsum(~aside)
    found = []
    for name in rows.printed_at.keys() & dense.keys():
        if grammar.QUALITY.search(name) or grammar.HELD_OUT.search(name):
            continue
        at = np.flatnonzero(dense[name].logged)
        runs = np.searchsorted(starts, at, side="right")
        places = np.unique(np.stack((runs, place_of[at])), axis=1)
        if not len(at) or np.bincount(places[0]).max() <= 1:
            found.append(name)
    return sorted(found)


def restore_nan(rows: LogRows, dense: dict[str, Dense], losses: Bools, event: Bools) -> list[str]:
    """Write the losses that are NaN, which Megatron leaves out of its lines; return the note about it.

    Args:
        rows: the rows of the log.
        dense: their columns, of which that of the loss is changed.
        losses: bool (n,), the rows that hold a loss; changed too.
        event: bool (n,), the rows that are overflows.
    """
    counted = dense.get(SKIPPED_NAN)
    if not counted:
        return []
    nan = counted.logged & (counted.values > 0)
    for name, (values, logged) in dense.items():
        if role(name, rows.names).role == "grad_norm":
            nan |= counted.logged & logged & np.isnan(values)
    nan &= ~losses & ~event
    if not nan.any():
        return []
    loss = next((name for name in dense if role(name, rows.names).role == "loss"), None)
    if not loss:
        loss = dict(rows.names.columns).get("loss", "lm loss")
        rows.wanted(loss)
        dense[loss] = Dense.empty(len(nan))
    dense[loss].values[nan], dense[loss].logged[nan] = np.nan, True
    losses |= nan
    return [f"Lines without a loss whose gradient norm or count of iterations is NaN: {int(nan.sum())}, read as NaN."]


def locate_events(columns: dict[str, Dense], names: Names, step: Dense, event: Bools) -> Dense:
    """Return the steps with one for each overflow, whose gradient was not finite; none if the log names no steps."""
    if not event.any():
        return step
    norm = columns[names.column("grad_norm")]
    if not (step.logged & ~event).any():
        norm.values[event & ~norm.logged], norm.logged[event] = np.inf, True
        return step
    step = _with_events(step, event)
    known = np.zeros(len(event), dtype=np.bool_)
    for name, (_, logged) in columns.items():
        if role(name, names).role == "grad_norm":
            known |= logged
    alone = event & ~norm.logged & ~np.isin(step.values, step.values[known & ~event])
    norm.values[alone], norm.logged[alone] = np.inf, True
    return step


def _with_events(step: Dense, event: Bools) -> Dense:
    """Return the steps with those of overflows: the last ones between two logged steps, the second included."""
    steps, logged = step.values.copy(), step.logged.copy()
    metric = np.flatnonzero(logged & ~event)
    missing = np.flatnonzero(event & ~logged)
    after = np.searchsorted(metric, missing)
    for index in np.unique(after).tolist():
        group = missing[after == index]
        count = len(group)
        previous = steps[metric[index - 1]] if index else -1.0
        if index == len(metric):
            steps[group] = previous + 1 + np.arange(count)
            continue
        following = steps[metric[index]]
        lowest = min(previous + 1, following) if following > previous else following - count
        steps[group] = np.maximum(following - np.arange(count)[::-1], max(0.0, lowest))
    logged[missing] = True
    return Dense(steps, logged)


def mark_sporadic(columns: dict[str, Column | None], cells: dict[str, Dense], names: Names, event: Bools) -> None:
    """Mark columns that only overflow lines write: their silence means nothing."""
    for name in (names.column("loss_scale"), names.column("grad_norm")):
        found = columns.get(name)
        if found and not (cells[name].logged & ~event).any():
            columns[name] = replace(found, sporadic=True)


def planned(rows: LogRows, step: Dense, epoch: Dense, *, counted_on: bool) -> dict[str, int]:
    """Return the planned steps, or epochs where no step is logged; nothing where that is not certain.

    Args:
        rows: the rows of the log.
        step: of each row, (n,).
        epoch: of each row, (n,).
        counted_on: whether the log's own steps start again in each epoch.
    """
    if not step.logged.any():
        return _planned("epochs", rows.totals["epoch"], epoch)
    one_epoch = epoch.logged.any() and len(np.unique(epoch.values[epoch.logged])) == 1
    if counted_on or one_epoch:  # the total may be that of the epoch
        return {}
    return _planned("max_steps", rows.totals["step"], step)


def _planned(key: str, totals: set[int], axis: Dense) -> dict[str, int]:
    """Return the one total of a counter as a setting, if the log does not go beyond it."""
    total = next(iter(totals), 0)
    if len(totals) != 1 or not axis.logged.any() or axis.values[axis.logged].max() > total:
        return {}
    return {key: total}
