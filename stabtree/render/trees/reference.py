"""The nodes of a tree as text: what `explain` and `tree show` print. Generated from the tree, never written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.predicates import predicate_named
from stabtree.render.page import Page
from stabtree.render.trees.predicates import metrics_of, read_by
from stabtree.run import CONFIG
from stabtree.tree.compose import NOTHING
from stabtree.tree.document import Entry, Group
from stabtree.tree.fixes import plain
from stabtree.tree.load import shipped_titles
from stabtree.tree.model import Leaf, Question, Tree
from stabtree.tree.params import Asking, fact_params, fine, known, settable

if TYPE_CHECKING:
    from stabtree.predicates import Predicate
    from stabtree.render.trees.nodes import Node
    from stabtree.tree.model import Cause

NAMES = 20  # of findings, where a metric is told on one screen
FEW, FEW_PARAMS, MANY = 4, 5, 1000  # of what a node has, where it is told on one screen, and where it is not


def one_screen(tree: Tree, nodes: list[Node], *, width: int = 100, color: bool = False) -> str:
    """The first of the nodes in short, the others by name; several leaves or questions by name alone."""
    first, *others = nodes
    if others and not isinstance(first, Question | Group):
        return listing(nodes, width=width, color=color)
    if others and any(isinstance(node, Question) for node in others):
        return listing(nodes, width=width, color=color)
    told = explain(tree, [first], brief=True, width=width, color=color)
    page = Page(width=width, color=color)
    led = first.go.values() if isinstance(first, Question) else ()
    told_of = isinstance(first, Group)  # its page names them, each with its way there
    names = "" if told_of else ", ".join(node.id for node in others if node.id not in led)
    if names:
        _field(page, "leaves", names)
    page.line(("--full tells all of it", "dim"), indent=1)
    if not isinstance(first, Entry):
        asked = f"ask it of a run: stabtree diagnose RUN --why-not {first.id}"
        page.line(("asked by: stabtree check CONFIG" if _before_run(tree, first) else asked, "dim"), indent=1)
    return told + page.text()


def _before_run(tree: Tree, node: Question | Leaf | Group) -> bool:
    """Whether a node is of a tree that waits for a configuration alone."""
    question = node if isinstance(node, Question) else tree.questions.get(getattr(node, "of", ""))
    home = tree.section(question.section).tree if question else ""
    return CONFIG in next((part.when for part in tree.parts if part.name == home), tree.when)


def explain(
    tree: Tree,
    nodes: list[Node],
    *,
    full: bool = False,
    brief: bool = False,
    width: int = 100,
    color: bool = False,
) -> str:
    """Nodes in words.

    Args:
        tree: their tree.
        nodes: what to explain.
        full: tell the parameters that only fine-tune a guard as well.
        brief: leave out the fixes of a question's leaves, and all but the first parameters, causes and fixes.
        width: columns.
        color: whether it may be coloured.
    """
    page = Page(width=width, color=color)
    for place, node in enumerate(nodes):
        if place:
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
    """Nodes in a line each."""
    page = Page(width=width, color=color)
    column = max(len(node.id) for node in nodes) + 2
    for node in nodes:
        text = node.title if isinstance(node, Leaf | Entry) else node.ask
        page.item((node.id, "id"), [(text, "")], indent=0, head_width=column)
    return page.text()


def by_kind(nodes: list[Node], *, width: int = 100, color: bool = False) -> str:
    """Findings and entries by their ids alone, as fields that go on with what is known of a metric."""
    page = Page(width=width, color=color)
    for head, kind in (("findings", Leaf), ("see also", Entry)):
        names = [node.id for node in nodes if isinstance(node, kind)]
        more = f" and {len(names) - NAMES:,} more" if len(names) > NAMES else ""
        _field(page, head, ", ".join(names[:NAMES]) + more)
    page.line(("--full has a line for each", "dim"), indent=1)
    return page.text()


def _field(page: Page, name: str, text: str) -> None:
    if text:
        page.item((name, "dim"), [(text, "")], indent=1, head_width=11)


def rule_of(tree: Tree, question: Question, *, literal: bool = False) -> str:
    """The question's rule with its parameters filled in."""
    return question.rule.format_map(known(tree, question, literal=literal)) if question.rule else ""


