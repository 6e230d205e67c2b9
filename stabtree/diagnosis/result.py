"""What a walk found: data only. `render` turns it into text."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any

from stabtree.common.answer import UNKNOWN
from stabtree.facts.checkpoints import ASSUMED, Told
from stabtree.run import CONFIG
from stabtree.tree.model import Take

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stabtree.common.answer import Evidence
    from stabtree.diagnosis.ignored import Accepted
    from stabtree.diagnosis.visits import LogNext, Missing, Visit, Walked, WalkedTree
    from stabtree.diagnosis.why.model import WhyNot
    from stabtree.facts.registry import Param
    from stabtree.facts.replay import Replay
    from stabtree.run import Run
    from stabtree.tree.model import Cause, Leaf, Section, Tree


MOST_FIXES = 3


class CauseState(StrEnum):
    """What the log says of a cause, strongest first."""

    CONFIRMED = "confirmed"
    LIKELY = "likely"
    POSSIBLE = "possible"  # no log can test it, or what it needs is not known to hold
    NOT_CONFIRMED = "not confirmed"  # looked at, and the threshold not reached
    NOT_CHECKABLE = "not checkable"  # this log can't test it
    RULED_OUT = "ruled out"  # the log speaks against it


STRONG = (CauseState.CONFIRMED, CauseState.LIKELY)  # something in the log speaks for it
WEAK = (CauseState.POSSIBLE, CauseState.NOT_CHECKABLE)  # it may be
SILENT = (CauseState.NOT_CONFIRMED, CauseState.RULED_OUT)  # it was looked at, and nothing speaks for it


@dataclass(frozen=True, slots=True)
class JudgedCause:
    """A cause with what the log says of it."""

    cause: Cause
    state: CauseState
    evidence: tuple[Evidence, ...] = ()
    reason: str = ""
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Restart:
    """Where to restart.

    Attributes:
        checkpoint_step: the newest checkpoint not after the last good step, and none from right before a NaN storm
            where an older one exists; None when there is none.
        told: what tells where the checkpoints are.
        every: steps between checkpoints.
        lost_steps: steps of the log that are run again.
        fresh_step: the newest checkpoint before a NaN storm, when it was written right before it: passed over, or
            the same as `checkpoint_step` when no other is older than the trouble. None where that is no concern.
        path: where that checkpoint lies, where there is none the oldest one; empty where it was not seen.
        epoch: the epoch at whose end it was written; None where it was not, or the log does not tell.
        line: the line of the log that says that it was saved.
        nothing: why there is nothing in the log to go back to; empty where there may be.
        useless: of the checkpoint that is nearest to the best one, its step and the eval loss there and at the best,
            where it is of no use; else None.
        lost_hours: hours that went into the steps that are run again; None where no time was logged.
        before_step: the first step of the trouble that it must be older than, of an earlier finding where there is one;
            for the best one the step that it is nearest to.
        take: what is advised: a checkpoint from before the trouble, the best one, or the newest one.
        listed: the steps of all checkpoints that are known to exist; None where nobody lists them.
        unit: what all these steps are: `step`, `epoch` or `row`.
    """

    checkpoint_step: int | None
    told: Told
    every: int
    lost_steps: int
    before_step: int
    fresh_step: int | None = None
    path: str = ""
    lost_hours: float | None = None
    take: Take = Take.BEFORE
    listed: tuple[int, ...] | None = None
    unit: str = "step"
    epoch: int | None = None
    line: int | None = None
    nothing: str = ""
    useless: tuple[int, float, float] | None = None

    @property
    def assumed(self) -> bool:
        """Whether nothing says where the checkpoints are."""
        return self.told in ASSUMED


@dataclass(frozen=True, slots=True)
class Fix:
    """What to do, and what in the log speaks for it; empty where nothing does more than for the finding itself."""

    text: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A leaf that was reached, with the evidence that led there.

    Attributes:
        leaf: the leaf.
        section: the id of the section whose walk ended there.
        onset_step: first step of what was found.
        last_good_step: last logged step before it.
        evidence: what the questions on the way saw.
        causes: judged causes, strongest first.
        restart: advice, for leaves that call for a restart.
        precursors: what had left its normal course before the onset, with its lead.
        advice: what to do, in order: fixes of causes that the log shows, the leaf's, those of causes that may be.
        seen_as: where several leaves tell of one event, the finding of each by itself, the first one's first.
        unit: what the steps count: `step`, or `row` where the log holds none.
        accepted: why it counts for nothing, where it is known; None for any other.
    """

    leaf: Leaf
    section: str
    onset_step: int | None
    last_good_step: int | None
    evidence: tuple[Evidence, ...]
    causes: tuple[JudgedCause, ...]
    restart: Restart | None
    precursors: Sequence[Evidence] = ()
    advice: tuple[Fix, ...] = ()
    seen_as: tuple[Finding, ...] = ()
    unit: str = "step"
    accepted: Accepted | None = None

    @property
    def also(self) -> tuple[Finding, ...]:
        """What else tells of the same event."""
        return self.seen_as[1:]

    @property
    def parts(self) -> tuple[Finding, ...]:
        """The finding of each leaf by itself."""
        return self.seen_as or (self,)

    @property
    def own_onset_step(self) -> int | None:
        """Where its own leaf begins; the event may have begun earlier."""
        return self.parts[0].onset_step

    @property
    def metric(self) -> str:
        """The series that it was seen in."""
        return next((item.metric for item in self.evidence if item.metric), "loss")

    @property
    def fixes(self) -> tuple[str, ...]:
        """All fixes, in the order in which to try them."""
        return tuple(fix.text for fix in self.advice)

    @property
    def first_fixes(self) -> tuple[Fix, ...]:
        """Those to try first; more than a few are not read when it matters."""
        return self.advice[:MOST_FIXES]


