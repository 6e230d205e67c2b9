"""Choose the level from which an answer is near its limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.fit.logs import WILD

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.fit.judged import Judged
    from benchmarks.fit.logs import Log
    from stabtree.tree.shipped import Calibrations

NEAR = (0.5, 0.4, 0.3, 0.2)
"""At the slopes that are fitted the first one is reached at about half of a limit."""
MAX_FAILED = 0.03


def near_level(pairs: Iterable[tuple[Log, Judged]], known: Sequence[Calibrations]) -> float:
    """Return the highest level at which few of the public logs that are called healthy are failures.

    Args:
        pairs: the logs, each as it was judged by what was fitted to other folds.
        known: what was fitted without each fold.
    """
    greens = [(log, said) for log, said in pairs if log.source == WILD and log.counts and said.verdict == "ok"]
    for level in NEAR:
        left = [log.failed for log, said in greens if _nearest(said, known[log.fold]) < level]
        if sum(left) <= MAX_FAILED * len(left):
            return level
    return NEAR[-1]


def _nearest(said: Judged, known: Calibrations) -> float:
    below = (seen for seen in said.seen if seen.strength < 0 and seen.alarms)
    return max((known.likelihood(seen.question, seen.strength) for seen in below), default=0.0)
