"""What is found in a run once, for all predicates that ask for it by its name."""

from __future__ import annotations

from stabtree.facts import batches, levels, loss_break, precursors, rise, scale, seam, spike
from stabtree.facts.registry import Fact

FACTS: dict[str, Fact] = {
    item.name: item
    for item in (
        batches.batches,
        levels.levels,
        loss_break.loss_break,
        precursors.precursors,
        rise.rise,
        scale.scale,
        seam.seam,
        spike.spike,
    )
}
"""By name, in no order: what one of them asks for is found first."""

__all__ = ["FACTS", "Fact"]
