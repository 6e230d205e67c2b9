"""The JSON Schema of tree files, derived from the classes that they are read into."""

from __future__ import annotations

from dataclasses import is_dataclass
from enum import StrEnum
from numbers import Real
from typing import TYPE_CHECKING, Any

from stabtree.predicates import PREDICATES
from stabtree.tree.document import Cause, Decide, Expectation, Quick, Signature
from stabtree.tree.kinds import kinds, lists
from stabtree.tree.model import SHORT, SHORT_CAUSE, SHORT_FIX, Tree

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.tree.kinds import Kind

TEXT: dict[str, Any] = {"type": "string"}
VALUE: dict[str, Any] = {"type": ["string", "number", "boolean"]}


def schema(tests: Iterable[str] = PREDICATES) -> dict[str, Any]:
    """Return the schema as plain values, draft 2020-12. What relates nodes is checked by `stabtree tree check` alone.

    Args:
        tests: the names of predicates that a `test` may have.
    """
    test = {"enum": sorted(tests)}
    classes = {kind.__name__: kind for kind in (*lists().values(), Cause, Quick, Decide, Expectation)}
    top = _object(Tree, test)
    top["properties"] |= {key: _array(_of(kind)) for key, kind in lists().items()}
    top["required"] = ["name", "title"]  # what else is required depends on what a file holds
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A decision tree of stabtree",
        **top,
        "$defs": {name: _object(kind, test) for name, kind in sorted(classes.items())},
    }


def _object(kind: type, test: dict[str, Any]) -> dict[str, Any]:
    own = kinds(kind)
    short = SHORT_CAUSE if kind in (Cause, Signature) else SHORT
    special = {"test": test, "short": {**TEXT, "maxLength": short}, "short_fix": {**TEXT, "maxLength": SHORT_FIX}}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [key for key, item in own.items() if item.required],
        "properties": {key: special.get(key) or _property(item) for key, item in own.items()},
    }


def _property(kind: Kind) -> dict[str, Any]:
    if kind.shape is bool:
        return {"type": "boolean"}
    if kind.shape is Real:
        return {"type": "number"}
    if kind.shape is list:
        return _array(_of(kind.of))
    if kind.of is tuple:
        return {"type": "object", "additionalProperties": _array(TEXT)}
    if kind.shape is dict and not is_dataclass(kind.of):
        return {"type": "object", "additionalProperties": _of(kind.of) if kind.of else VALUE}
    return _of(kind.of)


def _of(kind: type | None) -> dict[str, Any]:
    if kind is not None and is_dataclass(kind):
        return {"$ref": f"#/$defs/{kind.__name__}"}
    if kind is not None and issubclass(kind, StrEnum):
        return {"enum": [str(word) for word in kind]}
    return TEXT


def _array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}
