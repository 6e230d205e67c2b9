"""Who the run is, found once for all questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.facts.registry import fact

if TYPE_CHECKING:
    from stabtree.context.conditions import Conditions
    from stabtree.context.model import Context, Known
    from stabtree.run import Run


@fact()
def context(run: Run) -> Context:
    """Find out who the run is."""
    from stabtree.context.find import who_of

    return who_of(run)


@fact()
def precision(run: Run) -> Known[str]:
    """Find out in which precision the run trains."""
    from stabtree.context.settings import precision_of

    return precision_of(run)


@fact()
def conditions(run: Run, context: Context, precision: Known[str]) -> Conditions:
    """Find which conditions of causes the run meets."""
    from stabtree.context.conditions import conditions_of

    return conditions_of(run, context, precision)
