"""The shapes that a JSON Schema is made of, each with its description."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

Schema = dict[str, Any]

SCALAR: Schema = {
    "description": "A value; null for a number that is not finite.",
    "type": ["string", "number", "boolean", "array", "null"],
    "items": {"type": "integer"},
}


def record(about: str, keys: dict[str, Schema]) -> Schema:
    """Describe an object that has all of these keys, and no others."""
    return {
        "description": about,
        "type": "object",
        "additionalProperties": False,
        "required": list(keys),
        "properties": keys,
    }


def text(about: str) -> Schema:
    """Describe a text."""
    return {"description": about, "type": "string"}


def flag(about: str) -> Schema:
    """Describe true or false."""
    return {"description": about, "type": "boolean"}


def count(about: str) -> Schema:
    """Describe a whole number."""
    return {"description": about, "type": "integer"}


def number(about: str) -> Schema:
    """Describe a number; null where it is not finite, or there is none."""
    return {"description": about, "type": ["number", "null"]}


def word(about: str, words: Sequence[str | None]) -> Schema:
    """Describe one of these words."""
    return {"description": about, "enum": [*words]}


def maybe(held: Schema) -> Schema:
    """Describe the same, or null."""
    return {**held, "type": [held["type"], "null"]}


def many(about: str, items: Schema) -> Schema:
    """Describe a list."""
    return {"description": about, "type": "array", "items": items}


def texts(about: str) -> Schema:
    """Describe a list of texts."""
    return many(about, {"type": "string"})


def of(name: str, about: str) -> Schema:
    """Describe what is defined under that name."""
    return {"description": about, "$ref": f"#/$defs/{name}"}


def each(name: str, about: str) -> Schema:
    """Describe a list of what is defined under that name."""
    return many(about, {"$ref": f"#/$defs/{name}"})


def mapping(about: str, values: Schema) -> Schema:
    """Describe an object with keys of any name."""
    return {"description": about, "type": "object", "additionalProperties": values}
