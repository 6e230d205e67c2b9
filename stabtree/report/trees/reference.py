"""The nodes of a tree as text: what `explain` and `tree show` print. Generated from the tree, never written by hand."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from stabtree.predicates import predicate_named
from stabtree.report.page import Page
from stabtree.report.trees.nodes import how_to_ask, is_named
from stabtree.report.trees.params import HEAD, MANY, add_params
from stabtree.report.trees.predicates import metrics_of, read_by
from stabtree.tree.compose import NOTHING
from stabtree.tree.document import Entry, Group
from stabtree.tree.fixes import plain
from stabtree.tree.model import Leaf, Question, Tree
from stabtree.tree.params import fact_params, known
from stabtree.tree.shipped import shipped_titles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.predicates import Predicate
    from stabtree.report.text import Line, Piece
    from stabtree.report.trees.nodes import Node

NAMES = 20  # of findings, where a metric is shown on one screen
FEW, FEW_PARAMS = 4, 5  # of what a node has, where it is shown on one screen


def one_screen(tree: Tree, nodes: list[Node], *, named: str = "", width: int = 100, color: bool = False) -> str:
    """Explain the first of the nodes in short and name the others; list several leaves or questions in a line each.

    Args:
        tree: their tree.
        nodes: the nodes that were asked for.
        named: what was typed: a node of exactly this id, the first one then, is always explained.
        width: columns.
        color: whether it may be coloured.
    """
    first, *others = nodes
    if _are_several(first, others) and not is_named(first, named):
        return listing(nodes, width=width, color=color)
    text = explain(tree, [first], brief=True, width=width, color=color)
    page = Page(width=width, color=color)
    if not isinstance(first, Group):  # the page of a group names its leaves, each with its way there
        _others(page, first, others)
    page.line(("--full shows all of it", "dim"), indent=1)
    if not isinstance(first, Entry):
        page.line((how_to_ask(tree, first), "dim"), indent=1)
    return text + page.text()


def _are_several(first: Node, others: list[Node]) -> bool:
    """Whether nodes are several of a kind, not a question or a group with its leaves."""
    if not others:
        return False
    return not isinstance(first, Question | Group) or any(isinstance(node, Question) for node in others)


def _others(page: Page, first: Node, others: list[Node]) -> None:
    """Name the nodes that were asked for besides the first, but for those that its own lines lead to."""
    names = [node.id for node in others]
    if isinstance(first, Question):
        names = [name for name in names if name not in first.go.values()]
    head = "also"
    if all(isinstance(node, Leaf) for node in others):
        head = "leaves"
    _field(page, head, ", ".join(names))


def explain(
    tree: Tree,
    nodes: list[Node],
    *,
    full: bool = False,
    brief: bool = False,
    width: int = 100,
    color: bool = False,
) -> str:
    """Return nodes in words.

    Args:
        tree: their tree.
        nodes: what to explain.
        full: show the parameters that only fine-tune a guard as well.
        brief: leave out the fixes of a question's leaves, and all but the first parameters, causes and fixes.
        width: columns.
        color: whether it may be coloured.
    """
    page = Page(width=width, color=color)
    for node in nodes:
        if node is not nodes[0]:
            page.blank()
        if isinstance(node, Question):
            _question(page, tree, node, full=full, brief=brief)
        elif isinstance(node, Group):
            _group(page, tree, node)
        elif isinstance(node, Entry):
            _entry(page, tree, node)
        else:
            _leaf(page, tree, node, full=full, brief=brief)
    return page.text()


def listing(nodes: list[Node], *, width: int = 100, color: bool = False) -> str:
    """Return nodes in a line each."""
    page = Page(width=width, color=color)
    column = max(len(node.id) for node in nodes) + 2
    for node in nodes:
        text = node.title if isinstance(node, Leaf | Entry) else node.ask
        page.item((node.id, "id"), [(text, "")], indent=0, head_width=column)
    return page.text()


def by_kind(nodes: list[Node], *, width: int = 100, color: bool = False) -> str:
    """Return findings and entries by their ids alone, as fields that continue what is known of a metric."""
    page = Page(width=width, color=color)
    for head, kind in (("findings", Leaf), ("see also", Entry)):
        names = [node.id for node in nodes if isinstance(node, kind)]
        shown = ", ".join(names[:NAMES])
        if len(names) > NAMES:
            shown += f" and {len(names) - NAMES:,} more"
        _field(page, head, shown)
    page.line(("--full has a line for each", "dim"), indent=1)
    return page.text()


def _field(page: Page, name: str, *texts: str) -> None:
    """Add texts beside the name of a field; nothing where all are empty."""
    page.listed(name, ([(text, "")] for text in texts if text), indent=1, head_width=HEAD)


def _fixes(page: Page, fixes: Sequence[str]) -> None:
    _field(page, "fixes", *(f"{number}. {plain(fix)}" for number, fix in enumerate(fixes, 1)))


def _titled(page: Page, node: Node, title: str, about: str, *more: Piece, hanging: int | None = None) -> None:
    """Add the id and the title of a node, and below them where it is from."""
    if hanging is None:
        hanging = len(node.id) + 2
    page.line((node.id, "id"), ("  ", ""), (title, "heading"), *more, hanging=hanging)
    page.line((about, "dim"), indent=1)
    page.blank()


def rule_of(tree: Tree, question: Question, *, literal: bool = False) -> str:
    """Return the question's rule with its parameters filled in."""
    if question.rule:
        return question.rule.format_map(known(tree, question, literal=literal))
    return ""


