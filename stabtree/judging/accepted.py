"""Findings that are known and accepted: what of a run counts for nothing, and what is gone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Protocol

from stabtree.common.text import clean
from stabtree.diagnosis.ignored import Accepted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stabtree.diagnosis.result import Diagnosis, Finding
    from stabtree.judging.baseline import KnownFinding
    from stabtree.run import Run

UPDATE = "`stabtree baseline PATH --update` drops"


class Known(Protocol):
    """Findings that are known one by one."""

    @property
    def source(self) -> str:
        """The file that holds them."""

    def why(self, diagnosis: Diagnosis, finding: Finding) -> Accepted | None:
        """Why a finding is accepted; None where it is not."""

    def of(self, run: Run) -> tuple[KnownFinding, ...]:
        """What is accepted of a run."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A leaf that a project accepts of some runs, whatever their rows.

    Attributes:
        leaf: the leaf.
        reason: why.
        run: a pattern of the runs' names or paths, as `nightly-*`.
        since: since when; may be empty.
    """

    leaf: str
    reason: str
    run: str = "*"
    since: str = ""

    def covers(self, run: Run, finding: Finding) -> bool:
        """Whether it speaks of this finding."""
        names = [run.name, *(source.path for source in run.sources)]
        return finding.leaf.id == self.leaf and any(fnmatchcase(name, self.run) for name in names)

    def __str__(self) -> str:
        return self.leaf if self.run == "*" else f"{self.leaf} in {self.run}"


@dataclass(frozen=True, slots=True)
class Accepting:
    """All that is accepted: the project's leaves, and the findings of a baseline.

    Attributes:
        project: those of the settings.
        source: the file of the settings.
        baseline: the findings of a file of their own.
    """

    project: tuple[Acceptance, ...]
    source: str
    baseline: Known | None

    def judged(self, judge: Callable[[tuple[str, ...]], Diagnosis]) -> Diagnosis:
        """A diagnosis in which what is accepted counts for nothing.

        Without it something else may come to be told, such as what another rank has: that is looked at as well.

        Args:
            judge: diagnoses the run, ignoring these leaves besides those that are ignored anyway.
        """
        known: dict[str, Accepted] = {}
        while True:
            found = judge(tuple(known))
            more = {item.leaf.id: why for item in counted(found) if (why := self.why(found, item))}
            if not more:
                break
            known |= more
        ignored = tuple(replace(item, accepted=known.get(item.leaf.id)) for item in found.ignored)
        told = replace(found, ignored=ignored)
        return replace(told, outdated=tuple(self._outdated(told)))

    def why(self, diagnosis: Diagnosis, finding: Finding) -> Accepted | None:
        """Why a finding is accepted; None where it is not."""
        for item in self.project:
            if item.covers(diagnosis.run, finding):
                return Accepted(item.reason, item.since, self.source)
        return self.baseline.why(diagnosis, finding) if self.baseline else None

    def _outdated(self, found: Diagnosis) -> Iterator[str]:
        """What is accepted of this run and not found, or not as it was."""
        if not self.baseline:
            return
        here = {item.leaf.id for item in counted(found)}
        kept = {item.leaf.id for item in found.ignored}
        gone = 0
        for entry in self.baseline.of(found.run):
            if entry.leaf in here:
                at = f" at {found.run.unit} {entry.onset_step:,}" if entry.onset_step is not None else ""
                yield f"{entry.leaf} is not the one that {clean(self.baseline.source)} accepts{at}: it counts"
            elif entry.leaf not in kept and entry.leaf in found.tree.leaves:
                gone += 1
        if gone:
            told = "1 accepted finding no longer occurs" if gone == 1 else f"{gone} accepted findings no longer occur"
            yield f"{told}: {UPDATE} {'it' if gone == 1 else 'them'}"


def counted(diagnosis: Diagnosis) -> list[Finding]:
    """What counts of all that was found: the finding of each leaf by itself."""
    return [part for finding in diagnosis.findings for part in finding.parts]
