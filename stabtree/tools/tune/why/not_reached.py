"""`--why-not NODE`: whether a walk came to a node, and if not which question led away and by how much."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common.answer import NO, UNKNOWN, YES, unknown
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, near
from stabtree.diagnosis.missing import how_to_log, lacking
from stabtree.diagnosis.person import person_can_answer
from stabtree.diagnosis.visits import Visit
from stabtree.diagnosis.walk import answering, diagnose
from stabtree.tools.tune.why.flips import flips, setting
from stabtree.tools.tune.why.model import Margin, NodeStatus, Stage, WhyNot
from stabtree.tools.tune.why.ways import end_of, nearest_way, nodes_by_name, target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stabtree.common.answer import Answer, Evidence
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.diagnosis.walker import Overrides
    from stabtree.tools.tune.why.model import Flip
    from stabtree.tree.model import Question, Section, Tree

OPTION = "--why-not"


def why_not(diagnosis: Diagnosis, word: str) -> WhyNot:
    """Return why a walk did not come to a node, or that it did.

    Args:
        diagnosis: what was found.
        word: a question, a leaf, a node that holds several leaves, a cause (its leaf), or a section (its entry).

    Raises:
        StabtreeError: where there is no such node.
    """
    tree = diagnosis.tree
    id_, nodes = _meant(tree, word)
    result = WhyNot(id_, tree.title_of(id_) or word, NodeStatus.ELSEWHERE)
    if not nodes:
        return replace(result, why="no walk leads there: it is something that no log can decide")
    reached = _reached(diagnosis) & nodes
    if reached:
        return _came_to(diagnosis, result, reached)
    return (
        _turned(diagnosis, result, nodes)
        or _behind(diagnosis, result, nodes)
        or _in_place_of_another(diagnosis, result, nodes)
        or _not_walked(diagnosis, result, nodes)
    )


def _came_to(diagnosis: Diagnosis, result: WhyNot, reached: frozenset[str]) -> WhyNot:
    """Return a node that was reached, with the questions that led there."""
    asked = _Asked(diagnosis)
    node, way = nearest_way(diagnosis.tree, _sections(diagnosis), reached, asked.answer) or (min(reached), ())
    stages = tuple(_stage(diagnosis, asked.visit(diagnosis.tree.questions[id_]), id_, to) for id_, to in way)
    if not all(stage.agrees for stage in stages):  # the run of a rank alone came there
        stages = ()
    return replace(result, status=NodeStatus.REACHED, why=_aside(diagnosis, node), stages=stages)


def _turned(diagnosis: Diagnosis, result: WhyNot, nodes: frozenset[str]) -> WhyNot | None:
    """Return what led away from a node; None where no way of this run leads there."""
    asked = _Asked(diagnosis)
    found = nearest_way(diagnosis.tree, _sections(diagnosis), nodes, asked.answer)
    if found is None:
        return None
    stages: list[Stage] = []
    turned: list[Flip] = []
    base = diagnosis
    for id_, to in found[1]:
        stage = _stage(base, asked.visit(diagnosis.tree.questions[id_]), id_, to)
        if not stage.agrees:
            stage = _missed(base, stage)
            turned += stage.flips[:1]
        stages.append(stage)
        if not stage.agrees and stage.flips:  # what comes behind it is asked as if it had been turned
            base = replace(base, overrides=setting(base, stage.flips[0].key, stage.flips[0].value))
            asked = _Asked(base, anew=True)
    settings: tuple[Flip, ...] = ()
    if len(turned) == sum(not stage.agrees for stage in stages):
        settings = _that_come(diagnosis, tuple(turned), stages, nodes)
    return replace(result, status=NodeStatus.DIVERTED, stages=tuple(stages), settings=settings)


def _behind(diagnosis: Diagnosis, result: WhyNot, nodes: frozenset[str]) -> WhyNot | None:
    """Return what led away from the leaves whose fixes come before those of a node; None where there are none."""
    before = [leaf for leaf in diagnosis.tree.leaves.values() if leaf.escalate in nodes]
    if not before:
        return None
    ids = frozenset(leaf.id for leaf in before)
    here = _reached(diagnosis) & ids
    homes = dict.fromkeys(leaf.of for leaf in before if not here or leaf.id in here)
    names = ", ".join(leaf.id for leaf in before if not here or leaf.id in here)
    why = f"it comes after {names}: type --applied {' or '.join(homes)} where those fixes did not help"
    if here:
        found: WhyNot | None = _came_to(diagnosis, result, here)
    else:
        found = _turned(diagnosis, result, ids)
    return replace(found or result, status=NodeStatus.DIVERTED, why=why, settings=())


def _in_place_of_another(diagnosis: Diagnosis, result: WhyNot, nodes: frozenset[str]) -> WhyNot | None:
    """Return when a path ends at a leaf in place of one that reassures; None for any other leaf."""
    leaves = diagnosis.tree.leaves.values()
    near = [leaf.id for leaf in leaves if leaf.near in nodes]
    unproven = [leaf.id for leaf in leaves if leaf.unproven in nodes]
    if not near and not unproven:
        return None
    when = "something came near its limit" if near else "nothing in the log shows progress"
    names = " or ".join(near or unproven)
    return replace(result, status=NodeStatus.DIVERTED, why=f"a path that would end at {names} ends here where {when}")


def _not_walked(diagnosis: Diagnosis, result: WhyNot, nodes: frozenset[str]) -> WhyNot:
    """Return why the section of a node was not walked."""

    def leads(section: Section) -> bool:
        return nearest_way(diagnosis.tree, [section], nodes, lambda _: unknown("")) is not None

    left = next((item for item in diagnosis.sections if not item.walked and leads(item.section)), None)
    if left is None:
        return result
    logs = tuple((name, how_to_log(name)) for name in left.section.when)
    return replace(
        result, status=NodeStatus.NOT_WALKED, why=f"{left.section.heading} was not walked: {left.why}", lacks=logs
    )


def _sections(diagnosis: Diagnosis) -> list[Section]:
    """Return the sections that a walk of this run may begin in."""
    first = diagnosis.tree.sections[0]
    return [item.section for item in diagnosis.sections if item.walked or item.section is first]


def _meant(tree: Tree, word: str) -> tuple[str, frozenset[str]]:
    """Return the id that a word names, and the questions and leaves that it names."""
    wanted = word.strip().lower().removeprefix("§")
    held = nodes_by_name(tree)
    for id_, nodes in held.items():
        if id_.lower() == wanted:
            return id_, nodes
    hint = f"`stabtree tree show {tree.name}` lists the nodes"
    raise StabtreeError(f"no node is called {clean(word, 60)!r}{near(word, held)}", where=OPTION, hint=hint)


def _reached(diagnosis: Diagnosis) -> frozenset[str]:
    """Return the questions that walks came to, and the leaves that they ended at."""
    walks = [walk for walk in (diagnosis.path, *diagnosis.further) if walk]
    leaves = {finding.leaf.id for finding in (*diagnosis.reached, *diagnosis.ignored)} | {diagnosis.end.id}
    ends = {end_of(walk) for walk in walks}
    return frozenset({visit.question.id for visit in chain.from_iterable(walks)} | leaves | ends)


def _aside(diagnosis: Diagnosis, node: str) -> str:
    """Return what became of the finding of a node that was reached, where that is not plain."""
    if any(finding.leaf.id == node for finding in diagnosis.ignored):
        return "its finding is ignored"
    for finding in diagnosis.findings:
        if any(other.leaf.id == node for other in finding.also):
            return f"it describes the same event as {finding.leaf.id}, and is reported with it"
    leaf = diagnosis.tree.leaves.get(node)
    reached = {finding.leaf.id for finding in diagnosis.reached}
    if leaf and leaf.escalate in reached and node not in reached:
        return f"its fixes were applied without success, so {leaf.escalate} is reported"
    return ""


def _visits(diagnosis: Diagnosis) -> Iterator[Visit]:
    """Yield the questions that all walks came to."""
    return chain.from_iterable((diagnosis.path, *diagnosis.further))


class _Asked:
    """What a diagnosis answers to any question: as on the walk where one came to it, else asked now."""

    def __init__(self, diagnosis: Diagnosis, *, anew: bool = False) -> None:
        self.walked: Mapping[str, Visit] = {}
        if not anew:
            self.walked = {visit.question.id: visit for visit in _visits(diagnosis)}
        self._ask: Callable[[Question, Overrides], Answer] = answering(diagnosis)
        self._overrides = diagnosis.overrides
        self._more: dict[str, Visit] = {}

    def visit(self, question: Question) -> Visit:
        """Return the question with its answer."""
        if question.id in self.walked:
            return self.walked[question.id]
        if question.id not in self._more:
            self._more[question.id] = Visit(question, self._ask(question, self._overrides))
        return self._more[question.id]

    def answer(self, question: Question) -> Answer:
        """Return its answer alone."""
        return self.visit(question).answer


def _stage(diagnosis: Diagnosis, visit: Visit, id_: str, to: str) -> Stage:
    """Return a question of a way, with the answers that lead on."""
    question = visit.question
    wanted = tuple(verdict for verdict, other in question.go.items() if other == to)
    walked = any(other.question.id == id_ for other in _visits(diagnosis))
    return Stage(visit, walked, wanted, to, target(question, visit.answer) == to)


def _missed(diagnosis: Diagnosis, stage: Stage) -> Stage:
    """Return a question that leads away, with what would have turned it."""
    question, answer = stage.visit.question, stage.visit.answer
    stage = replace(stage, person=person_can_answer(question))
    if answer.verdict == UNKNOWN:
        names = lacking(diagnosis.run, answer.missing)
        return replace(stage, lacks=tuple((name, how_to_log(name)) for name in names))
    if stage.visit.given_by == "person":
        return stage
    found = flips(diagnosis, question, stage.wanted)
    return replace(stage, flips=tuple(flip for flip, _ in found), margin=_margin(stage, found))


def _that_come(
    diagnosis: Diagnosis, settings: tuple[Flip, ...], stages: Sequence[Stage], nodes: frozenset[str]
) -> tuple[Flip, ...]:
    """The settings with which the walk comes to a node, another one of the last question where those don't do."""
    last = next((stage for stage in reversed(stages) if not stage.agrees), None)
    if last is None:
        return ()
    for flip in last.flips:
        tried = (*settings[:-1], flip)
        again = diagnosis
        for item in tried:
            again = replace(again, overrides=setting(again, item.key, item.value))
        if _reached(_walked_again(again)) & nodes:
            return tried
    return ()


