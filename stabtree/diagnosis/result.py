"""What a diagnosis consists of: the course of the walk, what was found, what is near a limit or ignored."""

from __future__ import annotations

import math
from enum import StrEnum
from importlib import import_module
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.answer import NO, UNKNOWN
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, near
from stabtree.run import CONFIG
from stabtree.tree.shipped import calibrations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stabtree.common.answer import Answer, Evidence
    from stabtree.common.faults import Fault
    from stabtree.diagnosis.restart import Restart
    from stabtree.measures.batches import Replay
    from stabtree.measures.registry import Param
    from stabtree.run import Run
    from stabtree.tree.model import Leaf, Question, Section, Severity, Tree
    from stabtree.tree.tables import Cause


class Incident(Struct, frozen=True):
    """One event of a run, from the last good step on; all that is said of it anywhere is read from here.

    Attributes:
        leaf: the leaf that names it.
        section: the id of the section whose walk ended there.
        onset_step: the first bad step.
        last_good_step: the last logged step at which everything was still at its level.
        evidence: what the questions on the way saw.
        causes: the causes that are told, the likeliest first, one that is out last.
        undecided: whether the log does not tell its causes apart.
        actions: what to do, the most helpful first.
        log_next: the series that would tell the causes apart, and were not logged.
        restart: where to restart, for leaves that call for it.
        precursors: what had left its normal course before the onset, with its lead.
        seen_as: if several leaves describe one event, what each found by itself, the own leaf's first.
        consequences: the incidents that followed from this one.
        departures: what moved around the onset, by step.
        rows: the rows that show it.
        open: whether it lasts to the end of the log.
        share: which share of the run it covers, if it lasts to its end.
        storm: whether the loss went NaN.
        by_levels: whether its onset is that of a level and not of a row.
        turns: whether its onset is the best row before it, which is sound itself.
        p: how likely an engineer would call this run faulty in this way; None where that was not fitted.
        unit: what the steps count: `step`, or `row` where the log holds none.
        accepted: why it does not count, if it is known and accepted; else None.
    """

    leaf: Leaf
    section: str
    onset_step: int | None
    last_good_step: int | None
    evidence: tuple[Evidence, ...]
    causes: tuple[JudgedCause, ...] = ()
    undecided: bool = False
    actions: tuple[Advice, ...] = ()
    log_next: tuple[str, ...] = ()
    restart: Restart | None = None
    precursors: Sequence[Evidence] = ()
    seen_as: tuple[Incident, ...] = ()
    consequences: tuple[Incident, ...] = ()
    departures: Sequence[Happening] = ()
    rows: tuple[QuotedRow, ...] = ()
    open: bool = True
    share: float = 0.0
    storm: bool = False
    by_levels: bool = False
    turns: bool = False
    p: float | None = None
    unit: str = "step"
    accepted: Accepted | None = None

    def __repr__(self) -> str:
        at = "" if self.onset_step is None else f" at {self.unit} {self.onset_step:,}"
        return f"Incident({self.leaf.id!r}: {self.severity}{at}, {self.leaf.title})\n  {self.restart or 'no restart'}"

    @property
    def is_alarm(self) -> bool:
        """Whether it is more than a note."""
        return self.leaf.severity.is_alarm

    @property
    def severity(self) -> Severity:
        """How bad it is, with all that followed from it."""
        return max((item.leaf.severity for item in (self, *self.consequences)), key=lambda severity: severity.rank)

    @property
    def also(self) -> tuple[Incident, ...]:
        """What other leaves found of the same event."""
        return self.seen_as[1:]

    @property
    def parts(self) -> tuple[Incident, ...]:
        """What each leaf found by itself."""
        return self.seen_as or (self,)

    @property
    def own_onset_step(self) -> int | None:
        """The onset of its own leaf; the event may have begun earlier."""
        return self.parts[0].onset_step

    @property
    def metric(self) -> str:
        """The series that shows it."""
        return next((item.metric for item in self.evidence if item.metric), "loss")


