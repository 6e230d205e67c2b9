"""Findings that are known and accepted: which ones of a run are ignored, and which no longer occur."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping  # noqa: TC003 - read when a file is converted
from fnmatch import fnmatchcase
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Protocol

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from stabtree.common.text import clean
from stabtree.diagnosis.result import Accepted

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.run import Run

FindingKey = tuple[str, str, str]
"""The path, the run and the fingerprint of a finding in a baseline."""

Text = Annotated[str, Meta(pattern=r"\S")]

UPDATE = "`stabtree baseline PATH --update` drops"


class KnownFinding(Struct, frozen=True):
    """An accepted finding, as a baseline keeps it.

    Attributes:
        path: the log, relative to the folder of the baseline.
        run: the run's name.
        leaf: the leaf.
        severity: how bad it was; a worse finding of the same leaf is not accepted.
        onset_step: its first step, for people; the fingerprint covers it as well.
        fingerprint: what identifies it.
        breaks: how often each series stopped being finite; if a series that the finding rests on does so once more,
            the finding is new.
        reason: why it is accepted, written by a person.
        since: since when, written by a person.
    """

    path: str
    run: str
    leaf: str
    severity: str
    onset_step: int | None
    fingerprint: str
    breaks: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""
    since: str = ""

    @property
    def key(self) -> FindingKey:
        """What identifies the finding within its file."""
        return self.path, self.run, self.fingerprint


class KnownFindings(Protocol):
    """Findings that are accepted one by one."""

    @property
    def source(self) -> str:
        """The file that holds them."""

    @property
    def count(self) -> int:
        """The number of known findings."""

    def why(self, diagnosis: Diagnosis, finding: Incident) -> Accepted | None:
        """Return why a finding is accepted; None if it is not."""

    def of(self, run: Run) -> tuple[KnownFinding, ...]:
        """Return the accepted findings of a run."""


class Acceptance(Struct, frozen=True, forbid_unknown_fields=True):
    """A leaf that a project accepts in some runs, whatever their rows.

    Attributes:
        leaf: the leaf.
        reason: why.
        run: a pattern of the runs' names or paths, as `nightly-*`.
        since: since when; may be empty.
    """

    leaf: Text
    reason: Text
    run: Text = "*"
    since: Text = ""

    def covers(self, run: Run, finding: Incident) -> bool:
        """Return whether this finding is accepted."""
        names = [run.name, *(source.path for source in run.sources)]
        return finding.leaf.id == self.leaf and any(fnmatchcase(name, self.run) for name in names)

    def __str__(self) -> str:
        if self.run == "*":
            return self.leaf
        return f"{self.leaf} in {self.run}"


class Accepting(Struct, frozen=True):
    """Everything that is accepted: the project's leaves, and the findings of a baseline.

    Attributes:
        project: the acceptances in the settings.
        source: the file of the settings.
        baseline: the accepted findings from a separate file.
    """

    project: tuple[Acceptance, ...]
    source: str
    baseline: KnownFindings | None

    def diagnose(self, judge: Callable[[tuple[str, ...]], Diagnosis]) -> Diagnosis:
        """Return a diagnosis that ignores what is accepted.

        Ignoring a finding can bring up another, such as one on another rank, so it repeats until nothing more is
        accepted.

        Args:
            judge: diagnoses the run, ignoring these leaves besides those that are ignored anyway.
        """
        accepted: dict[str, Accepted] = {}
        while True:
            found = judge(tuple(accepted))
            why = {item.leaf.id: self.why(found, item) for item in unaccepted_findings(found)}
            more = {id_: reason for id_, reason in why.items() if reason}
            if not more:
                break
            accepted |= more
        ignored = tuple(replace(item, accepted=accepted.get(item.leaf.id)) for item in found.ignored)
        diagnosis = replace(found, ignored=ignored)
        return replace(diagnosis, acceptance_notes=tuple(self._outdated(diagnosis)))

    def why(self, diagnosis: Diagnosis, finding: Incident) -> Accepted | None:
        """Return why a finding is accepted; None if it is not."""
        for item in self.project:
            if item.covers(diagnosis.run, finding):
                return Accepted(item.reason, item.since, self.source)
        if self.baseline:
            return self.baseline.why(diagnosis, finding)
        return None

    def _outdated(self, diagnosis: Diagnosis) -> Iterator[str]:
        """Yield notes on accepted findings of this run that did not occur, or not in the accepted form."""
        if not self.baseline:
            return
        present = {item.leaf.id for item in unaccepted_findings(diagnosis)}
        ignored = {item.leaf.id for item in diagnosis.ignored}
        gone = 0
        for entry in self.baseline.of(diagnosis.run):
            if entry.leaf in present:
                at = ""
                if entry.onset_step is not None:
                    at = f" at {diagnosis.run.unit} {entry.onset_step:,}"
                yield f"{entry.leaf} is not the one that {clean(self.baseline.source)} accepts{at}: it counts"
            elif entry.leaf not in ignored and entry.leaf in diagnosis.tree.leaves:
                gone += 1
        if gone == 1:
            yield f"1 accepted finding no longer occurs: {UPDATE} it"
        elif gone:
            yield f"{gone} accepted findings no longer occur: {UPDATE} them"


def unaccepted_findings(diagnosis: Diagnosis) -> list[Incident]:
    """Return the findings that count, each leaf on its own."""
    return list(chain.from_iterable(finding.parts for finding in diagnosis.findings))
