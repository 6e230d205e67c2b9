"""Why the walk of a run did not reach a node: the questions on the way there, and the first that turned away."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from stabtree.common.answer import UNKNOWN
from stabtree.common.errors import StabtreeError
from stabtree.common.figures import against
from stabtree.common.text import clean, near
from stabtree.diagnosis.missing import how_to_log, lacking
from stabtree.report.json import visit_dict
from stabtree.report.page import Page
from stabtree.report.words import answer_word

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from stabtree.diagnosis.result import Diagnosis, Visit
    from stabtree.tree.model import Question, Section, Tree

HEAD = 9
# When a path ends at a leaf in place of others, by the field of the others that names it.
IN_PLACE = {
    "escalate": "it comes after {names}: type --applied {homes} where those fixes did not help",
    "near": "a path that would end at {names} ends here where something came near its limit",
    "unproven": "a path that would end at {names} ends here where nothing in the log shows progress",
}


class Step(NamedTuple):
    """A question on the way to a node: its turn in the walk, None where none came there, and where it had to lead."""

    question: Question
    visit: Visit | None
    to: str

    @property
    def turned(self) -> bool:
        """Whether its answer leads elsewhere."""
        return self.visit is not None and self.visit.target != self.to

    @property
    def wanted(self) -> tuple[str, ...]:
        """The answers that lead on to the node."""
        return tuple(verdict for verdict, to in self.question.go.items() if to == self.to)


class Why(NamedTuple):
    """What kept a walk from a node: beside the questions on the way maybe a reason, and what to log for an answer."""

    node: str
    title: str
    reached: bool
    reason: str
    way: tuple[Step, ...]
    turn: Step | None  # the first question that turned away
    log: list[tuple[str, str]]


def why(diagnosis: Diagnosis, word: str) -> Why:
    """Return what kept a walk from a node, a cause (its leaves) or a section (its entry), or that it came there.

    Raises:
        StabtreeError: where there is no such node.
    """
    tree, wanted = diagnosis.tree, word.strip().lower().removeprefix("§")
    names = _nodes_by_name(tree)
    id_ = next((name for name in names if name.lower() == wanted), None)
    if id_ is None:
        hint = f"`stabtree tree show {tree.name}` lists the nodes"
        raise StabtreeError(f"no node is called {clean(word, 60)!r}{near(word, names)}", where="--why", hint=hint)
    visits = {visit.question.id: visit for visit in chain(diagnosis.path, *diagnosis.further)}
    leaves = {item.leaf.id for item in (*diagnosis.reached, *diagnosis.ignored)} | {diagnosis.end.id}
    reached = names[id_] & (visits.keys() | {visit.target for visit in visits.values()} | leaves)
    sections = [item.section for item in diagnosis.sections if item.walked or item.section is tree.sections[0]]
    reason, way = "", _nearest(tree, sections, reached or names[id_], visits)
    if not names[id_]:
        reason = "no walk leads there: it is something that no log can decide"
    elif not way and not reached:
        reason, before = _instead(diagnosis, names[id_])
        way = _nearest(tree, sections, before, visits)
    turn = next((step for step in way if step.turned), None)
    missing = turn.visit.answer.missing if turn and turn.visit and not reached else ()
    log = [(name, how_to_log(name)) for name in lacking(diagnosis.run, missing)]
    return Why(id_, tree.title_of(id_) or word, bool(reached), reason, way, turn, log)


def _nodes_by_name(tree: Tree) -> dict[str, set[str]]:
    """Return the questions and leaves that each name stands for; none for what no log shows."""
    nodes: dict[str, set[str]] = {id_: set() for id_ in tree.entries}
    nodes |= {section.id: {section.entry} for section in tree.sections}
    causes: dict[str, set[str]] = {}
    for leaf in tree.leaves.values():
        for cause in leaf.causes:
            causes.setdefault(cause.id, set()).add(leaf.id)
    groups = {id_: {leaf.id for leaf in tree.leaves.values() if leaf.of == id_} for id_ in tree.groups}
    return nodes | causes | groups | {id_: {id_} for id_ in (*tree.questions, *tree.leaves)}


def _nearest(
    tree: Tree, sections: Iterable[Section], nodes: Collection[str], visits: Mapping[str, Visit]
) -> tuple[Step, ...]:
    """Return the way to one of some nodes with the fewest answers that lead elsewhere, then the fewest not asked.

    Only a way from the first section crosses into others.
    """
    homes = [("" if section is tree.sections[0] else section.id, section.entry) for section in sections]
    waiting: list[tuple[int, int, int, str, str, tuple[Step, ...]]] = []
    waiting += ((0, 0, order, home, entry, ()) for order, (home, entry) in enumerate(homes))
    order, closed = len(waiting), set()
    while waiting:
        wrong, unasked, _, home, id_, way = heappop(waiting)
        if id_ in nodes and way:
            return way
        if id_ not in tree.questions or (home, id_) in closed:
            continue
        closed.add((home, id_))
        question = tree.questions[id_]
        for to in dict.fromkeys(question.go.values()):
            if not home or to in tree.leaves or tree.questions[to].section == home:
                order += 1
                step = Step(question, visits.get(id_), to)
                heappush(waiting, (wrong + step.turned, unasked + (step.visit is None), order, home, to, (*way, step)))
    return ()


def _instead(diagnosis: Diagnosis, nodes: Collection[str]) -> tuple[str, list[str]]:
    """Return why no question decides some nodes, and the leaves in place of which a path ends there, if it does."""
    tree = diagnosis.tree
    for key, reason in IN_PLACE.items():
        leaves = [leaf for leaf in tree.leaves.values() if getattr(leaf, key) in nodes]
        if leaves:
            names, homes = [leaf.id for leaf in leaves], dict.fromkeys(leaf.of for leaf in leaves)
            return reason.format(names=" or ".join(names), homes=" or ".join(homes)), names
    return _not_walked(diagnosis, nodes), []


def _not_walked(diagnosis: Diagnosis, nodes: Collection[str]) -> str:
    """Return why no section was walked that leads to one of some nodes."""
    for item in diagnosis.sections:
        if not item.walked and (item.section.entry in nodes or _nearest(diagnosis.tree, [item.section], nodes, {})):
            return f"{item.section.heading} was not walked: {item.why}"
    return "no walk comes to it by itself"


def screen(diagnosis: Diagnosis, found: Why, *, width: int = 100, color: bool = False) -> str:
    """Return the way to a node, a line for each question with its answer and the number that decided it."""
    page = Page(width=width, color=color)
    word = "was reached" if found.reached else "was not reached"
    page.line((clean(diagnosis.run.name), ""), (": ", ""), (found.node, "id"), (f" {word}", "heading"), hanging=2)
    page.line((found.title, "dim"), indent=1)
    page.blank()
    if found.reason:
        page.item(("because", "dim"), [(found.reason, "")], indent=1, head_width=HEAD)
    for step in found.way:
        here = [("  ◀ turned away here", "mark")] if step is found.turn else []
        page.item((step.question.id, "id"), [*_pieces(step), *here], indent=1, head_width=HEAD)
    if found.way:
        page.line((found.way[-1].to, "id"), indent=1)
    for name, how in found.log:
        text = how if how.startswith(name) else f"{name}: {how}"
        page.item(("log", "dim"), [(text, "")], indent=1, head_width=HEAD)
    return page.text()


def _pieces(step: Step) -> list[tuple[str, str]]:
    wanted = " or ".join(word.replace("_", " ") for word in step.wanted if word != UNKNOWN) or "left open"
    if step.visit is None:
        return [(f"{step.question.ask} not asked; {wanted} leads on", "dim")]
    answer = step.visit.answer
    word, text = answer_word(step.visit) + f", not {wanted}" * step.turned, answer.reason
    if answer.verdict != UNKNOWN and answer.evidence:
        first = answer.evidence[0]
        text = first.text
        if step.turned and first.observed is not None and first.threshold is not None:
            text += f" ({against(first.observed, first.threshold)}, limit {against(first.threshold, first.observed)})"
    return [(f"{step.question.ask} ", ""), (word, "answer"), (f": {text}" * bool(text), "dim")]


def data(diagnosis: Diagnosis, found: Why) -> dict[str, Any]:
    """Return why a walk did not reach a node as plain values, as `--json` writes them."""
    way = [
        {
            **(visit_dict(step.visit) if step.visit else {"id": step.question.id, "ask": step.question.ask}),
            "asked": step.visit is not None,
            "wanted": list(step.wanted),
            "to": step.to,
            "turned": step is found.turn,
        }
        for step in found.way
    ]
    log = [{"metric": name, "log": how} for name, how in found.log]
    named = {name: getattr(found, name) for name in ("node", "title", "reached", "reason")}
    return {"schema": 1, "run": diagnosis.run.name, **named, "way": way, "log": log}
