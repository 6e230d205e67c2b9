"""Who the run is, found once for all questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.facts.registry import fact

if TYPE_CHECKING:
    from stabtree.context.conditions import Conditions
    from stabtree.context.model import Context
    from stabtree.run import Run


@fact()
def context(run: Run) -> Context:
    """Find out who the run is."""
    from stabtree.context.find import context_of

    return context_of(run)


@fact()
def conditions(run: Run, context: Context) -> Conditions:
    """Find which conditions of causes the run meets."""
    from stabtree.context.conditions import conditions_of

    return conditions_of(run, context)
