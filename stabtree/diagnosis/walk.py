"""Walking a tree over a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stabtree.answer import LIKELY, NO, UNKNOWN, Answer, Evidence
from stabtree.diagnosis.coverage import walked, walked_trees
from stabtree.diagnosis.ranks import with_worst_rank
from stabtree.diagnosis.restart import advise, before_all_trouble
from stabtree.diagnosis.result import CauseState, Diagnosis, Finding, JudgedCause, Missing, Visit
from stabtree.diagnosis.timeline import precursors, timeline
from stabtree.errors import StabtreeError
from stabtree.facts import facts_of
from stabtree.facts.replay import replay
from stabtree.metrics.table import by_name
from stabtree.predicates import predicate_named
from stabtree.text import near
from stabtree.tree.model import Cause, Leaf, Question, Severity, Tree
from stabtree.tree.overrides import overridden
from stabtree.tree.params import liked, resolved

if TYPE_CHECKING:
    from stabtree.facts.registry import Facts, Param
    from stabtree.run import Run
    from stabtree.tree.params import Asking

Ask = Callable[[Question], str | None]
Overrides = Mapping[str, Mapping[str, "Param"]]


def diagnose(
    run: Run,
    tree: Tree | None = None,
    *,
    literal: bool = False,
    overrides: Overrides | None = None,
    answers: Mapping[str, str] | None = None,
    applied: Iterable[str] = (),
    ask: Ask | None = None,
) -> Diagnosis:
    """Walk a tree over a run.

    Args:
        run: the run, from `load_run`.
        tree: the tree; when not given, those that `load_trees` puts together.
        literal: take the document's letter, without the guards against noise.
        overrides: parameters by the id of a question, a cause or a fact, as `{"Q2.1": {"sigma": 4.0}}`; what a question
            sets of a fact holds for all that ask for it, and questions that are `like` it follow.
        answers: verdicts given by a person, by question id; they go before what the data say.
        applied: nodes whose fixes were applied without success, as `["Q1.4"]`.
        ask: called for a question that the data can't answer; None means that nobody can be asked.

    Raises:
        StabtreeError: for an unknown id, verdict, parameter or type in `overrides`, `answers` or `applied`.
    """
    if tree is None:
        from stabtree.tree.load import load_trees

        tree = load_trees(run)
    if not tree.sections:
        raise StabtreeError(
            "holds no questions to walk", where=tree.name, hint="it is walked with the others: leave --tree out"
        )
    known = frozenset(applied)

    def judge(one: Run) -> Diagnosis:
        walk = _Walk(one, tree, literal, overrides or {}, answers or {}, known, ask if one is run else None)
        walk.check_options()
        return walk.diagnosis()

    whole = judge(run)
    return with_worst_rank(whole, judge) if run.ranks else whole


@dataclass(slots=True)
class _Walk:
    run: Run
    tree: Tree
    literal: bool
    overrides: Overrides
    answers: Mapping[str, str]
    applied: frozenset[str]
    ask: Ask | None
    seen: dict[str, Visit] = field(default_factory=dict)
    facts: Facts = field(init=False)

    def check_options(self) -> None:
        self.overrides, settings = overridden(self.tree, self.overrides, literal=self.literal)
        self.facts = facts_of(self.run, settings)
        for id_, verdict in self.answers.items():
            question = self._known(id_, "--answer", "Q1.2=fp16")
            if verdict not in {*question.go, *question.words, UNKNOWN}:
                raise StabtreeError(
                    f"{verdict!r} is no answer to {id_}{near(verdict, [*question.go, *question.words])}",
                    where="--answer",
                    hint=f"answers: {', '.join([*question.go, *question.words])}",
                )
        nodes = {leaf.of for leaf in self.tree.leaves.values() if leaf.escalate}
        for id_ in self.applied - nodes:
            known = ", ".join(sorted(nodes)) or "none in this tree"
            raise StabtreeError(
                f"{id_!r} is no node with fixes to escalate{near(id_, nodes)}",
                where="--applied",
                hint=f"nodes: {known}",
            )

    def _known(self, id_: str, option: str, example: str) -> Question:
        if id_ not in self.tree.questions:
            hint = f"type {option} {example}; ids: `stabtree tree show {self.tree.name}`"
            raise StabtreeError(
                f"there is no question {id_!r}{near(id_, self.tree.questions)}", where=option, hint=hint
            )
        return self.tree.questions[id_]

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
        reached: dict[str, Finding] = {}
        for visits, leaf in ends:
            if leaf.severity is not Severity.OK and leaf.id not in reached:
                reached[leaf.id] = self._finding(visits, leaf)
        findings = before_all_trouble(sorted(reached.values(), key=lambda f: -f.leaf.severity.rank))
        missing = self._missing()
        lacking = self._lacking(end, missing)
        return Diagnosis(
            run=self.run,
            tree=self.tree,
            path=path,
            end=end,
            further=tuple(v for v in further if v),
            sections=tuple(sections),
            trees=walked_trees(self.tree, sections),
            findings=tuple(findings),
            timeline=timeline(self.facts.get("movers"), findings[0]) if findings else (),
            missing=missing,
            lacking=lacking,
            verdict=self._verdict(end, findings, lacking),
            misread=self.facts.get("reading").misread,
            monitor=replay(self.run),
        )

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
            return _told(question, given)
        predicate = predicate_named(question.test)
        answer = Answer(UNKNOWN, reason="it is a question for a person")
        if predicate:
            answer = predicate.ask(self.facts, self.params(question))
        if answer.verdict == UNKNOWN and self.ask is not None:
            told = self.ask(question)
            if told:
                return _told(question, told)
        return Visit(question, answer)

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

    def _finding(self, visits: tuple[Visit, ...], leaf: Leaf) -> Finding:
        told = [visit for visit in visits if visit.answer.verdict not in (NO, UNKNOWN)]
        # Later questions look closer: the last one that names an onset has it, and its last good step with it.
        last = next((v.answer for v in reversed(told) if v.answer.onset_step is not None), None)
        onset, good = (last.onset_step, last.last_good_step) if last else (None, None)
        storm = any(visit.answer.storm for visit in told)
        causes = sorted(filter(_told_of, map(self._judge, leaf.causes)), key=lambda c: list(CauseState).index(c.state))
        start = onset if leaf.restart else None
        return Finding(
            leaf=leaf,
            section=visits[-1].question.section,
            onset_step=onset,
            last_good_step=good,
            evidence=tuple(item for visit in told for item in visit.answer.evidence),
            causes=tuple(causes),
            precursors=precursors(self.facts.get("movers"), start) if start is not None else (),
            restart=advise(self.facts.get("checkpoints"), start, good, storm=storm) if start is not None else None,
        )

    def _judge(self, cause: Cause) -> JudgedCause:
        predicate = predicate_named(cause.test)
        if predicate is None:
            return JudgedCause(cause, CauseState.POSSIBLE)
        answer = predicate.ask(self.facts, self.params(cause))
        states = {UNKNOWN: CauseState.NOT_CHECKABLE, NO: CauseState.RULED_OUT, LIKELY: CauseState.LIKELY}
        state = states.get(answer.verdict, CauseState.CONFIRMED)
        return JudgedCause(cause, state, answer.evidence, answer.reason)

    def _missing(self) -> tuple[Missing, ...]:
        found: dict[str, Missing] = {}
        for visit in self.seen.values():
            answer = visit.answer
            if answer.verdict == UNKNOWN or answer.missing:
                reason = answer.reason or f"{' and '.join(answer.missing)} not logged"
                found[visit.question.id] = _miss(visit.question.id, reason, answer.missing)
        return tuple(found.values())

    def _verdict(self, end: Leaf, findings: list[Finding], lacking: tuple[Missing, ...]) -> str:
        worst = findings[0].leaf.severity if findings else end.severity
        if worst.rank < Severity.WARNING.rank and (lacking or self.facts.get("reading").misread):
            return UNKNOWN
        return worst

    def _lacking(self, end: Leaf, missing: tuple[Missing, ...]) -> tuple[Missing, ...]:
        """What keeps a run from being called ok: the entry questions of what applies to it that have no answer.

        Any leaf that says ok may ask for them, whichever of them was reached. Where nothing was logged that they ask
        for, all of them lack; a tree that asks for nothing judges a run by any answer at all.
        """
        leaves = self.tree.leaves.values()
        needs = {need for leaf in leaves if leaf.severity is Severity.OK or leaf is end for need in leaf.needs}
        here = {need for need in needs if walked(self.run, self.tree.section(self.tree.questions[need].section)).walked}
        if needs:
            return tuple(item for item in missing if item.id in (here or needs))
        return missing if all(visit.answer.verdict == UNKNOWN for visit in self.seen.values()) else ()


def _told_of(judged: JudgedCause) -> bool:
    """Whether a cause is worth telling: a quiet one only where something speaks for it."""
    return not judged.cause.quiet or judged.state not in (CauseState.RULED_OUT, CauseState.NOT_CHECKABLE)


def _told(question: Question, word: str) -> Visit:
    """The visit of a question that a person answered, in the verdict's or in other words."""
    answer = Answer(question.words.get(word, word), (Evidence(f"{word}, as answered"),), reason=f"{word}, as answered")
    return Visit(question, answer, "person")


def _miss(id_: str, reason: str, metrics: tuple[str, ...]) -> Missing:
    known = by_name()
    logs = [known[name].log or name for name in metrics if name in known]
    if "dtype" in metrics:
        logs.append("name the dtype in a manifest, or type --dtype")
    return Missing(id_, reason, metrics, "; ".join(logs))