def _question(page: Page, tree: Tree, node: Question, *, full: bool, brief: bool) -> None:
    section = tree.section(node.section)
    page.line((node.id, "id"), ("  ", ""), (node.ask, "heading"), hanging=len(node.id) + 2)
    page.line((f"§{section.id} {section.title} · {node.source}", "dim"), indent=1)
    page.blank()
    _field(page, "why", node.why)
    _field(page, "rule", rule_of(tree, node))
    predicate = predicate_named(node.test)
    if predicate:
        _field(page, "test", f"{predicate.name}: {predicate.question}")
        _field(page, "reads", _reads(predicate))
        _params(page, tree, node, predicate, full=full, most=FEW_PARAMS if brief else MANY)
    _field(page, "by hand", node.person)
    _field(page, "or say", ", ".join(f"{word} ({verdict})" for word, verdict in node.words.items()))
    for verdict, target in node.go.items():
        name = tree.questions[target].ask if target in tree.questions else tree.leaves[target].title
        page.item(
            ("goes" if verdict == next(iter(node.go)) else "", "dim"),
            [(f"{verdict} → ", "answer"), (target, "id"), (f"  {name}", "")],
            indent=1,
            head_width=11,
        )
    if predicate and "unknown" not in node.go:
        _field(page, "", "unknown → noted as not checked, then as for no")
    of_it = () if brief else tree.leaves.values()
    held = [leaf for leaf in of_it if leaf.of == node.id and leaf.title != NOTHING]
    width = max([28, *(len(leaf.id) + 6 for leaf in held)])
    for leaf in held:
        for place, fix in enumerate(leaf.fixes):
            page.item((f"fix {leaf.id}" if not place else "", "dim"), [(plain(fix), "")], indent=1, head_width=width)
    _see(page, tree, node.see)


def _group(page: Page, tree: Tree, node: Group) -> None:
    page.line((node.id, "id"), ("  ", ""), (node.ask, "heading"), hanging=len(node.id) + 2)
    page.line((f"§{node.section} {tree.section(node.section).title} · {node.source}", "dim"), indent=1)
    page.blank()
    _field(page, "why", node.why)
    _field(page, "rule", node.rule.format_map(fact_params(tree)))
    leaves = [leaf for leaf in tree.leaves.values() if leaf.of == node.id]
    tests = dict.fromkeys(cause.test for leaf in leaves for cause in leaf.causes)
    asked = filter(None, map(predicate_named, tests))
    reads = dict.fromkeys(name for predicate in asked for name in metrics_of(predicate))
    _field(page, "reads", ", ".join(reads))
    for place, leaf in enumerate(leaves):
        ways = [f"{q.id} {verdict}" for q in tree.questions.values() for verdict, to in q.go.items() if to == leaf.id]
        via = f"  ({', '.join(ways)})" if ways else ""
        page.item(
            ("holds" if not place else "", "dim"),
            [(leaf.id, "id"), (f"  {leaf.title}{via}", "")],
            indent=1,
            head_width=11,
        )
    _see(page, tree, node.see)


def _reads(predicate: Predicate) -> str:
    names = read_by(predicate)
    if any(need.kind == "Run" for need in predicate.needs):
        names.append("the run's config, gaps, ranks, lines and rerun")
    return ", ".join(names)


