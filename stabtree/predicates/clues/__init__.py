"""The clues that causes and fixes may ask for. Trees name them; a new one is one function in one of these modules."""

from __future__ import annotations

from stabtree.predicates.clues import (
    learning,
    lines,
    overfitting,
    preference,
    rates,
    rewards,
    rows,
    schedule,
    settings,
    state,
    usual_rates,
)
from stabtree.predicates.clues.registry import Clue

MODULES = (learning, lines, overfitting, preference, rates, rewards, rows, schedule, settings, state, usual_rates)
CLUES: dict[str, Clue] = {
    item.name: item for module in MODULES for item in vars(module).values() if isinstance(item, Clue)
}
