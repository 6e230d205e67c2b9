"""What it means where a counter starts again: another run, another epoch of the same one, or a resume."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.stats import median
from stabtree.loaders.counters.levels import Level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.common.lazy import Floats, Ints

SURE, LIKELY, GUESS = "sure", "likely", "guess"
# More restarts than this are no runs of one file.
MAX_RUNS = 1000
# So many stretches of one length are epochs; two may as well be two runs.
MIN_EPOCHS = 3
# So many restarts show whether stretches of one length are epochs.
MAX_ASKED = 200
# A run from scratch logs its first row at step 0, at 1, or after one interval; a later first row is a resume's.
LATE = 1.5
# An epoch may come twice where a run was begun anew; where more do, rows are no epochs.
MAX_REPEATED = 0.1
# An interval is known from so many rows.
INTERVAL_ROWS = 50
# No question is answered for a run with fewer rows.
MIN_JUDGED = 8
# An attempt that was given up is followed by a run of so many times its rows; two of about one length both ended.
MUCH_LONGER = 4


@dataclass(frozen=True, slots=True)
class Evidence:
    """The rows of a file that carry the loss, m of them, and what was logged in them.

    Attributes:
        axis: float64 (m,), what counts them.
        outcomes: the loss first, then what else shows how far training has come.
        rate: the learning rate.
        epochs: float64 (m,), the epochs beside the steps that the axis counts; None where there are none.
        passes: whether the axis counts epochs, rounds or episodes, which none counts within another.
    """

    axis: Floats
    outcomes: Sequence[Level] = ()
    rate: Level | None = None
    epochs: Floats | None = None
    passes: bool = False


@dataclass(frozen=True, slots=True)
class Restarts:
    """What the restarts of a counter mean.

    Attributes:
        runs: the rows at which a run begins, 0 among them.
        epochs: the rows at which it starts again within a run.
        meaning: what was decided, how sure it is, and what was rejected.
    """

    runs: tuple[int, ...] = (0,)
    epochs: tuple[int, ...] = ()
    meaning: str = "never goes back, sure"


def classify(evidence: Evidence) -> Restarts:
    """Decide for a file what it means where its counter goes back."""
    axis = evidence.axis
    back = _back(evidence)
    if not len(back):
        return Restarts()
    starts = _starts(evidence, back.tolist())
    if not starts:
        return Restarts(
            meaning=f"goes back {len(back):,}×, never to its start = resumes or rows out of order, {LIKELY}"
        )
    stretches = [0, *starts, len(axis)]
    if len(starts) == len(back) and not evidence.passes:
        begun = _attempts_before(axis, stretches)
        found = _epochs(evidence, stretches[begun:]) if _is_regular(axis, stretches[begun:]) else None
        if found:
            return replace(found, runs=(*stretches[:begun], *found.runs))
    if len(starts) > MAX_RUNS:
        return Restarts(meaning=f"starts again {len(starts):,}×, too often for runs: rows out of order, {GUESS}")
    return _each(evidence, stretches)


def _back(evidence: Evidence) -> Ints:
    """Return the rows at which the counter goes back, or stays at its start where each row should be another epoch."""
    changes = np.diff(evidence.axis)
    back = changes < 0
    again = changes == 0
    if evidence.passes and np.count_nonzero(again) <= MAX_REPEATED * len(again):
        back |= again
    return np.flatnonzero(back) + 1


def _starts(evidence: Evidence, back: list[int]) -> list[int]:
    """Return the rows at which the counter is back at its start; eval rows and stray ones are none."""
    axis, found, begin = evidence.axis, [], 0
    for row, (stretch, end) in zip(back, _around(back, len(axis)), strict=True):
        before, after = _interval(axis[stretch:row]), _interval(axis[row:end])
        wider = after > LATE * before and axis[row] <= LATE * after
        if axis[row] > axis[begin] and not wider:
            continue
        if _is_stray(axis, row, before) or not _repeats(axis, begin, stretch, row):
            continue
        late = axis[begin] > LATE * (before or after or 1.0)
        if late and not any(level.vote(begin, stretch, row, end) > 1 for level in evidence.outcomes):
            continue  # a run that was resumed from the same checkpoint once more
        found.append(row)
        begin = row
    return found


def _around(back: list[int], rows: int) -> list[tuple[int, int]]:
    """Return for each of some rows the one before it and the one after it, the ends of the file included."""
    edges = [0, *back, rows]
    return [(edges[index], edges[index + 2]) for index in range(len(back))]


def _interval(stretch: Floats) -> float:
    """Return the usual distance of two rows that are counted upwards; 0 where there are none."""
    rises = np.diff(stretch[:INTERVAL_ROWS])
    rises = rises[rises > 0]
    return median(rises) if len(rises) else 0.0


def _is_stray(axis: Floats, row: int, interval: float) -> bool:
    """Return whether the count goes on after a row or two as if they were not there."""
    before = axis[row - 1]
    for after in axis[row + 1 : row + 3]:
        if before < after <= before + 2 * interval and after - axis[row] > 3 * interval:
            return True
    return False


def _repeats(axis: Floats, begin: int, stretch: int, row: int) -> bool:
    """Return whether some step comes again; rows that are merely out of order repeat none."""
    if axis[row] == axis[begin]:
        return True
    return bool(np.isin(axis[stretch:row], axis[row : 2 * row - stretch + INTERVAL_ROWS]).any())


def _attempts_before(axis: Floats, stretches: list[int]) -> int:
    """Return how many stretches at the start are attempts of a few rows, shorter than the next one."""
    count = 0
    while count + MIN_EPOCHS < len(stretches) - 1:
        begin, end, after = stretches[count : count + 3]
        if end - begin >= MIN_JUDGED or axis[end - 1] >= axis[after - 1]:
            break
        count += 1
    return count


def _is_regular(axis: Floats, stretches: list[int]) -> bool:
    """Return whether all stretches cover the same steps but the last one, which may be cut short."""
    if len(stretches) - 1 < MIN_EPOCHS:
        return False
    firsts, lasts = axis[stretches[:-1]], axis[np.array(stretches[1:]) - 1]
    return bool((firsts == firsts[0]).all() and (lasts[:-1] == lasts[0]).all() and lasts[-1] <= lasts[0])


def _epochs(evidence: Evidence, stretches: list[int]) -> Restarts | None:
    """Return the epochs of stretches of one length, and the runs among them; None where they are all runs."""
    triples = list(zip(stretches, stretches[1:], stretches[2:], strict=False))
    asked = triples[:: 1 + len(triples) // MAX_ASKED]
    votes = [_outcome(evidence, stretches[0], *triple) for triple in asked]
    if votes and 2 * sum(vote > 0 for vote in votes) >= len(votes):
        return None
    runs = _runs_of_epochs(evidence, triples) if len(triples) <= MAX_RUNS else [stretches[0]]
    epochs = tuple(row for row in stretches[1:-1] if row not in set(runs))
    sure = SURE if all(votes) else LIKELY if any(votes) else GUESS
    why = "the loss goes on" if any(votes) else "all are of one length"
    return Restarts(tuple(runs), epochs, _meaning(len(runs) - 1, len(epochs), sure, why))


def _runs_of_epochs(evidence: Evidence, triples: list[tuple[int, int, int]]) -> list[int]:
    """Return the rows at which runs begin that have the same number of epochs, but the last one, which may be cut."""
    first = triples[0][0]
    runs, epochs = [first], [0]
    for index, (stretch, row, end) in enumerate(triples, 1):
        if _outcome(evidence, runs[-1], stretch, row, end) > 1:
            runs.append(row)
            epochs.append(index)
    counts = np.diff([*epochs, len(triples) + 1])
    if len(runs) == 1 or (counts[:-1] != counts[0]).any() or counts[-1] > counts[0] or counts[0] == 1:
        return [first]
    # Two may be one that jumped by chance; what is back by the scatter from epoch to epoch is none.
    usual = _by_stretch(evidence, triples) if len(runs) == 2 else None
    if usual and usual.vote(0, 0, epochs[1], len(triples) + 1) <= 0:
        return [first]
    return runs


def _by_stretch(evidence: Evidence, triples: list[tuple[int, int, int]]) -> Level | None:
    """Return the level of each stretch, whose scatter is that from epoch to epoch; None for too few."""
    if len(triples) < MIN_JUDGED or not evidence.outcomes:
        return None
    edges = [triples[0][0], *(row for _, row, _ in triples), len(evidence.axis)]
    level = evidence.outcomes[0]
    bounds = np.searchsorted(level.rows, edges).tolist()
    parts = [level.values[begin:end] for begin, end in pairwise(bounds)]
    medians = np.array([median(part) if len(part) else np.nan for part in parts])
    return Level.of(medians, np.isfinite(medians))


def _outcome(evidence: Evidence, begin: int, stretch: int, row: int, end: int) -> int:
    """Return the first vote of the outcomes, else that of the learning rate."""
    for level in (*evidence.outcomes, *filter(None, [evidence.rate])):
        vote = level.vote(begin, stretch, row, end)
        if vote:
            return vote
    return 0


def _each(evidence: Evidence, stretches: list[int]) -> Restarts:
    """Decide for each restart by itself; those that can't be decided are like the others."""
    axis = evidence.axis
    lasts, counts = np.unique(axis[np.array(stretches[1:]) - 1], return_counts=True)
    full = frozenset() if evidence.passes else frozenset(lasts[counts >= MIN_EPOCHS].tolist())
    votes: dict[int, int] = {}
    begin = 0
    for stretch, row, end in zip(stretches, stretches[1:], stretches[2:], strict=False):
        vote = _vote(evidence, begin, stretch, row, end)
        # Another run is what a counter usually starts again for; that it is none must be beyond doubt, or after as
        # many steps as elsewhere.
        if vote == -1 and axis[row - 1] not in full:
            vote = 0
        if evidence.epochs is not None and evidence.epochs[row] < evidence.epochs[row - 1]:
            vote = max(vote, 1)  # both counters start again
        if vote > 0 or end - row > 1 or end < len(axis):
            votes[row] = vote
        if vote >= 0:
            begin = row
    if not votes:
        return Restarts(meaning=f"goes back in the last row alone = a row out of order, {GUESS}")
    fresh, on = sum(vote > 0 for vote in votes.values()), sum(vote < 0 for vote in votes.values())
    other = 1 if fresh >= on else -1
    runs = (0, *(row for row, vote in votes.items() if (vote or other) > 0))
    epochs = tuple(row for row, vote in votes.items() if (vote or other) < 0)
    sure = LIKELY
    if not fresh + on:
        sure = GUESS
    elif min(map(abs, votes.values())) > 1 and not (fresh and on):
        sure = SURE
    why = "the loss goes on" if on >= fresh else "the loss is back at its first level"
    if sure == GUESS:
        why = "they differ in length"
    return Restarts(runs, epochs, _meaning(len(runs) - 1, len(epochs), sure, why))


