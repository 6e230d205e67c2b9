"""What a project's settings put in force: each key and where it is from, the numbers that they change, the trees."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from stabtree.common.text import clean
from stabtree.facts import FACTS
from stabtree.judging.accepted import Acceptance
from stabtree.judging.settings import FILE, KEYS, SHARED, Settings
from stabtree.render.data.machine import fingerprint
from stabtree.render.page import new_page
from stabtree.tree.model import Severity
from stabtree.tree.params import asking, fact_params, known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.judging.baseline import Baseline
    from stabtree.render.look import Look
    from stabtree.tree.model import Tree

SCHEMA = 1
SHORT_HASH = 12  # digits of a hash that a person compares
DEFAULT = "default"
USUAL = {"fail_on": [str(Severity.WARNING)], "accept_partial": False}
"""What holds where nothing is set and something must."""


def in_force(settings: Settings, trees: Sequence[tuple[str, Tree]], baseline: Baseline | None) -> dict[str, Any]:
    """All that the settings put in force, as plain values.

    Args:
        settings: the settings.
        trees: the trees, each with the file that it is of, empty for one that is shipped.
        baseline: the findings that the settings accept.
    """
    said = {key: getattr(settings, key) for key in KEYS if key != "set"}
    return {
        "schema": SCHEMA,
        "file": settings.source or None,
        "keys": {
            key: {
                "value": _plain(value) if value else USUAL.get(key),
                "from": settings.source if value else DEFAULT,
            }
            for key, value in said.items()
        },
        "set": {
            key: {"value": value, "shipped": _stated([tree for _, tree in trees], key), "from": settings.source}
            for key, value in settings.set.items()
        },
        "accepted": sum(map(len, baseline.runs.values())) if baseline else 0,
        "trees": [
            {"name": tree.name, "file": file or None, "version": tree.version, "sha256": fingerprint(tree)}
            for file, tree in trees
        ],
    }


def _plain(value: Any) -> Any:
    """A setting fit for JSON."""
    if isinstance(value, tuple):
        return [asdict(item) if isinstance(item, Acceptance) else item for item in value]
    return dict(value) if isinstance(value, Mapping) else value


def _stated(trees: Sequence[Tree], key: str) -> Any:
    """What the trees themselves state of a parameter, as `Q2.1.sigma`; None where none of them does."""
    id_, _, name = key.rpartition(".")
    if id_ in FACTS:
        return fact_params(trees[0]).get(id_, {}).get(name)
    nodes = ((tree, node) for tree in trees for node in asking(tree) if node.id == id_)
    tree, node = next(nodes, (None, None))
    return known(tree, node).get(name) if tree and node else None


def config_json(told: Mapping[str, Any]) -> str:
    """What is in force as JSON."""
    return json.dumps(told, indent=2, allow_nan=False)


def config_text(told: Mapping[str, Any], look: Look) -> str:
    """What is in force, a line a key with where it is from, then the trees with their hashes."""
    page = new_page(look)
    none = f"No settings: neither {FILE} nor [tool.stabtree] of {SHARED} is in the working directory"
    page.line((f"Settings of {told['file']}" if told["file"] else none, "heading"))
    page.blank()
    rows = [(key, held["from"], _told(key, held["value"], told)) for key, held in told["keys"].items()]
    rows += [
        (f"set.{key}", held["from"], f"{_word(held['value'])} (shipped: {_word(held['shipped'])})")
        for key, held in told["set"].items()
    ]
    widths = tuple(max(len(row[place]) for row in rows) + 2 for place in range(2))
    page.rows([list(zip(row, ("id", "dim", ""), strict=True)) for row in rows], indent=2, widths=widths)
    page.heading("Trees, and the hash of what each says")
    trees = [
        (tree["name"], tree["sha256"][:SHORT_HASH], tree["file"] or f"shipped, {tree['version']}")
        for tree in told["trees"]
    ]
    widths = tuple(max(len(page.plain(tree[place])) for tree in trees) + 2 for place in range(2))
    page.rows([list(zip(tree, ("id", "number", "dim"), strict=True)) for tree in trees], indent=2, widths=widths)
    return page.text()


def _told(key: str, value: Any, told: Mapping[str, Any]) -> str:
    """A value as a person reads it."""
    if key == "accept" and value:
        return "; ".join(f"{Acceptance(**item)}: {item['reason']}" for item in value)
    if key == "baseline" and value:
        return f"{value} (findings: {told['accepted']:,})"
    if isinstance(value, dict):
        return ", ".join(f"{name} = {held}" for name, held in value.items())
    return ", ".join(value) if isinstance(value, list) else _word(value)


def _word(value: Any) -> str:
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else clean(value)
