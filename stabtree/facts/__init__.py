"""What is found in a run once, for all predicates that ask for it by its name."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from stabtree.common.lazy import Imported
from stabtree.facts.registry import Fact, Facts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.common.faults import FaultRecord
    from stabtree.facts.registry import Param
    from stabtree.run import Run

_NAMES = {
    "batches": "batches monitor",
    "checkpoints": "checkpoints",
    "curve": "levels rise",
    "movers": "loss_break movers",
    "progress": "progress rate reading scale conditions context precision",
    "spike": "spike",
}
FACTS: Imported[Fact] = Imported(__name__, _NAMES)
"""By name, in no order: what one of them asks for is found first."""


def facts_of(
    run: Run, params: Mapping[str, Mapping[str, Param]] = MappingProxyType({}), faults: FaultRecord | None = None
) -> Facts:
    """Return the facts of a run, each found when it is first asked for.

    Args:
        run: the run.
        params: the parameters of each fact, by its name; those that are asked for must be given.
        faults: where faults are recorded; a record of its own when not given.
    """
    return Facts(run, FACTS, params, faults)


__all__ = ["FACTS", "Fact", "Facts", "facts_of"]
