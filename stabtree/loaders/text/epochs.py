"""What rows without a step of their own count: samples, positions of a bar, lines that sum up an epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.stats import median
from stabtree.loaders.counters.within import MIN_ROWS
from stabtree.loaders.text.asides import is_aside, steps
from stabtree.loaders.text.cells import Dense
from stabtree.loaders.text.lines.grammar import role

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats
    from stabtree.loaders.text.rows import LogRows

# Nearly all gaps are alike; the first and the last may not be.
MIN_SHARE = 0.9
# Batches have so many times as many rows as the lines that sum up an epoch.
DENSER = 3
# PyTorch's examples count samples, in batches of a multiple of this.
BATCH = 8
# Fewer of them are batches.
MANY_SAMPLES = 1000
SUMMED = "epoch_loss"
BAR = "progress bar"


def _unrounded(step: Dense, rounded: Dense) -> Floats | None:
    """Return steps where some are printed as `2K`: counted on from exact ones, else spread evenly; None if none are.

    Args:
        step: of each row, (n,).
        rounded: to what each was rounded, (n,); not logged where it is exact.
    """
    at = np.flatnonzero(step.logged)
    units = np.where(rounded.logged, rounded.values, 0.0)[at]
    if not units.any():
        return None
    printed = step.values[at]
    first = int(np.argmax(units > 0))
    found = np.array(step.values)
    every = np.diff(printed[:first])
    if len(every) and every[0] > 0 and (every == every[0]).all():
        counted = printed[first - 1] + every[0] * (np.arange(len(at)) - first + 1)
        if (np.abs(counted - printed)[first:] < units[first:]).all():
            found[at[first:]] = counted[first:]
            return found
    begins = np.flatnonzero(np.diff(printed, prepend=printed[0] - 1))
    sizes = np.diff(begins, append=len(printed))
    apart = np.diff(printed[begins], append=printed[-1] + units[-1])
    within = np.arange(len(printed)) - np.repeat(begins, sizes)
    spread = np.floor(np.repeat(np.maximum(apart, 0) / sizes, sizes) * within)
    found[at] = printed + np.where(units > 0, spread, 0.0)
    return found


def _are_samples(done: Floats, total: Floats) -> bool:
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


def _from_bar(done: Floats, total: Floats) -> Floats | None:
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
    if usual > 0 and np.count_nonzero(gaps == usual) >= MIN_SHARE * len(gaps) - 1:
        steps = np.round(np.interp(np.arange(count), known, at))
        after = np.arange(known[-1] + 1, count)
        steps[after] = at[-1] + usual * (after - known[-1])
        return steps
    # A bar that was written to another stream lags behind by less than the distance of two rows.
    each = round(float(at[-1] - at[0]) / int(known[-1] - known[0]))
    if each < 1:
        return None
    steps = np.round(each * (median(np.ceil(at / each) - known) + np.arange(count)))
    lags = steps[known] - at
    fits = (lags >= 0) & (lags <= each)
    if fits.mean() >= MIN_SHARE and steps[0] >= 0:
        return steps
    return None


def _summaries(loss: Bools, step_logged: Bools, epoch_logged: Bools) -> Bools | None:
    """Return which rows sum up an epoch whose batches are logged too: they name it, and no step; None if none do."""
    batches = loss & step_logged
    sums = loss & ~step_logged & epoch_logged
    few = np.count_nonzero(sums)
    if few and np.count_nonzero(batches) >= DENSER * few:
        return sums
    return None


def separate_summaries(
    dense: dict[str, Dense], rows: LogRows, losses: list[str], step_logged: Bools, epoch_logged: Bools
) -> dict[str, Dense]:
    """Separate the loss of lines that sum up an epoch from that of its batches, where both have one name."""
    separate: dict[str, Dense] = {}
    for name in losses:
        values, logged = dense[name]
        sums = _summaries(logged, step_logged, epoch_logged)
        # A column of a known name would come before those of its batches.
        summed = SUMMED if role(name, rows.names).role else f"{name} of the epoch"
        if sums is not None and summed not in dense:
            rows.wanted(summed)
            separate |= {name: Dense(values, logged & ~sums), summed: Dense(values, sums)}
    return separate


def steps_of(rows: LogRows, losses: Bools, carriers: list[Bools], notes: list[str]) -> tuple[str, Dense]:
    """Return what the steps are called, and that of each row.

    Args:
        rows: the rows of the log.
        losses: bool (n,), those that hold a loss.
        carriers: for each loss, bool (n,): the rows that hold it.
        notes: what was assumed, which is added to.
    """
    step = steps(rows)
    if not step.logged.any():
        return BAR, _bar_steps(rows, losses)
    share, percent = rows.dense("share")
    samples = percent.any() and _are_samples(share[percent], rows.dense("share_of").values[percent])
    if samples or _few_are_named(step, carriers):
        return BAR, Dense.empty(rows.count)
    values, logged = step
    last = np.flatnonzero(~is_aside(rows))[-3:]
    if rows.trailing and len(last) > 2 and not logged[last[2]] and logged[last[:2]].all():
        # The line that names the step of the last row was never written.
        values[last[2]], logged[last[2]] = 2 * values[last[1]] - values[last[0]], True
    exact = _unrounded(step, rows.dense("rounded"))
    if exact is not None:
        notes.append("The steps are printed rounded: rows are placed evenly between them.")
        step = Dense(exact, logged)
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


def _bar_steps(rows: LogRows, losses: Bools) -> Dense:
    """Return steps from the progress bar above each row, if bar and rows were printed in their order."""
    bar = rows.dense("bar")
    at = bar.values[losses]
    gaps = np.diff(at)
    regular = len(at) > 1 and bool(bar.logged[losses].all()) and bool((gaps > 0).all())
    if regular and at[0] and not (gaps != gaps[0]).any() and at[0] % gaps[0] == 0:
        return bar
    below, has = rows.dense("below")
    steps = _from_bar(np.where(has, below, np.nan)[losses], rows.dense("below_of").values[losses])
    if steps is not None:
        values = np.zeros(rows.count)
        values[losses] = steps
        return Dense(values, losses)
    if regular and np.count_nonzero(gaps != median(gaps)) <= max(1, 0.1 * len(gaps)):
        return bar
    return Dense.empty(rows.count)
