"""The clues that causes and fixes may ask for. Trees name them; a new one is one function, listed here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.predicates.clues import learning, rates, rows, usual_rates

if TYPE_CHECKING:
    from stabtree.predicates.clues.registry import Clue

CLUES: dict[str, Clue] = {
    item.name: item
    for item in (
        learning.box_loss,
        learning.gradients_flow,
        learning.loss_all_zero,
        learning.predicts_nothing,
        learning.rounded_loss,
        learning.small_twin,
        learning.train_accuracy,
        learning.weights_moved,
        rates.decay_share,
        rates.rate_for_update,
        rows.lone_infinite_norms,
        rows.recovery_rows,
        usual_rates.rate_above_usual,
        usual_rates.rate_below_usual,
        usual_rates.rates_to_try,
    )
}
