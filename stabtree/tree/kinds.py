"""What each key of a tree file holds: the type hints of the classes that it is read into are the schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from numbers import Real
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from stabtree.common.dataclass import dataclass
from stabtree.facts.registry import Param
from stabtree.tree.document import Signature
from stabtree.tree.model import Section, Tree
from stabtree.tree.shorthand import Check

# Fields that no file sets, and lists of a file that are no field: `compose` turns them into others.
OURS: dict[type, set[str]] = {Tree: {"parts", "signatures"}, Section: {"tree", "check"}}
MADE: dict[str, type] = {"checks": Check, "causes": Signature}


@dataclass(frozen=True, slots=True)
class Kind:
    """What a key holds.

    Attributes:
        shape: what YAML must give: `str`, `bool`, `list` or `dict`.
        described: the same in words.
        of: the class of an item, or of the mapping itself; `str` where all are text; `tuple` where all are
            lists of text; None where any value will do.
        required: whether the key must be given.
    """

    shape: type
    described: str
    of: type | None
    required: bool

    @property
    def filler(self) -> Any:
        """A value to use for one that is missing or wrong."""
        if self.of is not None and issubclass(self.of, StrEnum):
            return next(iter(self.of))
        if self.shape is list:
            return ()
        if self.shape is Real:
            return 1.0
        return self.shape()


@cache
def kinds(kind: type) -> Mapping[str, Kind]:
    """Return the keys of a class, in order."""
    hints = get_type_hints(kind, localns={"Mapping": Mapping, "Param": Param})
    own = [item for item in fields(kind) if item.name not in OURS.get(kind, ())]
    return {
        item.name: Kind(*_kind(hints[item.name]), item.default is MISSING and item.default_factory is MISSING)
        for item in own
    }


@cache
def lists() -> Mapping[str, type]:
    """Return the lists of nodes that a file may hold, each with the class of its items."""
    return {key: kind.of for key, kind in kinds(Tree).items() if kind.of and is_dataclass(kind.of)} | MADE


def _kind(hint: Any) -> tuple[type, str, type | None]:
    """Return the first three attributes of a `Kind` for a type hint."""
    args = get_args(hint)
    if NoneType in args:
        return _kind(next(part for part in args if part is not NoneType))
    if get_origin(hint) is tuple:
        return list, "a list of texts" if args[0] is str else "a list", args[0]
    if get_origin(hint) is Mapping:
        return _mapping(args[1])
    if isinstance(hint, type) and is_dataclass(hint):
        return dict, "a mapping", hint
    if issubclass(hint, StrEnum):
        return str, f"one of {', '.join(hint)}", hint
    if hint is float:
        return Real, "a number", None
    if hint is bool:
        return bool, "true or false", None
    return str, "text", None


def _mapping(held: Any) -> tuple[type, str, type | None]:
    if isinstance(held, type) and is_dataclass(held):
        return list, "a list", held  # in the file a list, whose items have their id within
    if get_origin(held) is tuple:
        return dict, "a mapping of words to lists of words", tuple
    if isinstance(held, type):
        return dict, "a mapping of words to words", held
    return dict, "a mapping", None
