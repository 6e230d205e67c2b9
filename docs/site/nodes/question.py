"""The page of a question: what it asks, by which rule, where each answer leads, what it reads, and how right it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.site import rates
from docs.site.markup import code, text, to, to_predicate
from docs.site.nodes.outline import place_of
from docs.site.nodes.ways import exits
from docs.site.prose import badge, console, listed, page, part, prose, reference, table
from docs.site.reading import example, home_of, known_besides, metric_table, parameters, read_by
from stabtree.common.answer import NO, UNKNOWN
from stabtree.predicates import PREDICATES
from stabtree.run import CONFIG
from stabtree.tree.model import NOTHING
from stabtree.tree.params import known, settable
from stabtree.tree.shipped import PREFLIGHT

if TYPE_CHECKING:
    from stabtree.tree.model import Question, Tree

WAITS = {"lines": "the log holds lines of text", "rerun": "a second run is given with `--rerun`"}


def page_of(tree: Tree, node: Question) -> str:
    """The page."""
    return page(
        f"{node.id}: {text(node.ask)}",
        place_of(tree, node.section),
        prose(node.why),
        part("The rule", _rule(tree, node)),
        part("Where each answer leads", _exits(tree, node), _without(node), _ways(tree, node)),
        part("How often it is right", rates.of_question(node.id)),
        part("Asking a person", *_person(node)),
        part("What it reads", *_reads(tree, node)),
        part("What can be set", *_settable(node)),
        part("Findings named after it", _findings(tree, node)),
        part("On the command line", *_commands(node)),
        part("See also", listed(reference(item, tree.title_of(item)) for item in node.see)),
        f"Source: {prose(node.source)}.",
    )


def _rule(tree: Tree, node: Question) -> str:
    if not node.test:
        return "No rule: no log can tell, so a person is asked."
    usual, letter = _worded(tree, node), _worded(tree, node, literal=True)
    asked = f"Tested by {to_predicate(node.test)}: {prose(PREDICATES[node.test].question)}"
    by_letter = f"By the document's letter (`--literal`): {prose(letter)}." if letter != usual else ""
    return "\n\n".join(filter(None, (f"> {prose(usual)}" if usual else "", by_letter, asked)))


def _worded(tree: Tree, node: Question, *, literal: bool = False) -> str:
    """The rule with its parameters filled in, patterns as code."""
    values = known(tree, node, literal=literal)
    able = settable(PREDICATES[node.test])
    told = {key: f"`{value}`" if key in able and able[key][1].pattern else value for key, value in values.items()}
    return node.rule.format_map(told)


def _exits(tree: Tree, node: Question) -> str:
    rows = []
    for target, verdicts in exits(node).items():
        leaf = tree.leaves.get(target)
        nothing = leaf is not None and leaf.title == NOTHING
        told = "nothing found" if nothing else f"{to(target)} {prose(tree.title_of(target))}"
        rows.append((", ".join(map(code, verdicts)), told, badge(leaf.severity) if leaf and not nothing else ""))
    return table(("answer", "leads to", "how bad"), rows)


def _ways(tree: Tree, node: Question) -> str:
    """How the walk comes to it."""
    before = [
        f"{to(other.id)} is answered {' or '.join(map(code, verdicts))}"
        for other in tree.questions.values()
        if (verdicts := exits(other).get(node.id))
    ]
    first = "It is the first question of its section" if tree.section(node.section).entry == node.id else ""
    asked = f"{'It is asked' if not first else ', and asked besides'} where {', or '.join(before)}" if before else ""
    return f"{first}{asked}." if first or asked else ""


def _without(node: Question) -> str:
    """What happens where the question has no answer."""
    if UNKNOWN in node.go:
        return f"Without an answer the walk goes on along `unknown`, to {to(node.go[UNKNOWN])}."
    onward = f"the walk goes on as for `no`, to {to(node.go[NO])}"
    return f"Without an answer the question is told as *not checked*, with what to log, and {onward}. It is never a no."


def _person(node: Question) -> list[str]:
    if not node.person:
        return []
    said = ", ".join(f"{code(word)} for {code(verdict)}" for word, verdict in node.words.items())
    told = [prose(node.person), f"Other words that are understood: {said}." if said else ""]
    against = "; ".join(
        f"{code(verdict)} is doubted where {to(other)} answers {code(said)}"
        for verdict, (other, _, said) in ((verdict, what.partition("=")) for verdict, what in node.against.items())
    )
    return [*told, f"The log may contradict an answer, which is told: {against}." if against else ""]


def _reads(tree: Tree, node: Question) -> list[str]:
    predicate = PREDICATES.get(node.test)
    section = tree.section(node.section)
    waits = " or ".join(WAITS.get(item, f"{code(item)} was logged") for item in section.when if item != CONFIG)
    asked = f"Its section is walked where {waits}." if waits else ""
    if CONFIG in section.when or home_of(node.id) == PREFLIGHT:
        asked = "It is asked of a configuration before the run, by `stabtree check`; no log is needed."
    if predicate is None:
        return [asked] if asked else []
    more = known_besides(predicate, beside=bool(read_by(node)))
    few = f"Each that is needed must have {predicate.min_points} finite values or more." if predicate.min_points else ""
    needs = [name for name, needed in read_by(node).items() if needed]
    absent = f"Where {' or '.join(map(code, needs))} is absent or too short, the answer is `unknown`." if needs else ""
    return [metric_table(node), more, " ".join(filter(None, (few, absent))), asked]


def _settable(node: Question) -> list[str]:
    if not node.test:
        return []
    shown = parameters(node)
    taken = f"What it does not state itself it takes over from {to(node.like)}." if node.like else ""
    return [shown, taken] if shown else []


def _findings(tree: Tree, node: Question) -> str:
    held = [leaf for leaf in tree.leaves.values() if leaf.of == node.id and leaf.title != NOTHING]
    return listed(f"{badge(leaf.severity)} {to(leaf.id)} {text(leaf.title)}" for leaf in held)


def _commands(node: Question) -> list[str]:
    before = home_of(node.id) == PREFLIGHT
    lines = [f"stabtree explain {node.id}", *([] if before else [f"stabtree explain {node.id} --why RUN"])]
    if node.test and (setting := example(node)):
        lines.append(f"stabtree {'check CONFIG' if before else 'diagnose RUN'} --set {setting}")
    if node.person and not before:
        lines.append(f"stabtree diagnose RUN --answer {node.id}={next(iter(node.go))}")
    return [console(*lines)]
