"""The NaN monitor run over a log: when it would have stopped the run, and what going on has cost.

A log has rows where a training loop has steps: what the monitor counts here are rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from stabtree.common.answer import Evidence
from stabtree.common.passes import broken_rows, last_sound_row, stretches_of
from stabtree.common.stats import interval
from stabtree.facts.registry import Absent, Count, fact

if TYPE_CHECKING:
    from stabtree.run import Run, Series


class Watch(Struct, frozen=True):
    """What the monitor sees in one series.

    Attributes:
        metric: `loss` or `grad_norm`.
        first_step: the first step at which it is not finite.
        total: rows at which it is not finite.
        longest: most such rows in a row.
        stop_step: the step of the row at which the monitor would have stopped the run; None when it would not.
        returned_step: the step from which on it is finite to the end of the log; None when it ends not finite.
        last_good: the last finite value before the stop, or of the log where there is no stop; None without one.
        last_good_step: its step.
    """

    metric: str
    first_step: int
    total: int
    longest: int
    stop_step: int | None
    returned_step: int | None
    last_good: float | None
    last_good_step: int | None


class Replay(Struct, frozen=True):
    """What the NaN monitor would have done.

    Attributes:
        loss: what it sees in the loss.
        grad_norm: what it sees in grad_norm; None when it was not logged or is finite throughout.
        max_consecutive: rows in a row that stop the run.
        every: steps between two rows of the loss, the median.
        steps_in_vain: steps from the stop to the end of the log; 0 without a stop, or when the loss came back.
        first_ranks: the ranks whose loss broke first; empty for a log of one rank.
        first_rank_step: the step at which they did.
        other_ranks: the ranks whose loss was finite then, or not logged: there the monitor says "another rank".
    """

    loss: Watch
    grad_norm: Watch | None
    max_consecutive: int
    every: int
    steps_in_vain: int
    first_ranks: tuple[str, ...] = ()
    first_rank_step: int | None = None
    other_ranks: tuple[str, ...] = ()


@fact()
def monitor(run: Run, *, max_consecutive: Count) -> Replay | Absent:
    """Replay the NaN monitor that stops a run after `max_consecutive` bad rows in a row."""
    return replay(run, max_consecutive) or Absent((Evidence("no logged loss is NaN or infinite", "loss"),))


def replay(run: Run, max_consecutive: int) -> Replay | None:
    """Run the monitor over a log.

    Args:
        run: the run; of several ranks, a step is bad when it is on one of them.
        max_consecutive: rows in a row that stop the run, at least 1.

    Returns:
        None where the loss is finite throughout, or was not logged.
    """
    loss, grad_norm = run.get("loss"), run.get("grad_norm")
    seen = _watch(loss, max_consecutive) if loss is not None else None
    if loss is None or seen is None:
        return None
    last = run.last_step
    lost = last - seen.stop_step if last is not None and seen.stop_step is not None else 0
    firsts = broken_ranks(run)
    at = min(firsts.values(), default=None)
    return Replay(
        loss=seen,
        grad_norm=_watch(grad_norm, max_consecutive) if grad_norm is not None else None,
        max_consecutive=max_consecutive,
        every=round(interval(loss.steps)),
        steps_in_vain=lost if seen.returned_step is None else 0,
        first_ranks=tuple(rank for rank, step in firsts.items() if step == at),
        first_rank_step=at,
        other_ranks=tuple(rank for rank in run.ranks if firsts and firsts.get(rank) != at),
    )


def broken_ranks(run: Run) -> dict[str, int]:
    """Return the first step at which each rank's loss is not finite, without the ranks that stay finite."""
    firsts: dict[str, int] = {}
    for rank, series in run.ranks.items():
        loss = series.get("loss")
        if loss is not None and len(broken_rows(loss)):
            firsts[rank] = int(loss.steps[broken_rows(loss)[0]])
    return firsts


def _watch(series: Series, max_consecutive: int) -> Watch | None:
    rows = broken_rows(series)
    if not len(rows):
        return None
    begins, lengths = stretches_of(rows)
    storms = begins[lengths >= max_consecutive]
    stop = int(storms[0]) + max_consecutive - 1 if len(storms) else None
    good = last_sound_row(series, len(series) if stop is None else stop)
    last = int(rows[-1])
    return Watch(
        metric=series.metric,
        first_step=int(series.steps[rows[0]]),
        total=len(rows),
        longest=int(lengths.max()),
        stop_step=None if stop is None else int(series.steps[stop]),
        returned_step=int(series.steps[last + 1]) if last + 1 < len(series) else None,
        last_good=float(series.values[good]) if good >= 0 else None,
        last_good_step=int(series.steps[good]) if good >= 0 else None,
    )
