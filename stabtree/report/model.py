"""What a report says, in its order: the same for screen, page, Markdown and whatever else draws it."""

from __future__ import annotations

from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from stabtree.common.answer import UNKNOWN, YES
from stabtree.common.text import in_words
from stabtree.diagnosis.account import unexplained
from stabtree.diagnosis.act import how
from stabtree.diagnosis.missing import ENDING
from stabtree.measures.registry import any_floats
from stabtree.report.advice import Action, do_now
from stabtree.report.page import BADGES, Tick
from stabtree.report.rows import quoted
from stabtree.report.words import (
    at_step,
    badge,
    doubts,
    earlier,
    facts,
    headline,
    ignored_counts,
    ignored_problems,
    is_unasked,
    main_finding,
    monitor_sentences,
    other_half,
    plainly,
    restart_brief,
    ticks,
)
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis, Incident, JudgedCause, Visit
    from stabtree.report.rows import Quoted
    from stabtree.tree.model import Leaf

MAX_TO_DO = 3
FIX_OF_MISREAD = (
    "`stabtree inspect` shows which; write the log again with plain numbers in these places, and diagnose that."
)


class Walk(NamedTuple):
    """The questions of one walk, and where it ended."""

    groups: tuple[tuple[Visit, ...], ...]  # neighbouring ones for a person that nobody answered are one group
    ends: str  # the title of the leaf, in words that hold for the whole diagnosis
    leaf: Leaf


class Open(NamedTuple):
    """Something that was not checked."""

    text: str  # what to log, or why nothing to log would help
    unlocks: tuple[str, ...]  # ids of the questions and causes that it keeps open
    how: str = ""  # how to log it; empty where logging would not help
    decides: tuple[str, ...] = ()  # what it would settle about the findings


