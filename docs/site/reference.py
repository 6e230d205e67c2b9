"""The reference, made of the code: the help of the commands, the schema of `--json`, and the manifest."""

from __future__ import annotations

import inspect
import re
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import typer

from docs.site.markup import code, label, page, part, prose, sentence, table, terms, text
from stabtree.cli import app
from stabtree.cli.program import commands
from stabtree.loaders import config
from stabtree.loaders.json import manifest
from stabtree.report.contract import schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

INDENTED = re.compile(r"(?:^ {4}.+\n)+", re.MULTILINE)
KINDS = {
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
JSON_TITLES = {"diagnosis": "One run", "runs": "Several runs", "failure": "Nothing could be read"}
JSON = """What `stabtree diagnose --json` prints, and each line of `stabtree watch --json`, schema 1. Keys are only ever
added: a later version may add keys and words, and never drops, renames or retypes one. A number that is not finite is
null. `stabtree info schema` prints the JSON Schema that this page is made of (draft 2020-12), for a program to check
documents by.

Every object below has all of its keys. `a.b` is the key `b` of the object `a`, `a[].b` that of each object in the list
`a`, `a.*` the value of any key of `a`."""


def pages() -> dict[str, str]:
    """Return the content of each page by its path."""
    return {"reference/commands.md": _commands(), "reference/json.md": _json(), "reference/manifest.md": _manifest()}


def _commands() -> str:
    root = typer.main.get_command(app)
    rows = ((f"[{code(f'stabtree {name}')}](#command-{name})", prose(entry.help)) for name, entry in commands().items())
    helps = _helps(root, root.make_context("stabtree", [], resilient_parsing=True), 2)
    return page("Commands", prose(str(root.epilog)), table(("command", "what it does"), rows), *helps)


def _helps(group: Any, context: Any, level: int) -> Iterator[str]:
    """Yield the help of each command of a group, and of the commands within."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = command.make_context(name, [], parent=context, resilient_parsing=True)
        path = inner.command_path
        shown = f"```text\n{dedent(command.get_help(inner)).strip()}\n```"
        yield part(code(path), shown, level=level, at=label("command", *path.split()[1:]))
        if hasattr(command, "list_commands"):
            yield from _helps(command, inner, level + 1)


def _json() -> str:
    shapes = {**schema()["$defs"]}
    alone = shapes["diagnosis"]["properties"]
    # Of several runs, each of which has the keys of one run, only what these have besides is listed.
    each = [
        {**shape, "properties": {key: value for key, value in shape["properties"].items() if key not in alone}}
        for shape in (shapes.pop("judged_run"), shapes.pop("unread_run"))
    ]
    runs = shapes["runs"]["properties"]["runs"]
    words = f"{runs['description']} Each has all keys of one run as well, or an `error`."
    several = {**shapes["runs"]["properties"], "runs": {**runs, "description": words, "items": {"anyOf": each}}}
    shapes["runs"] = {**shapes["runs"], "properties": several}
    parts = []
    for name, shape in shapes.items():
        title = f"The event {code(name)}" if "event" in shape.get("properties", {}) else code(name)
        items = {
            key: (f"{kind(value)}{'' if needed else ', may be left out'}", sentence(value.get("description", "")))
            for key, value, needed in keys(shape)
        }
        at, about = label("json", name), prose(shape.get("description", ""))
        parts.append(part(JSON_TITLES.get(name, title), about, terms(items, at), at=at))
    return page("JSON", JSON, *parts)


def keys(shape: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Yield every key of an object and of the objects within: its path, its schema, whether it is always there."""
    for key, value in shape.get("properties", {}).items():
        yield f"{before}{key}", value, key in shape.get("required", ())
        yield from _within(value, f"{before}{key}")


def _within(value: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    for each in (value, *value.get("anyOf", ())):
        yield from keys(each, f"{path}.")
        for step, name in (("items", "[]"), ("additionalProperties", ".*")):
            if isinstance(each.get(step), dict):
                yield from _within(each[step], f"{path}{name}")


def kind(value: Mapping[str, Any]) -> str:
    """Return what a value is, in words, with a link to what is defined."""
    if "$ref" in value:
        name = str(value["$ref"]).removeprefix(REF)
        return f"[{text(name)}](#{label('json', name)})"
    if "const" in value:
        return f"always {code(str(value['const']))}"
    if value.get("enum"):
        return f"one of {', '.join(code('null' if word is None else str(word)) for word in value['enum'])}"
    if "anyOf" in value:
        return " or ".join(dict.fromkeys(map(kind, value["anyOf"])))
    names = value.get("type", "string")
    names = names if isinstance(names, list) else [names]
    inner = value.get("items") or value.get("additionalProperties")
    each = f": each {kind(inner)}" if isinstance(inner, dict) else ""
    return "any value" if len(names) > MANY else " or ".join(map(KINDS.__getitem__, names)) + each


def _manifest() -> str:
    head, _, rest = (inspect.getdoc(manifest) or "").partition("\n\n")
    body = INDENTED.sub(lambda block: f"```text\n{dedent(block[0])}```\n", rest)
    body = body.replace("`stabtree.loaders.config.KEYS`", "listed below")
    rows = ((code(key), ", ".join(map(code, others.split()))) for key, (_, others) in config.KEYS.items())
    return page("Manifest", head, body, part("Settings", table(("setting", "other names"), rows)))
