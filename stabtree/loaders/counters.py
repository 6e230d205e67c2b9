"""Which columns of a file count its rows, and what it means where they start again; the same for every format."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.common.shared import FACTOR_SMALL, SHARE_MOST
from stabtree.common.stats import median
from stabtree.loaders.table import Column, unless_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stabtree.common.lazy import Bools, Floats, Ints

# What a cell holds that could not be read: a NaN of its own, which stays what it is when rows are moved.
GARBLED_BITS = 0x7FF8000000000BAD
GARBLED: float = struct.unpack("d", struct.pack("q", GARBLED_BITS))[0]
MIN_ROWS = 3
# Steps that repeat or go back in more of the rows are no count, where so many rows are counted otherwise.
LENGTH_ROWS, LENGTH_SHARE = 8, 0.2
LEVEL_ROWS = 3  # a level is the median of so many values, which one outlier doesn't move
# Two levels differ if they are so many times the noise of one value apart, so many times that if this is beyond doubt.
APART, BEYOND_DOUBT = 4.0, 3.0
SECOND_DIFFERENCE = 1.65  # the median size of the second differences of white noise, in standard deviations
# How far back from the last level to the first one a value is: nearer to the first, or beyond doubt.
BACK, SURELY_BACK = 0.5, 0.75
GOES_ON = 0.1  # what goes on from the last level moves by no larger share of the way back, or as from row to row
LATE = FACTOR_SMALL  # a run from scratch logs its first row at step 0, at 1, or after one interval; a resume later
MAX_REPEATED = 0.1  # an epoch may come twice where a run was begun anew; where more do, rows are no epochs
INTERVAL_ROWS = 50  # an interval is known from so many rows
MANY, MAX_RUNS = 20_000, 1000  # what goes back more often counts within epochs; more restarts are no runs of one file
SURE, LIKELY, GUESS = "sure", "likely", "guess"
NEVER_BACK = f"never goes back, {SURE}"
MIN_EPOCHS = 3  # so many stretches of one length are epochs; two may as well be two runs
# An attempt that was given up is too short to judge, and the run after it so many times as long.
MIN_JUDGED, MUCH_LONGER = 8, 4


class Dense(NamedTuple):
    """A column over all rows of a file: values float64 (n,), and which of them were logged, bool (n,)."""

    values: Floats
    logged: Bools

    @classmethod
    def empty(cls, count: int) -> Dense:
        """Return a column of so many rows in which nothing was logged."""
        return cls(np.zeros(count), np.zeros(count, dtype=np.bool_))

    def pick(self, rows: Ints) -> Dense:
        """Return a copy of some of the rows."""
        return Dense(self.values[rows], self.logged[rows])

    def column(self, rows: Ints) -> Column:
        """Return some of the rows as a column of a table."""
        values, logged = self.values[rows], self.logged[rows]
        column = Column(values, unless_all(logged))
        garbled = logged & (values.view(np.int64) == GARBLED_BITS)
        if not garbled.any():
            return column
        return replace(column.without(garbled), bad=int(np.count_nonzero(garbled)))


def count_on(step: Dense, epoch: Dense, losses: Bools) -> Floats | None:
    """Return steps over the whole run, (n,), from rows that count them within each epoch: epoch x batches + batch.

    The rows that hold a loss, bool (n,), decide; None if these don't count within epochs.
    """
    both = step.logged & epoch.logged
    at, of = step.values[both & losses], epoch.values[both & losses]
    if len(at) < MIN_ROWS or not (np.isfinite(at).all() and np.isfinite(of).all() and (of == np.floor(of)).all()):
        return None
    before = epoch.values - min(of[0], 1.0)  # epochs
    starts = np.flatnonzero(np.diff(of) > 0) + 1
    if len(starts) == len(at) - 1 and not np.ptp(at):
        # One row an epoch, always at the same batch: `Epoch [3/60], Step [600/600]`; at batch 0 the epoch alone counts.
        return np.where(both, step.values + before * at[0] if at[0] > 0 else epoch.values, step.values)
    if not len(starts) or np.count_nonzero(at[starts] < at[starts - 1]) < SHARE_MOST * len(starts):
        return None
    inside = np.diff(at)[np.diff(of) == 0]
    first = float(at[starts].min())
    if (inside < 0).any() or (len(starts) == 1 and first > at[0]):
        return None
    rises = inside[inside > 0]
    batches = float(at.max()) - first + (median(rises) if len(rises) else 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        whole = np.where(both, step.values + before * np.ceil(batches), step.values)
    return whole if np.isfinite(whole).all() else None


def is_length(values: Floats, other: Floats) -> bool:
    """Return whether a column, (n,), holds how long each episode took: it goes up and down where another one counts."""
    if len(values) < LENGTH_ROWS or not np.isfinite(other).all() or (other != np.floor(other)).any():
        return False
    rises = np.diff(other) > 0
    if np.count_nonzero(~rises) > (1 - SHARE_MOST) * len(rises):  # an appended run begins again
        return False
    changes = np.diff(values)[rises]
    return bool(np.count_nonzero(changes < 0) > LENGTH_SHARE * len(changes) or not changes.any())


def lexicographic(step: Floats, epoch: Floats | None) -> Floats:
    """Order rows by epoch first, so that finite steps, (n,), that are counted in each of them go back at no new one."""
    if epoch is None or (step[1:] >= step[:-1]).all():
        return step
    with np.errstate(over="ignore", invalid="ignore"):
        ordered = step + (epoch - min(epoch.min(), 1.0)) * (step.max() + 1.0)
    return ordered if np.isfinite(ordered).all() else step


class Level(Struct, frozen=True):
    """A metric as evidence: the rows that hold it, int64 (k,), its values, (k,), and the noise of one value."""

    rows: Ints
    values: Floats
    noise: float

    @classmethod
    def of(cls, values: Floats, logged: Bools) -> Level:
        """Return the evidence of a metric, values float64 (n,), in the rows that hold it, bool (n,)."""
        held = values[logged]
        finite = held[np.isfinite(held)]
        with np.errstate(over="ignore", invalid="ignore"):
            bends = np.abs(finite[2:] - 2 * finite[1:-1] + finite[:-2])
        noise = median(bends) / SECOND_DIFFERENCE if len(finite) >= LEVEL_ROWS else 0.0
        return cls(np.flatnonzero(logged), held, noise)

    def is_finite(self, begin: int, end: int) -> bool:
        """Return whether every value between two rows is finite."""
        first, last = np.searchsorted(self.rows, (begin, end))
        return bool(np.isfinite(self.values[first:last]).all())

    def vote(self, begin: int, stretch: int, row: int, end: int) -> int:
        """Return whether the metric is back at its first level at a row at which the counter starts again.

        The run begins at `begin`; the counter started again at `stretch` before, and does so at `end` next. 1 if it is
        back, 2 beyond doubt; -1 if it goes on, -2 beyond doubt; 0 if this can't be decided.
        """
        first, since, at, stop = np.searchsorted(self.rows, (begin, stretch, row, end)).tolist()
        now = self.values[at : min(at + LEVEL_ROWS, stop)]
        start = self.values[first : min(first + len(now), at)]
        last = self.values[at - min(LEVEL_ROWS, (at - since + 1) // 2) : at]
        if not min(len(now), len(start), len(last)):
            return 0
        if np.isfinite(now).all() and np.isfinite(start).all() and not np.isfinite(last).any():
            return 2  # what goes on from a NaN stays one
        if self._compare(now[:1], start[:1], last) > 1:
            return 2  # a steep start is seen in its first value alone
        return self._compare(now, start, last)

    def _compare(self, now: Floats, start: Floats, last: Floats) -> int:
        now, start, last = (part[np.isfinite(part)] for part in (now, start, last))
        if not min(len(now), len(start), len(last)):
            return 0
        apart = APART * self.noise / len(now) ** 0.5
        before = median(last)
        gap, moved = median(start) - before, median(now) - before
        if abs(gap) <= apart or not np.isfinite(gap):
            return 0
        certain = 2 if abs(gap) > BEYOND_DOUBT * apart else 1
        if moved / gap >= BACK:
            return certain if moved / gap >= SURELY_BACK else 1
        usual = (LEVEL_ROWS + 1) * float(np.abs(np.diff(last)).max(initial=0.0))
        if abs(moved) <= max(apart, min(usual, (1 - SURELY_BACK) * abs(gap)), GOES_ON * abs(gap)):
            return -certain
        return -1 if moved / gap > -BACK else 0  # elsewhere than both


class Counted(Struct, frozen=True):
    """The rows of a file that carry the loss, m of them, and what was logged in them."""

    axis: Floats  # (m,), what counts them
    outcomes: Sequence[Level] = ()  # the loss first, then what else shows how far training has come
    rate: Level | None = None  # the learning rate
    epochs: Floats | None = None  # (m,), beside the steps that the axis counts
    passes: bool = False  # whether the axis counts epochs, rounds or episodes, which none counts within another

    def both(self, row: int) -> bool:
        """Return whether the epochs start again with the steps."""
        return self.epochs is not None and bool(self.epochs[row] < self.epochs[row - 1])


def _at_start(evidence: Counted, back: list[int]) -> list[int]:
    """Return the rows at which the counter is back at its start; eval rows and stray ones are none."""
    axis, starts, begin = evidence.axis, [], 0
    if len(back) > MANY:
        return back if (axis[back] == axis[0]).all() else []
    for stretch, row, end in zip([0, *back], back, [*back[1:], len(axis)], strict=False):
        before, after = interval(axis[stretch:row]), interval(axis[row:end])
        wider = after > LATE * before and axis[row] <= LATE * after
        if axis[row] > axis[begin] and not wider:
            continue
        ahead, last, again = axis[row + 1 : row + 3], axis[row - 1], axis[row : 2 * row - stretch + INTERVAL_ROWS]
        if ((ahead > last) & (ahead <= last + 2 * before) & (ahead - axis[row] > 3 * before)).any():
            continue  # a stray row or two, after which the count goes on
        if axis[row] != axis[begin] and not np.isin(axis[stretch:row], again).any():
            continue  # rows that are merely out of order repeat no step
        late = axis[begin] > LATE * (before or after or 1.0)
        if late and not any(level.vote(begin, stretch, row, end) > 1 for level in evidence.outcomes):
            continue  # a run that was resumed from the same checkpoint once more
        starts.append(row)
        begin = row
    return starts


def interval(stretch: Floats | Ints) -> float:
    """Return the usual distance of two rows that are counted upwards; 0 where there are none."""
    changes = np.diff(stretch[:INTERVAL_ROWS])
    if not (changes > 0).any():
        return 0.0
    return median(changes[changes > 0])


class Runs(Struct, frozen=True):
    """The runs of a file, and what it means where its counter starts again."""

    starts: tuple[int, ...] = (0,)  # the rows at which they begin
    epochs: tuple[int, ...] = ()  # the rows at which the counter starts again within a run
    gone: frozenset[int] = frozenset()  # the indexes of the runs that were given up and begun anew
    meaning: str = NEVER_BACK  # what was decided, how sure it is, and what was rejected

    def attempts(self, rows: int, reached: Callable[[int, int], tuple[int, str]]) -> Iterator[Attempt]:
        """Yield the runs in a file of so many rows, but those that were given up.

        `reached` says of the rows from one to another how many carry the loss, and how far their counter came.
        """
        count, number = len(self.starts) - len(self.gone), 0
        notes: list[str] = []
        for index, (begin, end) in enumerate(pairwise([*self.starts, rows])):
            if index in self.gone:
                size, last = reached(begin, end)
                text = f"An attempt of {size:,} row{'s' * (size != 1)}, given up at {last} and begun anew, is not read."
                notes.append(text)
                continue
            number += 1
            if count > 1:
                notes.insert(0, f"Attempt {number} of {count} in one log: its rows from {begin + 1:,} on.")
            yield Attempt(begin, end, str(number) * (count > 1), tuple(notes))
            notes = []

    def epochs_note(self, what: str) -> str:
        """Return the note on steps that are counted on."""
        return f"{what} begin again in each of {len(self.epochs) + 1} epochs: they are counted on."


class Attempt(NamedTuple):
    """The rows of a run, its number where there are several, and what to say of it."""

    begin: int
    end: int
    number: str
    notes: tuple[str, ...]


def classify(evidence: Counted) -> Runs:
    """Decide for a file what it means where its counter goes back."""
    axis, changes = evidence.axis, np.diff(evidence.axis)
    again = changes == 0  # where each row should be another epoch, one more at the start begins anew
    if not evidence.passes or np.count_nonzero(again) > MAX_REPEATED * len(again):
        again = False
    back = np.flatnonzero((changes < 0) | again) + 1
    if not len(back):
        return Runs()
    starts = _at_start(evidence, back.tolist())
    if not starts:
        return Runs(meaning=f"goes back {len(back):,}×, never to its start = resumes or rows out of order, {LIKELY}")
    stretches = [0, *starts, len(axis)]
    regular = len(starts) == len(back) and _is_regular(evidence, stretches)
    if len(starts) > MAX_RUNS and not regular:
        return Runs(meaning=f"starts again {len(starts):,}×, too often for runs: rows out of order, {GUESS}")
    votes = _votes(evidence, stretches, regular=regular)
    if not votes:
        return Runs(meaning=f"goes back in the last row alone = a row out of order, {GUESS}")
    fresh, on = sum(vote > 0 for vote in votes.values()), sum(vote < 0 for vote in votes.values())
    other = 1 if fresh >= on else -1
    why = "the loss goes on" if on >= fresh else "the loss is back at its first level"
    if not fresh + on:
        why = "they differ in length"
    decided = votes
    if regular and 2 * fresh < len(votes):  # stretches of one length are epochs, but for what is beyond doubt
        decided = {row: vote if vote > 1 else min(vote, 0) for row, vote in votes.items()}
        other, why = -1, "the loss goes on" if any(votes.values()) else "all are of one length"
    runs = (0, *(row for row, vote in decided.items() if (vote or other) > 0))
    epochs = tuple(row for row, vote in decided.items() if (vote or other) < 0)
    certain = min(map(abs, votes.values())) > 1 and len({vote > 0 for vote in votes.values()}) == 1
    sure = GUESS
    if any(votes.values()):
        sure = SURE if certain else LIKELY
    counted = ((len(runs) - 1, "new run"), (len(epochs), "epoch"))
    named = " and ".join(f"{count:,} {what}{'s' * (count != 1)}" for count, what in counted if count)
    rejected = "epochs" if len(runs) > len(epochs) else "runs"
    return Runs(runs, epochs, meaning=f"starts again {len(votes):,}× = {named}, {sure}; not {rejected}: {why}")


def _is_regular(evidence: Counted, stretches: list[int]) -> bool:
    """Return whether all stretches cover the same steps but the last one, which may be cut short."""
    axis, starts = evidence.axis, stretches[1:-1]
    if len(starts) < MIN_EPOCHS - 1 or evidence.passes or any(map(evidence.both, starts)):
        return False
    firsts, lasts = axis[stretches[:-1]], axis[np.array(stretches[1:]) - 1]
    return bool((firsts == firsts[0]).all() and (lasts[:-1] == lasts[0]).all() and lasts[-1] <= lasts[0])


def _votes(evidence: Counted, stretches: list[int], *, regular: bool) -> dict[int, int]:
    """Return the vote on each restart; none on a last row alone that is not back at the first level."""
    axis, begin = evidence.axis, 0
    votes: dict[int, int] = {}
    lasts, counts = np.unique(axis[np.array(stretches[1:]) - 1], return_counts=True)
    full = frozenset() if evidence.passes else frozenset(lasts[counts >= MIN_EPOCHS].tolist())
    for stretch, row, end in zip(stretches, stretches[1:], stretches[2:], strict=False):
        vote = _vote(evidence, begin, stretch, row, end)
        # Another run is what a counter usually starts again for; that it is none must be beyond doubt, or after as
        # many steps as elsewhere.
        if vote == -1 and axis[row - 1] not in full:
            vote = 0
        if vote > 0 or row + 1 < len(axis):
            votes[row] = vote
        if vote > 0 or (not vote and not regular):
            begin = row
    return votes


def _vote(evidence: Counted, begin: int, stretch: int, row: int, end: int) -> int:
    """Return whether training begins anew: at the level of the run, of the last stretch, or of the schedule."""
    vote = 0
    for level in evidence.outcomes:
        vote = level.vote(begin, stretch, row, end)
        if vote:
            break
    rate = evidence.rate.vote(begin, stretch, row, end) if evidence.rate else 0
    if vote <= 0 and (rate > 1 or evidence.both(row)):
        return 1  # a schedule of its own, or another counter that starts again
    return vote or rate


def runs_of(
    main: Dense, epoch: Dense | None, losses: Bools, outcomes: Sequence[Dense], rates: Sequence[Dense], *, passes: bool
) -> Runs:
    """Return the runs of a file of n rows.

    An attempt that was given up is gone: too short to judge, and done again by a far longer one. What is not finite in
    it is evidence, so that such an attempt stays.

    Args:
        main: the steps; the epochs where no row names a step.
        epoch: the epochs beside the steps.
        losses: bool (n,), the rows that hold a loss.
        outcomes: the columns of the loss first, then what else shows how far training has come.
        rates: those of the learning rate, the best first.
        passes: whether `main` counts epochs or episodes.
    """
    rows = np.flatnonzero(losses & main.logged)
    epochs = None
    if epoch is not None and epoch.logged[rows].all() and np.isfinite(epoch.values[rows]).all():
        epochs = epoch.values[rows]
    if len(rows) < MIN_ROWS:
        return Runs()
    axis = lexicographic(main.values[rows], epochs)
    if not np.isfinite(axis).all():
        return Runs()
    levels, gone = [Level.of(values[rows], logged[rows]) for values, logged in (*outcomes, *rates[:1])], set()
    rate = levels.pop() if rates else None
    evidence = Counted(axis, levels, rate, epochs, passes)
    runs = classify(evidence)
    later = slice(len(axis), len(axis))
    for index, (begin, end) in reversed([*enumerate(pairwise([*runs.starts, len(axis)]))]):
        after = axis[later]
        again = MUCH_LONGER * (end - begin) <= len(after) and axis[begin] >= after[0] and axis[end - 1] <= after.max()
        if end - begin < MIN_JUDGED and again and all(level.is_finite(begin, end) for level in evidence.outcomes):
            gone.add(index)
        else:
            later = slice(begin, end)

    def first(index: int) -> int:
        """Return the first row of a run: evaluations before its first loss have no later step."""
        row = int(rows[index]) if index else 0
        at = main.values[row]
        while row and not losses[row - 1] and not (main.logged[row - 1] and main.values[row - 1] > at):
            row -= 1
        return row

    starts = tuple(map(first, runs.starts))
    return replace(runs, starts=starts, epochs=tuple(map(first, runs.epochs)), gone=frozenset(gone))


def counted_on(counter: Dense, runs: Runs) -> Floats:
    """Return the steps of a file, (n,), counted on where they start again within a run."""
    counted = np.array(counter.values, dtype=np.float64)
    added = previous = 0.0
    anew = frozenset(runs.starts)
    for begin, end in pairwise([*sorted({*anew, *runs.epochs}), len(counted)]):
        rows = np.flatnonzero(counter.logged[begin:end]) + begin
        if not len(rows):
            continue
        part = counter.values[rows]
        added = 0.0 if begin in anew else previous - float(part[0])
        counted[rows] = part + added
        previous = float(counted[rows].max()) + max(1.0, np.ceil(interval(part)))
    return counted