@dataclass(frozen=True, slots=True)
class Happening:
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


@dataclass(frozen=True, slots=True)
class Diagnosis:
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
        timeline: what happened around the onset of the worst finding, by step.
        missing: what could not be checked, of all that applies to the run.
        log_next: what to log next time, the most useful first.
        lacking: those of them without which nothing can be called ok.
        verdict: `ok`, `note`, `warning`, `critical`, or `unknown` when what must be judged was not.
        said: what is to be said of a person's answers: those that the log contradicts, and those that were not needed.
        misread: why what was read of the log does not stand for the run; empty where it does.
        monitor: what the NaN monitor would have done; None where the loss is finite throughout.
        literal: whether the document's letter was taken.
        overrides: what was set of the tree's parameters, by node.
        ignored: what was found and counts for nothing, ignored or accepted, each by itself, worst first.
        outdated: what is to be said of findings that are accepted and not found, or not as they were.
        why_not: why no walk came to a node that was asked about; None where none was.
    """

    run: Run
    tree: Tree
    path: tuple[Visit, ...]
    end: Leaf
    further: tuple[tuple[Visit, ...], ...]
    sections: tuple[Walked, ...]
    trees: tuple[WalkedTree, ...]
    findings: tuple[Finding, ...]
    timeline: Sequence[Happening]
    missing: tuple[Missing, ...]
    log_next: tuple[LogNext, ...]
    lacking: tuple[Missing, ...]
    verdict: str
    said: tuple[str, ...]
    misread: str
    monitor: Replay | None
    literal: bool = False
    overrides: Mapping[str, Mapping[str, Param]] = field(default_factory=dict)
    ignored: tuple[Finding, ...] = ()
    outdated: tuple[str, ...] = ()
    why_not: WhyNot | None = None

    def __repr__(self) -> str:
        found = ", ".join(finding.leaf.id for finding in self.findings) or "nothing found"
        return f"Diagnosis({self.run.name!r}: {self.verdict}, {found})"

    def to_dict(self) -> dict[str, Any]:
        """The diagnosis as plain values, as `--json` writes them."""
        found: dict[str, Any] = _rendered("data.machine", "to_dict")(self)
        return found

    def to_text(self) -> str:
        """The diagnosis on one screen, as the command line prints it."""
        found: str = _rendered("screen", "screen")(self)
        return found

    def _repr_html_(self) -> str:
        """The page in a frame of its own, as a notebook shows it: its style and script stay inside."""
        page = html.escape(_rendered("html.page", "html")(self))
        style = "width:100%;height:44rem;border:1px solid #8884;border-radius:6px"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{page}"></iframe>'

    @property
    def before_run(self) -> bool:
        """Whether it is of a configuration alone, before its run."""
        return CONFIG in self.tree.when

    @property
    def reached(self) -> tuple[Finding, ...]:
        """All leaves that are not ok; each finding, and what else tells of its event by itself."""
        return tuple(item for finding in self.findings for item in (finding, *finding.also))

    @property
    def answered(self) -> tuple[Section, ...]:
        """The sections whose entry question has an answer; checks of one question are left out."""
        visits = (*self.path, *(visit for visits in self.further for visit in visits))
        known = {visit.question.id for visit in visits if visit.answer.verdict != UNKNOWN}
        return tuple(item.section for item in self.sections if item.section.entry in known and not item.section.check)

    @property
    def partial(self) -> bool:
        """Whether a run that was not judged as a whole has nothing wrong in the sections that were."""
        return self.verdict == UNKNOWN and not self.misread and bool(self.answered)


def _rendered(module: str, name: str) -> Callable[[Diagnosis], Any]:
    """A way to show a diagnosis, looked up when a person asks for it: what is found knows nothing of how it looks."""
    found: Callable[[Diagnosis], Any] = getattr(import_module(f"stabtree.render.{module}"), name)
    return found
