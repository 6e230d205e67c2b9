"""A decision tree as data: its types are the schema of tree files. `load` reads it, `diagnosis.walk` walks it."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - read when a file is converted
from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct

Param = int | float | bool | str  # as in `measures.registry`, which need not be imported to know what a severity is
SHORT = 28  # characters: beside an id, an answer and a number in a line of 80
BRIEF = "{brief}"  # the place in a headline
LEAF = "{leaf}"  # the place in the address of pages
NOTHING = "Nothing found"

Short = Annotated[str, Meta(max_length=SHORT)]

Kind = Literal[
    "nan",
    "divergence",
    "slow-divergence",
    "spike-recovered",
    "spike-persistent",
    "plateau-from-start",
    "stalled",
    "overfit",
    "collapse",
    "rl-collapse",
    "zero-loss",
    "fp16-collapse",
    "crash",
    "other",
    "unclear",
]
"""What a finding may be: the words of a leaf's `kind`, and of what a cause explains."""


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


class Node(Struct, frozen=True, forbid_unknown_fields=True):
    """What a tree file holds: a key that it does not have is a mistake."""


class Quick(Node, frozen=True):
    """The question's row in the quick-reference table.

    `threshold`, and `letter` for the document's letter where it differs, may name parameters in braces.
    """

    symptom: str
    threshold: str
    first: str
    letter: str = ""


class Group(Node, frozen=True):
    """A node of the source document that is no question but holds leaves, such as its lists of fixes."""

    id: str
    section: str
    ask: str
    why: str
    rule: str
    see: tuple[str, ...] = ()
    source: str = ""


class Entry(Node, frozen=True):
    """What a document describes and no log can decide.

    Attributes:
        id: the document's id.
        title: the entry in a few words.
        symptom: how it shows.
        cause: where it comes from.
        fixes: what to do, in order.
        probe: what settles it, in minutes.
        knob: the exact setting.
        see: cross-references.
        source: where it comes from.
    """

    id: str
    title: str
    symptom: str
    cause: str
    fixes: tuple[str, ...]
    source: str
    probe: str = ""
    knob: str = ""
    see: tuple[str, ...] = ()


class Case(Node, frozen=True):
    """A run that must end at a known leaf; `stabtree tree test` tries it.

    Attributes:
        run: its log, relative to the tree's file and within its folder.
        reaches: the leaf.
        answers: what a person would answer, by question.
    """

    run: str
    reaches: str
    answers: Mapping[str, str] = {}


class Part(Struct, frozen=True):
    """A tree that is part of a composition.

    Attributes:
        name: the tree's name.
        title: its title.
        when: what must have been logged for it to be loaded at all; none: always.
        loaded: whether it was.
    """

    name: str
    title: str
    when: tuple[str, ...] = ()
    loaded: bool = True


class Section(Node, frozen=True):
    """A part of the tree with its own entry question; walked on its own after the path has ended.

    Attributes:
        id: what questions name it by.
        title: its heading.
        entry: id of its first question.
        when: metrics (or `lines`, `rerun`: see `Run.has`) of which at least one must have been logged for it to be
            walked; none: always.
        passed: what is true of a run in which it finds nothing, such as `no NaN`.
        tree: name of the tree it comes from, set where several are composed.
    """

    id: str
    title: str
    entry: str
    when: tuple[str, ...] = ()
    passed: str = ""
    tree: str = ""

    @property
    def check(self) -> bool:
        """Whether it was made of a check, whose id it has."""
        return self.id == self.entry

    @property
    def heading(self) -> str:
        """Its title, with its number if the document numbers it."""
        return f"§{self.id} {self.title}" if self.id[:1].isdigit() else self.title


class FactParams(Node, frozen=True):
    """What a tree states of a fact: one value a walk, for all questions that ask for it.

    Attributes:
        id: the fact's name.
        params: its parameters.
        advanced: those that only fine-tune a guard.
        literal: what `--literal` sets besides.
    """

    id: str
    params: Mapping[str, Param] = {}
    advanced: Mapping[str, Param] = {}
    literal: Mapping[str, Param] = {}


