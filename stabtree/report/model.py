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
    unchecked,
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
        verdict: `ok`, `note`, `warning`, `critical` or `unknown`.
        badge: the verdict beside the headline: `ok` where all notes are of what healthy runs have.
        title: what was found, in a few words, the step before it.
        finding: the finding that the verdict rests on; None where there is none or the run was not judged.
        facts: the run in a line: steps, precision, optimizer, rate, file.
        quoted: the rows that show it; None where none do.
        plainly: whether the trouble is over, or what to doubt about the finding; may be empty.
        other_half: how the run ended or what state the model was in, whichever the title leaves out, after its word.
        earlier: what came before the finding and may have started it; may be empty.
        also: further findings, worst first; mere notes only where nothing worse was found.
        notes: how many notes are not among them.
        events: what happened around the onset, by step.
        unexplained: what was logged and no question reads, in sentences: values that are not finite, lines not read.
        unchecked: how many questions have no answer; empty where all have one.
        monitor: what the NaN monitor would have done, in sentences; empty where the loss is finite throughout.
        ticks: the numbered sections, and what became of each.
    """

    def __init__(self, diagnosis: Diagnosis, exit_code: int | None = None) -> None:
        run, finding = diagnosis.run, main_finding(diagnosis)
        self.diagnosis, self.finding, self.exit_code = diagnosis, finding, exit_code
        self.verdict, self.badge, self.title = str(diagnosis.verdict), badge(diagnosis), headline(diagnosis)
        self.other_half = other_half(diagnosis)
        self.quoted: Quoted | None = None
        self.plainly, self.earlier, self._doubtful = "", "", False
        with any_floats(run):
            self.facts, self.unexplained = facts(run), unexplained(run)
            if finding:
                self.quoted, self.plainly = quoted(run, finding), plainly(run, finding)
                self.earlier, self._doubtful = earlier(diagnosis, finding), bool(doubts(run, finding))
        # Notes are named only beside notes.
        notes_count = diagnosis.verdict == Severity.NOTE and not ignored_problems(diagnosis)
        least = Severity.NOTE if notes_count else Severity.WARNING
        others = [item for item in diagnosis.findings if item is not finding]
        self.also = tuple(item for item in others if item.leaf.severity.rank >= least.rank)
        self.notes = len(others) - len(self.also)
        self.events, self.unchecked = diagnosis.timeline, unchecked(diagnosis)
        monitor = diagnosis.monitor
        self.monitor = tuple(monitor_sentences(monitor, run.unit)) if monitor is not None else ()
        self.ticks = tuple(ticks(diagnosis))

    @property
    def why(self) -> str:
        """What the finding means."""
        return self.finding.leaf.why if self.finding else ""

    @property
    def meaning(self) -> str:
        """What the finding means, after whether it is over and what followed."""
        return " ".join(filter(None, (self.plainly, self.why)))

    @property
    def node(self) -> str:
        """The node of the finding, as Q3.4; empty where there is no finding."""
        return self.finding.leaf.of if self.finding else ""

    @property
    def misread(self) -> str:
        """How the log was misread, and what helps; empty where it was not."""
        return f"{self.diagnosis.misread}. {FIX_OF_MISREAD}" if self.diagnosis.misread else ""

    @property
    def careful(self) -> str:
        """The word before what was misread; none where the title says it."""
        return "" if self.verdict == UNKNOWN else "Careful: "

    @property
    def log_notes(self) -> tuple[str, ...]:
        """Notes on the log: what is unexplained, unusual settings, then what reading it changed or assumed."""
        return (*self.unexplained, *self.diagnosis.setting_notes, *self.diagnosis.run.notes)

    @property
    def also_seen(self) -> str:
        """Other findings that show the event in other series, or date it, in a sentence; notes only of a note."""
        finding = self.finding
        if finding is None:
            return ""
        min_rank = min(finding.leaf.severity.rank, Severity.WARNING.rank)
        series = {item.metric for item in finding.parts[0].evidence}
        moved, seen = finding.own_onset_step != finding.onset_step, []
        for item in finding.also:
            dates = moved and item.onset_step == finding.onset_step
            elsewhere = not {own.metric for own in item.evidence} <= series
            if item.leaf.severity.rank >= min_rank and (dates or elsewhere):
                seen.append(f"{item.leaf.id}{at_step(item)}")
        return f"Also seen as: {', '.join(seen)}." if seen else ""

    @cached_property
    def do_now(self) -> tuple[Action, ...]:
        """What to do, at most a few things; what else must be fixed comes before the last one."""
        finding = self.finding
        if finding is None:
            return ()
        actions = do_now(finding, doubtful=self._doubtful)
        second = next((item for item in self.also if self._must_be_fixed(item, finding)), None)
        first = do_now(second)[:1] if second else ()
        if second is None or not first or first[0].kind in {action.kind for action in actions}:
            return actions
        title = second.leaf.title
        also = replace(first[0], text=f"Before the restart: {title[:1].lower()}{title[1:]}. {first[0].text}")
        kept = actions[: MAX_TO_DO - 1]
        last = [action for action in actions[MAX_TO_DO - 1 :] if action.strong]  # a restart is always named
        return (*kept[: len(kept) - len(last)], also, *last)

    @staticmethod
    def _must_be_fixed(other: Incident, finding: Incident) -> bool:
        """Whether a further finding is a crash or what it hides, or a critical one that began before the main one."""
        if other.leaf.id in {item.leaf.id for item in finding.consequences}:
            return False
        begun, onset = other.onset_step, finding.onset_step
        was_first = begun is not None and onset is not None and begun < onset
        crashed = ENDING in finding.leaf.events or ENDING in other.leaf.events
        return crashed or (was_first and other.leaf.severity is Severity.CRITICAL)

    @property
    def causes(self) -> tuple[JudgedCause, ...]:
        """The causes to tell, likeliest first, and last one that the log speaks against."""
        return self.finding.causes if self.finding else ()

    @property
    def undecided(self) -> str:
        """A sentence where the log does not tell the causes apart; else empty."""
        if self.finding is None or not self.finding.undecided:
            return ""
        return "The log does not tell the causes apart."

    @property
    def log_next(self) -> str:
        """What to log, since it would tell the causes apart; empty where nothing is wrong."""
        names = self.finding.log_next if self.finding and self.finding.is_alarm else ()
        if not names:
            return ""
        why = "tell the causes apart" if self.finding and self.finding.undecided else "show the cause"
        return f"{in_words(list(names))}, to {why}"

    @property
    def how_to_log(self) -> tuple[str, ...]:
        """How to log each of that."""
        return tuple(how(name) for name in (self.finding.log_next if self.finding and self.log_next else ()))

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
            names = lacking.get(section.entry, "")
            text = f"{section.title.lower().replace('nan', 'NaN')} not judged"
            texts.append(f"{text}: log {names}" if names else text)
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
