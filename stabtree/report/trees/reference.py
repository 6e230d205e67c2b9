"""The nodes of a tree as text: what `explain` and `tree show` print. Generated from the tree, never written by hand."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from stabtree.predicates import predicate_named
from stabtree.report.page import Page
from stabtree.report.trees.evidence import evidence_of, fix_in_words, tested_by
from stabtree.report.trees.nodes import CauseOf, example_of, title_of
from stabtree.report.trees.params import HEAD, add_params
from stabtree.report.trees.predicates import metrics_of, read_by
from stabtree.tree.compose import NOTHING
from stabtree.tree.document import Entry, Group, Signature
from stabtree.tree.fixes import plain
from stabtree.tree.model import Leaf, Question, Tree
from stabtree.tree.params import fact_params, known
from stabtree.tree.shipped import shipped_titles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.predicates import Predicate
    from stabtree.report.text import Line, Piece
    from stabtree.report.trees.nodes import Node


def explain(
    tree: Tree,
    nodes: list[Node],
    *,
    full: bool = False,
    width: int = 100,
    color: bool = False,
) -> str:
    """Return nodes in words.

    Args:
        tree: their tree.
        nodes: what to explain.
        full: show the parameters that only fine-tune a guard as well, and the clues that each cause asks for.
        width: columns.
        color: whether it may be coloured.
    """
    page = Page(width=width, color=color)
    for node in nodes:
        if node is not nodes[0]:
            page.blank()
        if isinstance(node, Question):
            _question(page, tree, node, full=full)
        elif isinstance(node, Group):
            _group(page, tree, node)
        elif isinstance(node, Entry):
            _entry(page, tree, node)
        elif isinstance(node, CauseOf):
            _cause(page, tree, node)
        else:
            _leaf(page, tree, node, full=full)
    return page.text()


def _field(page: Page, name: str, *texts: str) -> None:
    """Add texts beside the name of a field; nothing where all are empty."""
    page.listed(name, ([(text, "")] for text in texts if text), indent=1, head_width=HEAD)


def _fixes(page: Page, fixes: Sequence[str]) -> None:
    _field(page, "fixes", *(f"{number}. {fix_in_words(fix)}" for number, fix in enumerate(fixes, 1)))


def add_title(page: Page, tree: Tree, node: Node) -> None:
    """Add the id and the title of a node, and below them where it is from."""
    more: list[Piece] = []
    hanging = len(node.id) + 2
    if isinstance(node, Leaf):
        severity = str(node.severity)
        more, hanging = [("  ", ""), (f" {severity} ", severity)], 2
    page.line((node.id, "id"), ("  ", ""), (title_of(node), "heading"), *more, hanging=hanging)
    page.line((_from(tree, node), "dim"), indent=1)
    page.blank()


def _from(tree: Tree, node: Node) -> str:
    """Return which part of which document a node is from."""
    if isinstance(node, CauseOf):
        source = node.cause.source if isinstance(node.cause, Signature) else node.leaves[0].of
        return f"a cause · {source}"
    if isinstance(node, Leaf):
        return f"{node.of} · {node.source}"
    if isinstance(node, Entry):
        return node.source
    section = tree.section(node.section)
    return f"§{section.id} {section.title} · {node.source}"


def rule_of(tree: Tree, question: Question, *, literal: bool = False) -> str:
    """Return the question's rule with its parameters filled in."""
    if question.rule:
        return question.rule.format_map(known(tree, question, literal=literal))
    return ""


def group_rule(tree: Tree, group: Group) -> str:
    """Return the group's rule with the parameters of facts filled in."""
    return group.rule.format_map(fact_params(tree))


def _question(page: Page, tree: Tree, node: Question, *, full: bool) -> None:
    add_title(page, tree, node)
    _field(page, "why", node.why)
    _field(page, "rule", rule_of(tree, node))
    predicate = predicate_named(node.test)
    if predicate:
        _field(page, "test", f"{predicate.name}: {predicate.question}")
        _field(page, "reads", _reads(predicate))
        add_params(page, tree, node, predicate, full=full)
    _field(page, "by hand", node.person)
    _field(page, "or say", ", ".join(f"{word} ({verdict})" for word, verdict in node.words.items()))
    ways = (_way(tree, verdict, target) for verdict, target in node.go.items())
    page.listed("goes", ways, indent=1, head_width=HEAD)
    if predicate and "unknown" not in node.go:
        page.item(("", "dim"), [("unknown → noted as not checked, then as for no", "")], indent=1, head_width=HEAD)
    _leaf_fixes(page, tree, node)
    _field(page, "see", *_links(tree, node.see))


def _way(tree: Tree, verdict: str, target: str) -> Line:
    if target in tree.questions:
        name = tree.questions[target].ask
    else:
        name = tree.leaves[target].title
    return [(f"{verdict} → ", "answer"), (target, "id"), (f"  {name}", "")]


def _leaf_fixes(page: Page, tree: Tree, node: Question) -> None:
    leaves = [leaf for leaf in tree.leaves.values() if leaf.of == node.id and leaf.title != NOTHING]
    width = max([28, *(len(leaf.id) + 6 for leaf in leaves)])
    for leaf in leaves:
        page.listed(f"fix {leaf.id}", ([(fix_in_words(fix), "")] for fix in leaf.fixes), indent=1, head_width=width)


