"""The reference of what is written and read as JSON and YAML: the schemas that `stabtree` prints, as pages."""

from __future__ import annotations

from typing import Any

from docs.site.markup import code
from docs.site.reference.docstrings import about, attributes
from docs.site.reference.shapes import REF, section
from stabtree.report.contract import schema as contract
from stabtree.tree import model
from stabtree.tree.load import schema as tree_schema
from stabtree.tree.model import EVENTS, Cause, Leaf, Question, TreeFile

JSON_TITLES = {
    "diagnosis": "One run",
    "runs": "Several runs",
    "failure": "Nothing could be read",
}
# Keys of a tree file that are plain by their names to who writes code; the docstrings of their classes leave them out.
PLAIN = {
    "name": "the tree's name, by which others use it",
    "title": "its title, in a line",
    "about": "what it is for",
    "source": "the document that it follows",
    "section": "id of its section",
    "ask": "the question, or the heading of a list",
    "sound": "whether the weights are sound where this is the cause, so that no restart is needed",
    "rule": "the rule in words",
    "text": "the cause in a line",
    "of": "the leaves that it is a cause of",
    "example": "where it was seen",
    "symptom": "how it shows",
    "threshold": "the threshold, with parameters in braces",
    "first": "what to do first",
    "letter": "the threshold as the source document has it, where it differs",
    "id": "its name, under which all else speaks of it",
    "see": "where to read on",
    "quiet": "whether it is told only if something speaks for it",
    "probe": "what settles it, in minutes",
}
FALLBACK = PLAIN | attributes(Question) | attributes(Cause) | attributes(Leaf) | PLAIN


def pages() -> dict[str, str | bytes]:
    """Path and content of each."""
    return {"reference/json.md": _json(), "reference/tree-file.md": _tree_file()}


def _json() -> str:
    made = contract()
    head = """# JSON

What `stabtree diagnose --json` prints, and each line of `stabtree watch --json`, schema 1. Keys are only ever
added: a later version may add keys and words, and never drops, renames or retypes one. A number that is not finite is
null. `stabtree info schema` prints the JSON Schema that this page is made of (draft 2020-12), for a program to check
documents by.

Every object below has all of its keys. `a.b` is the key `b` of the object `a`,
`a[].b` that of each object in the list `a`, `a.*` the value of any key of `a`.
"""
    events = {name: f"The event {code(name)}" for name in made["$defs"] if name not in JSON_TITLES}
    parts = [head]
    defined = {**made["$defs"]}
    either = [defined.pop("judged_run"), defined.pop("unread_run")]
    defined["runs"] = _several(defined["runs"], either, defined["diagnosis"])
    for name, shape in defined.items():
        is_event = "event" in shape["properties"]
        title = JSON_TITLES.get(name) or (events[name] if is_event else code(name))
        parts.append(section(title, shape, "json", name))
    return "\n\n".join(parts) + "\n"


def _several(runs: dict[str, Any], either: list[dict[str, Any]], alone: dict[str, Any]) -> dict[str, Any]:
    """The object of several runs, of each of which only what a run alone has not is listed again."""
    held = runs["properties"]["runs"]
    each = [_without(shape, alone) for shape in either]
    about_each = f"{held['description']} Each has all keys of one run as well, or an `error`."
    listed = {**held, "description": about_each, "items": {"anyOf": each}}
    return {**runs, "properties": {**runs["properties"], "runs": listed}}


def _without(shape: dict[str, Any], alone: dict[str, Any]) -> dict[str, Any]:
    own = {key: held for key, held in shape["properties"].items() if key not in alone["properties"]}
    return {**shape, "properties": own}


def _tree_file() -> str:
    made = tree_schema(())
    parts = [
        """# Tree files

A tree is a YAML file (1.2: `no` and `off` are texts). `stabtree tree check FILE` tells all mistakes of one,
with file and line; `stabtree tree schema` prints the JSON Schema that this page is made of, for an editor.
[A tree of your own](../how-to/write-a-tree.md) shows how to write one.
""",
        section("The file", made, "tree", meanings=PLAIN | attributes(TreeFile)),
    ]
    words = {f"{REF}{name}": shape for name, shape in made["$defs"].items() if "enum" in shape}
    for name, shape in made["$defs"].items():
        if "enum" in shape:
            continue
        kind = getattr(model, name)
        own = {key: words.get(held.get("$ref"), held) for key, held in shape["properties"].items()}
        described = {**shape, "properties": own, "description": about(kind)}
        parts.append(section(name, described, "tree", name, FALLBACK | attributes(kind)))
    events = "\n".join(f"| {code(word)} | {meaning} |" for word, meaning in EVENTS.items())
    parts.append(f"## Words of {code('events')}\n\n| word | what happens to the run |\n|---|---|\n{events}")
    return "\n\n".join(parts) + "\n"
