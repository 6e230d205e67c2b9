"""Whether the model is as good as it was before the trouble."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.figures import figure
from stabtree.facts.registry import finite
from stabtree.predicates.clues.registry import Seen, clue

if TYPE_CHECKING:
    from stabtree.predicates.clues.registry import Moment
    from stabtree.run import Series


@clue
def quality_back(moment: Moment, eval_loss: Series) -> Seen | None:
    """Return the best held-out loss after the onset over the best before it: 1 where the model is as good again."""
    if moment.onset_step is None:
        return None
    steps, values = finite(eval_loss)
    before, after = values[steps < moment.onset_step], values[steps >= moment.onset_step]
    if not len(before) or not len(after) or before.min() <= 0:
        return None
    share = float(after.min() / before.min())
    text = f"eval_loss was {figure(before.min())} at its best before, and {figure(after.min())} after"
    return Seen(share, text, f"{figure(before.min())} → {figure(after.min())}", "eval_loss")
