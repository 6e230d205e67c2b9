"""A JSON Schema as Markdown: each definition a section, each key with its type and meaning under its own address."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docs.site.markup import code, text
from docs.site.reference.commands import prose

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
    "array": "list",
    "object": "object",
}
REF = "#/$defs/"
MANY = 3  # kinds of value, above which it may be any
SINGLE = ("text", "whole number", "number", "object", "list", "any value")


def section(
    title: str, shape: Mapping[str, Any], prefix: str, name: str = "", meanings: Mapping[str, str] | None = None
) -> str:
    """A definition with all of its keys, those of objects within as `run.name` and `inputs[].path`.

    Args:
        title: its heading.
        shape: the schema of an object.
        prefix: what the addresses of all definitions of the page begin with.
        name: the definition's name.
        meanings: what keys mean that the schema says nothing of.
    """
    anchor = address(prefix, name)
    lines = [f"({anchor})=", f"## {title}"]
    if described := shape.get("description"):
        lines.append(prose(described))
    lines.append(":::{div} options")
    for key, (held, needed) in {key: (held, needed) for key, held, needed in keys(shape)}.items():
        meaning = held.get("description") or (meanings or {}).get(key, "")
        capital = "" if meaning.startswith("stabtree") else meaning[:1].upper()
        told = f"{capital}{meaning[len(capital) :].removesuffix('.')}." if meaning else ""
        optional = "" if needed else ", may be left out"
        own = address(anchor, key.replace("*", "any"))
        lines.append(f"[{code(key)}]{{#{own}}} [{plain(held, prefix)}{optional}]{{.type}}\n: {prose(told)}")
    return "\n\n".join([*lines, ":::"])


def address(prefix: str, name: str) -> str:
    """Where a definition or a key stands."""
    return "-".join(filter(None, [prefix, re.sub(r"\W+|_", "-", name).strip("-").lower()]))


def keys(shape: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Every key of an object and of the objects within it: its path, what it holds, whether it is always there."""
    for key, held in shape.get("properties", {}).items():
        yield f"{before}{key}", held, key in shape.get("required", ())
        yield from _inner(held, f"{before}{key}")


def _inner(held: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    for each in (held, *held.get("anyOf", ())):
        yield from keys(each, f"{path}.")
        for step, name in (("items", "[]"), ("additionalProperties", ".*")):
            if isinstance(each.get(step), dict):
                yield from _inner(each[step], f"{path}{name}")


def plain(held: Mapping[str, Any], prefix: str) -> str:
    """What a value is, in words, with a link to what is defined."""
    if "$ref" in held:
        name = str(held["$ref"]).removeprefix(REF)
        return f"[{text(name)}](#{address(prefix, name)})"
    if "const" in held:
        return f"always {code(str(held['const']))}"
    if held.get("enum"):
        return f"one of {', '.join(code('null' if word is None else str(word)) for word in held['enum'])}"
    if "anyOf" in held:
        return " or ".join(dict.fromkeys(plain(each, prefix) for each in held["anyOf"]))
    kinds = held.get("type", "string")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return "any value" if len(kinds) > MANY else " or ".join(_kind(kind, held, prefix) for kind in kinds)


def _kind(kind: str, held: Mapping[str, Any], prefix: str) -> str:
    items, values = held.get("items"), held.get("additionalProperties")
    if kind == "array" and items:
        return f"list of {_plural(plain(items, prefix))}"
    if kind == "object" and isinstance(values, dict):
        return f"object of {_plural(plain(values, prefix))}"
    return WORDS[kind]


def _plural(word: str) -> str:
    first, _, rest = word.partition(" of ")
    return f"{first}s{' of ' * bool(rest)}{rest}" if first in SINGLE else word
