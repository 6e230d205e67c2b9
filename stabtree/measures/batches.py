"""Batches that come back, replays, and seams where a log was resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.answer import Evidence
from stabtree.common.lazy import np
from stabtree.common.passes import broken_rows, last_sound_row, stretches_of
from stabtree.common.shared import ROWS_SHORT
from stabtree.common.stats import interval, stretches
from stabtree.measures.registry import Absent, Count, measure

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Ints
    from stabtree.run import Run, Series


STUCK_SHARE = 0.25  # of a window that are early repeats where a loader is stuck


class Repeats(NamedTuple):
    """Early repeats before a step."""

    rows: int  # how many rows of the window are early repeats, of `window_rows`
    window_rows: int
    stuck_rows: float  # from how many on they are more than the turn of a reshuffled epoch explains
    last: int  # row of the last one
    first: int  # row of the first one of the unbroken stretch that ends with it, which may come before the window

    @property
    def stuck(self) -> bool:
        """Whether the loader is stuck."""
        return self.rows >= self.stuck_rows


class Batches(NamedTuple):
    """Which batches came back, and how soon."""

    series: Series  # the batch ids
    since_steps: Ints  # steps since the same batch was last seen, 0 for the first time (n,)
    known: Ints  # different batches seen so far (n,)
    early: Bools  # whether a batch comes back early (n,)
    recent_steps: int  # within so many steps a batch comes back early

    def around(self, step: int, window_steps: int) -> Repeats | None:
        """Return the early repeats in the window before a step and at it, None where there are none."""
        start = int(np.searchsorted(self.series.steps, step - window_steps))
        end = min(int(np.searchsorted(self.series.steps, step)) + ROWS_SHORT, len(self.series))
        early = self.early[:end]
        inside = int(np.count_nonzero(early[start:]))
        if not inside:
            return None
        rows = np.flatnonzero(early)
        breaks = np.flatnonzero(np.diff(rows) > ROWS_SHORT)
        first, last = int(rows[breaks[-1] + 1 if len(breaks) else 0]), int(rows[-1])
        ids = self.series.values
        one_batch = last - first + 1 >= ROWS_SHORT and bool((ids[first : last + 1] == ids[last]).all())
        needed = float(ROWS_SHORT) if one_batch else max(ROWS_SHORT, STUCK_SHARE * (end - start))
        return Repeats(inside, end - start, needed, last, first)

    def fresh(self, loss: Series) -> Series:
        """Return the loss without the steps at which a stuck loader repeated a batch: a fall there is memorisation."""
        long = [(start, end) for start, end in stretches(self.early) if end - start >= ROWS_SHORT]
        if not long:
            return loss
        stuck = np.zeros(len(self.early), dtype=np.bool_)
        for start, end in long:
            stuck[start:end] = True
        keep = ~np.isin(loss.steps, self.series.steps[stuck])
        return replace(loss, steps=loss.steps[keep], values=loss.values[keep])


@measure(min_points=1)
def batches(batch_id: Series, *, recent_steps: Count) -> Batches:
    """Find which batches came back early: within `recent_steps`, although twice as many had been seen.

    Where an epoch is reshuffled, its first batches may be the last ones of the epoch before: a batch is early only
    within one pass over all of them.
    """
    # Steps and rows since the same batch was last seen, 0 for the first time.
    since_steps, since_rows = np.zeros((2, len(batch_id)), dtype=np.int64)
    order = np.lexsort((batch_id.steps, batch_id.values))
    same = batch_id.values[order][1:] == batch_id.values[order][:-1]
    since_steps[order[1:][same]] = np.diff(batch_id.steps[order])[same]
    since_rows[order[1:][same]] = np.diff(order)[same]
    known = np.cumsum(since_rows == 0)
    early = (since_steps > 0) & (2 * since_rows < known) & (since_steps <= recent_steps)
    if early.any():
        # The first row of the pass over all batches that each row is in; a pass ends once it had each.
        everything, passed, start = len(np.unique(batch_id.values)), set[float](), 0
        for row, batch in enumerate(batch_id.values.tolist()):
            if len(passed) == everything:
                passed, start = set(), row
            passed.add(batch)
            early[row] &= row - since_rows[row] >= start
    return Batches(batch_id, since_steps, known, early, recent_steps)


class Watch(Struct, frozen=True):
    """What the NaN monitor sees of one series."""

    first_step: Annotated[int, "The first step that is not finite."]
    total: Annotated[int, "How many rows are not."]
    longest: Annotated[int, "The most in a row."]
    stop_step: Annotated[int | None, "Where it would have stopped the run; null where it would not."]
    returned_step: Annotated[int | None, "Where the series came back for good."]
    last_good: Annotated[float | None, "The last finite value before."]
    last_good_step: Annotated[int | None, "Its step."]


class Replay(Struct, frozen=True):
    """What the NaN monitor would have done."""

    max_consecutive: Annotated[int, "So many rows in a row without a finite loss stop the run."]
    every: Annotated[int, "Steps between two rows."]
    steps_in_vain: Annotated[int, "Steps that ran after it would have stopped."]
    loss: Annotated[Watch, "The loss."]
    grad_norm: Annotated[Watch | None, "The gradient norm; null where it is not logged, or finite."]
    first_ranks: Annotated[tuple[str, ...], "The ranks that broke first."] = ()
    first_rank_step: Annotated[int | None, "When."] = None
    other_ranks: Annotated[tuple[str, ...], "The ranks that would have logged it as broken elsewhere."] = ()


@measure()
def monitor(run: Run, *, max_consecutive: Count) -> Replay | Absent:
    """Replay the NaN monitor that stops a run after `max_consecutive` bad rows in a row.

    Of several ranks, a step is bad when it is on one of them.
    """
    loss, grad_norm = run.get("loss"), run.get("grad_norm")
    watched = _watch(loss, max_consecutive) if loss is not None else None
    if loss is None or watched is None:
        return Absent((Evidence("no logged loss is NaN or infinite", "loss"),))
    last = run.last_step
    lost = last - watched.stop_step if last is not None and watched.stop_step is not None else 0
    firsts = broken_ranks(run)
    at = min(firsts.values(), default=None)
    return Replay(
        loss=watched,
        grad_norm=_watch(grad_norm, max_consecutive) if grad_norm is not None else None,
        max_consecutive=max_consecutive,
        every=round(interval(loss.steps)),
        steps_in_vain=lost if watched.returned_step is None else 0,
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
        first_step=int(series.steps[rows[0]]),
        total=len(rows),
        longest=int(lengths.max()),
        stop_step=None if stop is None else int(series.steps[stop]),
        returned_step=int(series.steps[last + 1]) if last + 1 < len(series) else None,
        last_good=float(series.values[good]) if good >= 0 else None,
        last_good_step=int(series.steps[good]) if good >= 0 else None,
    )