def _question(page: Page, tree: Tree, node: Question, *, full: bool, brief: bool) -> None:
    section = tree.section(node.section)
    _titled(page, node, node.ask, f"§{section.id} {section.title} · {node.source}")
    _field(page, "why", node.why)
    _field(page, "rule", rule_of(tree, node))
    predicate = predicate_named(node.test)
    if predicate:
        _field(page, "test", f"{predicate.name}: {predicate.question}")
        _field(page, "reads", _reads(predicate))
        add_params(page, tree, node, predicate, full=full, most=FEW_PARAMS if brief else MANY)
    _field(page, "by hand", node.person)
    _field(page, "or say", ", ".join(f"{word} ({verdict})" for word, verdict in node.words.items()))
    ways = (_way(tree, verdict, target) for verdict, target in node.go.items())
    page.listed("goes", ways, indent=1, head_width=HEAD)
    if predicate and "unknown" not in node.go:
        page.item(("", "dim"), [("unknown → noted as not checked, then as for no", "")], indent=1, head_width=HEAD)
    if not brief:
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
        page.listed(f"fix {leaf.id}", ([(plain(fix), "")] for fix in leaf.fixes), indent=1, head_width=width)


def _group(page: Page, tree: Tree, node: Group) -> None:
    _titled(page, node, node.ask, f"§{node.section} {tree.section(node.section).title} · {node.source}")
    _field(page, "why", node.why)
    _field(page, "rule", node.rule.format_map(fact_params(tree)))
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


def _leaf(page: Page, tree: Tree, node: Leaf, *, full: bool, brief: bool) -> None:
    severity = str(node.severity)
    _titled(page, node, node.title, f"{node.of} · {node.source}", ("  ", ""), (f" {severity} ", severity), hanging=2)
    _field(page, "why", node.why)
    if brief:
        _causes_in_short(page, node)
        _fixes(page, node.fixes[:FEW])
    else:
        _causes(page, tree, node, full=full)
        _fixes(page, node.fixes[:MANY])
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


def _causes_in_short(page: Page, node: Leaf) -> None:
    if not node.causes:
        return
    rest = len(node.causes) - FEW
    causes = [(f"{cause.text} ({cause.id}); ", "") for cause in node.causes[:FEW]]
    if rest > 0:
        causes.append((f"and {rest} more (--full)", "dim"))
    page.item(("causes", "dim"), causes, indent=1, head_width=HEAD)


def _causes(page: Page, tree: Tree, node: Leaf, *, full: bool) -> None:
    head = "causes"
    for cause in node.causes:
        predicate = predicate_named(cause.test)
        tested = f"tested: {predicate.question}" if predicate else "no log can test it"
        pieces = [(cause.text, ""), (f"  ({cause.id}; {tested})", "dim")]
        page.item((head, "dim"), pieces, indent=1, head_width=HEAD)
        for fix in cause.fixes:
            page.item(("", ""), [(f"fix: {plain(fix)}", "")], indent=1, head_width=14)
        if full and predicate:
            add_params(page, tree, cause, predicate, full=True)
        head = ""


def _entry(page: Page, tree: Tree, node: Entry) -> None:
    _titled(page, node, node.title, node.source)
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
