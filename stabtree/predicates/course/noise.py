"""A loss that loses its noise: each batch is as hard as the one before, as the same batch is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import NO, Answer, Evidence, inapplicable, measured, unknown
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import PART
from stabtree.common.strength import above, below, weakest
from stabtree.facts.registry import finite
from stabtree.predicates.course.cross_entropy import may_be_zero
from stabtree.predicates.registry import Count, predicate

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.context.model import Context
    from stabtree.run import Run, Series


@predicate(source="measured: one batch over and over from a step on")
def noise_vanishes(
    run: Run,
    loss: Series,
    context: Context,
    *,
    rises_before: float,
    rises_after: float = shared.SHARE_SOME,
    factor: float = shared.FACTOR,
) -> Answer:
    """Does the loss fall from a row on without rising, though its rows rose and fell before?

    Batches differ, so that the loss of a run that learns rises from row to row almost as often as it falls. Yes where
    at most `rises_after` of the changes from a row to the end are rises, over 20 rows or more, while it falls to a
    `factor`-th of its lowest before, and at least `rises_before` of those before it, of 20 or more. Not asked of a loss
    that moves by nature or may be 0.
    """
    steps, values = finite(loss)
    why = context.restless or may_be_zero(run, context, loss)
    if why:
        return inapplicable(why)
    count = len(values) - 1
    if count < 2 * shared.ROWS_LONG:
        return unknown(f"the loss has {len(values):,} finite rows, {2 * shared.ROWS_LONG + 1} are needed", "loss")
    at = _parting(values, (rises_before + rises_after) / 2)
    if not shared.ROWS_LONG <= at <= count - shared.ROWS_LONG:
        text = f"{_rises(values):.0%} of the changes of the loss are rises, without a row from which on fewer are"
        return Answer(NO, (Evidence(text, "loss", (int(steps[0]), int(steps[-1]))),))
    before, after = _rises(values[: at + 1]), _rises(values[at:])
    began, ended = float(values[:at].min()), float(values[-1])  # what comes down from a spike only comes back
    text = f"up to step {int(steps[at]):,} {before:.0%} of the changes of the loss are rises, after it {after:.0%}, "
    text += f"while it falls from {figure(began)}, its lowest so far, to {figure(ended)}"
    found = Evidence(text, "loss", (int(steps[at]), int(steps[-1])), before, rises_before)
    calm = below(after, rises_after)
    strength = weakest(above(before, rises_before), calm, above(began, factor * ended))
    return measured(strength, (found,), onset_step=int(steps[at + 1]), last_good_step=int(steps[at]))


def _rises(values: Floats) -> float:
    """Return which share of the changes are rises."""
    return int(np.count_nonzero(values[1:] > values[:-1])) / (len(values) - 1)


def _parting(values: Floats, share: float) -> int:
    """Return the change after which the shares of rises differ most from the given one."""
    highest, at, total = -np.inf, 0, 0.0
    for begin in range(0, len(values) - 1, PART):
        part = values[begin : begin + PART + 1]
        more = (part[1:] > part[:-1]) - share
        more[0] += total
        np.cumsum(more, out=more)
        top, total = int(np.argmax(more)), float(more[-1])
        if more[top] > highest:
            highest, at = float(more[top]), begin + top
    return at + 1


@predicate(source="measured: one batch over and over from a step on")
def batch_stays(batch_id: Series, *, rows: Count = shared.ROWS_LONG, changes: float = shared.SHARE_MOST) -> Answer:
    """Is every batch to the end of the log the same one, after batches that differed?

    Yes where the last `rows` batches or more have one id, and of the rows before them, as many at least, a share of
    `changes` or more have another id than the row before. An id that never changes says nothing of the batches.
    """
    ids, steps = batch_id.values, batch_id.steps
    differs = ids[1:] != ids[:-1]
    start = int(np.flatnonzero(differs)[-1]) + 1 if differs.any() else 0
    before, same = float(differs[:start].mean()) if start else 0.0, len(ids) - start
    text = f"the last {same:,} of {len(ids):,} rows have one batch id"
    if start:
        text += f", from step {int(steps[start]):,} on; before, the id changes in {before:.0%} of the rows"
    found = Evidence(text, "batch_id", (int(steps[start]), int(steps[-1])), float(same), float(rows))
    if start < rows:
        return Answer(NO, (found,))
    strength = weakest(above(same, rows), above(before, changes))
    return measured(strength, (found,), onset_step=int(steps[start]), last_good_step=int(steps[start - 1]))