class Question(Node, frozen=True):
    """A turn of the walk.

    Attributes:
        id: the source document's id.
        section: id of its section.
        ask: the question.
        short: the question in few characters, for a path that is shown in lines.
        why: why it matters.
        rule: the exact rule, with parameters in braces.
        test: name of the measure; empty for a question to a person.
        params: what the tree sets of the measure's parameters.
        advanced: those that only fine-tune a guard; `explain --full` shows them.
        literal: what `--literal` sets besides.
        like: id of a question whose parameters, and its facts', this one takes over where its measure has
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
    short: Short = ""
    why: str = ""
    rule: str = ""
    test: str = ""
    params: Mapping[str, Param] = {}
    advanced: Mapping[str, Param] = {}
    literal: Mapping[str, Param] = {}
    like: str = ""
    person: str = ""
    words: Mapping[str, str] = {}
    against: Mapping[str, str] = {}
    quick: Quick | None = None
    see: tuple[str, ...] = ()
    source: str = ""


class Leaf(Node, frozen=True):
    """An end of the walk.

    Attributes:
        id: its name, also that of its fixture.
        of: the node of the document that it belongs to.
        title: the diagnosis in a few words.
        headline: the same with `{brief}` for what was seen in this run; used if the evidence has such words.
        severity: how bad it is.
        why: what the diagnosis means.
        kind: what kind of finding it is; the causes that explain this kind are weighed.
        fix: what to do by its own document, where only that knows it; it comes before other actions.
        restart: whether to advise a checkpoint to restart from.
        take: which checkpoint that is.
        events: the kinds of event that it describes, words of `EVENTS`: findings of one event are merged.
        lasting: whether it goes on to the end of the log: two lasting leaves of one kind are the same event.
        unended: whether the log leaves open how the run ended: without an alarm it is not judged then.
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
    kind: Kind = "other"
    fix: str = ""
    restart: bool = False
    take: Take = Take.BEFORE
    events: tuple[str, ...] = ()
    lasting: bool = False
    unended: bool = False
    escalate: str = ""
    near: str = ""
    unproven: str = ""
    needs: tuple[str, ...] = ()
    see: tuple[str, ...] = ()
    source: str = ""
    page: str = ""


class Check(Node, frozen=True):
    """A question with the leaf that it ends at, whose attributes it has; `compose.expand_checks` splits it.

    Attributes:
        id: the question's id.
        leaf: the leaf's id, for any verdict but no and unknown.
        means: what it means.
        when: as in a section; without it the check applies to every run.
        section: the section that it belongs to, if it is asked on the way there; else it has its own.
        then: where the walk goes on for no and unknown; by default to the ok leaf of its tree.
        severities: verdict -> severity, for verdicts that are to end at a milder leaf (`<leaf>-<verdict>`).
        needed: whether a run that the check applies to counts as judged only with its answer.
    """

    id: str
    leaf: str
    ask: str
    title: str
    severity: Severity
    means: str
    source: str
    short: Short = ""
    headline: str = ""
    when: tuple[str, ...] = ()
    why: str = ""
    rule: str = ""
    test: str = ""
    params: Mapping[str, Param] = {}
    advanced: Mapping[str, Param] = {}
    like: str = ""
    person: str = ""
    kind: Kind = "other"
    fix: str = ""
    restart: bool = False
    take: Take = Take.BEFORE
    events: tuple[str, ...] = ()
    lasting: bool = False
    unended: bool = False
    see: tuple[str, ...] = ()
    section: str = ""
    then: str = ""
    severities: Mapping[str, Severity] = {}
    needed: bool = False


class TreeFile(Node, frozen=True, kw_only=True):
    """What a tree file holds.

    Attributes:
        when: what must have been logged for a run to need the tree at all; none: every run does.
        uses: other trees that it refers to, and is composed with.
        sections: the parts that are walked one after the other.
        questions: the turns of the walk.
        leaves: its ends.
        groups: nodes of the source document that only hold leaves.
        entries: what no log can decide.
        facts: what it states of facts; of several trees the first one owns them.
        checks: questions with their leaves in one.
        tests: runs with the leaf that each must reach.
        pages: the address of a leaf's page, with `{leaf}` for its id; a leaf's own `page` overrides it.
        version: what the file says of itself.
    """

    name: str
    title: str
    about: str = ""
    source: str = ""
    see: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    questions: tuple[Question, ...] = ()
    leaves: tuple[Leaf, ...] = ()
    groups: tuple[Group, ...] = ()
    entries: tuple[Entry, ...] = ()
    facts: tuple[FactParams, ...] = ()
    checks: tuple[Check, ...] = ()
    tests: tuple[Case, ...] = ()
    pages: str = ""
    version: str = ""


class Tree(Struct, frozen=True, eq=False):
    """A decision tree; questions and leaves by id, in the order of the file.

    Attributes:
        version: what its file says; a shipped tree has that of stabtree.
        facts: what it states of facts, by their names.
        parts: the trees that it was composed of; empty for a single tree.
    """

    name: str
    title: str
    sections: tuple[Section, ...]
    questions: Mapping[str, Question]
    leaves: Mapping[str, Leaf]
    groups: Mapping[str, Group] = {}
    about: str = ""
    source: str = ""
    see: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    entries: Mapping[str, Entry] = {}
    facts: Mapping[str, FactParams] = {}
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
