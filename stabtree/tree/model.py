"""A decision tree as data. `load` reads it from YAML, `stabtree.diagnosis.walk` walks it."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.tree.document import (  # noqa: TC001 - `kinds` reads the hints
    Case,
    Cause,
    Decide,
    Entry,
    Group,
    Part,
    Quick,
    Signature,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.facts.registry import Param


class Severity(StrEnum):
    """How bad a finding is, mildest first."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """Index in the order, 0 for ok."""
        return _RANKS[self]

    @property
    def is_alarm(self) -> bool:
        """Whether it is a warning or worse."""
        return self.rank >= Severity.WARNING.rank


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


class Take(StrEnum):
    """Which checkpoint a leaf advises."""

    BEFORE = "before"  # the newest one from before the trouble
    UNLESS_OVER = "unless over"  # the same, and none where the loss came back to where it was before the onset
    LOW = "low"  # the newest one up to the last good step, which is the best; else the next before the onset
    BEST = "best"  # the one nearest to the onset, where the run was at its best: it is kept, and not trained on
    NEWEST = "newest"  # the trouble has not touched the weights


# What may happen to a run: the words of a leaf's `events`.
EVENTS: Mapping[str, str] = {
    "rise": "the loss goes up, at once or slowly",
    "nan": "loss, gradient or evaluation stop being finite, or overflow",
    "flat": "the loss does not move",
    "zero": "the loss is 0 where it can't be",
    "schedule": "the learning rate ends too early",
    "reward": "the reward is the same for all answers",
    "reward-fall": "the reward falls",
    "value": "the value function diverges",
    "policy": "the policy loses its choice",
    "reference": "the policy leaves its reference model",
    "length": "the answers reach their longest length",
    "slow": "the run becomes slower, or stands still",
    "end": "something ends the run",
}


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the tree with its own entry question; walked on its own after the path has ended.

    Attributes:
        id: what questions name it by.
        title: its heading.
        entry: id of its first question.
        when: metrics (or `lines`, `rerun`: see `Run.has`) of which at least one must have been logged for it to be
            walked; none: always.
        passed: what is true of a run in which it finds nothing, such as `no NaN`.
        tree: name of the tree it comes from, if several were composed.
        check: whether it was made of a check.
    """

    id: str
    title: str
    entry: str
    when: tuple[str, ...] = ()
    passed: str = ""
    tree: str = ""
    check: bool = False

    @property
    def heading(self) -> str:
        """Its title, with its number if the document numbers it."""
        if self.id[:1].isdigit():
            return f"§{self.id} {self.title}"
        return self.title


@dataclass(frozen=True, slots=True)
class FactParams:
    """What a tree states of a fact: one value a walk, for all questions and causes that ask for it.

    Attributes:
        id: the fact's name.
        params: its parameters.
        advanced: those that only fine-tune a guard.
        literal: what `--literal` sets besides.
    """

    id: str
    params: Mapping[str, Param] = field(default_factory=dict)
    advanced: Mapping[str, Param] = field(default_factory=dict)
    literal: Mapping[str, Param] = field(default_factory=dict)


SHORT = 28  # characters: beside an id, an answer and a number in a line of 80
SHORT_CAUSE = 32  # a cause beside its fix, in a line of 80
SHORT_FIX = 26
BRIEF = "{brief}"  # the place in a headline
LEAF = "{leaf}"  # the place in the address of pages