def _walked_again(diagnosis: Diagnosis) -> Diagnosis:
    """Return the walk with what is set, and with the answers that a person gave."""
    given = {v.question.id: v.answer.verdict for v in _visits(diagnosis) if v.given_by == "person"}
    return diagnose(
        diagnosis.run, diagnosis.tree, literal=diagnosis.literal, overrides=diagnosis.overrides, answers=given
    )


def _margin(stage: Stage, flips: Sequence[tuple[Flip, Answer]]) -> Margin | None:
    """Return the number that decided: the one that a parameter which turns the answer was held against.

    Where no parameter is known to turn it, that is the first number of a question of yes and no.
    """
    measured = [item for item in stage.visit.answer.evidence if _numbers(item)]
    for flip, turned in flips:
        for item in measured:
            if _held_against(item, flip) or (len(measured) == 1 and _crossed(item, turned.evidence)):
                return _as_margin(item, decides=True)
    plain = stage.visit.answer.verdict in (YES, NO) and set(stage.wanted) <= {YES, NO}
    if measured and plain:
        return _as_margin(measured[0], decides=False)
    return None


def _numbers(item: Evidence) -> tuple[float, float] | None:
    if item.observed is None or item.threshold is None:
        return None
    return float(item.observed), float(item.threshold)


def _as_margin(item: Evidence, *, decides: bool) -> Margin | None:
    numbers = _numbers(item)
    if numbers:
        return Margin(item, *numbers, decides)
    return None


def _held_against(item: Evidence, flip: Flip) -> bool:
    """Return whether a number was compared with the very parameter, and is beyond it once that is set anew."""
    numbers = _numbers(item)
    if numbers is None or isinstance(flip.now, bool | str) or isinstance(flip.value, bool | str):
        return False
    value, threshold = numbers
    return threshold == flip.now and (value > flip.now) != (value >= flip.value)


def _crossed(item: Evidence, turned: Sequence[Evidence]) -> bool:
    """Whether the one number of an answer is on the other side of the threshold that the turned one has."""
    if not turned or item.metric != turned[0].metric:
        return False
    before, after = _numbers(item), _numbers(turned[0])
    if before is None or after is None or before[1] == after[1]:
        return False
    return (before[0] > before[1]) != (before[0] > after[1])
