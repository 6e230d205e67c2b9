"""What `explain` prints of a node of a tree or of a metric. Generated from the tree, never written by hand."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING

from stabtree.common.text import docstring, first_few
from stabtree.measures import measure_named
from stabtree.measures.table import MEASURES
from stabtree.report.page import Page, in_lines
from stabtree.report.trees import HEAD, field, metrics_of, read_by, shown_value
from stabtree.tree.fixes import plain
from stabtree.tree.model import NOTHING, Entry, Group, Leaf, Question, Tree
from stabtree.tree.params import fact_params, fine, known, settable
from stabtree.tree.shipped import shipped_titles
from stabtree.tree.tables import CONFIG, CONTEXT, LOG_NEXT, RESTART, Cause, Remedy, condition, expected, tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stabtree.measures.registry import Measure
    from stabtree.report.page import Line, Piece

MAX_LINES = 24  # of a terminal
LISTED = MAX_LINES - 2  # lines of a list, which ends with what it leaves out
SEEN = 2  # references of a finding
NAMED = 6  # ids of nodes that go with the first one
IN_TITLE, IN_SECTION, IN_TEXT = 3, 2, 1  # where a node has the words that were typed
SHORT_WORD = 4  # letters; such a word is searched for as a whole
_SIGNS = {">": "above", ">=": "at least", "<": "below", "<=": "at most", "=": "is"}
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_LITERAL = re.compile(r"\s*\(literal: [^()]*\)")

Node = Question | Leaf | Group | Entry | Cause | Remedy

FULL = 999  # of each list of a node: all there is is shown
ROOMS = (5, 4, 3, 2, 1)  # how many of each list are shown on a screen, as many as it takes to fit


def every(tree: Tree) -> list[Node]:
    """Return all nodes: questions, groups, leaves, entries, and the rows of both tables."""
    own: list[Node] = [*tree.questions.values(), *tree.groups.values(), *tree.leaves.values(), *tree.entries.values()]
    return [*own, *tables().causes.values(), *tables().actions.values()]


def find(tree: Tree, word: str) -> tuple[list[Node], bool]:
    """Return the nodes that a word names, and whether it names them by id rather than by their text.

    An id; a node of the document that holds several (`Q1.4`, `Q2`, `§2`, `2`); else every node whose texts hold the
    words, those first whose title does.
    """
    wanted, nodes = _id(word), every(tree)
    group = wanted
    if wanted.replace(".", "").isdigit():
        group = f"q{wanted}"
    named = [node for node in nodes if is_named(node, word) or _is_among(node, group)]
    if named or "§" in word:  # the number of a section occurs in many texts
        return sorted(named, key=lambda node: not is_named(node, word)), True
    ranked = [(rank(tree, node, wanted), node) for node in nodes]
    return [node for much, node in sorted(ranked, key=lambda pair: -pair[0]) if much], False


def _is_among(node: Node, group: str) -> bool:
    """Whether a node is among those of a node of the document, or of its section, as `q2.3` and `q2`."""
    if isinstance(node, Leaf):  # that of a check that finds nothing is named by its own id alone
        return group == node.of.lower() and node.title != NOTHING
    return node.id.lower() == group or node.id.lower().startswith(f"{group}.")


def rank(tree: Tree, node: Node, words: str) -> int:
    """Return how well a node fits words: whether its title has them all, its section's or a text; 0 where none has.

    A word of up to four letters must be there as a whole: `lr` is no part of `already`.
    """
    section = tree.section(node.section).title if isinstance(node, Question) else ""
    texts = {IN_TITLE: f"{title_of(node)} {node.id.replace('-', ' ')}", IN_SECTION: section, IN_TEXT: _words(node)}
    parts = [rf"(?<![\w/]){re.escape(part)}" + r"(?![\w/])" * (len(part) <= SHORT_WORD) for part in _id(words).split()]
    fits = (place for place, text in texts.items() if parts and all(re.search(part, text.lower()) for part in parts))
    return next(fits, 0)


def is_named(node: Node, word: str) -> bool:
    """Whether a word is the very id of a node."""
    return node.id.lower() == _id(word)


def _id(word: str) -> str:
    return word.strip().lower().removeprefix("§")


def _words(node: Node) -> str:
    """Return all texts of a node, to be searched."""
    names = ("id", "ask", "title", "why", "rule", "person", "test", "symptom", "cause", "probe", "knob", "fix", "says")
    pattern = getattr(node, "params", {}).get("pattern", "")
    return " ".join((*(getattr(node, name, "") for name in names), str(pattern), *getattr(node, "fixes", ()))).lower()


def title_of(node: Node) -> str:
    """Return the question of a node, or its title."""
    if isinstance(node, Cause):
        return node.says
    if isinstance(node, Remedy):
        return action_in_words(node)
    return node.title if isinstance(node, Leaf | Entry) else node.ask


def explain(tree: Tree, nodes: Sequence[Node], *, width: int = 100, color: bool = False) -> str:
    """Return nodes in words, all that is known of each."""
    page = Page(width=width, color=color)
    for node in nodes:
        if node is not nodes[0]:
            page.blank()
        _add(page, tree, node, FULL)
    return page.text()


def one_screen(tree: Tree, nodes: list[Node], *, named: str = "", width: int = 100, color: bool = False) -> str:
    """Explain the first of the nodes in short and name the others; list several leaves or questions in a line each.

    A node that was named by its very id, the first one then, is always explained.
    """
    first, *others = nodes
    # Several of a kind, not a question or a group with its leaves.
    alike = not isinstance(first, Question | Group) or any(isinstance(node, Question) for node in others)
    if others and alike and not is_named(first, named):
        return listing(nodes, width=width, color=color)
    own = {Question: [*getattr(first, "go", {}).values()], Group: [*tree.leaves]}.get(type(first), [])
    names = [node.id for node in others if node.id not in own]  # but for those that its own lines lead to
    text = ""
    for most in ROOMS:
        page = Page(width=width, color=color)
        _add(page, tree, first, most)
        field(page, "also", first_few(names, NAMED))
        page.line(("more: --full", "dim"), indent=1)
        text = page.text()
        if text.count("\n") <= MAX_LINES:
            return text
    lines = text.splitlines(keepends=True)
    return "".join(lines[: MAX_LINES - 1]) + f" and {len(lines) - MAX_LINES + 1} more lines: --full\n"


def listing(nodes: Sequence[Node], *, width: int = 100, color: bool = False, most: int = LISTED) -> str:
    """Return nodes with their titles, in so many lines at most, and how many are left out."""
    page = Page(width=width, color=color)
    column = max(len(node.id) for node in nodes[:most]) + 2
    ends = accumulate(len(in_lines(title_of(node), width - column, most)) for node in nodes)
    shown = nodes[: sum(end <= most for end in ends)]
    for node in shown:
        page.item((node.id, "id"), [(title_of(node), "")], indent=0, head_width=column)
    if len(shown) < len(nodes):
        page.line((f"and {len(nodes) - len(shown):,} more: --full lists them", "dim"))
    return page.text()


def _list(page: Page, name: str, texts: Iterable[str], most: int) -> None:
    """Add the first of some texts, and how many more there are."""
    shown = list(filter(None, texts))
    left = len(shown) - most
    field(page, name, *shown[:most], f"and {left} more: --full" if left > 0 else "")


def _sentences(text: str, most: int) -> str:
    """Return the first sentences of a text, and how many more there are."""
    parts = _SENTENCE.split(text)
    shown = parts[:most]
    if len(parts) > most:
        shown.append(f"(and {len(parts) - most} more: --full)")
    return " ".join(shown)


def _numbered(page: Page, fixes: Iterable[str], most: int) -> None:
    """Add what to do, in order."""
    texts = [plain(fix).strip() for fix in fixes]
    if len(texts) == 1:
        field(page, "fix", *texts)
    else:
        _list(page, "fixes", (f"{number}. {text}" for number, text in enumerate(texts, 1)), most)


def _add(page: Page, tree: Tree, node: Node, most: int) -> None:
    """Add a node: its id and title, where it is from, then its fields."""
    more: list[Piece] = []
    hanging, see = len(node.id) + 2, getattr(node, "see", ())
    if isinstance(node, Leaf):
        more, hanging = [("  ", ""), (f" {node.severity} ", str(node.severity))], 2
    page.line((node.id, "id"), ("  ", ""), (title_of(node), "heading"), *more, hanging=hanging)
    page.line((" · ".join(filter(None, (_origin(tree, node), node.source))), "dim"), indent=1)
    page.blank()
    FIELDS[type(node)](page, tree, node, most)
    if most == FULL:
        field(page, "see", *(reference_to(tree, link) for link in see))


def _origin(tree: Tree, node: Node) -> str:
    """Return what a node is of: its section, the node of a leaf, a table."""
    if isinstance(node, Leaf):
        return node.of
    if isinstance(node, Question | Group):
        section = tree.section(node.section)
        return f"§{section.id} {section.title}"
    return {Cause: "a cause", Remedy: "what to do"}.get(type(node), "")


def _entry(page: Page, _tree: Tree, node: Entry, most: int) -> None:
    for name in ("symptom", "cause", "probe"):
        field(page, name, getattr(node, name))
    _numbered(page, node.fixes, most)
    field(page, "knob", node.knob)


def _why_and_rule(page: Page, why: str, rule: str, most: int) -> None:
    """Add why it is asked, and the rule: that of the source document only where all is shown."""
    if most != FULL:
        rule = _LITERAL.sub("", rule)
    field(page, "why", _sentences(why, most))
    field(page, "rule", _sentences(rule, most))


def _question(page: Page, tree: Tree, node: Question, most: int) -> None:
    measure, ends = measure_named(node.test), dict[str, list[str]]()
    for verdict, target in node.go.items():
        ends.setdefault(target, []).append(verdict)
    ways = [f"{', '.join(verdicts)} → {_end(tree, id_)}" for id_, verdicts in ends.items()]
    _why_and_rule(page, node.why, rule_of(tree, node), most)
    if most == FULL and measure:
        field(page, "test", f"{measure.name}: {measure.question}")
        field(page, "reads", ", ".join(read_by(measure)))
        _params(page, tree, node, measure)
        if "unknown" not in node.go:
            ways.append("unknown → noted as not checked, then as for no")
    if most == FULL or not node.test:
        field(page, "by hand", node.person)
    if most == FULL:
        field(page, "or say", ", ".join(f"{word} ({verdict})" for word, verdict in node.words.items()))
    field(page, "answers", *ways)
    _leaf_fixes(page, [tree.leaves[id_] for id_ in ends if id_ in tree.leaves], most)


def _end(tree: Tree, id_: str) -> str:
    """Return where an answer leads, with how bad that is."""
    if id_ in tree.questions:
        return f"{id_}: {tree.questions[id_].ask}"
    leaf = tree.leaves[id_]
    return f"{id_} ({leaf.severity}): {leaf.title}"


def _leaf_fixes(page: Page, leaves: Sequence[Leaf], most: int) -> None:
    """Add what the document itself says to do about some leaves, then what usually helps."""
    own = _advised_for({leaf.of for leaf in leaves})
    # Its source says when a document gives an advice: `Phase 19, Q1.4: log(0) in the loss`.
    texts = [f"{action_in_words(action)} ({action.source.partition(': ')[2] or action.source})" for action in own]
    if texts:
        _list(page, "fixes", texts, most)
        return
    told = [leaf for leaf in leaves if leaf.severity.is_alarm] or leaves
    usual = (leaf.fix or next(map(action_in_words, usual_actions(leaf)), "") for leaf in told)
    _numbered(page, dict.fromkeys(filter(None, usual)), most)


def _advised_for(nodes: set[str]) -> list[Remedy]:
    """Return what a document itself says to do about some of its nodes."""
    return [action for action in tables().actions.values() if not nodes.isdisjoint(action.of)]


def usual_causes(leaf: Leaf) -> list[Cause]:
    """Return the causes of a finding of this kind, the most frequent first; none where only its document knows."""
    if leaf.fix and leaf.kind == "other":
        return []
    rows = [row for row in tables().causes.values() if leaf.kind in row.explains]
    return sorted(rows, key=lambda row: -row.explains[leaf.kind])


def usual_actions(leaf: Leaf) -> list[Remedy]:
    """Return what its own document says to do about a finding and what usually helps, by how much it helps."""
    own = _advised_for({leaf.of})
    p = {row.id: row.explains[leaf.kind] for row in usual_causes(leaf)}

    def help_of(row: Remedy) -> float:
        return row.always.get(leaf.kind, 0.0) + expected(p, row.helps)

    rest = sorted((row for row in tables().actions.values() if not row.of), key=help_of, reverse=True)
    return sorted([*own, *(row for row in rest[:3] if p and help_of(row) > 0)], key=help_of, reverse=True)


def action_in_words(action: Remedy) -> str:
    """Return what to do, as it reads for any run."""
    words = action.says.replace(LOG_NEXT, "what would tell the causes apart")
    return plain(words.replace(RESTART, "Go back to the checkpoint that the report names"))


def _group(page: Page, tree: Tree, node: Group, most: int) -> None:
    leaves = [leaf for leaf in tree.leaves.values() if leaf.of == node.id]
    _why_and_rule(page, node.why, node.rule.format_map(fact_params(tree)), most)
    _list(page, "holds", (_end(tree, leaf.id) for leaf in leaves), most)
    _leaf_fixes(page, leaves, most)


def _leaf(page: Page, tree: Tree, node: Leaf, most: int) -> None:
    field(page, "means", node.why)
    _list(page, "causes", (f"{cause.says} ({cause.id})" for cause in usual_causes(node)), most)
    _numbered(page, filter(None, (node.fix, *map(action_in_words, usual_actions(node)))), most)
    if node.restart:
        field(page, "restart", "from a checkpoint before it began; diagnose names the step")
    if node.escalate:
        field(page, "if not", f"{node.escalate}: {tree.leaves[node.escalate].title} (--applied {node.of})")
    if most != FULL:
        _list(page, "see", (reference_to(tree, link) for link in node.see), min(most, SEEN))
        return
    # The leaves that a reassuring one gives way to.
    reasons = {node.unproven: "without progress in the log", node.near: "where something came near its limit"}
    for id_ in filter(None, reasons):
        field(page, "but", f"{reasons[id_]} the path ends at {id_}: {tree.leaves[id_].title}")
    field(page, "page", node.page)


def _cause(page: Page, _tree: Tree, node: Cause, most: int) -> None:
    ordered = sorted(node.evidence.items(), key=lambda pair: -pair[1])
    texts = {text: f"{condition_in_words(text)}: ×{much:g}" for text, much in ordered}
    _list(page, "for it", [texts[text] for text, much in ordered if much > 1], most)
    _list(page, "against it", [texts[text] for text, much in reversed(ordered) if much <= 1], most)
    _list(page, "proof", map(condition_in_words, node.proof), most)
    field(page, "explains", ", ".join(f"{kind} ({share:.0%})" for kind, share in node.explains.items()))
    helped = [row for row in tables().actions.values() if node.id in row.helps]
    helped.sort(key=lambda row: -row.helps[node.id])
    _list(page, "what helps", (f"{action_in_words(row)} ({row.id})" for row in helped), most)
    field(page, "log", ", ".join(node.log))


def _action(page: Page, _tree: Tree, node: Remedy, most: int) -> None:
    field(page, "costs", node.costs)
    field(page, "asks", node.ask)
    _list(page, "answers", (f"{answer}: {', '.join(left)}" for answer, left in node.splits.items()), most)
    field(page, "helps", ", ".join(f"{name} ({much:.0%})" for name, much in node.helps.items()))
    field(page, "harms", ", ".join(node.harms))
    field(page, "never", *map(condition_in_words, node.never))
    field(page, "advice of", ", ".join(node.of))


FIELDS: dict[type, Callable[..., None]] = {
    Question: _question,
    Group: _group,
    Leaf: _leaf,
    Entry: _entry,
    Cause: _cause,
    Remedy: _action,
}


def _params(page: Page, tree: Tree, node: Question, measure: Measure) -> None:
    """Add what can be set, with the name to set it by: a parameter of a fact by the fact's."""
    homes = {name: home for name, (home, _) in settable(measure).items()}
    usual, literal = known(tree, node), known(tree, node, literal=True)
    guards = set(fine(tree, node)).union(*(fact.advanced for fact in tree.facts.values()))
    keys = {name: f"{home or node.id}.{name}" for name, home in homes.items()}
    longest = max(map(len, keys.values()), default=0)
    rows: list[Line] = []
    for name, key in sorted(keys.items(), key=lambda item: item[0] in guards):
        other = f"   (--literal: {shown_value(literal[name])})" if literal[name] != usual[name] else ""
        rows.append([(f"{key:<{longest}} = ", ""), (shown_value(usual[name]), "number"), (other, "dim")])
    page.listed("set", rows, indent=1, head_width=HEAD)


