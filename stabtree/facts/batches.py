"""Batches that come back: a loader that repeats itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from stabtree._lazy import np
from stabtree.answer import LIKELY, NO, YES, Answer, Evidence, unknown
from stabtree.facts.registry import per_series
from stabtree.stats import stretches

if TYPE_CHECKING:
    from stabtree._lazy import Bools, Ints
    from stabtree.facts.spike import Spike
    from stabtree.run import Series

AHEAD_ROWS = 5  # rows after the onset of a spike that may still show what set it off
# Where an epoch is reshuffled, a few batches come back early by chance: about 2 in 100 steps with 100 batches an epoch.
STUCK_SHARE = 0.25
LEAST_STUCK = 3
STUCK_ROWS = 10


class Repeats(NamedTuple):
    """Early repeats before a spike.

    Attributes:
        rows: how many rows of the window are early repeats, of `window_rows`.
        last: row of the last one.
        first: row of the first one of the unbroken stretch that ends with it, which may lie before the window.
    """

    rows: int
    window_rows: int
    last: int
    first: int

    @property
    def stuck(self) -> bool:
        """Whether they are more than the turn of a reshuffled epoch explains."""
        return self.rows >= max(LEAST_STUCK, STUCK_SHARE * self.window_rows)


@per_series
def _recurrence(batch_id: Series) -> tuple[Ints, Ints, Ints]:
    """Steps and rows since the same batch was last seen (0 for the first time), and batches seen so far: three (n,)."""
    order = np.lexsort((batch_id.steps, batch_id.values))
    same = batch_id.values[order][1:] == batch_id.values[order][:-1]
    steps = np.zeros(len(batch_id), dtype=np.int64)
    rows = np.zeros(len(batch_id), dtype=np.int64)
    steps[order[1:][same]] = np.diff(batch_id.steps[order])[same]
    rows[order[1:][same]] = np.diff(order)[same]
    return steps, rows, np.cumsum(rows == 0)


def _early(batch_id: Series, window_steps: int) -> Bools:
    """Which rows repeat a batch within a fifth of the window, although twice as many others have been seen: (n,)."""
    steps, rows, seen = _recurrence(batch_id)
    early: Bools = (steps > 0) & (steps <= window_steps / 5) & (2 * rows < seen)
    return early


def repeats_at(batch_id: Series | None, top: Spike, window_steps: int) -> Repeats | None:
    """The early repeats in the window before a spike and at its onset, None where there are none, or no batch_id."""
    if batch_id is None or not len(batch_id):
        return None
    start = int(np.searchsorted(batch_id.steps, top.step - window_steps))
    end = min(int(np.searchsorted(batch_id.steps, top.step)) + AHEAD_ROWS, len(batch_id))
    early = _early(batch_id, window_steps)[:end]
    inside = int(np.count_nonzero(early[start:]))
    if not inside:
        return None
    rows = np.flatnonzero(early)
    breaks = np.flatnonzero(np.diff(rows) > AHEAD_ROWS)
    return Repeats(inside, end - start, int(rows[-1]), int(rows[breaks[-1] + 1 if len(breaks) else 0]))


@per_series
def fresh(loss: Series, batch_id: Series | None, window_steps: int) -> Series:
    """The loss without the steps at which a stuck loader fed a batch again: what it falls there is memorised."""
    if batch_id is None or not len(batch_id):
        return loss
    early = _early(batch_id, window_steps)
    long = [(start, end) for start, end in stretches(early) if end - start >= STUCK_ROWS]
    stuck = np.zeros(len(early), dtype=np.bool_)
    for start, end in long:
        stuck[start:end] = True
    keep = ~np.isin(loss.steps, batch_id.steps[stuck])
    return replace(loss, steps=loss.steps[keep], values=loss.values[keep]) if long else loss


def batch_panel(batch_id: Series | None, top: Spike, window_steps: int) -> Answer:
    """Third panel of Q2.3: is a batch around the spike a repeat of a recent one?"""
    if batch_id is None:
        return unknown("batch_id was not logged", "batch_id")
    if not len(batch_id) or batch_id.steps[-1] < top.step or batch_id.steps[0] >= top.step:
        return unknown("batch_id is not logged around the spike", "batch_id")
    found = repeats_at(batch_id, top, window_steps)
    if found is None:
        before = int(_recurrence(batch_id)[2][int(np.searchsorted(batch_id.steps, top.step)) - 1])
        text = f"no batch around the spike repeats a recent one ({before:,} different ones before)"
        return Answer(NO, (Evidence(text, "batch_id", (top.step,), 0.0, 1.0),))
    distance = _recurrence(batch_id)[0]
    step, back = int(batch_id.steps[found.last]), int(distance[found.last])
    since = int(batch_id.steps[found.first])
    text = f"the batch of step {step:,} is that of step {step - back:,}; of the {found.window_rows:,} rows around the "
    text += f"spike {found.rows:,} are early repeats, the first of their row at step {since:,}"
    evidence = (Evidence(text, "batch_id", (step, step - back), float(found.rows), 1.0),)
    return Answer(
        YES if found.stuck else LIKELY, evidence, onset_step=step, last_good_step=since - int(distance[found.first])
    )