def _group(page: Page, tree: Tree, node: Group) -> None:
    add_title(page, tree, node)
    _field(page, "why", node.why)
    _field(page, "rule", group_rule(tree, node))
    leaves = [leaf for leaf in tree.leaves.values() if leaf.of == node.id]
    tests = dict.fromkeys(cause.test for cause in chain.from_iterable(leaf.causes for leaf in leaves))
    predicates = filter(None, map(predicate_named, tests))
    _field(page, "reads", ", ".join(dict.fromkeys(chain.from_iterable(map(metrics_of, predicates)))))
    page.listed("holds", (_held(tree, leaf) for leaf in leaves), indent=1, head_width=HEAD)
    _field(page, "see", *_links(tree, node.see))


def _held(tree: Tree, leaf: Leaf) -> Line:
    """Return a leaf of a group, with the answers that lead to it."""
    ways: list[str] = []
    for question in tree.questions.values():
        ways += [f"{question.id} {verdict}" for verdict, target in question.go.items() if target == leaf.id]
    via = ""
    if ways:
        via = f"  ({', '.join(ways)})"
    return [(leaf.id, "id"), (f"  {leaf.title}{via}", "")]


def _reads(predicate: Predicate) -> str:
    names = read_by(predicate)
    if any(need.kind == "Run" for need in predicate.needs):
        names.append("the run's config, gaps, ranks, lines and rerun")
    return ", ".join(names)


def _leaf(page: Page, tree: Tree, node: Leaf, *, full: bool) -> None:
    add_title(page, tree, node)
    _field(page, "why", node.why)
    _causes(page, tree, node, full=full)
    _fixes(page, node.fixes)
    if node.decide:
        branches = (f"{answer}: {plain(then)}" for answer, then in node.decide.branches.items())
        _field(page, "decides", plain(node.decide.ask), *branches)
    if node.restart:
        _field(page, "restart", "from the newest checkpoint before the onset; diagnose names it")
    if node.escalate:
        end = f"{node.escalate}: {tree.leaves[node.escalate].title}"
        _field(page, "if not", f"when these fixes did not help, --applied {node.of} ends at {end}")
    _instead(page, tree, node)
    _field(page, "see", *_links(tree, node.see))
    _field(page, "page", node.page)


def _instead(page: Page, tree: Tree, node: Leaf) -> None:
    """Show the leaves that a reassuring one gives way to."""
    reasons = {node.unproven: "without progress in the log", node.near: "where something came near its limit"}
    for id_, reason in reasons.items():
        if id_:
            _field(page, "but", f"{reason} the path ends at {id_}: {tree.leaves[id_].title}")


def _causes(page: Page, tree: Tree, node: Leaf, *, full: bool) -> None:
    head = "causes"
    for cause in node.causes:
        predicate = predicate_named(cause.test)
        tested = f"tested: {predicate.question}" if predicate else "no log can test it"
        pieces = [(cause.text, ""), (f"  ({cause.id}; {tested})", "dim")]
        page.item((head, "dim"), pieces, indent=1, head_width=HEAD)
        lines = [f"fix: {fix_in_words(fix)}" for fix in cause.fixes]
        if full:
            lines += [f"{what}: {text}" for what, text in evidence_of(cause)]
        for line in lines:
            page.item(("", ""), [(line, "")], indent=1, head_width=14)
        if full and predicate:
            add_params(page, tree, cause, predicate, full=True)
        head = ""


def _cause(page: Page, tree: Tree, node: CauseOf) -> None:
    """Add a cause with all that decides whether it is one."""
    add_title(page, tree, node)
    cause, predicate = node.cause, predicate_named(node.cause.test)
    _field(page, "tested by", tested_by(cause))
    _field(page, "evidence", *(f"{what}: {text}" for what, text in evidence_of(cause)))
    _fixes(page, cause.fixes)
    if predicate:
        add_params(page, tree, cause, predicate, full=True)
    _field(page, "seen in", example_of(node))
    page.listed(
        "cause of", ([(leaf.id, "id"), (f"  {leaf.title}", "")] for leaf in node.leaves), indent=1, head_width=HEAD
    )
    _field(page, "see", *_links(tree, cause.see))


def _entry(page: Page, tree: Tree, node: Entry) -> None:
    add_title(page, tree, node)
    _field(page, "symptom", node.symptom)
    _field(page, "cause", node.cause)
    _field(page, "probe", node.probe)
    _fixes(page, node.fixes)
    _field(page, "knob", node.knob)
    _field(page, "see", *_links(tree, node.see))


def _links(tree: Tree, see: tuple[str, ...]) -> list[str]:
    return [reference_to(tree, link) for link in see]


def reference_to(tree: Tree, link: str) -> str:
    """Return a cross-reference as it is shown: an id with the node's title, anything else as it is."""
    if " " in link or "/" in link:
        return link
    title = tree.title_of(link) or shipped_titles().get(link, "")
    if title:
        return f"{link} ({title})"
    return link
