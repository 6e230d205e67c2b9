"""What it means where a counter starts again: another run, another epoch of the same one, or a resume."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.lazy import np
from stabtree.common.stats import median
from stabtree.loaders.counters.levels import Level
from stabtree.loaders.counters.starts import Counted, rows_at_start, rows_back

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.common.lazy import Floats

SURE, LIKELY, GUESS = "sure", "likely", "guess"
NEVER_BACK = f"never goes back, {SURE}"
# More restarts than this are no runs of one file.
MAX_RUNS = 1000
# So many stretches of one length are epochs; two may as well be two runs.
MIN_EPOCHS = 3
# So many restarts show whether stretches of one length are epochs.
MAX_ASKED = 200
# No question is answered for a run with fewer rows.
MIN_JUDGED = 8


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
    meaning: str = NEVER_BACK


def classify(evidence: Counted) -> Restarts:
    """Decide for a file what it means where its counter goes back."""
    axis = evidence.axis
    back = rows_back(evidence)
    if not len(back):
        return Restarts()
    starts = rows_at_start(evidence, back.tolist())
    if not starts:
        return Restarts(
            meaning=f"goes back {len(back):,}×, never to its start = resumes or rows out of order, {LIKELY}"
        )
    stretches = [0, *starts, len(axis)]
    if len(starts) == len(back) and not evidence.passes and not any(_both(evidence, row) for row in starts):
        begun = _attempts_before(axis, stretches)
        found = _epochs(evidence, stretches[begun:]) if _is_regular(axis, stretches[begun:]) else None
        if found:
            return replace(found, runs=(*stretches[:begun], *found.runs))
    if len(starts) > MAX_RUNS:
        return Restarts(meaning=f"starts again {len(starts):,}×, too often for runs: rows out of order, {GUESS}")
    return _each(evidence, stretches)


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


def _epochs(evidence: Counted, stretches: list[int]) -> Restarts | None:
    """Return the epochs of stretches of one length, and the runs among them; None where they are all runs."""
    triples = list(zip(stretches, stretches[1:], stretches[2:], strict=False))
    asked = triples[:: 1 + len(triples) // MAX_ASKED]
    votes = [_outcome(evidence, stretches[0], *triple) for triple in asked]
    if votes and 2 * sum(vote > 0 for vote in votes) >= len(votes):
        return None
    runs = _runs_of_epochs(evidence, triples) if len(triples) <= MAX_RUNS else [stretches[0]]
    epochs = tuple(row for row in stretches[1:-1] if row not in set(runs))
    sure = GUESS
    if any(votes):
        sure = SURE if all(votes) else LIKELY
    why = "the loss goes on" if any(votes) else "all are of one length"
    return Restarts(tuple(runs), epochs, _meaning(len(runs) - 1, len(epochs), sure, why))


def _runs_of_epochs(evidence: Counted, triples: list[tuple[int, int, int]]) -> list[int]:
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


def _by_stretch(evidence: Counted, triples: list[tuple[int, int, int]]) -> Level | None:
    """Return the level of each stretch, whose scatter is that from epoch to epoch; None for too few."""
    if len(triples) < MIN_JUDGED or not evidence.outcomes:
        return None
    edges = [triples[0][0], *(row for _, row, _ in triples), len(evidence.axis)]
    level = evidence.outcomes[0]
    bounds = np.searchsorted(level.rows, edges).tolist()
    parts = [level.values[begin:end] for begin, end in pairwise(bounds)]
    medians = np.array([median(part) if len(part) else np.nan for part in parts])
    return Level.of(medians, np.isfinite(medians))


def _outcome(evidence: Counted, begin: int, stretch: int, row: int, end: int) -> int:
    """Return the first vote of the outcomes, else that of the learning rate."""
    for level in (*evidence.outcomes, *filter(None, [evidence.rate])):
        vote = level.vote(begin, stretch, row, end)
        if vote:
            return vote
    return 0


def _each(evidence: Counted, stretches: list[int]) -> Restarts:
    """Decide for each restart by itself; those that can't be decided are like the others."""
    votes = _votes(evidence, stretches)
    if not votes:
        return Restarts(meaning=f"goes back in the last row alone = a row out of order, {GUESS}")
    fresh, on = sum(vote > 0 for vote in votes.values()), sum(vote < 0 for vote in votes.values())
    other = 1 if fresh >= on else -1
    runs = (0, *(row for row, vote in votes.items() if (vote or other) > 0))
    epochs = tuple(row for row, vote in votes.items() if (vote or other) < 0)
    why = "the loss goes on" if on >= fresh else "the loss is back at its first level"
    if not fresh + on:
        why = "they differ in length"
    return Restarts(runs, epochs, _meaning(len(runs) - 1, len(epochs), _certainty(votes), why))


def _votes(evidence: Counted, stretches: list[int]) -> dict[int, int]:
    """Return the vote on each restart; none on a last row alone that is not back at the first level."""
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
        if vote > 0 or row + 1 < len(axis):
            votes[row] = vote
        if vote >= 0:
            begin = row
    return votes


def _certainty(votes: Mapping[int, int]) -> str:
    """Return how sure the decision about some restarts is: sure where all votes agree beyond doubt."""
    if not any(votes.values()):
        return GUESS
    if min(map(abs, votes.values())) > 1 and len({vote > 0 for vote in votes.values()}) == 1:
        return SURE
    return LIKELY


def _vote(evidence: Counted, begin: int, stretch: int, row: int, end: int) -> int:
    """Return whether training begins anew: at the level of the run, of the last stretch, or of the schedule."""
    vote = 0
    for level in evidence.outcomes:
        vote = level.vote(begin, stretch, row, end)
        if vote <= 0 and level.vote(stretch, stretch, row, end) > 1:
            vote = 1  # begun from the same weights as the stretch before, perhaps not from scratch
        if vote:
            break
    rate = evidence.rate.vote(begin, stretch, row, end) if evidence.rate else 0
    if vote <= 0 and (rate > 1 or _both(evidence, row)):
        return 1  # a schedule of its own, or another counter that starts again
    return vote or rate


def _both(evidence: Counted, row: int) -> bool:
    """Return whether the epochs start again with the steps."""
    return evidence.epochs is not None and bool(evidence.epochs[row] < evidence.epochs[row - 1])


def _meaning(runs: int, epochs: int, sure: str, why: str) -> str:
    parts = [f"starts again {runs + epochs:,}× ="]
    named = [f"{count:,} {what}" for count, what in ((runs, "new run"), (epochs, "epoch")) if count]
    parts.append(" and ".join(name if name.startswith("1 ") else f"{name}s" for name in named))
    rejected = "epochs" if runs >= epochs else "runs"
    return f"{' '.join(parts)}, {sure}; not {rejected}: {why}"
