"""A gradient norm that climbs up to the end while the loss is calm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import NO, YES, Answer, Evidence, inapplicable, measured, unknown
from stabtree.common.figures import against, figure
from stabtree.common.lazy import np
from stabtree.common.stats import blocks, median
from stabtree.common.strength import above, below, weakest
from stabtree.facts.registry import finite, lowest
from stabtree.predicates.registry import Count, predicate

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.context.model import Context
    from stabtree.run import Series


EARLY = "early"
CALM = 1 + shared.SHARE_SOME  # times its level at which a loss has hardly risen


@predicate(source="measured: gradients before a divergence", labels=(YES, EARLY, NO), min_points=60)
def grad_norm_climbs(
    context: Context,
    loss: Series,
    grad_norm: Series,
    *,
    factor: float,
    early_factor: float,
    levels: Count = shared.LEVELS,
) -> Answer:
    """Does grad_norm climb exponentially up to the end, while the loss is calm?

    Yes where the logarithms of the last third of its `levels` block medians, or of more of them, lie on a rising line
    that explains nine tenths of their scatter, and rise by more than `factor`; `early` by more than `early_factor`. The
    loss is calm where it ends at most 5% above where that stretch began: a loss that rises as well is asked for
    elsewhere. Not asked of a loss that moves by nature.
    """
    (steps, values), levels = finite(grad_norm), max(levels, 4)
    if lowest(grad_norm) <= 0:
        steps, values = steps[values > 0], values[values > 0]
    if context.restless:
        return inapplicable(context.restless)
    if len(values) < 3 * levels:
        return unknown(f"grad_norm has fewer than {3 * levels} positive values")
    medians, starts = blocks(values, levels)
    logs = np.log(medians)
    climbs = [(_climb(logs[at:]), -at) for at in range(levels - max(levels // 3, 3) + 1)]
    rise, at = max(climbs)
    begin, times = int(steps[starts[-at]]), float(np.exp(min(rise, 690.0)))
    text = f"grad_norm grows {against(times, early_factor)}× (limit {early_factor:g}×), step by step, "
    text += f"from {figure(medians[-at])} at step {begin:,} to {figure(medians[-1])} at the end"
    if not rise:
        text = "grad_norm does not grow exponentially up to the end"
    found = [Evidence(text, "grad_norm", (begin, int(steps[-1])), times, early_factor)]
    if not rise:
        return Answer(NO, tuple(found))
    at_loss, losses = finite(loss)
    row, part = min(int(np.searchsorted(at_loss, begin)), len(losses) - 1), max(3, len(losses) // levels)
    before, end = float(median(losses[row : row + part])), float(median(losses[-part:]))
    text = f"the loss goes from {figure(before, 4)} to {figure(end, 4)} meanwhile"
    found.append(Evidence(text, "loss", (begin,), end, CALM * before))
    calm = below(end, CALM * before)
    verdict, limit = (YES, factor) if times >= factor else (EARLY, early_factor)
    return measured(weakest(above(times - 1, limit - 1), calm), tuple(found), verdict, onset_step=begin)


def _climb(logs: Floats) -> float:
    """Return the rise of the values end to end and along a line that explains most of their scatter, else 0."""
    offsets = np.arange(len(logs)) - (len(logs) - 1) / 2
    slope = float(offsets @ logs) / float(offsets @ offsets)
    scatter = float(((logs - logs.mean()) ** 2).sum())
    explained = slope * slope * float(offsets @ offsets)
    rise = min(slope * (len(logs) - 1), float(logs[-1] - logs[0]))
    return rise if rise > 0 and explained > shared.SHARE_MOST * scatter else 0.0
