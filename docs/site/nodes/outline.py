"""The outline of each tree, with links: from a section's first question along every answer to where it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.site.markup import code, text, to
from docs.site.nodes.ways import exits
from docs.site.prose import badge, listed, page, part, prose, table
from stabtree.tree.load import load_tree
from stabtree.tree.model import NOTHING
from stabtree.tree.shipped import KNOWN, PREFLIGHT

if TYPE_CHECKING:
    from stabtree.tree.model import Section, Tree

ABOUT = (
    "stabtree asks questions of a log, one after the other; the answer decides which comes next, until a finding is "
    "reached or nothing is left to ask. All that it asks stands in YAML files, the trees, of which these pages are "
    "made: each question with its rule in numbers, where each answer leads, and how often that was right."
)


def pages(tree: Tree) -> dict[str, str]:
    """The index, and a page for each tree, by name."""
    parts = {name: load_tree(name) for name in KNOWN}
    made = {f"tree-{name}": _tree_page(tree, one) for name, one in parts.items()}
    toctree = "\n".join(("```{toctree}", ":hidden:", *made, "```"))
    rows = [
        (
            f"[{text(one.title)}](tree-{name}.md)",
            *(str(len(held) or "") for held in (one.questions, _findings(one), one.entries, one.signatures)),
            "`stabtree check CONFIG`" if name == PREFLIGHT else "`stabtree diagnose RUN`",
        )
        for name, one in parts.items()
    ]
    head = ("tree", "questions", "findings", "entries", "known causes", "walked by")
    index = page("The trees", ABOUT, table(head, rows), _ids(), toctree, listed_elsewhere=False)
    return {**made, "index": index}


def _findings(tree: Tree) -> list[str]:
    return [leaf.id for leaf in tree.leaves.values() if leaf.title != NOTHING]


def _ids() -> str:
    lines = []
    for one in map(load_tree, KNOWN):
        every = [*one.questions, *one.groups, *one.entries, *(item.id for item in one.signatures)]
        lines.append(f"{text(one.title)}\n: {' '.join(map(to, every))}")
    return part("By id", *lines)


def tree_link(name: str) -> str:
    """A link to a tree's outline."""
    return f"[The trees](index.md) › [{text(load_tree(name).title)}](tree-{name}.md)"


def place_of(tree: Tree, section: str) -> str:
    """Where a section's nodes stand: their tree and their section, with links."""
    found = tree.section(section)
    words = "a check of one question" if found.check else text(found.heading)
    return f"{tree_link(found.tree)} › [{words}](#{_label(found)})"


def _label(section: Section) -> str:
    """The name by which pages link to a section of an outline; checks stand in one list."""
    return f"tree-{section.tree}-{'checks' if section.check else section.id}"


def _tree_page(tree: Tree, one: Tree) -> str:
    sections = [item for item in tree.sections if item.tree == one.name]
    walked = [_section(tree, item) for item in sections if not item.check]
    checks = [item for item in sections if item.check]
    lines = [line for item in checks for line in _walk(tree, item.entry, item, set(), 0)]
    checked = part("Checks, each of one question", _outlined(lines))
    groups = [f"{to(node.id)} {prose(node.ask)}" for node in one.groups.values()]
    entries = [f"{to(node.id)} {prose(node.title)}" for node in one.entries.values()]
    causes = [f"{to(item.id)} {prose(item.text)}" for item in one.signatures]
    return page(
        text(one.title),
        prose(one.about),
        *walked,
        f"(tree-{one.name}-checks)=\n{checked}" if checked else "",
        part("Nodes that hold findings", listed(groups)),
        part("Entries, for a person", listed(entries)),
        part("Known causes, added to findings", listed(causes)),
        f"Its source: {prose(one.source)}." if one.source else "",
        part("See also", listed(map(prose, one.see))),
        listed_elsewhere=False,
        wide=True,
    )


def _section(tree: Tree, section: Section) -> str:
    lines = _walk(tree, section.entry, section, set(), 0)
    return f"({_label(section)})=\n{part(text(section.heading), _outlined(lines))}"


def _outlined(lines: list[str]) -> str:
    return "\n".join((":::{div} outline", *lines, ":::")) if lines else ""


def _walk(tree: Tree, id_: str, section: Section, seen: set[str], depth: int) -> list[str]:
    """The lines of a question and of all that follows from it; what stands above already is only named."""
    question = tree.questions[id_]
    seen.add(id_)
    lines = [f"{'  ' * depth}- {to(id_)} {prose(question.ask)}"] if not depth else []
    for target, verdicts in exits(question).items():
        start = f"{'  ' * (depth + 1)}- {', '.join(map(code, verdicts))} → "
        if target not in tree.questions:
            lines.append(f"{start}{_end(tree, target)}")
        elif target in seen or tree.questions[target].section != section.id:
            where = "above" if target in seen else text(tree.section(tree.questions[target].section).heading)
            lines.append(f"{start}{to(target)}, {where}")
        else:
            lines.append(f"{start}{to(target)} {prose(tree.questions[target].ask)}")
            lines += _walk(tree, target, section, seen, depth + 1)
    return lines


def _end(tree: Tree, id_: str) -> str:
    leaf = tree.leaves[id_]
    return "nothing found" if leaf.title == NOTHING else f"{badge(leaf.severity)} {to(id_, leaf.title)}"
