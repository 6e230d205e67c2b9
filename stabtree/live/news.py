"""What is told of a growing log, and when: each finding once, as soon as it has held for some rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stabtree.diagnosis.result import Diagnosis
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.diagnosis.result import Finding
    from stabtree.judging.outcome import Outcome
    from stabtree.run import Run

HOLD_ROWS = 3
TOLD_FROM = Severity.WARNING


@dataclass(frozen=True, slots=True)
class News:
    """A finding when it is told.

    Attributes:
        run: the name of the run.
        finding: the finding.
        diagnosis: all that was found then.
        rows: how many rows the log held.
        first_rows: how many it held when it was first found.
        again: whether its leaf was told before, and it has become worse or begun anew.
    """

    run: str
    finding: Finding
    diagnosis: Diagnosis
    rows: int
    first_rows: int
    again: bool = False


@dataclass(slots=True)
class _Sighting:
    first_rows: int
    told: Severity | None = None


def rows_of(run: Run) -> int:
    """How many rows a run has: those of its longest series."""
    return max(map(len, run.series.values()), default=0)


class Announcer:
    """What was found of a log so far, and what of it was told.

    Args:
        hold_rows: for so many rows a finding must have been found at every judgement before it is told.
        told_from: the mildest severity that is told.
    """

    def __init__(self, hold_rows: int = HOLD_ROWS, told_from: Severity = TOLD_FROM) -> None:
        self.hold_rows = hold_rows
        self.told_from = told_from
        self._seen: dict[tuple[str, str], _Sighting] = {}
        self._judged = False
        self.rows = 0

    def judged(self, outcomes: Iterable[Outcome], *, final: bool = False) -> tuple[News, ...]:
        """What is to be told after a judgement.

        Args:
            outcomes: the runs of the log as `diagnose` judges them.
            final: whether no row follows, so that nothing is waited for.
        """
        told = []
        found: set[tuple[str, str]] = set()
        for outcome in outcomes:
            if isinstance(outcome.found, Diagnosis):
                rows = self.rows = rows_of(outcome.found.run)
                for finding in outcome.found.findings:
                    key = (outcome.name, finding.leaf.id)
                    if finding.leaf.severity.rank < self.told_from.rank or finding.accepted:
                        continue
                    found.add(key)
                    if (item := self._told(key, finding, outcome.found, rows, final=final)) is not None:
                        told.append(item)
        for key, seen in list(self._seen.items()):
            if key not in found and seen.told is None:
                del self._seen[key]
        self._judged = True
        return tuple(told)

    def waits_until(self) -> int | None:
        """The number of rows at which the next finding will have held long enough; None where none waits."""
        waiting = [seen.first_rows + self.hold_rows for seen in self._seen.values() if seen.told is None]
        return min(waiting, default=None)

    def _told(
        self, key: tuple[str, str], finding: Finding, diagnosis: Diagnosis, rows: int, *, final: bool
    ) -> News | None:
        severity = finding.leaf.severity
        seen = self._seen.setdefault(key, _Sighting(self._first(finding, diagnosis, rows)))
        if seen.told is not None and seen.told.rank >= severity.rank:
            return None
        if not final and rows - seen.first_rows < self.hold_rows:
            return None
        again, seen.told = seen.told is not None, severity
        return News(key[0], finding, diagnosis, rows, seen.first_rows, again)

    def _first(self, finding: Finding, diagnosis: Diagnosis, rows: int) -> int:
        """How long the log was when a finding was first there; what it held before it was watched, from its onset."""
        series = diagnosis.run.series.get(finding.metric)
        if self._judged or finding.onset_step is None or series is None:
            return rows
        return rows - int((series.steps >= finding.onset_step).sum()) + 1


def worst(told: Sequence[News]) -> Severity:
    """The worst severity of what was told, ok for nothing."""
    return max((item.finding.leaf.severity for item in told), key=lambda severity: severity.rank, default=Severity.OK)
