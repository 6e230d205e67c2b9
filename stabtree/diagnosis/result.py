"""The result of a walk, as data only; `report` turns it into text."""

from __future__ import annotations

from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from stabtree.common.answer import UNKNOWN
from stabtree.run import CONFIG

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stabtree.common.answer import Evidence
    from stabtree.common.faults import Fault
    from stabtree.diagnosis.ignored import Accepted
    from stabtree.diagnosis.judged import Decision, Fix, Happening, JudgedCause, QuotedRow
    from stabtree.diagnosis.restart import Restart
    from stabtree.diagnosis.visits import LogNext, Missing, Visit, Walked, WalkedTree
    from stabtree.diagnosis.whole.near import Near
    from stabtree.facts.registry import Param
    from stabtree.facts.replay import Replay
    from stabtree.run import Run
    from stabtree.tree.model import Leaf, Section, Severity, Tree

MAX_FIXES = 3


class Incident(Struct, frozen=True):
    """One event of a run, from the last good step on; all that is said of it anywhere is read from here.

    Attributes:
        leaf: the leaf that names it.
        section: the id of the section whose walk ended there.
        onset_step: the first bad step.
        last_good_step: the last logged step at which everything was still at its level.
        evidence: what the questions on the way saw.
        reasons: the evidence that speaks for the leaf's own fixes.
        causes: judged causes, strongest first.
        restart: where to restart, for leaves that call for it.
        precursors: what had left its normal course before the onset, with its lead.
        advice: the fixes in order: of causes that the log shows, of the leaf, of causes that may be.
        decision: what to find out first; None where the log decides.
        seen_as: if several leaves describe one event, what each found by itself, the own leaf's first.
        consequences: the incidents that followed from this one.
        departures: what moved around the onset, by step.
        rows: the rows that show it.
        open: whether it lasts to the end of the log.
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
    reasons: tuple[Evidence, ...] = ()
    causes: tuple[JudgedCause, ...] = ()
    restart: Restart | None = None
    precursors: Sequence[Evidence] = ()
    advice: tuple[Fix, ...] = ()
    decision: Decision | None = None
    seen_as: tuple[Incident, ...] = ()
    consequences: tuple[Incident, ...] = ()
    departures: Sequence[Happening] = ()
    rows: tuple[QuotedRow, ...] = ()
    open: bool = True
    storm: bool = False
    by_levels: bool = False
    turns: bool = False
    p: float | None = None
    unit: str = "step"
    accepted: Accepted | None = None

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

    @property
    def fixes(self) -> tuple[str, ...]:
        """All fixes, in the order in which to try them."""
        return tuple(fix.text for fix in self.advice)

    @property
    def first_fixes(self) -> tuple[Fix, ...]:
        """The fixes to try first; nobody reads more than a few when it matters."""
        return self.advice[:MAX_FIXES]


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
        """Return the page in a frame of its own, as a notebook shows it: its style stays inside."""
        return str(_rendered("html", "framed")(_rendered("html", "html")(self)))

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
        if self.verdict != UNKNOWN or self.misread or self.faults or self.unended:
            return False
        return bool(self.answered)

    @property
    def unended(self) -> Incident | None:
        """The finding that leaves open how the run ended; None where nothing does."""
        return next((finding for finding in self.findings if finding.leaf.unjudged), None)


def _rendered(module: str, name: str) -> Any:
    """Import a function of `stabtree.report` only when it is needed: results know nothing of how they look."""
    return getattr(import_module(f"stabtree.report.{module}"), name)


def worst_first(incidents: Iterable[Incident]) -> list[Incident]:
    """Sort incidents by severity; equally severe ones keep their order."""
    return sorted(incidents, key=lambda item: -item.severity.rank)
