"""Walks a tree over a run, question by question; a person's answers are checked, applied, and compared with the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.answer import UNKNOWN, Answer, Evidence
from stabtree.common.errors import StabtreeError
from stabtree.common.text import near
from stabtree.diagnosis.result import Visit, check_ignored
from stabtree.measures import measure_named, measures_of
from stabtree.run import Setting
from stabtree.tree.model import Question
from stabtree.tree.params import apply_overrides, plain_params, resolved

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Walked
    from stabtree.measures.registry import Measured, Param
    from stabtree.run import Run
    from stabtree.tree.model import Leaf, Tree
    from stabtree.tree.params import Values


def _check_answers(tree: Tree, answers: Mapping[str, str]) -> None:
    """Check the ids and the verdicts of given answers.

    Raises:
        StabtreeError: for the first that the tree does not know.
    """
    for id_, word in answers.items():
        if id_ not in tree.questions:
            hint = f"type --answer Q1.2=fp16; ids: `stabtree tree show {tree.name}`"
            raise StabtreeError(f"there is no question {id_!r}{near(id_, tree.questions)}", where="--answer", hint=hint)
        known = [*tree.questions[id_].go, *tree.questions[id_].words]
        if word not in (*known, UNKNOWN):
            raise StabtreeError(
                f"{word!r} is not an answer to {id_}{near(word, known)}",
                where="--answer",
                hint=f"answers: {', '.join(known)}",
            )


def _answered_visit(question: Question, word: str, against: str = "") -> Visit:
    """Return the visit of a question that a person answered, by the verdict or another word for it."""
    text = against or f"{word}, as answered"
    return Visit(question, Answer(question.words.get(word, word), (Evidence(text),), reason=text), "person")


def _contradiction(question: Question, word: str, ask: Callable[[Question], Answer], tree: Tree) -> str:
    """Return how the log contradicts a person's answer, by this question or by the one it names; empty if it does not.

    Args:
        question: the question.
        word: the person's answer.
        ask: returns the log's answer to a question.
        tree: the tree.
    """
    verdict, data = question.words.get(word, word), ask(question)
    if word != UNKNOWN and data.verdict not in (UNKNOWN, verdict):
        return f"answered {word}; the log says {data.verdict.replace('_', ' ')}: {data.evidence[0].text}"
    id_, _, other_verdict = question.against.get(verdict, "").partition("=")
    if not id_:
        return ""
    other = ask(tree.questions[id_])
    if other.verdict != other_verdict:
        return ""
    return f"answered {word}; the log says otherwise: {other.evidence[0].text}"


Ask = Callable[[Question], str | None]
Overrides = Mapping[str, Mapping[str, "Param"]]
Way = tuple[tuple[Visit, ...], "Leaf | None"]
"""The visits of a walk, and the leaf that it ended at; None if it ended between two questions."""

FOR_A_PERSON = "it is a question for a person"


class WalkOptions(Struct, frozen=True):
    """The options of a walk: those of `diagnose`."""

    literal: bool = False
    overrides: Overrides = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)
    applied: frozenset[str] = frozenset()
    ignore: frozenset[str] = frozenset()


def start(run: Run, tree: Tree, options: WalkOptions, ask: Ask | None = None) -> Walker:
    """Check the options, apply a person's answers, and return a walk that has asked nothing yet."""
    overrides, settings = apply_overrides(tree, options.overrides, literal=options.literal)
    _check_answers(tree, options.answers)
    check_ignored(tree, sorted(options.ignore))
    nodes = {leaf.of for leaf in tree.leaves.values() if leaf.escalate}
    for id_ in sorted(options.applied - nodes):
        known = ", ".join(sorted(nodes)) or "none in this tree"
        problem = f"{id_!r} is not a node with fixes to escalate{near(id_, nodes)}"
        raise StabtreeError(problem, where="--applied", hint=f"nodes: {known}")
    walk = Walker(run, tree, options, ask, overrides, settings, measures_of(run, settings))
    given = [(tree.questions[id_], word) for id_, word in options.answers.items()]
    for question, word in given:
        walk.against[question.id] = _contradiction(question, word, walk.by_data, tree)
    for question, word in given:
        walk.believe(question, word)
    return walk


