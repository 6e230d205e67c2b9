"""The JSON Schema of tree files, made from the classes that they are read into."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from stabtree.predicates import PREDICATES
from stabtree.tree.build import LISTS, OURS, TEXTS
from stabtree.tree.model import Cause, Quick, Severity, Tree

TEXT: dict[str, Any] = {"type": "string"}
LIST: dict[str, Any] = {"type": "array", "items": TEXT}
WORDS: dict[str, Any] = {"type": "object", "additionalProperties": TEXT}
VALUES: dict[str, Any] = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
SEVERITY: dict[str, Any] = {"enum": [str(severity) for severity in Severity]}
KINDS: dict[str, dict[str, Any]] = {
    "go": WORDS,
    "words": WORDS,
    "params": VALUES,
    "advanced": VALUES,
    "literal": VALUES,
    "restart": {"type": "boolean"},
    "quiet": {"type": "boolean"},
    "severity": SEVERITY,
    "severities": {"type": "object", "additionalProperties": SEVERITY},
    "test": {"enum": sorted(PREDICATES)},
    "quick": {"$ref": "#/$defs/Quick"},
    "causes": {"type": "array", "items": {"$ref": "#/$defs/Cause"}},
}


def schema() -> dict[str, Any]:
    """The schema as plain values, draft 2020-12. What holds between nodes is checked by `stabtree tree check` alone."""
    kinds = {kind.__name__: kind for kind in (*LISTS.values(), Cause, Quick)}
    top = _object(Tree, known={item.name for item in fields(Tree)} - {"parts", "signatures"})
    top["properties"] |= {key: {"type": "array", "items": {"$ref": f"#/$defs/{LISTS[key].__name__}"}} for key in LISTS}
    top["required"] = ["name", "title"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A decision tree of stabtree",
        **top,
        "$defs": {name: _object(kind) for name, kind in sorted(kinds.items())},
    }


def _object(kind: type, known: set[str] | None = None) -> dict[str, Any]:
    own = [item for item in fields(kind) if item.name not in OURS.get(kind, ()) and (not known or item.name in known)]
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [item.name for item in own if item.default is MISSING and item.default_factory is MISSING],
        "properties": {item.name: _kind(kind, item.name) for item in own},
    }


def _kind(kind: type, name: str) -> dict[str, Any]:
    is_list = name in TEXTS and (name != "of" or kind.__name__ == "Signature")
    return LIST if is_list else KINDS.get(name, TEXT)