@dataclass(frozen=True, slots=True)
class Question:
    """A turn of the walk.

    Attributes:
        id: the source document's id.
        section: id of its section.
        ask: the question.
        short: the question in at most `SHORT` characters, for a path that is shown in lines.
        why: why it matters.
        rule: the exact rule, with parameters in braces.
        test: name of the predicate; empty for a question to a person.
        params: what the tree sets of the predicate's parameters.
        advanced: those that only fine-tune a guard; `explain --full` shows them.
        literal: what `--literal` sets besides.
        like: id of a question or a cause whose parameters, and its facts', this one takes over where its predicate has
            the same.
        go: verdict -> id of the next question or leaf.
        person: how a person finds the answer where the data can't.
        words: other words that a person may answer with -> verdict.
        against: a person's verdict -> what in the log contradicts it, another question with its verdict (`O0=yes`).
        quick: row of the quick-reference table.
        see: cross-references.
        source: where the question comes from.
    """

    id: str
    section: str
    ask: str
    go: Mapping[str, str]
    short: str = ""
    why: str = ""
    rule: str = ""
    test: str = ""
    params: Mapping[str, Param] = field(default_factory=dict)
    advanced: Mapping[str, Param] = field(default_factory=dict)
    literal: Mapping[str, Param] = field(default_factory=dict)
    like: str = ""
    person: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    against: Mapping[str, str] = field(default_factory=dict)
    quick: Quick | None = None
    see: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class Leaf:
    """An end of the walk.

    Attributes:
        id: its name, also that of its fixture.
        of: the node of the document that it belongs to.
        title: the diagnosis in a few words.
        headline: the same with `{brief}` for what was seen in this run; used if the evidence has such words.
        severity: how bad it is.
        why: what the diagnosis means.
        causes: possible causes, likeliest first.
        fixes: what to do, in order.
        decide: what decides between causes with different fixes, where no cause says what to ask.
        restart: whether to advise a checkpoint to restart from.
        take: which checkpoint that is.
        events: the kinds of event that it describes, words of `EVENTS`: findings of one event are merged.
        lasting: whether it goes on to the end of the log: two lasting leaves of one kind are the same event.
        unjudged: whether the log leaves open how the run ended: without an alarm it is not judged then.
        escalate: the leaf to end at instead once the fixes of `of` were applied and failed.
        near: the leaf to end the path at instead where something came near to its limit.
        unproven: the leaf to end the path at instead where nothing shows that the run made progress.
        needs: questions that must have been answered for it to count as judged, as far as their section is walked.
        see: cross-references.
        source: where the leaf comes from.
        page: the address of a page on it, which findings link to; a tree's `pages` makes one for each of its leaves.
    """

    id: str
    of: str
    title: str
    severity: Severity
    headline: str = ""
    why: str = ""
    causes: tuple[Cause, ...] = ()
    fixes: tuple[str, ...] = ()
    decide: Decide | None = None
    restart: bool = False
    take: Take = Take.BEFORE
    events: tuple[str, ...] = ()
    lasting: bool = False
    unjudged: bool = False
    escalate: str = ""
    near: str = ""
    unproven: str = ""
    needs: tuple[str, ...] = ()
    see: tuple[str, ...] = ()
    source: str = ""
    page: str = ""


@dataclass(frozen=True, slots=True)
class Tree:
    """A decision tree; questions and leaves by id, in the order of the file.

    Attributes:
        version: what its file says; a shipped tree has that of stabtree.
        when: what must have been logged for a run to need the tree at all; none: every run does.
        uses: other trees that it refers to, and is composed with.
        entries: what no log can decide.
        facts: what it states of facts, by their names; of several trees the first one owns them.
        signatures: causes for leaves of any tree, put there by `compose`.
        tests: runs with the leaf that each must reach.
        pages: the address of a leaf's page, with `{leaf}` for its id; a leaf's own `page` overrides it.
        parts: the trees that it was composed of; empty for a single tree.
    """

    name: str
    title: str
    sections: tuple[Section, ...]
    questions: Mapping[str, Question]
    leaves: Mapping[str, Leaf]
    groups: Mapping[str, Group] = field(default_factory=dict)
    about: str = ""
    source: str = ""
    see: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    entries: Mapping[str, Entry] = field(default_factory=dict)
    facts: Mapping[str, FactParams] = field(default_factory=dict)
    signatures: tuple[Signature, ...] = ()
    tests: tuple[Case, ...] = ()
    pages: str = ""
    parts: tuple[Part, ...] = ()
    version: str = ""

    def title_of(self, id_: str) -> str:
        """Return the question or title of a node; empty if there is none of that id."""
        asked = self.questions.get(id_) or self.groups.get(id_)
        if asked:
            return asked.ask
        titled = self.leaves.get(id_) or self.entries.get(id_)
        return titled.title if titled else ""

    def section(self, id_: str) -> Section:
        """Return the section of an id."""
        return next(section for section in self.sections if section.id == id_)
