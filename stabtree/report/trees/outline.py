"""A whole tree as text: its outline and its table of thresholds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.report.page import Page, styled
from stabtree.tree.params import known

if TYPE_CHECKING:
    from rich.table import Table

    from stabtree.report.text import Line
    from stabtree.tree.document import Group, Quick
    from stabtree.tree.model import Question, Section, Tree


def outline(tree: Tree, *, width: int = 100, color: bool = False) -> str:
    """Return the whole tree, section by section."""
    page = Page(width=width, color=color)
    page.line((tree.name, "id"), ("  ", ""), (tree.title, "heading"))
    page.line((tree.about, "dim"), indent=1)
    for section in tree.sections:
        if not section.check:
            _section(page, tree, section)
    checks = [tree.questions[section.entry] for section in tree.sections if section.check]
    _list(page, "Checks, each on its own", [(check.id, check.ask) for check in checks])
    _list(page, "Entries, for a person", [(entry.id, entry.title) for entry in tree.entries.values()])
    added = [(item.id, f"{item.text} → {', '.join(item.of)}") for item in tree.signatures]
    _list(page, "Causes added to leaves", added)
    page.blank()
    for link in tree.see:
        page.line((f"see {link}", "dim"))
    return page.text()


def _section(page: Page, tree: Tree, section: Section) -> None:
    """Add a section: its questions, then its groups."""
    page.heading(f"§{section.id} {section.title}")
    for question in tree.questions.values():
        if question.section == section.id:
            _question(page, tree, question)
    for group in tree.groups.values():
        if group.section == section.id:
            _group(page, tree, group)


def _question(page: Page, tree: Tree, question: Question) -> None:
    """Add a question, and where each of its verdicts leads."""
    page.item((question.id, "id"), [(question.ask, "")], indent=1, head_width=6)
    for verdict, target in question.go.items():
        way: Line = [(f"{verdict} → ", "dim"), (target, "id")]
        if target in tree.leaves:
            way[1:] = [(target, "heading"), (f" {tree.leaves[target].severity}", "dim")]
        page.line(*way, indent=8)


def _group(page: Page, tree: Tree, group: Group) -> None:
    """Add a group, and the leaves that it holds."""
    page.item((group.id, "id"), [(group.ask, "")], indent=1, head_width=6)
    held = ", ".join(leaf.id for leaf in tree.leaves.values() if leaf.of == group.id)
    page.line((f"holds {held}", "dim"), indent=8)


def _list(page: Page, title: str, rows: list[tuple[str, str]]) -> None:
    if not rows:
        return
    page.heading(title)
    width = max(len(id_) for id_, _ in rows) + 2
    for id_, text in rows:
        page.item((id_, "id"), [(text, "")], indent=1, head_width=width)


def thresholds(tree: Tree, *, literal: bool = False, width: int = 100, color: bool = False) -> str:
    """Return the quick-reference table of the tree, and the rule of every question that is not in it."""
    page = Page(width=width, color=color)
    table = _quick_table(tree, literal=literal)
    title = "Rules"
    if table.row_count:
        page.add(table)
        title = "Rules of the other questions"
    others = [question for question in tree.questions.values() if question.rule and not question.quick]
    if others:
        page.heading(title)
    for question in others:
        rule = question.rule.format_map(known(tree, question, literal=literal))
        page.item((question.id, "id"), [(question.ask, "")], indent=1, head_width=max(6, len(question.id) + 2))
        page.line((rule, "dim"), indent=8)
    return page.text()


def _quick_table(tree: Tree, *, literal: bool) -> Table:
    """Return a row for each question of the quick reference."""
    from rich.table import Table

    table = Table(title=None, box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("Node", "Symptom", "Threshold", "First action"):
        table.add_column(name, overflow="fold")
    for question in tree.questions.values():
        if question.quick:
            threshold = _threshold(question.quick, literal=literal)
            numbers = known(tree, question, literal=literal)
            cells = (question.id, question.quick.symptom, threshold.format_map(numbers), question.quick.first)
            table.add_row(*(styled([(cell, "")]) for cell in cells))
    return table


def _threshold(quick: Quick, *, literal: bool) -> str:
    """Return the threshold in words; that of the source document where this is asked for and known."""
    if literal and quick.letter:
        return quick.letter
    return quick.threshold


def listing(trees: list[Tree], *, width: int = 100, color: bool = False) -> str:
    """Return trees, a row each: name, how much they hold, and what they are for."""
    page = Page(width=width, color=color)
    heads = ("name", "questions", "leaves", "entries", "what it is for")
    column = max(len(tree.name) for tree in trees)
    rows = [[(f"{heads[0]:<{column}}", "dim"), *((head, "dim") for head in heads[1:])]]
    for tree in trees:
        sizes = (len(tree.questions), len(tree.leaves), len(tree.entries))
        counts = [(f"{size:>{len(head)}}", "") for size, head in zip(sizes, heads[1:-1], strict=True)]
        rows.append([(f"{tree.name:<{column}}", "id"), *counts, (tree.title, "")])
    page.rows(rows, indent=0, widths=(column + 2, *(len(head) + 2 for head in heads[1:-1])))
    return page.text()
