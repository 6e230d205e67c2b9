"""What is found in a run once, for all predicates that ask for it by its name."""

from __future__ import annotations

from stabtree.facts import batches, checkpoints, levels, loss_break, precursors, reading, rise, scale, seam, spike
from stabtree.facts.registry import Fact

FACTS: dict[str, Fact] = {
    item.name: item
    for item in (
        batches.batches,
        checkpoints.checkpoints,
        levels.levels,
        loss_break.loss_break,
        precursors.precursors,
        reading.reading,
        rise.rise,
        scale.scale,
        seam.seam,
        spike.spike,
    )
}
"""By name, in no order: what one of them asks for is found first."""

__all__ = ["FACTS", "Fact"]
