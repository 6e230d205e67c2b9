"""What is measured of a run: questions that a tree asks by name, and values that others ask for, each found once."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from stabtree.measures import table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.common.faults import FaultRecord
    from stabtree.common.lazy import Imported
    from stabtree.measures.registry import Measure, Measured, Param
    from stabtree.run import Run

MEASURES: Imported[Measure] = table.MEASURES
"""By name, in no order: what one of them asks for is found first."""


def all_questions() -> dict[str, Measure]:
    """Return the measures of ours that answer a question, by name."""
    return {name: item for name, item in MEASURES.items() if item.verdicts}


def all_values() -> dict[str, Measure]:
    """Return the measures of ours that other measures ask for, by name."""
    return {name: item for name, item in MEASURES.items() if not item.verdicts}


def measure_named(name: str) -> Measure | None:
    """Return the measure that answers a question, one of ours or of an installed package; None where there is none.

    Raises:
        StabtreeError: where a package offers one that can't be used.
    """
    found: Measure | None = MEASURES.get(name)
    if found is not None or not name:
        return found if found and found.verdicts else None
    from stabtree.measures.registry import loaded, offered

    entry = offered(MEASURES).get(name)
    return loaded(entry) if entry else None


def measure_names() -> list[str]:
    """Return the names of all measures that answer a question, ours and those of installed packages."""
    from stabtree.measures.registry import offered

    return [*all_questions(), *offered(MEASURES)]


def measures_of(
    run: Run, params: Mapping[str, Mapping[str, Param]] = MappingProxyType({}), faults: FaultRecord | None = None
) -> Measured:
    """Return what is measured of a run, each value when it is first asked for.

    Args:
        run: the run.
        params: the parameters of each value, by its name; those that are asked for must be given.
        faults: where faults are recorded; a record of its own when not given.
    """
    from stabtree.measures.registry import Measured

    return Measured(run, params, faults)


__all__ = ["MEASURES", "all_questions", "all_values", "measure_named", "measure_names", "measures_of"]
