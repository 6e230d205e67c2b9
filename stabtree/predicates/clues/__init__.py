"""The clues that causes and fixes may ask for. Trees name them; a new one is one function, listed here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.predicates.clues import preference, rates, rewards, rows, usual_rates

if TYPE_CHECKING:
    from stabtree.predicates.clues.registry import Clue

CLUES: dict[str, Clue] = {
    item.name: item
    for item in (
        preference.chosen_times,
        preference.pair_sets,
        rates.decay_share,
        rates.rate_for_update,
        rewards.bonus_first,
        rewards.broken_observations,
        rewards.critic_check,
        rewards.cut_share,
        rewards.entropy_left,
        rewards.policy_writes,
        rewards.return_size,
        rewards.reward_end,
        rewards.reward_gain,
        rewards.update_kl,
        rows.lone_infinite_norms,
        rows.recovery_rows,
        usual_rates.higher_rate,
        usual_rates.lower_rate,
        usual_rates.rate_times_usual,
    )
}