class Walker(Struct):
    """A walk with its state: besides what it was given, the visits so far and what became of a person's answers."""

    run: Run
    tree: Tree
    options: WalkOptions
    ask: Ask | None
    overrides: Overrides  # of the nodes' own parameters
    settings: Values  # the parameters of all facts
    facts: Measured
    seen: dict[str, Visit] = field(default_factory=dict)  # by question
    against: dict[str, str] = field(default_factory=dict)  # how the log contradicts a person's answer, by question
    unused: list[str] = field(default_factory=list)  # answers that decided nothing
    known: dict[str, Answer] = field(default_factory=dict)  # answers of the log, by question

    def believe(self, question: Question, word: str) -> None:
        """Apply the setting that a person's answer is, if it is one: everything is found anew with it."""
        measure = measure_named(question.test)
        if measure is not None and measure.sets and word != UNKNOWN:
            given = Setting(word, f"answered to {question.id}")
            self.run = replace(self.run, config={**self.run.config, measure.sets: given})
            self.facts = measures_of(self.run, self.settings, self.facts.faults)
            self.known = {}

    def walk_path(self) -> tuple[tuple[Visit, ...], Leaf]:
        """Walk from the entry of the tree to the first leaf."""
        visits, leaf = self._walk(self.tree.sections[0].entry, section="")
        assert leaf is not None  # noqa: S101 - this walk may cross sections, and trees have no cycles
        return visits, leaf

    def walk_further(self, sections: Iterable[Walked]) -> Iterator[Way]:
        """Walk each section whose entry question was not asked on the way, then on from a person's answers."""
        for item in sections:
            entry = item.section.entry
            if item.walked and entry not in self.seen:
                visits, leaf = self._walk(entry, section=item.section.id)
                if visits:
                    yield visits, leaf
        # Then on from a person's answers where no walk came by, but a leaf counts only if an answer leads to it.
        # Only from questions that the log can't answer: the others are asked where they belong.
        for id_ in self.options.answers:
            question = self.tree.questions[id_]
            if id_ in self.seen or question.test:
                continue
            visits, leaf = self._walk(id_, section=question.section)
            # Past unanswered questions the walk may come to the leaf of another one, which nobody's answer proves.
            answered = {visit.question.id for visit in visits if visit.given_by == "person"}
            if leaf is not None and leaf.of not in answered:
                leaf = None
            if leaf is None:
                self.unused.append(id_)
            yield visits, leaf

    def leaf_after(self, question: Question, word: str) -> Leaf:
        """Return the leaf at which the path would end with one more answer of a person's, and nobody to ask."""
        options = replace(self.options, answers={**self.options.answers, question.id: word})
        against = {**self.against, question.id: ""}
        other = replace(self, options=options, against=against, ask=None, seen={}, unused=[])
        other.believe(question, word)
        return other.walk_path()[1]

    def answer_notes(self) -> Iterator[str]:
        """Yield how the log contradicts a person's answers, and which of them decided nothing."""
        asked = {visit.question.test for visit in self.seen.values()}
        for id_, word in self.options.answers.items():
            if self.against[id_]:
                yield f"{id_} {self.against[id_]}"
            elif id_ in self.unused:
                yield f"{id_} answered {word}: nothing follows from that for this run"
            elif id_ not in self.seen and self.tree.questions[id_].test not in asked:
                yield f"{id_} answered {word}: not used, the walk of this run does not come to it"

    def _walk(self, id_: str, section: str) -> Way:
        """Walk from a question to a leaf; with a section, stop where the walk would leave it or repeat itself."""
        visits: list[Visit] = []
        while id_ in self.tree.questions:
            question = self.tree.questions[id_]
            if section and (question.section != section or id_ in self.seen):
                return tuple(visits), None
            visit = self._visit(question)
            self.seen[id_] = visit
            visits.append(visit)
            id_ = visit.target
        leaf = self.tree.leaves[id_]
        if leaf.escalate and self.options.applied & {leaf.of, self.tree.leaves[leaf.escalate].of}:
            leaf = self.tree.leaves[leaf.escalate]
        return tuple(visits), leaf

    def _visit(self, question: Question) -> Visit:
        given = self.options.answers.get(question.id)
        if given is not None:
            return _answered_visit(question, given, self.against[question.id])
        answer = self.by_data(question)
        if answer.verdict == UNKNOWN and self.ask is not None and (question.person or not question.test):
            word = self.ask(question)
            if word:
                self.believe(question, word)
                return _answered_visit(question, word)
        return Visit(question, answer)

    def by_data(self, question: Question) -> Answer:
        """Return the log's answer to a question."""
        measure = measure_named(question.test)
        if measure is None:
            return Answer(UNKNOWN, reason=FOR_A_PERSON)
        if question.id not in self.known:
            self.known[question.id] = measure.answer(self.facts, self.params(question), "question", question.id)
        return self.known[question.id]

    def params(self, node: Question) -> dict[str, Param]:
        """Return the parameters of a node's own test: those of the tree, then of `--literal`, then of `--set`."""
        usual = not self.options.overrides
        known = plain_params(self.tree)[self.options.literal]
        if usual and node.id in known:
            return known[node.id]
        found = resolved(self.tree, node, literal=self.options.literal, facts=self.facts.params)
        chain: list[str] = [node.id]
        while node.like:
            node = self.tree.questions[node.like]
            chain.append(node.id)
        for id_ in reversed(chain):
            found.update({k: v for k, v in self.overrides.get(id_, {}).items() if k in found})
        if usual:
            known[chain[0]] = found
        return found