def _vote(evidence: Evidence, begin: int, stretch: int, row: int, end: int) -> int:
    """Return whether training begins anew: at the level of the run, of the last stretch, or of the schedule."""
    vote = 0
    for level in evidence.outcomes:
        vote = level.vote(begin, stretch, row, end)
        if vote <= 0 and level.vote(stretch, stretch, row, end) > 1:
            vote = 1  # begun from the same weights as the stretch before, perhaps not from scratch
        if vote:
            break
    rate = evidence.rate.vote(begin, stretch, row, end) if evidence.rate else 0
    if vote <= 0 and rate > 1:
        return 1  # a schedule of its own
    return vote or rate


def _meaning(runs: int, epochs: int, sure: str, why: str) -> str:
    parts = [f"starts again {runs + epochs:,}× ="]
    named = [f"{count:,} {what}" for count, what in ((runs, "new run"), (epochs, "epoch")) if count]
    parts.append(" and ".join(name if name.startswith("1 ") else f"{name}s" for name in named))
    rejected = "epochs" if runs >= epochs else "runs"
    return f"{' '.join(parts)}, {sure}; not {rejected}: {why}"


def abandoned(evidence: Evidence, runs: Sequence[int]) -> tuple[int, ...]:
    """Return which runs are attempts that were given up: too short to judge, and done again by a far longer one.

    What is not finite in them is evidence, so that such an attempt is none.

    Args:
        evidence: the rows.
        runs: the rows at which the runs begin.
    """
    axis, found = evidence.axis, []
    later = (len(axis), len(axis))
    for index, (begin, end) in reversed([*enumerate(pairwise([*runs, len(axis)]))]):
        after = axis[slice(*later)]
        again = MUCH_LONGER * (end - begin) <= len(after) and axis[begin] >= after[0] and axis[end - 1] <= after.max()
        finite = all(level.is_finite(begin, end) for level in evidence.outcomes)
        if end - begin < MIN_JUDGED and again and finite:
            found.append(index)
        else:
            later = (begin, end)
    return tuple(found)


def running_on(steps: Floats, epochs: Sequence[int], runs: Sequence[int]) -> Floats:
    """Return steps that start again within a run, counted on instead.

    Args:
        steps: float64 (n,), one or more rows for each step.
        epochs: the rows at which they start again.
        runs: the rows at which they start again because another run begins, 0 among them.
    """
    counted = np.array(steps, dtype=np.float64)
    begins = set(runs)
    edges = sorted({*runs, *epochs})
    added = previous = 0.0
    for begin, end in pairwise([*edges, len(steps)]):
        part = steps[begin:end]
        if begin in begins:
            added = 0.0
        else:
            added = previous - float(part[0])
        counted[begin:end] = part + added
        previous = float(counted[begin:end].max()) + max(1.0, np.ceil(_interval(part)))
    return counted
