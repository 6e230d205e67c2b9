"""The clues that causes and fixes may ask for. Trees name them; a new one is one function in one of these modules."""

from __future__ import annotations

from stabtree.predicates.clues import (
    course,
    leaps,
    learning,
    lines,
    nan,
    overfitting,
    preference,
    rates,
    rewards,
    rows,
    schedule,
    spikes,
    state,
    usual_rates,
)
from stabtree.predicates.clues.registry import Clue

MODULES = (
    course,
    leaps,
    learning,
    lines,
    nan,
    overfitting,
    preference,
    rates,
    rewards,
    rows,
    schedule,
    spikes,
    state,
    usual_rates,
)
CLUES: dict[str, Clue] = {
    item.name: item for module in MODULES for item in vars(module).values() if isinstance(item, Clue)
}
