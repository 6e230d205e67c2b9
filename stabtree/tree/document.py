"""What a tree has besides questions and leaves: parts of its document, tests, and the trees it is composed of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


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
class Entry:
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


@dataclass(frozen=True, slots=True)
class Case:
    """A run that must end at a known leaf; `stabtree tree test` tries it.

    Attributes:
        run: its log, relative to the tree's file and within its folder.
        reaches: the leaf.
        answers: what a person would answer, by question.
    """

    run: str
    reaches: str
    answers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Part:
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
