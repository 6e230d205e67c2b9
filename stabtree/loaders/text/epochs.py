"""What counts the rows of a text log: steps, samples, positions of a bar, episodes; and the runs that this shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from stabtree.common.lazy import np
from stabtree.common.shared import SHARE_MOST
from stabtree.common.stats import median
from stabtree.loaders.counters import (
    MIN_ROWS,
    Count,
    Counted,
    Level,
    Runs,
    count_on,
    divide,
    is_length,
    lexicographic,
)
from stabtree.loaders.text.cells import Dense
from stabtree.loaders.text.lines.grammar import role
from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.common.lazy import Bools, Floats
    from stabtree.loaders.text.rows import LogRows

# Nearly all gaps are alike; the first and the last may not be.
MIN_SHARE = SHARE_MOST
# Batches have so many times as many rows as the lines that sum up an epoch.
DENSER = 3
# PyTorch's examples count samples, in batches of a multiple of this.
BATCH = 8
# Fewer of them are batches.
MANY_SAMPLES = 1000
SUMMED = "epoch_loss"


def place_rounded(step: Dense, rounded: Dense) -> Dense:
    """Return steps where some are printed as `2K`: counted on from exact ones, else spread evenly.

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
    begins = np.flatnonzero(np.diff(printed, prepend=printed[0] - 1))
    sizes = np.diff(begins, append=len(printed))
    apart = np.diff(printed[begins], append=printed[-1] + units[-1])
    within = np.arange(len(printed)) - np.repeat(begins, sizes)
    spread = np.floor(np.repeat(np.maximum(apart, 0) / sizes, sizes) * within)
    found[at] = printed + np.where(units > 0, spread, 0.0)
    return Dense(found, step.logged)


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


def bar_steps(rows: LogRows, losses: Bools) -> Dense:
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


class CountedRows(Struct, frozen=True):
    """The steps of a log.

    Attributes:
        name: how the log spells them.
        step: that of each row.
        by_episode: whether the rows are the steps of episodes.
        on: whether they were counted on from epoch to epoch.
    """

    name: str
    step: Dense
    by_episode: bool = False
    on: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What was changed."""
        if self.on:
            return ("The steps start again in each epoch: they are counted on.",)
        return ()


class Counters(NamedTuple):
    """What counts the rows of a log, n of them.

    Attributes:
        main: the steps; the epochs where no row names a step.
        epoch: the epochs beside the steps.
        passes: whether `main` counts epochs or episodes.
    """

    main: Dense
    epoch: Dense | None
    passes: bool


def count_rows(name: str, step: Dense, epoch: Dense, dense: Mapping[str, Dense], losses: Bools) -> CountedRows:
    """Return the steps of a log, counted on where they start again in each epoch; its episodes for their lengths.

    Args:
        name: how the log spells the step.
        step: that of each row, (n,).
        epoch: of each row, (n,).
        dense: the other columns by name.
        losses: bool (n,), the rows that hold a loss.
    """
    episode = next((name for name in dense if normalize(name) in ("episode", "episodes")), "")
    if episode and _counts_steps_of(step, dense[episode]):
        return CountedRows(name, step, by_episode=True)
    if episode and _is_length(step, dense[episode]):
        return CountedRows(episode, dense[episode])
    continuous = count_on(Count(*step), Count(*epoch), losses)
    if continuous is None:
        return CountedRows(name, step)
    return CountedRows(name, Dense(continuous, step.logged), on=True)


def _counts_steps_of(step: Dense, episode: Dense) -> bool:
    """Return whether steps begin again with each episode, and nowhere else."""
    both = step.logged & episode.logged
    begins = np.diff(episode.values[both]) != 0
    return bool(begins.any() and not begins.all() and (begins == (np.diff(step.values[both]) <= 0)).all())


def _is_length(step: Dense, episode: Dense) -> bool:
    both = step.logged & episode.logged
    return is_length(step.values[both], episode.values[both])


def runs_of(counters: Counters, losses: Bools, outcomes: Sequence[Dense], rates: Sequence[Dense]) -> Runs:
    """Return the runs of a log.

    Args:
        counters: what counts its rows, (n,).
        losses: bool (n,), the rows that hold a loss.
        outcomes: the columns of the loss.
        rates: those of the learning rate, the best first.
    """
    main = counters.main
    at = np.flatnonzero(losses & main.logged)
    epochs = None
    if counters.epoch is not None and counters.epoch.logged[at].all() and np.isfinite(counters.epoch.values[at]).all():
        epochs = counters.epoch.values[at]
    axis = lexicographic(main.values[at], epochs) if len(at) else main.values[at]
    if len(at) < MIN_ROWS or not np.isfinite(axis).all():
        return Runs()
    evidence = Counted(
        axis=axis,
        outcomes=[Level.of(values[at], logged[at]) for values, logged in outcomes],
        rate=next((Level.of(values[at], logged[at]) for values, logged in rates), None),
        epochs=epochs,
        passes=counters.passes,
    )
    return divide(at, evidence, Count(*main), losses)
