"""Predicates of other installed packages: the entry points of the group `stabtree.predicates`.

They are looked up only where a tree names a predicate that is not ours; `docs/write-a-predicate.md` shows how to make
one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from stabtree.errors import StabtreeError
from stabtree.predicates.registry import Predicate

if TYPE_CHECKING:
    from collections.abc import Collection
    from importlib.metadata import EntryPoint

GROUP = "stabtree.predicates"


def offered(ours: Collection[str]) -> dict[str, EntryPoint]:
    """What the installed packages offer, by name.

    Raises:
        StabtreeError: where a name is one of ours, or two packages offer it: neither silently wins.
    """
    found: dict[str, EntryPoint] = {}
    for entry in _entries():
        other = "stabtree itself" if entry.name in ours else _package(found[entry.name]) if entry.name in found else ""
        if other:
            raise StabtreeError(
                f"it offers a predicate {entry.name!r}, which {other} has as well",
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
def loaded(entry: EntryPoint) -> Predicate:
    """The predicate of an entry point, under the name that it is offered by.

    Raises:
        StabtreeError: where it can't be imported, or is no predicate.
    """
    package = f"package {_package(entry)}"
    try:
        found = entry.load()
    except (Exception, SystemExit) as error:  # whatever a module does when it is imported
        problem = f"its predicate {entry.name!r} can't be imported: {type(error).__name__}: {error}"
        hint = f"see what is wrong with `python -c 'import {entry.module}'`"
        raise StabtreeError(problem, where=package, hint=hint) from error
    if not isinstance(found, Predicate):
        problem = f"what it offers as {entry.name!r} is no predicate but of type {type(found).__name__}"
        raise StabtreeError(problem, where=package, hint=f"put @predicate before {entry.attr or entry.module}")
    return replace(found, name=entry.name)


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.module.partition(".")[0]
