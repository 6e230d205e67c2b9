"""The tests of a tree: runs with the leaf that each must reach, and the question at which one went another way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.answer import NO, UNKNOWN
from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.run import CONFIG
from stabtree.tools.check.load import load_config
from stabtree.tools.tune.why.ways import end_of, target
from stabtree.tree.model import NOTHING, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.diagnosis.visits import Visit
    from stabtree.tree.model import Case, Tree


@dataclass(frozen=True, slots=True)
class WrongTurn:
    """The question at which a walk left the way to a leaf.

    Attributes:
        visit: the question, and how it was answered.
        wanted: the answers that lead on to the leaf.
    """

    visit: Visit
    wanted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of one test of a tree.

    Attributes:
        case: the test.
        found: the leaves that were reached, worst first; empty where the log can't be read.
        path: the walk to the leaf that was reached instead, or the document's own.
        turn: where it went another way; None where no single question did.
        why: what else is in the way of the leaf, in words.
        error: why the log can't be read.
    """

    case: Case
    found: tuple[str, ...] = ()
    path: tuple[Visit, ...] = ()
    turn: WrongTurn | None = None
    why: str = ""
    error: StabtreeError | None = None

    @property
    def passed(self) -> bool:
        """Whether the leaf was reached."""
        return self.case.reaches in self.found


def tried(tree: Tree, case: Case, folder: Path) -> Tried:
    """Diagnose the run of a test, whose log is in the folder of the tree."""
    try:
        file = folder / case.run
        if not file.resolve().is_relative_to(folder.resolve()):
            raise StabtreeError("it is a link that leads out of the tree's folder", hint="copy the log to the tree")
        if CONFIG in tree.when:
            run = load_config(file)
        else:
            run = load_run(file)
        found = diagnose(run, tree, answers=case.answers)
    except StabtreeError as error:
        return Tried(case, error=error)
    except (OSError, RuntimeError, ValueError):  # links in a loop, a name with a NUL
        return Tried(case, error=StabtreeError("it is not a name of a file", hint="name a log beside the tree"))
    return _compared(tree, case, found)


def _compared(tree: Tree, case: Case, found: Diagnosis) -> Tried:
    reached = _reached(tree, found)
    if case.reaches in reached:
        return Tried(case, reached, found.path)
    walks = (found.path, *found.further)
    ends = {end_of(walk): walk for walk in reversed(walks)}
    if case.reaches in ends:  # an ok leaf, beside something that was found
        if not reached:
            return Tried(case, path=found.path, why="too little was logged to judge the run")
        walk = ends.get(reached[0], found.path)
        return Tried(case, reached, walk, _last_finding(walk))
    away = _distances(tree, case.reaches)
    turns = [(turn, walk) for walk in walks if (turn := _turn(walk, away))]
    if not turns:
        return Tried(case, reached, found.path, why=_not_walked(found, away))
    # What keeps a run from an ok leaf is the worst that was found; else the question next to the leaf says most.
    if reached and tree.leaves[case.reaches].severity is Severity.OK:
        worst = reached[0]
    else:
        worst = ""

    def rank(item: tuple[WrongTurn, tuple[Visit, ...]]) -> tuple[bool, int]:
        turn, walk = item
        return bool(worst) and end_of(walk) != worst, away[turn.visit.question.id]

    turn, walk = min(turns, key=rank)
    return Tried(case, reached, walk, turn)


def untested(tree: Tree) -> tuple[str, ...]:
    """Return the leaves that a tree itself states, not those that it uses, which no test expects."""
    own = {section.id for section in tree.sections if section.tree in ("", tree.name)}
    nodes = {node.id for node in tree.questions.values() if node.section in own}
    nodes |= {node.id for node in tree.groups.values() if node.section in own}
    expected = {case.reaches for case in tree.tests}
    leaves = [leaf for leaf in tree.leaves.values() if leaf.of in nodes and leaf.title != NOTHING]
    return tuple(leaf.id for leaf in leaves if leaf.id not in expected)


def _reached(tree: Tree, found: Diagnosis) -> tuple[str, ...]:
    """Return the leaves of all findings; where there is none and the run was judged, those at which its walks ended."""
    leaves = [finding.leaf.id for finding in found.reached]
    if leaves or found.verdict == UNKNOWN:
        return tuple(leaves)
    ends = [end_of(walk) for walk in (found.path, *found.further)]
    return tuple(dict.fromkeys(id_ for id_ in ends if id_ in tree.leaves))


def _distances(tree: Tree, leaf: str) -> dict[str, int]:
    """Return the leaf and the questions from which it can be reached, each with the number of turns to it."""
    found, waiting = {leaf: 0}, [leaf]
    while waiting:
        near = waiting.pop(0)
        for node in tree.questions.values():
            if near in node.go.values() and node.id not in found:
                found[node.id] = found[near] + 1
                waiting.append(node.id)
    return found


def _turn(walk: tuple[Visit, ...], away: Mapping[str, int]) -> WrongTurn | None:
    """Return the last question of a walk from which the leaf could still be reached, and was not."""
    for visit in reversed(walk):
        if visit.question.id in away and target(visit.question, visit.answer) not in away:
            return WrongTurn(visit, tuple(verdict for verdict, to in visit.question.go.items() if to in away))
    return None


def _last_finding(walk: tuple[Visit, ...]) -> WrongTurn | None:
    """Return the question whose answer led to a finding where none should be."""
    for visit in reversed(walk):
        if visit.answer.verdict not in (NO, UNKNOWN):
            chosen = target(visit.question, visit.answer)
            return WrongTurn(visit, tuple(verdict for verdict, to in visit.question.go.items() if to != chosen))
    return None


def _not_walked(found: Diagnosis, away: Mapping[str, int]) -> str:
    """Return why no question that leads to the leaf was asked, empty where that can't be said."""
    left = [item for item in found.sections if not item.walked and item.section.entry in away]
    if left:
        return f"{left[0].section.heading}: not asked, {left[0].why}"
    return ""
