"""A whole tree as text: its outline and its table of thresholds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.render.page import Page, styled
from stabtree.tree.params import known

if TYPE_CHECKING:
    from stabtree.tree.model import Tree


def outline(tree: Tree, *, width: int = 100, color: bool = False) -> str:
    """The whole tree, section by section."""
    page = Page(width=width, color=color)
    page.line((tree.name, "id"), ("  ", ""), (tree.title, "heading"))
    page.line((tree.about, "dim"), indent=1)
    for section in tree.sections:
        if section.check:
            continue
        page.heading(f"§{section.id} {section.title}")
        for question in tree.questions.values():
            if question.section != section.id:
                continue
            page.item((question.id, "id"), [(question.ask, "")], indent=1, head_width=6)
            for verdict, target in question.go.items():
                style = str(tree.leaves[target].severity) if target in tree.leaves else "id"
                page.line(
                    (f"{verdict} → ", "dim"),
                    (target, "id" if style == "id" else "heading"),
                    *([(f" {style}", "dim")] if style != "id" else []),
                    indent=8,
                )
        for group in tree.groups.values():
            if group.section == section.id:
                page.item((group.id, "id"), [(group.ask, "")], indent=1, head_width=6)
                held = ", ".join(leaf.id for leaf in tree.leaves.values() if leaf.of == group.id)
                page.line((f"holds {held}", "dim"), indent=8)
    checks = [tree.questions[section.entry] for section in tree.sections if section.check]
    _list(page, "Checks, each on its own", [(check.id, check.ask) for check in checks])
    _list(page, "Entries, for a person", [(entry.id, entry.title) for entry in tree.entries.values()])
    _list(
        page, "Causes added to leaves", [(item.id, f"{item.text} → {', '.join(item.of)}") for item in tree.signatures]
    )
    page.blank()
    for link in tree.see:
        page.line((f"see {link}", "dim"))
    return page.text()


def _list(page: Page, title: str, rows: list[tuple[str, str]]) -> None:
    if not rows:
        return
    page.heading(title)
    width = max(len(id_) for id_, _ in rows) + 2
    for id_, text in rows:
        page.item((id_, "id"), [(text, "")], indent=1, head_width=width)


def thresholds(tree: Tree, *, literal: bool = False, width: int = 100, color: bool = False) -> str:
    """The quick-reference table of the tree, and the rule of every question that is not in it."""
    from rich.table import Table

    page = Page(width=width, color=color)
    numbers = {question.id: known(tree, question, literal=literal) for question in tree.questions.values()}
    table = Table(title=None, box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("Node", "Symptom", "Threshold", "First action"):
        table.add_column(name, overflow="fold")
    for question in tree.questions.values():
        if question.quick:
            text = question.quick.letter if literal and question.quick.letter else question.quick.threshold
            threshold = text.format_map(numbers[question.id])
            cells = (question.id, question.quick.symptom, threshold, question.quick.first)
            table.add_row(*(styled([(cell, "")]) for cell in cells))
    if table.row_count:
        page.add(table)
    others = [question for question in tree.questions.values() if question.rule and not question.quick]
    if others:
        page.heading("Rules of the other questions" if table.row_count else "Rules")
    for question in others:
        page.item((question.id, "id"), [(question.ask, "")], indent=1, head_width=max(6, len(question.id) + 2))
        page.line((question.rule.format_map(numbers[question.id]), "dim"), indent=8)
    return page.text()


def listing(trees: list[Tree], *, width: int = 100, color: bool = False) -> str:
    """Trees, a row each: name, how much they hold, and what they are for."""
    page = Page(width=width, color=color)
    heads = ("name", "questions", "leaves", "entries", "what it is for")
    rows = [(tree.name, len(tree.questions), len(tree.leaves), len(tree.entries), tree.title) for tree in trees]
    column = max(len(tree.name) for tree in trees)
    page.rows(
        [
            [
                (f"{name:<{column}}", "id" if place else "dim"),
                *(
                    (f"{text:>{len(head)}}", "" if place else "dim")
                    for text, head in zip(counts, heads[1:], strict=False)
                ),
                (title, "" if place else "dim"),
            ]
            for place, (name, *counts, title) in enumerate([heads, *rows])
        ],
        indent=0,
        widths=(column + 2, *(len(head) + 2 for head in heads[1:-1])),
    )
    return page.text()
