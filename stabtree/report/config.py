"""The effective settings of a project: each key and where it is from, the numbers that they change, the trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from stabtree.common.text import clean
from stabtree.facts import FACTS
from stabtree.judging.accepted import Acceptance, KnownFindings
from stabtree.judging.settings import FILE, KEYS, SHARED, Settings
from stabtree.report.json import fingerprint
from stabtree.report.page import Page
from stabtree.tree.model import Severity
from stabtree.tree.params import asking, fact_params, known

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.tree.model import Tree

SHORT_HASH = 12  # digits of a hash that a person compares
USUAL: dict[str, Any] = {"fail_on": [str(Severity.WARNING)], "accept_partial": False}
"""The values of keys that are not set and have one."""


def effective_settings(
    settings: Settings, trees: Sequence[tuple[str, Tree]], baseline: KnownFindings | None
) -> dict[str, Any]:
    """Return the effective settings as plain values.

    Args:
        settings: the settings.
        trees: the trees, each with the file that it is from, empty for one that is shipped.
        baseline: the findings that the settings accept.
    """
    keys: dict[str, Any] = {}
    for key in (key for key in KEYS if key != "set"):
        value = getattr(settings, key)
        if isinstance(value, tuple):
            value = [asdict(item) if isinstance(item, Acceptance) else item for item in value]
        elif isinstance(value, Mapping):
            value = dict(value)
        keys[key] = {"value": value or USUAL.get(key), "from": settings.source if value else "default"}
    return {
        "schema": 1,
        "file": settings.source or None,
        "keys": keys,
        "set": {
            key: {"value": value, "shipped": _shipped([tree for _, tree in trees], key), "from": settings.source}
            for key, value in settings.set.items()
        },
        "accepted": baseline.count if baseline else 0,
        "trees": [
            {"name": tree.name, "file": file or None, "version": tree.version, "sha256": fingerprint(tree)}
            for file, tree in trees
        ],
    }


def _shipped(trees: Sequence[Tree], key: str) -> Any:
    """Return the value of a parameter in the trees, as `Q2.1.sigma`; None where none of them has it."""
    id_, _, name = key.rpartition(".")
    if id_ in FACTS:
        return fact_params(trees[0]).get(id_, {}).get(name)
    found = (known(tree, node).get(name) for tree in trees for node in asking(tree) if node.id == id_)
    return next(found, None)


def config_text(effective: Mapping[str, Any], *, width: int = 100, color: bool = False) -> str:
    """Return the effective settings, a line a key with where it is from, then the trees with their hashes."""
    page = Page(width=width, color=color)
    title = f"No settings: neither {FILE} nor [tool.stabtree] of {SHARED} is in the working directory"
    page.line((f"Settings of {effective['file']}" if effective["file"] else title, "heading"))
    page.blank()
    rows = [
        (key, item["from"], _value(key, item["value"], effective["accepted"]))
        for key, item in effective["keys"].items()
    ]
    for key, item in effective["set"].items():
        rows.append((f"set.{key}", item["from"], f"{_word(item['value'])} (shipped: {_word(item['shipped'])})"))
    _table(page, rows, ("id", "dim", ""))
    page.heading("Trees, and the hash of what each says")
    trees = [
        (tree["name"], tree["sha256"][:SHORT_HASH], tree["file"] or f"shipped, {tree['version']}")
        for tree in effective["trees"]
    ]
    _table(page, trees, ("id", "number", "dim"))
    return page.text()


def _table(page: Page, rows: Sequence[tuple[str, str, str]], styles: Iterable[str]) -> None:
    first, second, _ = zip(*rows, strict=True)
    widths = tuple(max(len(page.plain(cell)) for cell in column) + 2 for column in (first, second))
    page.rows([list(zip(row, styles, strict=True)) for row in rows], indent=2, widths=widths)


def _value(key: str, value: Any, accepted: int) -> str:
    """Return a value as a person reads it."""
    if key == "accept" and value:
        return "; ".join(f"{Acceptance(**item)}: {item['reason']}" for item in value)
    if key == "baseline" and value:
        return f"{value} (findings: {accepted:,})"
    if isinstance(value, dict):
        return ", ".join(f"{name} = {item}" for name, item in value.items())
    return ", ".join(value) if isinstance(value, list) else _word(value)


def _word(value: Any) -> str:
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else clean(value)
