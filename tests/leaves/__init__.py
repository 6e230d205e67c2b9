"""Made runs: one for each leaf of the shipped trees that has no fixture, and what else the trees' edges need.

A maker returns a run, or a run and what `diagnose` is told besides. Their values lie about an eighth beyond the bars
that decide, or as far inside of them, so that a bar which moves is seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree.diagnosis.walk import diagnose
from tests.leaves import convergence, errors, grpo, phase19, precision, sft, signatures

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.tree.model import Tree
    from tests.leaves.make import Maker

RUNS: dict[str, Maker] = {**convergence.RUNS, **precision.RUNS, **sft.RUNS, **grpo.RUNS, **errors.RUNS}
"""By leaf, a run that ends there."""

NEAR: dict[str, Maker] = {**convergence.NEAR, **precision.NEAR, **sft.NEAR, **grpo.NEAR}
"""By leaf and what is lacking, a run that does not end there for want of that alone."""

MORE: dict[str, Maker] = {
    **phase19.MORE,
    **convergence.MORE,
    **precision.MORE,
    **sft.MORE,
    **grpo.MORE,
    **signatures.MORE,
}
"""By what they show, runs for the answers and the causes that no leaf's own run shows."""


def diagnosed(maker: Maker, tree: Tree) -> Diagnosis:
    """What a tree finds in a made run."""
    made = maker()
    run, told = made if isinstance(made, tuple) else (made, dict[str, Any]())
    return diagnose(run, tree, **told)
