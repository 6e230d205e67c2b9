"""What moved before the trouble did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.answer import Evidence
from stabtree.facts.registry import finite

if TYPE_CHECKING:
    from stabtree.run import Run, Series

RAISED = 3.0  # labelled NaN runs that announce themselves show more than three times the usual grad_norm before
USUAL_ROWS = 250
LEAST_ROWS = 20


def precursors(run: Run, onset_step: int) -> tuple[Evidence, ...]:
    """The series that had left their usual state before a step and had not come back, each with its lead in steps."""
    found = []
    norm, scale = run.get("grad_norm"), run.get("loss_scale")
    if norm is not None:
        found.append(_raised(norm, onset_step))
    if scale is not None:
        found.append(_lowered(scale, onset_step))
    return tuple(item for item in found if item)


def _raised(norm: Series, onset_step: int) -> Evidence | None:
    """A grad_norm that stands above three times its usual value, without a break, up to the onset."""
    steps, values = finite(norm)
    before = int(np.searchsorted(steps, onset_step))
    if before < LEAST_ROWS:
        return None
    usual = float(np.median(values[max(0, before - USUAL_ROWS) : before]))
    calm = np.flatnonzero(values[:before] <= RAISED * usual)
    first = int(calm[-1]) + 1 if len(calm) else 0
    if first >= before or usual <= 0:
        return None
    lead = onset_step - int(steps[first])
    text = f"grad_norm stands above {RAISED:g}× its usual {usual:.3g} from step {int(steps[first]):,} on, {lead:,} "
    text += f"step{'s' if lead != 1 else ''} before"
    return Evidence(text, "grad_norm", (int(steps[first]), onset_step), float(values[before - 1]) / usual, RAISED)


def _lowered(scale: Series, onset_step: int) -> Evidence | None:
    """A loss scale that had been halved at least three times, without a rise in between, up to the onset."""
    steps, values = finite(scale)
    before = int(np.searchsorted(steps, onset_step))
    if before < 2:
        return None
    change = np.diff(values[:before])
    rises = np.flatnonzero(change > 0)
    falls = np.flatnonzero(change < 0)
    falls = falls[falls > (int(rises[-1]) if len(rises) else -1)]
    if len(falls) < 3:
        return None
    first = int(steps[falls[0] + 1])
    text = f"loss_scale was lowered {len(falls)} times in a row from step {first:,} on, {onset_step - first:,} steps "
    text += "before"
    return Evidence(text, "loss_scale", (first, onset_step), float(len(falls)), 3.0)
