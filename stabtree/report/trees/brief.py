"""A node of a tree on one screen: the question, its rule in a sentence, where each answer leads, and the fix."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from stabtree.report.page import Page
from stabtree.report.text import clipped, in_lines
from stabtree.report.trees.evidence import fix_in_words, tested_by
from stabtree.report.trees.nodes import CauseOf, example_of, how_to_ask, is_named, title_of
from stabtree.report.trees.params import HEAD
from stabtree.report.trees.reference import add_title, group_rule, reference_to, rule_of
from stabtree.tree.document import Entry, Group
from stabtree.tree.model import Leaf, Question

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.report.trees.nodes import Node
    from stabtree.tree.document import Cause
    from stabtree.tree.model import Tree

MAX_LINES = 24  # of a terminal
LISTED = MAX_LINES - 2  # lines of a list, which ends with what it leaves out
NAMES = 20  # of findings, where a metric is shown on one screen
NAMED = 6  # ids of nodes that go with the first one
RULE_OF_SEVERAL = 160  # characters, where its sentences are short
RULE = 200  # characters; a longer rule is cut to its first clauses
_LITERAL = re.compile(r"\s*\(literal: [^()]*\)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


class Room(NamedTuple):
    """How much of a node is shown: sentences of prose, causes, fixes, and whether a title may take two lines."""

    sentences: int
    causes: int
    fixes: int
    whole: bool = True


ROOMS = (
    *(Room(sentences, causes, fixes) for sentences, causes, fixes in ((3, 4, 4), (2, 4, 3), (2, 3, 3), (1, 3, 2))),
    *(Room(sentences, causes, fixes, whole=False) for sentences, causes, fixes in ((2, 3, 3), (1, 2, 2), (1, 1, 1))),
)


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
    text = ""
    for room in ROOMS:
        page = Page(width=width, color=color)
        _add(page, tree, first, room)
        _close(page, tree, first, others)
        text = page.text()
        if text.count("\n") <= MAX_LINES:
            break
    return text


def _are_several(first: Node, others: list[Node]) -> bool:
    """Whether nodes are several of a kind, not a question or a group with its leaves."""
    if not others:
        return False
    return not isinstance(first, Question | Group) or any(isinstance(node, Question) for node in others)


def _close(page: Page, tree: Tree, first: Node, others: list[Node]) -> None:
    """Name the other nodes that were asked for, and what to type next."""
    _others(page, tree, first, others)
    asked = "" if isinstance(first, Entry | CauseOf) else f" · {how_to_ask(tree, first).partition(': ')[2]}"
    page.line((f"more: --full{asked}", "dim"), indent=1)


def _others(page: Page, tree: Tree, first: Node, others: list[Node]) -> None:
    """Name the nodes that were asked for besides the first, but for those that its own lines lead to."""
    names = [node.id for node in others]
    if isinstance(first, Question):
        names = [name for name in names if name not in first.go.values()]
    elif isinstance(first, Group):
        names = [name for name in names if name not in tree.leaves]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    _field(page, "also", ", ".join(names[:NAMED]) + more)


def _add(page: Page, tree: Tree, node: Node, room: Room) -> None:
    add_title(page, tree, node)
    if isinstance(node, Question):
        _question(page, tree, node, room)
    elif isinstance(node, Group):
        _group(page, tree, node, room)
    elif isinstance(node, Entry):
        _entry(page, node, room)
    elif isinstance(node, CauseOf):
        _cause(page, node, room)
    else:
        _leaf(page, tree, node, room)


def _question(page: Page, tree: Tree, node: Question, room: Room) -> None:
    _field(page, "why", first_sentences(node.why, room.sentences))
    _field(page, "rule", rule_in_short(rule_of(tree, node)))
    if not node.test:
        _field(page, "by hand", first_sentences(node.person, room.sentences))
    ends: dict[str, list[str]] = {}
    for verdict, target in node.go.items():
        ends.setdefault(target, []).append(verdict)
    _titles(page, "answers", (f"{', '.join(verdicts)} → {_end(tree, id_)}" for id_, verdicts in ends.items()), room)
    _leaf_fixes(page, [tree.leaves[id_] for id_ in ends if id_ in tree.leaves], room)


def _end(tree: Tree, id_: str) -> str:
    """Return where an answer leads, with how bad that is."""
    if id_ in tree.questions:
        return f"{id_}: {tree.questions[id_].ask}"
    leaf = tree.leaves[id_]
    return f"{id_} ({leaf.severity}): {leaf.title}"


def _leaf_fixes(page: Page, leaves: Sequence[Leaf], room: Room) -> None:
    """Add the first fixes of the leaves that are alarms; of a single one several."""
    alarms = [leaf for leaf in leaves if leaf.severity.is_alarm] or list(leaves)
    fixes = {leaf.id: list(map(_first_sentence, _fixes_of(leaf))) for leaf in alarms}
    fixes = {id_: texts for id_, texts in fixes.items() if texts}
    if len(fixes) == 1:
        ((_, texts),) = fixes.items()
        _numbered(page, texts[: room.fixes])
    else:
        shown = list(fixes.items())[: room.fixes]
        _field(page, "fix", *(f"{id_}: {texts[0]}" for id_, texts in shown))


def _fixes_of(leaf: Leaf) -> Iterable[str]:
    """Return the fixes of a leaf: its own, and those of its causes where it has none."""
    return map(fix_in_words, leaf.fixes or chain.from_iterable(cause.fixes[:1] for cause in leaf.causes))


def _group(page: Page, tree: Tree, node: Group, room: Room) -> None:
    _field(page, "why", first_sentences(node.why, room.sentences))
    _field(page, "rule", rule_in_short(group_rule(tree, node)))
    leaves = [leaf for leaf in tree.leaves.values() if leaf.of == node.id]
    _titles(page, "holds", (_end(tree, leaf.id) for leaf in leaves), room)
    _leaf_fixes(page, leaves, room)


def _leaf(page: Page, tree: Tree, node: Leaf, room: Room) -> None:
    _field(page, "means", first_sentences(node.why, room.sentences))
    _field(page, "causes", *map(_with_fix, node.causes[: room.causes]))
    if len(node.causes) > room.causes:
        _field(page, "", f"and {len(node.causes) - room.causes} more")
    _numbered(page, [first_sentences(fix_in_words(fix), 2) for fix in node.fixes][: room.fixes])
    if node.restart:
        _field(page, "restart", "from a checkpoint before it began; diagnose names the step")
    if node.escalate:
        _field(page, "if not", f"{node.escalate}: {tree.leaves[node.escalate].title} (--applied {node.of})")
    _titles(page, "see", [reference_to(tree, link) for link in node.see][:2], room)


def _with_fix(cause: Cause) -> str:
    """Return a cause with the first thing to do about it."""
    if not cause.fixes:
        return cause.text
    return f"{cause.text} → {_first_sentence(fix_in_words(cause.fixes[0]))}"


def _cause(page: Page, node: CauseOf, room: Room) -> None:
    _field(page, "tested by", tested_by(node.cause))
    _field(page, "ask", node.cause.ask)
    _numbered(page, [fix_in_words(fix) for fix in node.cause.fixes][: room.fixes])
    leaves = [leaf.id for leaf in node.leaves]
    more = f" and {len(leaves) - NAMED} more" if len(leaves) > NAMED else ""
    _field(page, "cause of", ", ".join(leaves[:NAMED]) + more)
    _field(page, "seen in", example_of(node))


def _entry(page: Page, node: Entry, room: Room) -> None:
    _field(page, "symptom", first_sentences(node.symptom, room.sentences))
    _field(page, "cause", first_sentences(node.cause, room.sentences))
    _field(page, "probe", first_sentences(node.probe, room.sentences))
    _numbered(page, [first_sentences(fix_in_words(fix), room.sentences) for fix in node.fixes][: room.fixes + 1])
    _field(page, "knob", node.knob)


def _field(page: Page, name: str, *texts: str) -> None:
    page.listed(name, ([(text, "")] for text in texts if text), indent=1, head_width=HEAD)


def _titles(page: Page, name: str, texts: Iterable[str], room: Room) -> None:
    """Add titles, cut to a line each where there is little room."""
    if not room.whole:
        texts = [in_lines(text, page.width - HEAD - 1, 1)[0] for text in texts]
    _field(page, name, *texts)


def _numbered(page: Page, fixes: Sequence[str]) -> None:
    if len(fixes) == 1:
        _field(page, "fix", fixes[0])
    else:
        _field(page, "fixes", *(f"{number}. {fix}" for number, fix in enumerate(fixes, 1)))


def first_sentences(text: str, count: int) -> str:
    """Return the first sentences of a text.

    >>> first_sentences("It rises. Look at 3.5 of it, e.g. the first. Stop.", 2)
    'It rises. Look at 3.5 of it, e.g. the first.'
    """
    return " ".join(_SENTENCE.split(text.strip())[:count])


def _first_sentence(text: str) -> str:
    return first_sentences(text, 1)


def rule_in_short(rule: str) -> str:
    """Return the first sentence of a rule, or its first short ones; of a long one its first clauses.

    >>> rule_in_short("loss rises by more than 8% (literal: at all). Guards follow.")
    'loss rises by more than 8%. Guards follow.'
    """
    sentence, *others = _SENTENCE.split(_LITERAL.sub("", rule.strip()))
    for other in others:
        if len(sentence) + len(other) > RULE_OF_SEVERAL:
            break
        sentence += f" {other}"
    if len(sentence) <= RULE:
        return sentence
    shown, *clauses = sentence.split("; ")
    for clause in clauses:
        if len(shown) + len(clause) > RULE:
            break
        shown += f"; {clause}"
    return clipped(shown, RULE)


def listing(nodes: Sequence[Node], *, width: int = 100, color: bool = False, most: int = LISTED) -> str:
    """Return nodes in a line each, and how many are left out."""
    page = Page(width=width, color=color)
    shown = nodes if len(nodes) <= most else nodes[: most - 1]
    column = max(len(node.id) for node in shown) + 2
    for node in shown:
        page.item((node.id, "id"), [(clipped(title_of(node), width - column), "")], indent=0, head_width=column)
    if len(shown) < len(nodes):
        page.line((f"and {len(nodes) - len(shown):,} more: --full lists them", "dim"))
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
