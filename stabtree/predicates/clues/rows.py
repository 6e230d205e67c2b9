"""What the rows around an incident show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.facts.registry import finite
from stabtree.predicates.clues.registry import Seen, clue

if TYPE_CHECKING:
    from stabtree.facts.spike import Spike
    from stabtree.predicates.clues.registry import Moment
    from stabtree.run import Series


@clue
def recovery_rows(_moment: Moment, loss: Series, spike: Spike) -> Seen:
    """Return how many rows the loss needed to come back from its spike, or had needed when the log ended."""
    top = spike.top
    steps, _ = finite(loss)
    back = top.recovered_step
    end = int(steps[-1]) + 1 if back is None else back
    rows = int(((steps >= top.step) & (steps < end)).sum())
    text = f"the loss needed {rows:,} rows to come back"
    if back is None:
        text = f"the loss was not back {rows:,} rows after the spike, when the log ends"
    return Seen(rows, text, f"{rows:,} rows", "loss", (top.step,))


@clue
def lone_infinite_norms(moment: Moment, grad_norm: Series, loss: Series) -> Seen:
    """Count the infinite gradient norms before the onset whose loss and whose next row are finite."""
    end = moment.onset_step if moment.onset_step is not None else int(grad_norm.steps[-1]) + 1
    before = grad_norm.steps < end
    steps, broken = grad_norm.steps[before], ~np.isfinite(grad_norm.values[before])
    lone = broken[:-1] & ~broken[1:] if len(broken) else broken
    found = [int(step) for step in steps[: len(lone)][lone] if _is_finite_at(loss, int(step))]
    text = f"grad_norm is not finite alone at {len(found):,} rows before, and the loss stays ordinary there"
    return Seen(len(found), text, f"{len(found):,}", "grad_norm", tuple(found[:4]))


def _is_finite_at(series: Series, step: int) -> bool:
    index = int(np.searchsorted(series.steps, step))
    return index >= len(series) or int(series.steps[index]) != step or bool(np.isfinite(series.values[index]))
