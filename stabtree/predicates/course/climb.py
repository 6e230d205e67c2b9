"""A gradient norm that climbs up to the end while the loss is calm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.answer import NO, YES, Answer, Evidence, inapplicable, unknown
from stabtree.common.lazy import np
from stabtree.common.stats import blocks, median
from stabtree.common.text import against
from stabtree.facts.registry import finite
from stabtree.predicates.registry import Count, predicate

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.context.model import Context
    from stabtree.run import Series


EARLY = "early"


@predicate(source="measured: gradients before a divergence", labels=(YES, EARLY, NO), min_points=60)
def grad_norm_climbs(
    context: Context,
    loss: Series,
    grad_norm: Series,
    *,
    factor: float,
    early_factor: float,
    fit: float,
    levels: Count,
    min_levels: Count,
    calm: float,
) -> Answer:
    """Does grad_norm climb exponentially up to the end, while the loss is calm?

    Yes where the logarithms of its last `min_levels` of `levels` block medians, or of more of them, lie on a rising
    line that explains more than `fit` of their scatter, and rise by more than `factor`; `early` by more than
    `early_factor`. The loss is calm where it ends at most `calm` times where that stretch began: a loss that rises as
    well is asked for elsewhere. Not asked of a loss that moves by nature.
    """
    values, steps = grad_norm.values, grad_norm.steps
    keep = np.isfinite(values) & (values > 0)
    steps, values, levels = steps[keep], values[keep], max(levels, 4)
    if context.restless:
        return inapplicable(context.restless)
    if len(values) < 3 * levels:
        return unknown(f"grad_norm has fewer than {3 * levels} positive values")
    medians, starts = blocks(values, levels)
    logs = np.log(medians)
    climbs = [(_climb(logs[at:], fit), -at) for at in range(levels - max(min_levels, 3) + 1)]
    rise, at = max(climbs)
    begin, times = int(steps[starts[-at]]), float(np.exp(min(rise, 690.0)))
    text = f"grad_norm grows exponentially from {medians[-at]:.3g} at step {begin:,} to {medians[-1]:.3g} at the end: "
    text += f"{against(times, early_factor)}× (limit {early_factor:g}×, for a warning {factor:g}×)"
    if not rise:
        text = "grad_norm does not grow exponentially up to the end"
    found = [Evidence(text, "grad_norm", (begin, int(steps[-1])), times, early_factor)]
    if times <= early_factor:
        return Answer(NO, tuple(found))
    at_loss, losses = finite(loss)
    row, part = min(int(np.searchsorted(at_loss, begin)), len(losses) - 1), max(3, len(losses) // levels)
    before, end = float(median(losses[row : row + part])), float(median(losses[-part:]))
    found.append(
        Evidence(f"the loss goes from {before:.4g} to {end:.4g} meanwhile", "loss", (begin,), end, calm * before)
    )
    if end > calm * before:
        return Answer(NO, tuple(found))
    return Answer(YES if times > factor else EARLY, tuple(found), onset_step=begin)


def _climb(logs: Floats, fit: float) -> float:
    """Return the rise of the values end to end and along a line that explains over `fit` of their scatter, else 0."""
    offsets = np.arange(len(logs)) - (len(logs) - 1) / 2
    slope = float(offsets @ logs) / float(offsets @ offsets)
    scatter = float(((logs - logs.mean()) ** 2).sum())
    explained = slope * slope * float(offsets @ offsets)
    rise = min(slope * (len(logs) - 1), float(logs[-1] - logs[0]))
    return rise if rise > 0 and explained > fit * scatter else 0.0