def _params(page: Page, tree: Tree, node: Asking, predicate: Predicate, *, full: bool, most: int = MANY) -> None:
    """What can be set, with the name to set it by: a parameter of a fact by the fact's, since it holds for all."""
    usual, letter = known(tree, node), known(tree, node, literal=True)
    guards = fine(tree, node) | {key for stated in tree.facts.values() for key in stated.advanced}
    # The question that led to a cause shows what the facts take.
    able = {name: home for name, (home, _) in settable(predicate).items() if not home or isinstance(node, Question)}
    usual_names = [name for name in able if full or name not in guards][:most]
    shown = {name: f"{able[name] or node.id}.{name}" for name in usual_names}
    longest = max(map(len, shown.values()), default=0)
    for place, (name, told) in enumerate(shown.items()):
        other = f"   (--literal: {_shown(letter[name])})" if letter[name] != usual[name] else ""
        pieces = [(f"{told:<{longest}} = ", ""), (_shown(usual[name]), "number"), (other, "dim")]
        page.item(("" if place else "set", "dim"), pieces, indent=1, head_width=11)
    if hidden := len(able) - len(shown):
        text = f"and {hidden} {'more' if most < MANY else 'that fine-tune it'} (--full)"
        page.item(("" if shown else "set", "dim"), [(text, "dim")], indent=1, head_width=11)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _leaf(page: Page, tree: Tree, node: Leaf, *, full: bool, brief: bool) -> None:
    page.line(
        (node.id, "id"),
        ("  ", ""),
        (node.title, "heading"),
        ("  ", ""),
        (f" {node.severity} ", str(node.severity)),
        hanging=2,
    )
    page.line((f"{node.of} · {node.source}", "dim"), indent=1)
    page.blank()
    _field(page, "why", node.why)
    if brief and node.causes:
        told = [(f"{cause.text} ({cause.id}); ", "") for cause in node.causes[:FEW]]
        rest = len(node.causes) - FEW
        told.append((f"and {rest} more (--full)" if rest > 0 else "", "dim"))
        page.item(("causes", "dim"), told, indent=1, head_width=11)
    for place, cause in enumerate(() if brief else node.causes):
        page.item(
            ("causes" if not place else "", "dim"), [(cause.text, ""), (_tested(cause), "dim")], indent=1, head_width=11
        )
        for fix in cause.fixes:
            page.item(("", ""), [(f"fix: {plain(fix)}", "")], indent=1, head_width=14)
        asked = predicate_named(cause.test) if full else None
        if asked:
            _params(page, tree, cause, asked, full=True)
    for place, fix in enumerate(node.fixes[: FEW if brief else MANY]):
        page.item(("fixes" if not place else "", "dim"), [(f"{place + 1}. {plain(fix)}", "")], indent=1, head_width=11)
    if node.restart:
        _field(page, "restart", "from the newest checkpoint before the onset; diagnose names it")
    if node.escalate:
        _field(
            page,
            "if not",
            f"when these fixes did not help, --applied {node.of} ends at {node.escalate}: "
            f"{tree.leaves[node.escalate].title}",
        )
    _see(page, tree, node.see)
    _field(page, "page", node.page)


def _tested(cause: Cause) -> str:
    predicate = predicate_named(cause.test)
    return f"  ({cause.id}; tested: {predicate.question})" if predicate else f"  ({cause.id}; no log can test it)"


def _entry(page: Page, tree: Tree, node: Entry) -> None:
    page.line((node.id, "id"), ("  ", ""), (node.title, "heading"), hanging=len(node.id) + 2)
    page.line((node.source, "dim"), indent=1)
    page.blank()
    _field(page, "symptom", node.symptom)
    _field(page, "cause", node.cause)
    _field(page, "probe", node.probe)
    for place, fix in enumerate(node.fixes):
        page.item(("fixes" if not place else "", "dim"), [(f"{place + 1}. {plain(fix)}", "")], indent=1, head_width=11)
    _field(page, "knob", node.knob)
    _see(page, tree, node.see)


def _see(page: Page, tree: Tree, see: tuple[str, ...]) -> None:
    for place, link in enumerate(see):
        page.item(("see" if not place else "", "dim"), [(reference_to(tree, link), "")], indent=1, head_width=11)


def reference_to(tree: Tree, link: str) -> str:
    """A cross-reference as it is shown: the id of a node with what the node is called, anything else as it is."""
    if " " in link or "/" in link:
        return link
    title = tree.title_of(link) or shipped_titles().get(link, "")
    return f"{link} ({title})" if title else link
