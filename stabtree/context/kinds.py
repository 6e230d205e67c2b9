"""How usual something is for a kind of run."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from stabtree.context.model import PHASES, TASKS
from stabtree.context.signs import WORDS
from stabtree.frameworks.load import frameworks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.context.model import Context

ANY, RESUMED = "any", "resumed"
USUAL: Mapping[str, float] = {"often": 3.0, "rare": 1 / 3, "never": 0.0}
"""How many times likelier than usual."""


@cache
def kinds_of_run() -> frozenset[str]:
    """Return the words for kinds of run: tasks, phases, algorithms, frameworks."""
    algorithms = " ".join(names for names, _, _ in WORDS).split()
    return frozenset((*TASKS, *map(_slug, PHASES), *algorithms, *frameworks(), RESUMED, ANY))


def how_usual(usual: Mapping[str, Sequence[str]], context: Context, *, resumed: bool) -> float:
    """Return how many times likelier than usual something is for a run; the first key that names it decides.

    Args:
        usual: keys of `USUAL`, each with kinds of run.
        context: who the run is.
        resumed: whether it went on from a checkpoint.
    """
    known = (context.task, context.phase, context.algorithm, context.framework)
    own = {_slug(item.value) for item in known if item.value}
    if resumed:
        own.add(RESUMED)
    for key, kinds in usual.items():
        if not own.isdisjoint(kinds):
            return USUAL[key]
    return next((USUAL[key] for key, kinds in usual.items() if ANY in kinds), 1.0)


def _slug(word: str) -> str:
    return word.lower().replace(" ", "-")
