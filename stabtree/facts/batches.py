"""Batches that come back: a loader that repeats itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.common.shared import ROWS_SHORT
from stabtree.common.stats import stretches
from stabtree.facts.registry import Count, fact

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Ints
    from stabtree.run import Series


class Repeats(NamedTuple):
    """Early repeats before a step.

    Attributes:
        rows: how many rows of the window are early repeats, of `window_rows`.
        stuck_rows: from how many on they are more than the turn of a reshuffled epoch explains.
        last: row of the last one.
        first: row of the first one of the unbroken stretch that ends with it, which may come before the window.
    """

    rows: int
    window_rows: int
    stuck_rows: float
    last: int
    first: int

    @property
    def stuck(self) -> bool:
        """Whether the loader is stuck."""
        return self.rows >= self.stuck_rows


class Batches(NamedTuple):
    """Which batches came back, and how soon.

    Attributes:
        series: the batch ids.
        since_steps: steps since the same batch was last seen, 0 for the first time (n,).
        known: different batches seen so far (n,).
        early: whether a batch comes back early (n,).
        rewound: whether it is one of many neighbours that come back in their order, however long ago they were seen,
            but long before all batches had been (n,).
        recent_steps: within so many steps a batch comes back early.
        stuck_share: how much of a window must be early repeats for a loader to be stuck.
    """

    series: Series
    since_steps: Ints
    known: Ints
    early: Bools
    rewound: Bools
    recent_steps: int
    stuck_share: float

    def around(self, step: int, window_steps: int) -> Repeats | None:
        """Return the early repeats in the window before a step and at it, None where there are none."""
        start = int(np.searchsorted(self.series.steps, step - window_steps))
        end = min(int(np.searchsorted(self.series.steps, step)) + ROWS_SHORT, len(self.series))
        early = (self.early | self.rewound)[:end]
        inside = int(np.count_nonzero(early[start:]))
        if not inside:
            return None
        rows = np.flatnonzero(early)
        breaks = np.flatnonzero(np.diff(rows) > ROWS_SHORT)
        first, last = int(rows[breaks[-1] + 1 if len(breaks) else 0]), int(rows[-1])
        ids = self.series.values
        one_batch = last - first + 1 >= ROWS_SHORT and bool((ids[first : last + 1] == ids[last]).all())
        needed = float(ROWS_SHORT) if one_batch else max(ROWS_SHORT, self.stuck_share * (end - start))
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


@fact(min_points=1)
def batches(
    batch_id: Series,
    *,
    recent_steps: Count,
    stuck_share: float,
) -> Batches:
    """Find which batches came back early: within `recent_steps`, although twice as many had been seen.

    A loader that goes back feeds them again in their order: where `ROWS_SHORT` neighbours or more come back after one
    and the same number of rows, it may be any number, if twice as many had been seen, or if batches come later
    that had not been seen: then no epoch was over.

    Where an epoch is reshuffled, its first batches may be the last ones of the epoch before: a batch is early only
    within one pass over all of them.
    """
    since_steps, since_rows = _since(batch_id)
    known = np.cumsum(since_rows == 0)
    soon, rewound = 2 * since_rows < known, np.zeros(len(known), dtype=np.bool_)
    early = (since_steps > 0) & soon & (since_steps <= recent_steps)
    if early.any():
        early &= np.arange(len(known)) - since_rows >= _pass_starts(batch_id)
    again = (since_steps > 0) & (soon | ((since_rows < known) & (known < known[-1])))
    in_order = again[1:] & again[:-1] & (since_rows[1:] == since_rows[:-1])
    for start, end in stretches(in_order):
        rewound[start : end + 1] = end + 1 - start >= ROWS_SHORT
    return Batches(batch_id, since_steps, known, early, rewound, recent_steps, stuck_share)


def _pass_starts(batch_id: Series) -> Ints:
    """Return the first row of the pass over all batches that each row is in, (n,); a pass ends once it had each."""
    everything = len(np.unique(batch_id.values))
    starts = np.zeros(len(batch_id), dtype=np.int64)
    seen: set[float] = set()
    start = 0
    for row, batch in enumerate(batch_id.values.tolist()):
        if len(seen) == everything:
            seen, start = set(), row
        seen.add(batch)
        starts[row] = start
    return starts


def _since(batch_id: Series) -> tuple[Ints, Ints]:
    """Return steps and rows since the same batch was last seen, 0 for the first time: two of (n,)."""
    order = np.lexsort((batch_id.steps, batch_id.values))
    same = batch_id.values[order][1:] == batch_id.values[order][:-1]
    steps = np.zeros(len(batch_id), dtype=np.int64)
    rows = np.zeros(len(batch_id), dtype=np.int64)
    steps[order[1:][same]] = np.diff(batch_id.steps[order])[same]
    rows[order[1:][same]] = np.diff(order)[same]
    return steps, rows
