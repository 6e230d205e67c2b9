"""Made runs: one for each leaf of the shipped trees that has no fixture, and what else the trees' edges need.

A maker returns a run, or a run and what `diagnose` is told besides. Their values lie about an eighth beyond the bars
that decide, or as far inside of them, so that a bar which moves is seen. What stands after a colon in a key says which
bar that is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree.diagnosis.walk import diagnose
from tests.leaves import convergence, errors, grpo, phase19, precision, sft

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.tree.model import Tree
    from tests.leaves.make import Maker

RUNS: dict[str, Maker] = {**phase19.RUNS, **convergence.RUNS, **precision.RUNS, **sft.RUNS, **grpo.RUNS, **errors.RUNS}
"""By leaf, a run that ends there."""

EDGE: dict[str, Maker] = {**phase19.EDGE, **convergence.EDGE, **sft.EDGE, **grpo.EDGE}
"""By leaf and bar, another run that ends there."""

NEAR: dict[str, Maker] = {**phase19.NEAR, **convergence.NEAR, **precision.NEAR, **sft.NEAR, **grpo.NEAR}
"""By leaf and bar, a run that does not end there for want of that alone."""

MORE: dict[str, Maker] = {**phase19.MORE, **convergence.MORE}
"""Runs for answers that none of the above gives."""


def diagnosed(maker: Maker, tree: Tree) -> Diagnosis:
    """What a tree finds in a made run."""
    made = maker()
    run, told = made if isinstance(made, tuple) else (made, dict[str, Any]())
    return diagnose(run, tree, **told)
