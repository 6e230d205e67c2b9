"""Walking a tree over a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stabtree.common.answer import NO, UNKNOWN, Answer
from stabtree.common.errors import StabtreeError
from stabtree.common.text import near
from stabtree.diagnosis.coverage import lacking_for_ok, walked, walked_trees
from stabtree.diagnosis.events import one_each
from stabtree.diagnosis.found import found
from stabtree.diagnosis.hinges import hinges
from stabtree.diagnosis.ignored import check_ignored
from stabtree.diagnosis.missing import log_next, missed
from stabtree.diagnosis.person import believing, can_tell, check_answers, contradiction, denied, told
from stabtree.diagnosis.ranks import with_worst_rank
from stabtree.diagnosis.restart import before_all_trouble
from stabtree.diagnosis.result import Diagnosis, Finding
from stabtree.diagnosis.timeline import timeline
from stabtree.diagnosis.visits import Missing, Visit
from stabtree.facts import facts_of
from stabtree.facts.replay import Replay
from stabtree.predicates import predicate_named
from stabtree.run import Run
from stabtree.tree.model import Leaf, Question, Severity, Tree
from stabtree.tree.overrides import overridden
from stabtree.tree.params import liked, resolved

if TYPE_CHECKING:
    from stabtree.diagnosis.events import Seen
    from stabtree.facts.registry import Facts, Param
    from stabtree.tree.overrides import Values
    from stabtree.tree.params import Asking

Ask = Callable[[Question], str | None]
Overrides = Mapping[str, Mapping[str, "Param"]]

FOR_A_PERSON = "it is a question for a person"


def diagnose(
    run: object,
    tree: Tree | None = None,
    *,
    literal: bool = False,
    overrides: Overrides | None = None,
    answers: Mapping[str, str] | None = None,
    applied: Iterable[str] = (),
    ignore: Iterable[str] = (),
    ask: Ask | None = None,
) -> Diagnosis:
    """Walk a tree over a run.

    Args:
        run: the run, from `load_run`, or what that takes: a path, a DataFrame, columns, records.
        tree: the tree; when not given, those that `load_trees` puts together.
        literal: take the document's letter, without the guards against noise.
        overrides: parameters by the id of a question, a cause or a fact, as `{"Q2.1": {"sigma": 4.0}}`; what a question
            sets of a fact holds for all that ask for it, and questions that are `like` it follow.
        answers: verdicts given by a person, by question id; they go before what the data say, and count wherever the
            walk does not come by of itself.
        applied: nodes whose fixes were applied without success, as `["Q1.4"]`.
        ignore: leaves that count for nothing, as `["spike-minor"]`: they are kept apart in `Diagnosis.ignored`.
        ask: called for a question that the data can't answer and a person can; None means that nobody can be asked.

    Raises:
        StabtreeError: for an unknown id, verdict, parameter or type in `overrides`, `answers`, `applied` or
            `ignore`, and where the run can't be read.
    """
    if not isinstance(run, Run):
        from stabtree.loaders import load_run

        run = load_run(run)
    if tree is None:
        from stabtree.tree.load import load_trees

        tree = load_trees(run)
    if not tree.sections:
        raise StabtreeError(
            "holds no questions to walk", where=tree.name, hint="it is walked with the others: leave --tree out"
        )
    known, waived = frozenset(applied), frozenset(ignore)

    def judge(one: Run) -> Diagnosis:
        walk = _Walk(one, tree, literal, overrides or {}, answers or {}, known, waived, ask if one is run else None)
        walk.check_options()
        return walk.diagnosis()

    whole = judge(run)
    return with_worst_rank(whole, judge) if run.ranks else whole


def answering(diagnosis: Diagnosis) -> Callable[[Question, Overrides], Answer]:
    """What the log of a diagnosis says to any question, whether or not a walk came to it, with what is set."""
    nobody: frozenset[str] = frozenset()

    def walk(overrides: Overrides) -> _Walk:
        made = _Walk(diagnosis.run, diagnosis.tree, diagnosis.literal, overrides, {}, nobody, nobody, None)
        made.check_options()
        return made

    usual = walk(diagnosis.overrides)

    def ask(question: Question, overrides: Overrides) -> Answer:
        other = walk(overrides)
        if other.settings == usual.settings:
            other.facts = usual.facts  # what was found in the run is the same, and takes longest
        return other.by_data(question)

    return ask


@dataclass(slots=True)
class _Walk:
    run: Run
    tree: Tree
    literal: bool
    overrides: Overrides
    answers: Mapping[str, str]
    applied: frozenset[str]
    ignore: frozenset[str]
    ask: Ask | None
    seen: dict[str, Visit] = field(default_factory=dict)
    against: dict[str, str] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)
    given: Overrides = field(init=False)
    facts: Facts = field(init=False)
    settings: Values = field(init=False)

    def check_options(self) -> None:
        self.given = self.overrides
        self.overrides, self.settings = overridden(self.tree, self.overrides, literal=self.literal)
        self.facts = facts_of(self.run, self.settings)
        check_answers(self.tree, self.answers)
        check_ignored(self.tree, sorted(self.ignore))
        for id_, word in self.answers.items():
            question = self.tree.questions[id_]
            self.against[id_] = contradiction(question, word, self.by_data(question)) or denied(
                question, word, lambda other: self.by_data(self.tree.questions[other])
            )
        for id_, word in self.answers.items():
            self._believe(self.tree.questions[id_], word)
        nodes = {leaf.of for leaf in self.tree.leaves.values() if leaf.escalate}
        for id_ in self.applied - nodes:
            known = ", ".join(sorted(nodes)) or "none in this tree"
            raise StabtreeError(
                f"{id_!r} is not a node with fixes to escalate{near(id_, nodes)}",
                where="--applied",
                hint=f"nodes: {known}",
            )

    def _believe(self, question: Question, word: str) -> None:
        run = believing(self.run, question, word)
        if run is not self.run:
            self.run, self.facts = run, facts_of(run, self.settings)

    def diagnosis(self) -> Diagnosis:
        path, end = self._walk(self.tree.sections[0].entry, section="")
        assert end is not None  # noqa: S101 - the first walk may cross sections, and trees have no cycles
        ends = [(path, end)]
        further = []
        sections = [walked(self.run, section) for section in self.tree.sections]
        for section in (item.section for item in sections[1:] if item.walked):
            if section.entry not in self.seen:
                visits, leaf = self._walk(section.entry, section=section.id)
                further.append(visits)
                if leaf is not None:
                    ends.append((visits, leaf))
        for visits, leaf in self._answered():
            further.append(visits)
            ends += [(visits, leaf)] if leaf else []
        reached: dict[str, Seen] = {}
        for visits, leaf in ends:
            if leaf.severity is not Severity.OK and leaf.id not in reached:
                reached[leaf.id] = found(self.run, self.facts, self.params, visits, leaf)
        waived = [reached.pop(id_).finding for id_ in [*reached] if id_ in self.ignore]
        findings = before_all_trouble(one_each(reached.values(), self.facts), self.facts.get("checkpoints"))
        own = sorted((item.finding for item in reached.values()), key=lambda f: -f.leaf.severity.rank)
        missing = missed(self.run, self.seen.values())
        lacks = lacking_for_ok(self.run, self.tree, ends, self.seen.values(), missing)
        missing = tuple(item for item in missing if item.applies)
        stopped = self.facts.get("monitor")
        return Diagnosis(
            run=self.run,
            tree=self.tree,
            path=path,
            end=end,
            further=tuple(v for v in further if v),
            sections=tuple(sections),
            trees=walked_trees(self.tree, sections),
            findings=tuple(findings),
            ignored=tuple(sorted(waived, key=lambda f: -f.leaf.severity.rank)),
            timeline=timeline(self.facts, findings[0]) if findings else (),
            missing=missing,
            log_next=log_next(
                self.tree,
                self.seen,
                missing,
                {item.id for item in lacks},
                own,
                hinges(path, self._leaf_after),
            ),
            lacking=lacks,
            verdict=self._verdict(end, findings, lacks),
            said=tuple(self._said()),
            misread=self.facts.get("reading").misread,
            monitor=stopped if isinstance(stopped, Replay) else None,
            literal=self.literal,
            overrides=self.given,
        )

    def _leaf_after(self, question: Question, word: str) -> Leaf | None:
        """Where the path would end with one more answer of a person's, and nobody to ask."""
        answers = {**self.answers, question.id: word}
        other = replace(self, answers=answers, against={**self.against, question.id: ""}, ask=None, seen={}, unused=[])
        other.settings, other.facts = self.settings, self.facts
        other._believe(question, word)  # noqa: SLF001 - a walk as this one
        return other._walk(self.tree.sections[0].entry, section="")[1]  # noqa: SLF001

    def _answered(self) -> Iterable[tuple[tuple[Visit, ...], Leaf | None]]:
        """The walks from what a person answered where no walk came by, each with the leaf that an answer leads to.

        Only questions that have no other answer than a person's: what is asked of the log is asked where it belongs.
        """
        for id_ in self.answers:
            question = self.tree.questions[id_]
            if id_ not in self.seen and not question.test:
                visits, leaf = self._walk(id_, section=question.section)
                # Past unanswered questions the walk may come to the leaf of another one, which nobody's answer proves.
                answered = {visit.question.id for visit in visits if visit.given_by == "person"}
                proved = leaf is not None and leaf.of in answered
                if not proved:
                    self.unused.append(id_)
                yield visits, leaf if proved else None

    def _said(self) -> Iterable[str]:
        """What the log says against a person's answers, and which of them decided nothing."""
        asked = {visit.question.test for visit in self.seen.values()}
        for id_, word in self.answers.items():
            if self.against[id_]:
                yield f"{id_} {self.against[id_]}"
            elif id_ in self.unused:
                yield f"{id_} answered {word}: nothing follows from that for this run"
            elif id_ not in self.seen and self.tree.questions[id_].test not in asked:
                yield f"{id_} answered {word}: not used, the walk of this run does not come to it"

    def _walk(self, id_: str, section: str) -> tuple[tuple[Visit, ...], Leaf | None]:
        """Walk from a question to a leaf; with a section, stop where the walk would leave it or repeat itself."""
        visits: list[Visit] = []
        while id_ in self.tree.questions:
            question = self.tree.questions[id_]
            if section and (question.section != section or id_ in self.seen):
                return tuple(visits), None
            visit = self._visit(question)
            self.seen[id_] = visit
            visits.append(visit)
            id_ = question.go.get(visit.answer.verdict) or question.go[NO]
        leaf = self.tree.leaves[id_]
        if leaf.escalate and self.applied & {leaf.of, self.tree.leaves[leaf.escalate].of}:
            leaf = self.tree.leaves[leaf.escalate]
        return tuple(visits), leaf

    def _visit(self, question: Question) -> Visit:
        given = self.answers.get(question.id)
        if given is not None:
            return told(question, given, self.against[question.id])
        answer = self.by_data(question)
        if answer.verdict == UNKNOWN and self.ask is not None and can_tell(question):
            word = self.ask(question)
            if word:
                self._believe(question, word)
                return told(question, word)
        return Visit(question, answer)

    def by_data(self, question: Question) -> Answer:
        predicate = predicate_named(question.test)
        if predicate is None:
            return Answer(UNKNOWN, reason=FOR_A_PERSON)
        return predicate.ask(self.facts, self.params(question))

    def params(self, node: Asking) -> dict[str, Param]:
        """All parameters of a node's own: what the tree states, `--literal`, then `--set`."""
        found = resolved(self.tree, node, literal=self.literal, facts=self.facts.params)
        chain: list[str] = [node.id]
        while node.like:
            node = liked(self.tree, node.like)
            chain.append(node.id)
        for id_ in reversed(chain):
            found.update({k: v for k, v in self.overrides.get(id_, {}).items() if k in found})
        return found

    def _verdict(self, end: Leaf, findings: list[Finding], lacking: tuple[Missing, ...]) -> str:
        passed = Severity.OK if end.id in self.ignore else end.severity
        worst = findings[0].leaf.severity if findings else passed
        if worst.rank < Severity.WARNING.rank and (lacking or self.facts.get("reading").misread):
            return UNKNOWN
        return worst
