"""A decision tree as data. `treefile` builds it from YAML, `walk` goes through it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.predicates.registry import Param


class Severity(StrEnum):
    """How bad a finding is, mildest first."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """Place in the order, 0 for ok."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the tree with its own entry question; walked on its own after the path has ended.

    Attributes:
        id: what questions name it by.
        title: its heading.
        entry: id of its first question.
        when: metrics of which at least one must have been logged for it to be walked; none: always.
        tree: name of the tree it comes from, where several were put together.
    """

    id: str
    title: str
    entry: str
    when: tuple[str, ...] = ()
    tree: str = ""


@dataclass(frozen=True, slots=True)
class Quick:
    """The question's row in the quick-reference table.

    `threshold`, and `letter` for the document's letter where it differs, may name parameters in braces.
    """

    symptom: str
    threshold: str
    first: str
    letter: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A turn of the walk.

    Attributes:
        id: the source document's id.
        section: id of its section.
        ask: the question.
        why: why it matters.
        rule: the exact rule, with parameters in braces.
        test: name of the predicate; empty for a question to a person.
        params: what the tree sets of the predicate's parameters.
        literal: what `--literal` sets besides.
        like: id of a question whose parameters this one takes over where its predicate has the same.
        go: verdict -> id of the next question or leaf.
        person: how a person finds the answer where the data can't.
        words: other words that a person may answer with -> verdict.
        quick: row of the quick-reference table.
        see: cross-references.
        source: where the question comes from.
    """

    id: str
    section: str
    ask: str
    go: Mapping[str, str]
    why: str = ""
    rule: str = ""
    test: str = ""
    params: Mapping[str, Param] = field(default_factory=dict)
    literal: Mapping[str, Param] = field(default_factory=dict)
    like: str = ""
    person: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    quick: Quick | None = None
    see: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """A node of the source document that is no question but holds leaves, such as its lists of fixes."""

    id: str
    section: str
    ask: str
    why: str
    rule: str
    see: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class Cause:
    """A possible cause of a leaf; with a `test` it is confirmed, likely or ruled out from the log."""

    id: str
    text: str
    test: str = ""
    params: Mapping[str, Param] = field(default_factory=dict)
    like: str = ""
    fixes: tuple[str, ...] = ()
    see: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Leaf:
    """An end of the walk.

    Attributes:
        id: its name, also that of its fixture.
        of: the node of the document that it belongs to.
        title: the diagnosis in a few words.
        severity: how bad it is.
        why: what the diagnosis means.
        causes: possible causes, likeliest first.
        fixes: what to do, in order.
        restart: whether to advise a checkpoint to restart from.
        escalate: the leaf to end at instead once the fixes of `of` were applied and failed.
        needs: questions that must have been answered for this leaf to count as judged.
        see: cross-references.
        source: where the leaf comes from.
    """

    id: str
    of: str
    title: str
    severity: Severity
    why: str = ""
    causes: tuple[Cause, ...] = ()
    fixes: tuple[str, ...] = ()
    restart: bool = False
    escalate: str = ""
    needs: tuple[str, ...] = ()
    see: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class Tree:
    """A decision tree; questions and leaves by id, in the order of the file."""

    name: str
    title: str
    sections: tuple[Section, ...]
    questions: Mapping[str, Question]
    leaves: Mapping[str, Leaf]
    groups: Mapping[str, Group] = field(default_factory=dict)
    about: str = ""
    source: str = ""
    see: tuple[str, ...] = ()

    def section(self, id_: str) -> Section:
        """The section of an id."""
        return next(section for section in self.sections if section.id == id_)


def compose(trees: Sequence[Tree]) -> Tree:
    """One tree from several: the first one's path, then the sections of all in order.

    Raises:
        ValueError: where two of them use an id twice.
    """
    first = trees[0]
    parts = [
        (*tree.questions, *tree.leaves, *tree.groups, *(section.id for section in tree.sections)) for tree in trees
    ]
    ids = [id_ for part in parts for id_ in dict.fromkeys(part)]
    twice = sorted({id_ for id_ in ids if ids.count(id_) > 1})
    if twice:
        raise ValueError(f"{', '.join(twice[:3])}: used by more than one of {', '.join(tree.name for tree in trees)}")
    return replace(
        first,
        sections=tuple(replace(section, tree=tree.name) for tree in trees for section in tree.sections),
        questions={id_: node for tree in trees for id_, node in tree.questions.items()},
        leaves={id_: node for tree in trees for id_, node in tree.leaves.items()},
        groups={id_: node for tree in trees for id_, node in tree.groups.items()},
    )


def settings(tree: Tree, node: Question | Cause, *, literal: bool = False) -> dict[str, Param]:
    """The parameters that the tree sets for a question or a cause, inherited ones first.

    Inherited names that the node's own predicate does not have are left out by the caller.
    """
    found: dict[str, Param] = {}
    if node.like:
        found.update(settings(tree, tree.questions[node.like], literal=literal))
    found.update(node.params)
    if literal and isinstance(node, Question):
        found.update(node.literal)
    return found