class Diagnosis(Struct, frozen=True):
    """The result.

    Attributes:
        run: the run.
        tree: the tree that was walked.
        path: the document's own walk, up to its first leaf.
        end: that leaf.
        further: visits of the later sections, walked so that one failure does not hide another.
        sections: every section of the tree, and why it was walked or not.
        trees: the trees that the sections come from, and what of each was walked.
        findings: what was found, worst first, one for each event.
        missing: what could not be checked, of all that applies to the run.
        log_next: what to log next time, the most useful first.
        lacking: those of them without which nothing can be called ok.
        verdict: `ok`, `note`, `warning`, `critical`, or `unknown` when what must be judged was not.
        setting_notes: what of its configuration may make the run fail, where the log shows no failure.
        answer_notes: notes on a person's answers: those that the log contradicts, and those that were not needed.
        misread: why the values that were read are not those of the run; empty if they are.
        near: what came near to an alarm without reaching it, likeliest first.
        monitor: what the NaN monitor would have done; None if the loss is finite throughout.
        literal: whether the document's rules were applied literally.
        overrides: what was set of the tree's parameters, by node.
        ignored: findings that are ignored or accepted and do not count, worst first.
        acceptance_notes: notes on accepted findings that no longer occur, or occur otherwise.
        faults: what failed while it was made; each is a note of the run too.
    """

    run: Run
    tree: Tree
    path: tuple[Visit, ...]
    end: Leaf
    further: tuple[tuple[Visit, ...], ...]
    sections: tuple[Walked, ...]
    trees: tuple[WalkedTree, ...]
    findings: tuple[Incident, ...]
    missing: tuple[Missing, ...]
    log_next: Sequence[LogNext]
    lacking: tuple[Missing, ...]
    verdict: str
    answer_notes: tuple[str, ...]
    misread: str
    monitor: Replay | None
    near: tuple[Near, ...] = ()
    setting_notes: tuple[str, ...] = ()
    literal: bool = False
    overrides: Mapping[str, Mapping[str, Param]] = field(default_factory=dict)
    ignored: tuple[Incident, ...] = ()
    acceptance_notes: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()

    def __repr__(self) -> str:
        found = ", ".join(finding.leaf.id for finding in self.findings) or "nothing found"
        return f"Diagnosis({self.run.name!r}: {self.verdict}, {found})"

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as plain values, as `--json` writes them."""
        return dict(_rendered("json", "to_dict")(self))

    def to_text(self) -> str:
        """Return the diagnosis on one screen, as the command line prints it."""
        return str(_rendered("screen", "screen")(self))

    def _repr_html_(self) -> str:
        """Return a card of a few kilobytes, as a notebook shows it."""
        return str(_rendered("card", "of_run")(self))

    __str__ = to_text

    @property
    def timeline(self) -> Sequence[Happening]:
        """What happened around the onset of the worst finding, by step."""
        return self.findings[0].departures if self.findings else ()

    @property
    def before_run(self) -> bool:
        """Whether it judges a configuration alone, before its run."""
        return CONFIG in self.tree.when

    @property
    def reached(self) -> tuple[Incident, ...]:
        """All findings of leaves that are not ok, each followed by the others of its event."""
        return tuple(chain.from_iterable((finding, *finding.also) for finding in self.findings))

    @property
    def answered(self) -> tuple[Section, ...]:
        """The sections whose entry question has an answer; checks of one question are left out."""
        visits = chain(self.path, *self.further)
        known = {visit.question.id for visit in visits if visit.answer.verdict != UNKNOWN}
        sections = (item.section for item in self.sections)
        return tuple(section for section in sections if section.entry in known and not section.check)

    @property
    def judged(self) -> int:
        """How many questions have an answer."""
        visits = {visit.question.id: visit for visit in chain(self.path, *self.further)}
        return sum(visit.answer.verdict != UNKNOWN for visit in visits.values())

    @property
    def partial(self) -> bool:
        """Whether the run was not judged as a whole, and nothing is wrong in the sections that were."""
        return self.verdict == UNKNOWN and not self.misread and not self.faults and bool(self.answered)

    @property
    def unended(self) -> Incident | None:
        """The finding that leaves open how the run ended; None where nothing does."""
        return next((finding for finding in self.findings if finding.leaf.unended), None)


def _rendered(module: str, name: str) -> Any:
    """Import a function of `stabtree.report` only when it is needed: results know nothing of how they look."""
    return getattr(import_module(f"stabtree.report.{module}"), name)


def worst_severity(incidents: Iterable[Incident]) -> Severity:
    """Return the severity of the worst of some incidents, at least one."""
    return max((item.severity for item in incidents), key=attrgetter("rank"))


def worst_first(incidents: Iterable[Incident]) -> list[Incident]:
    """Sort incidents by severity; equally severe ones keep their order."""
    return sorted(incidents, key=lambda item: -item.severity.rank)


class Visit(Struct, frozen=True):
    """One turn of the walk: the question, its answer, and who gave it (`data` or `person`)."""

    question: Question
    answer: Answer
    given_by: str = "data"

    @property
    def target(self) -> str:
        """The node to which the answer leads."""
        return self.question.go.get(self.answer.verdict) or self.question.go[NO]


class Missing(Struct, frozen=True):
    """A question that the log could not answer, and what to log next time.

    Attributes:
        id: the question's id.
        reason: why it has no answer.
        metrics: the metrics and settings that the run lacks for it; empty where no log would help.
        log: how to log them.
        applies: whether the question has a meaning for this run at all.
    """

    id: str
    reason: str
    metrics: tuple[str, ...]
    log: str
    applies: bool = True


class LogNext(Struct, frozen=True):
    """Something to log next time, and what it would decide."""

    names: Annotated[tuple[str, ...], "Metrics to log, or settings to name."] = field(name="metric")
    log: Annotated[str, "How to log them."]
    unlocks: Annotated[tuple[str, ...], "Ids of the questions that they would answer."]
    decides: Annotated[tuple[str, ...], "What of the findings they would settle."] = ()


class Walked(Struct, frozen=True):
    """A section, whether it was walked, and why (not)."""

    section: Section
    walked: bool
    why: str


class WalkedTree(Struct, frozen=True):
    """One of the trees that were put together."""

    name: Annotated[str, "Its name."]
    title: Annotated[str, "Its title."]
    walked: Annotated[bool, "Whether any of it was walked."]
    why: Annotated[str, "Why, or why not."]


class CauseState(StrEnum):
    """How sure a cause is, the surest first."""

    CONFIRMED = "confirmed"  # something in the log proves it
    LIKELY = "likely"  # it and what goes with it leave no rival near
    POSSIBLE = "possible"  # the log does not tell it apart from others
    RULED_OUT = "ruled out"  # the log speaks against it


STRONG = (CauseState.CONFIRMED, CauseState.LIKELY)


class JudgedCause(Struct, frozen=True):
    """A cause with how sure it is.

    Attributes:
        cause: the cause.
        state: how sure it is.
        evidence: what speaks for it, the strongest first; of one that is ruled out, what speaks against it.
        p: how likely it is, of all causes that explain such a finding.
    """

    cause: Cause
    state: CauseState
    evidence: tuple[Evidence, ...] = ()
    p: float = 0.0


class Advice(Struct, frozen=True):
    """Something to do.

    Attributes:
        id: the action's id; of what only the finding's document says, the leaf's.
        kind: the wider action that it is a case of.
        text: what to do, with this run's numbers; empty where it is the restart.
        cost: `glance`, `minutes`, `hour` or `rerun`.
        why: what speaks for the cause that it helps most.
        branches: of a test, its answers, each with what to do then.
    """

    id: str
    kind: str
    text: str
    cost: str
    why: str = ""
    branches: tuple[tuple[str, str], ...] = ()


class Happening(Struct, frozen=True):
    """One thing that happened around the onset of the worst finding.

    Attributes:
        step: when.
        metric: the series.
        text: what it did, with its numbers.
        first: whether it alone moved before all others.
        unit: what `step` counts: `step`, or `row`.
    """

    step: int
    metric: str
    text: str
    first: bool = False
    unit: str = "step"

    @property
    def sentence(self) -> str:
        """The series and what it did."""
        return self.text if self.metric in self.text else f"{self.metric} {self.text}"


Shows = Literal["last good", "onset", "worst", "end"]


class QuotedRow(Struct, frozen=True):
    """A row of the log that shows an incident."""

    step: Annotated[int, "Its step."]
    what: Annotated[Shows, "What it shows."]
    values: Annotated[dict[str, float | None], "What was logged there, by metric."]


class Accepted(Struct, frozen=True):
    """Why a finding does not count, though nobody ignores its leaf: it is known."""

    reason: Annotated[str, "Why it is accepted; may be empty."] = ""
    since: Annotated[str, "Since when; may be empty."] = ""
    source: Annotated[str, "The file that says so: the settings, or the baseline."] = ""

    @property
    def text(self) -> str:
        """The sentence that every output shows.

        >>> Accepted("the loader is being fixed", "March", "base.json").text
        'known since March, the loader is being fixed (base.json)'
        """
        known = f"known since {self.since}" if self.since else "known" * (not self.reason)
        return f"{', '.join(filter(None, [known, self.reason]))} ({self.source})"


def check_ignored(tree: Tree, leaves: Iterable[str]) -> None:
    """Check that the leaves to ignore exist.

    Raises:
        StabtreeError: for one that the tree does not have.
    """
    for id_ in (id_ for id_ in leaves if id_ not in tree.leaves):
        hint = "the report and --json name them"
        if findings := [leaf.id for leaf in tree.leaves.values() if leaf.of == id_]:
            hint = f"the findings of {id_} are {', '.join(findings)}"
        problem = f"no finding is called {clean(id_, 60)!r}{near(id_, tree.leaves)}"
        raise StabtreeError(problem, where="--ignore", hint=hint)


class Near(Struct, frozen=True):
    """A question whose answer came near to its limit.

    Attributes:
        visit: the question with its answer.
        leaf: the leaf that it would have led to.
        p: how likely an engineer would call the run faulty in this way.
    """

    visit: Visit
    leaf: Leaf
    p: float

    @property
    def strength(self) -> float:
        """How far it is from the limit, in doublings; below 0."""
        return self.visit.answer.strength or 0.0

    @property
    def as_visit(self) -> Visit:
        """The visit as if the limit had been reached, headed by what that would have meant."""
        answer = self.visit.answer
        brief = self.leaf.title[:1].lower() + self.leaf.title[1:]
        first = replace(answer.evidence[0], brief=brief)
        return replace(self.visit, answer=replace(answer, verdict=answer.near, evidence=(first, *answer.evidence[1:])))


def near_facts(tree: Tree, visits: Iterable[Visit]) -> tuple[Near, ...]:
    """Return what came near to an alarm, the likeliest first: each by itself, else several weak signs together.

    Args:
        tree: the tree.
        visits: all questions that were asked.
    """
    near = calibrations().near
    found = sorted(_below_alarms(tree, visits), key=attrgetter("p"), reverse=True)
    if alone := tuple(item for item in found if item.p >= near):
        return alone
    signs: dict[str, Near] = {}  # of the questions about one series the likeliest counts
    for item in found:
        if item.p >= near / 2:
            signs.setdefault(item.visit.answer.evidence[0].metric, item)
    healthy = math.prod(1 - item.p for item in signs.values())
    return tuple(signs.values()) if 1 - healthy >= near else ()


def _below_alarms(tree: Tree, visits: Iterable[Visit]) -> Iterator[Near]:
    """Yield the questions that an alarm hangs on and whose limits were not reached."""
    for visit in visits:
        answer, question = visit.answer, visit.question
        if answer.strength is None or answer.strength >= 0 or not answer.evidence:
            continue
        leaf = tree.leaves.get(question.go.get(answer.near, ""))
        if leaf is not None and leaf.severity.is_alarm:
            yield Near(visit, leaf, calibrations().likelihood(question.id, answer.strength))


def asking(leaf: Leaf, facts: Sequence[Near]) -> Leaf:
    """Return a leaf that quotes what came near."""
    seen = facts[0].visit.answer.evidence[0]
    quoted = seen.text
    if not (seen.metric and quoted.startswith(seen.metric)):
        quoted = quoted[:1].upper() + quoted[1:]
    return replace(leaf, why=f"{quoted}. {leaf.why}")
