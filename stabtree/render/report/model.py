"""A report as data: what stands in it, in its order, for every renderer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.result import Diagnosis, Finding, Happening, JudgedCause


class Tick(StrEnum):
    """What became of a section of the tree."""

    PASSED = "passed"
    FOUND = "found"
    OPEN = "open"  # it applies, and its entry question has no answer
    SKIPPED = "skipped"  # it does not apply to this run


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do now.

    Attributes:
        text: what to do, with this run's numbers.
        reason: what in the log speaks for it; empty where nothing does more than for the finding itself.
        strong: the part of the text that matters most, such as `the checkpoint of step 600`; empty where none does.
        fix: the fix of the finding that it is, of which the text may leave out what was said; empty for the restart.
    """

    text: str
    reason: str = ""
    strong: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class CauseRow:
    """A cause beside what mends it.

    Attributes:
        judged: the cause with what the log says of it.
        why: what was seen, or what lacks; empty where there is nothing to say.
        mends: its own fixes, filled with this run's numbers.
    """

    judged: JudgedCause
    why: str
    mends: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """One question of the path.

    Attributes:
        id: the question's id.
        section: the id of its section.
        short: the question in at most 28 characters.
        ask: the question.
        answer: the answer as a word, `not checked` where it has none.
        number: the evidence that decided it, in a few words; the reason where there is no answer.
        evidence: all of it.
        checked: whether it has an answer.
        by_person: whether a person gave it.
    """

    id: str
    section: str
    short: str
    ask: str
    answer: str
    number: str
    evidence: tuple[str, ...]
    checked: bool
    by_person: bool = False


@dataclass(frozen=True, slots=True)
class Walk:
    """The turns of one walk, and where it ended.

    Attributes:
        turns: its questions.
        ends: the title of the leaf, in words that hold for the whole diagnosis.
        node: the node of the leaf, as Q3.4.
        leaf: its id.
    """

    turns: tuple[Turn, ...]
    ends: str
    node: str
    leaf: str


@dataclass(frozen=True, slots=True)
class Open:
    """Something that was not checked.

    Attributes:
        text: what to log, or why nothing to log would help.
        unlocks: ids of the questions and causes that it keeps open.
        how: how to log it; empty where that is no matter of logging.
        decides: what of the findings it would settle.
    """

    text: str
    unlocks: tuple[str, ...]
    how: str = ""
    decides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """What a report says.

    Attributes:
        diagnosis: what it is a report of.
        verdict: `ok`, `note`, `warning`, `critical` or `unknown`.
        badge: the verdict that the headline wears: `ok` where the notes are of what healthy runs have.
        title: what was found, in a few words, the step before it.
        finding: the finding that the verdict rests on; None where there is none or the run was not judged.
        facts: the run in a line: steps, precision, optimizer, rate, file.
        why: what the finding means.
        earlier: what came before the finding and may be what it began with; empty where nothing did.
        plainly: whether the trouble is over, or what to doubt of the finding; empty where there is no more to say.
        careful: what was misread of the log; empty where nothing was.
        seen_as: what else tells of the same event, and where.
        do_now: what to do, at most a few.
        events: what happened around the onset, in order.
        causes: causes beside what mends them, strongest first.
        walks: the path, and the walk that the verdict rests on where that is another.
        also: further findings, worst first; mere notes only where nothing worse was found.
        notes: how many notes are not among them.
        open: what was not checked, the most useful first.
        ticks: the numbered sections, and what became of each.
        closing: the last line: verdict, leaf, step, restart, exit code.
    """

    diagnosis: Diagnosis
    verdict: str
    badge: str
    title: str
    finding: Finding | None
    facts: str
    why: str
    earlier: str
    plainly: str
    careful: str
    seen_as: tuple[str, ...]
    do_now: tuple[Action, ...]
    events: Sequence[Happening]
    causes: tuple[CauseRow, ...]
    walks: tuple[Walk, ...]
    also: tuple[Finding, ...]
    notes: int
    open: tuple[Open, ...]
    ticks: tuple[tuple[str, Tick], ...]
    closing: str