def rule_of(tree: Tree, question: Question, *, literal: bool = False) -> str:
    """Return the question's rule with its parameters filled in, after the metric that it is about if it names none."""
    values, measure = known(tree, question, literal=literal), measure_named(question.test)
    rule = question.rule.format_map(values)
    needed = [name.partition("/")[0] for name, firm in metrics_of(measure).items() if firm] if measure else []
    about = [str(values["metric"])] if "metric" in values else needed
    named = any(name in rule or name.replace("_", " ") in rule for name in about)
    return rule if named or not (rule and about) else f"{about[0]}: {rule}"


def reference_to(tree: Tree, link: str) -> str:
    """Return a cross-reference as it is shown: an id with the node's title, anything else as it is."""
    title = "" if " " in link or "/" in link else tree.title_of(link) or shipped_titles().get(link, "")
    return f"{link} ({title})" if title else link


def condition_in_words(text: str) -> str:
    """Return a condition as a person says it.

    >>> condition_in_words("context.precision = fp16"), condition_in_words("Q2.3 = lr_jump")
    ('precision is fp16', 'Q2.3 answers lr jump')
    """
    found = condition(text)
    name, value = found.name.removeprefix(CONTEXT).removeprefix(CONFIG), found.value.replace("_", " ")
    measure = (measure_named(name) or MEASURES.get(name)) if name == found.name else None
    if measure is None:
        return f"{name} {'answers' if name[:1].isupper() else _SIGNS[found.compare]} {value}"
    what = docstring(measure.func).partition("\n")[0].rstrip(".")
    what = re.sub(r"^(Return|Count|Compare|Find out) ", "", what).partition(":")[0]
    return f"{what}: {'' if found.compare == '=' else _SIGNS[found.compare] + ' '}{value}"