class Report:
    """What a report says of a diagnosis.

    Attributes:
        diagnosis: what it is a report of.
        badge: the verdict beside the headline: `ok` where all notes are of what healthy runs have.
        title: what was found, in a few words, the step before it.
        finding: the finding that the verdict rests on; None where there is none or the run was not judged.
        facts: the run in a line: steps, precision, optimizer, rate, file.
        quoted: the rows that show it; None where none do.
        plainly: where the series ends, or what to doubt about the finding; may be empty.
        why: what the finding means.
        meaning: the same after whether it is over and what followed.
        node: the node of the finding, as Q3.4; empty where there is none.
        causes: the causes to tell, likeliest first, and last one that the log speaks against.
        undecided: a sentence where the log does not tell the causes apart; else empty.
        log_next: what to log, since it would tell the causes apart; empty where nothing is wrong.
        how_to_log: how to log each of that.
        other_half: how the run ended or what state the model was in, whichever the title leaves out, after its word.
        earlier: what came before the finding and may have started it; may be empty.
        also: further findings, worst first; mere notes only where nothing worse was found.
        notes: how many notes are not among them.
        misread: how the log was misread, and what helps; empty where it was not.
        unexplained: what was logged and no question reads, in sentences: values that are not finite, lines not read.
        monitor: what the NaN monitor would have done, in sentences; empty where the loss is finite throughout.
        ticks: the numbered sections, and what became of each.
    """

    quoted: Quoted | None = None
    causes: tuple[JudgedCause, ...] = ()
    how_to_log: tuple[str, ...] = ()
    monitor: tuple[str, ...] = ()
    plainly = why = meaning = node = undecided = log_next = earlier = misread = ""
    _doubtful = False

    def __init__(self, diagnosis: Diagnosis, exit_code: int | None = None) -> None:
        run, finding = diagnosis.run, main_finding(diagnosis)
        self.diagnosis, self.finding, self.exit_code = diagnosis, finding, exit_code
        self.badge, self.title = badge(diagnosis), headline(diagnosis)
        self.other_half = other_half(diagnosis)
        with any_floats(run):
            self.facts, self.unexplained = facts(run), unexplained(run)
            if finding:
                self._tell(finding)
        least = Severity.WARNING
        if diagnosis.verdict == Severity.NOTE and not ignored_problems(diagnosis):
            least = Severity.NOTE  # notes are named only beside notes
        others = [item for item in diagnosis.findings if item is not finding]
        self.also = tuple(item for item in others if item.leaf.severity.rank >= least.rank)
        self.notes = len(others) - len(self.also)
        if diagnosis.misread:
            self.misread = f"{diagnosis.misread}. {FIX_OF_MISREAD}"
        if diagnosis.monitor is not None:
            self.monitor = tuple(monitor_sentences(diagnosis.monitor, run.unit))
        self.ticks = tuple(ticks(diagnosis))

    def _tell(self, finding: Incident) -> None:
        """Set what is said of a finding; without one it stays empty."""
        run, why = self.diagnosis.run, "show the cause"
        self.quoted, self.plainly = quoted(run, finding), plainly(run, finding)
        self.earlier, self._doubtful = earlier(self.diagnosis, finding), bool(doubts(run, finding))
        self.why, self.node, self.causes = finding.leaf.why, finding.leaf.of, finding.causes
        self.meaning = " ".join(filter(None, (self.plainly, self.why)))
        if finding.undecided:
            self.undecided, why = "The log does not tell the causes apart.", "tell the causes apart"
        if finding.is_alarm and finding.log_next:
            self.log_next = f"{in_words(list(finding.log_next))}, to {why}"
            self.how_to_log = tuple(map(how, finding.log_next))

    @property
    def log_notes(self) -> tuple[str, ...]:
        """Notes on the log: what is unexplained, unusual settings, then what reading it changed or assumed."""
        return (*self.unexplained, *self.diagnosis.setting_notes, *self.diagnosis.run.notes)

    @property
    def also_seen(self) -> str:
        """Other findings of the same event in a sentence; notes only of a note."""
        if self.finding is None:
            return ""
        least = min(self.finding.leaf.severity.rank, Severity.WARNING.rank)
        told = [item for item in self.finding.also if item.leaf.severity.rank >= least]
        return f"Also seen as: {', '.join(item.leaf.id + at_step(item) for item in told)}." if told else ""

    @cached_property
    def do_now(self) -> tuple[Action, ...]:
        """What to do, at most a few things; what else must be fixed comes before the last one."""
        finding = self.finding
        if finding is None:
            return ()
        actions = do_now(finding, doubtful=self._doubtful)
        for other in [item for item in self.also if self._must_be_fixed(item, finding)][:1]:
            for first in do_now(other)[:1]:
                if first.kind not in {action.kind for action in actions}:
                    title = other.leaf.title
                    text = f"Before the restart: {title[:1].lower()}{title[1:]}. {first.text}"
                    last = [action for action in actions[MAX_TO_DO - 1 :] if action.strong]  # a restart is always named
                    return (*actions[: MAX_TO_DO - 1 - len(last)], replace(first, text=text), *last)
        return actions

    @staticmethod
    def _must_be_fixed(other: Incident, finding: Incident) -> bool:
        """Whether a further finding is a crash or what it hides, or a critical one that began before the main one."""
        if other.leaf.id in {item.leaf.id for item in finding.consequences}:
            return False
        if ENDING in finding.leaf.events or ENDING in other.leaf.events:
            return True
        begun, onset = other.onset_step, finding.onset_step
        return begun is not None and onset is not None and begun < onset and other.leaf.severity is Severity.CRITICAL

    @cached_property
    def walks(self) -> tuple[Walk, ...]:
        """The path, and the walk that the verdict rests on where that is another."""
        diagnosis, finding = self.diagnosis, self.finding
        path = self._walk(diagnosis.path, diagnosis.end)
        if finding is None or finding.leaf is diagnosis.end:
            return (path,)
        walks = [visits for visits in diagnosis.further if visits and visits[-1].question.section == finding.section]
        # A walk from a person's answer shares its section with another one.
        visits = next((visits for visits in walks if finding.leaf.id in visits[-1].question.go.values()), walks[0])
        return path, self._walk(visits, finding.leaf)

    def _walk(self, visits: tuple[Visit, ...], end: Leaf) -> Walk:
        ends, diagnosis = end.title, self.diagnosis
        blind = any(visit.question.id in end.needs and visit.answer.verdict == UNKNOWN for visit in visits)
        if end.severity is Severity.OK:
            if diagnosis.verdict == UNKNOWN or blind:
                ends = "nothing wrong in the little that could be checked"
            elif diagnosis.findings and diagnosis.findings[0].leaf.severity.rank > 1:
                ends = f"nothing wrong on this path; found on another one: {diagnosis.findings[0].leaf.title}"
        groups: list[tuple[Visit, ...]] = []
        for unasked, group in groupby(visits, key=is_unasked):
            alike = tuple(group)
            groups += [alike] if unasked else zip(alike)
        return Walk(tuple(groups), ends, end)

    @cached_property
    def open(self) -> tuple[Open, ...]:
        """What was not checked: first what keeps the run from a verdict and can't be logged, then what to log."""
        vital = {miss.id for miss in self.diagnosis.lacking}
        by_reason: dict[str, list[str]] = {}
        for miss in sorted(self.diagnosis.missing, key=lambda miss: miss.id not in vital):
            if not miss.metrics:
                reason = f"nothing to log would help: {miss.reason}"
                if not self.diagnosis.tree.questions[miss.id].test:
                    reason = f"{miss.reason}; --interactive asks it, --answer ID=WORD answers it"
                by_reason.setdefault(reason, []).append(miss.id)
        reasons = [Open(reason, tuple(ids)) for reason, ids in by_reason.items()]
        log = [Open(in_words(item.names), item.unlocks, item.log, item.decides) for item in self.diagnosis.log_next]
        first = [item for item in reasons if not vital.isdisjoint(item.unlocks)]
        rest = filter(lambda item: item not in first, reasons)
        return (*first, *log, *rest)

    @property
    def passed(self) -> str:
        """What the numbered sections did not find, as `No NaN, no spike`; may be empty."""
        sections = [self.diagnosis.tree.section(id_) for id_, tick in self.ticks if tick is Tick.PASSED]
        found = {visit.question.id for visit in self.diagnosis.path if visit.answer.verdict == YES}
        text = ", ".join(section.passed for section in sections if section.passed and section.entry not in found)
        return text[:1].upper() + text[1:]

    @property
    def unjudged(self) -> str:
        """Which numbered sections were not judged, and what to log for it; may be empty."""
        lacking = {miss.id: ", ".join(miss.metrics) for miss in self.diagnosis.missing}
        texts = []
        for section in (self.diagnosis.tree.section(id_) for id_, tick in self.ticks if tick is Tick.OPEN):
            texts.append(f"{section.title.lower().replace('nan', 'NaN')} not judged")
            if names := lacking.get(section.entry):
                texts[-1] += f": log {names}"
        return "; ".join(texts)

    @property
    def closing(self) -> str:
        """The last line: verdict, leaf, step, restart, exit code."""
        parts, finding = [BADGES[self.badge].word.lower()], self.finding
        if finding:
            parts[0] += f": {finding.leaf.id}{at_step(finding)}"
        if finding and (restart := restart_brief(finding)):
            parts.append(restart)
        if self.diagnosis.ignored:
            parts.append(ignored_counts(self.diagnosis))
        if self.exit_code is not None:
            parts.append(f"exit {self.exit_code}")
        return " · ".join(parts)
