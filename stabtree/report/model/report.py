"""A report as data: what it says, in its order, for every renderer."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common.answer import UNKNOWN
from stabtree.common.dataclass import dataclass
from stabtree.diagnosis.judged import SILENT, CauseState
from stabtree.report.verdicts import Tick

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.judged import Happening, JudgedCause
    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.report.model.quoted import Quoted

MAX_CAUSES = 3


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do now.

    Attributes:
        text: what to do, with this run's numbers.
        reason: what in the log supports it; empty where only the finding itself does.
        strong: the part of the text that matters most, such as `the checkpoint of step 600`; may be empty.
        fix: the fix of the finding; empty for the restart.
        branches: where the text is a question, what may come out of it, each with what to do then.
    """

    text: str
    reason: str = ""
    strong: str = ""
    fix: str = ""
    branches: tuple[tuple[str, str], ...] = ()

    def parts(self) -> tuple[str, str, str]:
        """Return the text before, in and after its strong part."""
        if self.strong:
            return self.text.partition(self.strong)
        return self.text, "", ""


@dataclass(frozen=True, slots=True)
class CauseRow:
    """A cause beside its fixes.

    Attributes:
        judged: the cause with what the log says of it.
        why: what was seen, or what is missing; may be empty.
        fixes: its own fixes, filled with this run's numbers.
    """

    judged: JudgedCause
    why: str
    fixes: tuple[str, ...]

    @property
    def state(self) -> CauseState:
        """What the log says of the cause."""
        return self.judged.state

    @property
    def word(self) -> str:
        """The state as a person reads it: what no log could test is possible."""
        return str(CauseState.POSSIBLE if self.state is CauseState.NOT_CHECKABLE else self.state)

    @property
    def silent(self) -> bool:
        """Whether nothing in the log supports it."""
        return self.judged.state in SILENT


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
        source: ` (answered by a person)`; empty where the log gave the answer.
    """

    id: str
    section: str
    short: str
    ask: str
    answer: str
    number: str
    evidence: tuple[str, ...]
    checked: bool
    source: str = ""


@dataclass(frozen=True, slots=True)
class Walk:
    """The turns of one walk, and where it ended.

    Attributes:
        groups: its questions; neighbouring ones for a person that nobody answered are one group.
        ends: the title of the leaf, in words that hold for the whole diagnosis.
        node: the node of the leaf, as Q3.4.
        leaf: its id.
    """

    groups: tuple[tuple[Turn, ...], ...]
    ends: str
    node: str
    leaf: str

    @property
    def turns(self) -> list[Turn]:
        """Its questions, one by one."""
        return list(chain.from_iterable(self.groups))


@dataclass(frozen=True, slots=True)
class Open:
    """Something that was not checked.

    Attributes:
        text: what to log, or why nothing to log would help.
        unlocks: ids of the questions and causes that it keeps open.
        how: how to log it; empty where logging would not help.
        decides: what it would settle about the findings.
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
        badge: the verdict beside the headline: `ok` where all notes are of what healthy runs have.
        title: what was found, in a few words, the step before it.
        finding: the finding that the verdict rests on; None where there is none or the run was not judged.
        facts: the run in a line: steps, precision, optimizer, rate, file.
        why: what the finding means.
        quoted: the rows that show it; None where none do.
        earlier: what came before the finding and may have started it; may be empty.
        plainly: whether the trouble is over, or what to doubt about the finding; may be empty.
        misread: what was misread of the log and what to do about it; may be empty.
        seen_as: other findings of the same event, and where.
        do_now: what to do, at most a few things.
        events: what happened around the onset, by step.
        causes: causes beside their fixes, strongest first.
        walks: the path, and the walk that the verdict rests on where that is another.
        also: further findings, worst first; mere notes only where nothing worse was found.
        notes: how many notes are not among them.
        unexplained: what was logged and no question reads, in sentences: values that are not finite, lines not read.
        unchecked: how many questions have no answer; empty where all have one.
        log_next: what to log to decide between the causes that are shown; empty where nothing would.
        open: what was not checked, the most useful first.
        monitor: what the NaN monitor would have done, in sentences.
        ticks: the numbered sections, and what became of each.
        closing: the last line: verdict, leaf, step, restart, exit code.
    """

    diagnosis: Diagnosis
    verdict: str
    badge: str
    title: str
    finding: Incident | None
    facts: str
    why: str
    quoted: Quoted | None
    earlier: str
    plainly: str
    misread: str
    seen_as: tuple[str, ...]
    do_now: tuple[Action, ...]
    events: Sequence[Happening]
    causes: tuple[CauseRow, ...]
    walks: tuple[Walk, ...]
    also: tuple[Incident, ...]
    notes: int
    unexplained: tuple[str, ...]
    unchecked: str
    log_next: str
    open: tuple[Open, ...]
    monitor: tuple[str, ...]
    ticks: tuple[tuple[str, Tick], ...]
    closing: str

    @property
    def log_notes(self) -> tuple[str, ...]:
        """Notes on the log: what is unexplained, unusual settings, then what reading it changed or assumed."""
        return (*self.unexplained, *self.diagnosis.setting_notes, *self.diagnosis.run.notes)

    @property
    def shown_causes(self) -> tuple[CauseRow, ...]:
        """The strongest causes, without those that nothing speaks for though they were tested."""
        return tuple(row for row in self.causes if not row.silent)[:MAX_CAUSES]

    @property
    def passed(self) -> str:
        """What the numbered sections did not find, as `No NaN, no spike`; may be empty."""
        sections = [self.diagnosis.tree.section(id_) for id_, tick in self.ticks if tick is Tick.PASSED]
        text = ", ".join(section.passed for section in sections if section.passed)
        return text[:1].upper() + text[1:]

    @property
    def unjudged(self) -> str:
        """Which numbered sections were not judged, and what to log for it; may be empty."""
        lacking = {miss.id: ", ".join(miss.metrics) for miss in self.diagnosis.missing}
        texts = []
        for section in (self.diagnosis.tree.section(id_) for id_, tick in self.ticks if tick is Tick.OPEN):
            text = f"{section.title.lower().replace('nan', 'NaN')} not judged"
            names = lacking.get(section.entry, "")
            if names:
                text += f": log {names}"
            texts.append(text)
        return "; ".join(texts)

    @property
    def meaning(self) -> str:
        """What the finding means, after whether it is over and what followed."""
        return " ".join(filter(None, (self.plainly, self.why)))

    @property
    def careful(self) -> str:
        """The word before what was misread; none where the title says it."""
        if self.verdict == UNKNOWN:
            return ""
        return "Careful: "

    @property
    def also_seen(self) -> str:
        """Other findings of the same event, in a sentence; may be empty."""
        if self.seen_as:
            return f"Also seen as: {', '.join(self.seen_as)}."
        return ""

    @property
    def node(self) -> str:
        """The node of the finding, as Q3.4; empty where there is no finding."""
        if self.finding:
            return self.finding.leaf.of
        return ""
