"""What questions and leaves of a tree hold or have beside them: causes, entries, tests, the trees it is made of."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.facts.registry import Param


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


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the log shows where a cause holds.

    Attributes:
        clue: the name of the clue.
        when: the condition that it meets, as `"> 20"` or `fp16, bf16`.
        weight: how many times likelier that is with this cause than with another one; where the log shows the contrary,
            the cause is less likely by the same factor.
        source: where the weight comes from: labelled runs, or the document.
    """

    clue: str
    when: str
    weight: float
    source: str


@dataclass(frozen=True, slots=True)
class Decide:
    """One thing to find out that decides what to do.

    Attributes:
        ask: the question, or the trial to run.
        branches: what may come out of it -> what to do then.
    """

    ask: str
    branches: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Cause:
    """A possible cause, which a `test` looks for; a `quiet` one is reported only if something speaks for it.

    Attributes:
        short: the cause in at most `SHORT_CAUSE` characters, for a line that it shares with its fix.
        short_fix: its first fix in at most `SHORT_FIX` characters, for the same line.
        holds: what it needs, as `{precision: [fp16]}`: it is left out if the run is known to be another, and only
            possible if that is not known. The words are those of `stabtree.context.conditions`.
        proof: whether a yes of its test proves it; else it makes it likely.
        moves: the series that it moves first, as `weight_norm`: if that left its course before the trouble and before
            all others, the cause is likely and comes first; if it followed, the cause is possible at most. Without a
            test the cause is reported only for the first mover, if no tested cause explains that.
        usual: which runs often or rarely have it, as `{rare: [any], often: [resumed]}`.
        expects: the clues that speak for it, each with the condition that it meets and how much it weighs.
        refuted_by: clue -> the condition under which the cause is ruled out and not reported.
        ask: a yes-or-no question that a person can answer at once and that decides whether it is the cause.
    """

    id: str
    text: str
    test: str = ""
    params: Mapping[str, Param] = field(default_factory=dict)
    advanced: Mapping[str, Param] = field(default_factory=dict)
    like: str = ""
    short: str = ""
    short_fix: str = ""
    fixes: tuple[str, ...] = ()
    see: tuple[str, ...] = ()
    quiet: bool = False
    holds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    proof: bool = True
    moves: str = ""
    usual: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    expects: tuple[Expectation, ...] = ()
    refuted_by: Mapping[str, str] = field(default_factory=dict)
    ask: str = ""
    sound: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature(Cause):
    """A cause that is added to leaves of any composed tree; it never raises an alarm by itself.

    Attributes:
        of: the leaves.
        source: where the cause comes from.
        example: a run that had it.
    """

    of: tuple[str, ...]
    source: str
    example: str = ""
