"""Measures of other installed packages.

The entry points of the group `stabtree.measures` are looked up only where a tree names a measure that is not ours.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.measures.registry import Measure

if TYPE_CHECKING:
    from collections.abc import Collection
    from importlib.metadata import EntryPoint

GROUP = "stabtree.measures"


def offered(ours: Collection[str]) -> dict[str, EntryPoint]:
    """Return the measures that installed packages offer, by name.

    Raises:
        StabtreeError: where a name is one of ours, or two packages offer it: neither silently wins.
    """
    found: dict[str, EntryPoint] = {}
    for entry in _entries():
        other = ""
        if entry.name in ours:
            other = "stabtree itself"
        elif entry.name in found:
            other = _package(found[entry.name])
        if other:
            raise StabtreeError(
                f"it offers a measure {entry.name!r}, which {other} has as well",
                where=f"package {_package(entry)}",
                hint=f"give it another name under [project.entry-points.{GROUP!r}], or uninstall the package",
            )
        found[entry.name] = entry
    return found


@cache
def _entries() -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points  # takes as long as all of `--help`

    return tuple(entry_points(group=GROUP))


@cache
def loaded(entry: EntryPoint) -> Measure:
    """Load the measure of an entry point, under the name that it is offered by.

    Raises:
        StabtreeError: where it can't be imported, or is no measure.
    """
    package = f"package {_package(entry)}"
    try:
        found = entry.load()
    except (Exception, SystemExit) as error:  # whatever a module does when it is imported
        problem = f"its measure {entry.name!r} can't be imported: {type(error).__name__}: {error}"
        hint = f"see what is wrong with `python -c 'import {entry.module}'`"
        raise StabtreeError(problem, where=package, hint=hint) from error
    if not isinstance(found, Measure) or not found.verdicts:
        kind = "a value" if isinstance(found, Measure) else f"of type {type(found).__name__}"
        problem = f"what it offers as {entry.name!r} is no measure that answers a question but {kind}"
        raise StabtreeError(
            problem, where=package, hint=f"put @measure(source=...) before {entry.attr or entry.module}"
        )
    return replace(found, name=entry.name, package=_package(entry))


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.module.partition(".")[0]
