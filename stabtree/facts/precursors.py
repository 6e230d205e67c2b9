"""What moved before the trouble did."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree._lazy import np
from stabtree.answer import Evidence
from stabtree.facts.registry import Count, fact, finite
from stabtree.stats import median

if TYPE_CHECKING:
    from stabtree.run import Series


class Precursors(NamedTuple):
    """The series that may leave their usual state before the loss does, and when they count as having left it.

    Attributes:
        raised_factor: how many times its usual value a grad_norm stands at.
        usual_rows: rows before the trouble over which that is measured.
        least_rows: fewest of them that tell.
        least_halvings: how often a loss scale is lowered without a rise in between.
    """

    grad_norm: Series | None
    loss_scale: Series | None
    raised_factor: float
    usual_rows: int
    least_rows: int
    least_halvings: int

    def before(self, onset_step: int) -> tuple[Evidence, ...]:
        """The series that had left their usual state before a step and had not come back, each with its lead."""
        raised = self._raised(self.grad_norm, onset_step) if self.grad_norm is not None else None
        lowered = self._lowered(self.loss_scale, onset_step) if self.loss_scale is not None else None
        return tuple(item for item in (raised, lowered) if item)

    def _raised(self, norm: Series, onset_step: int) -> Evidence | None:
        """A grad_norm that stands far above its usual value, without a break, up to the onset."""
        steps, values = finite(norm)
        before = int(np.searchsorted(steps, onset_step))
        if before < max(self.least_rows, 1):
            return None
        usual = median(values[max(0, before - self.usual_rows) : before])
        calm = np.flatnonzero(values[:before] <= self.raised_factor * usual)
        first = int(calm[-1]) + 1 if len(calm) else 0
        if first >= before or usual <= 0:
            return None
        at = int(steps[first])
        lead = onset_step - at
        text = f"grad_norm stands above {self.raised_factor:g}× its usual {usual:.3g} from step {at:,} on, {lead:,} "
        text += f"step{'s' if lead != 1 else ''} before"
        ratio = float(values[before - 1]) / usual
        return Evidence(text, "grad_norm", (at, onset_step), min(ratio, 1e300), self.raised_factor)

    def _lowered(self, scale: Series, onset_step: int) -> Evidence | None:
        """A loss scale that had been lowered again and again, without a rise in between, up to the onset."""
        steps, values = finite(scale)
        before = int(np.searchsorted(steps, onset_step))
        if before < 2:
            return None
        change = np.diff(values[:before])
        rises = np.flatnonzero(change > 0)
        falls = np.flatnonzero(change < 0)
        falls = falls[falls > (int(rises[-1]) if len(rises) else -1)]
        if len(falls) < max(self.least_halvings, 1):
            return None
        first = int(steps[falls[0] + 1])
        text = f"loss_scale was lowered {len(falls)} times in a row from step {first:,} on, {onset_step - first:,} "
        text += "steps before"
        return Evidence(text, "loss_scale", (first, onset_step), float(len(falls)), float(self.least_halvings))


@fact()
def precursors(
    grad_norm: Series | None = None,
    loss_scale: Series | None = None,
    *,
    raised_factor: float,
    usual_rows: Count,
    least_rows: int,
    least_halvings: int,
) -> Precursors:
    """What may move before the trouble does.

    Labelled NaN runs that announce themselves show more than `raised_factor` times the usual grad_norm before.
    """
    return Precursors(grad_norm, loss_scale, raised_factor, usual_rows, least_rows, least_halvings)
