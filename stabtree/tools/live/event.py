"""One trouble of a run while its log grows: what it is known by, which findings belong to it, what changes."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.dataclass import dataclass
from stabtree.tools.live.hold import ENDS, MIN_ROWS, SHARE, is_setting, rows_before

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stabtree.diagnosis.result import Incident
    from stabtree.run import Run
    from stabtree.tools.live.hold import Hold


class EventChange(StrEnum):
    """What happened to an event.

    `opened`: it is reported for the first time, or again after it was over. `worse`: it has become graver. `renamed`:
    another leaf describes it now. `withdrawn`: the log no longer shows it. `closed`: the run recovered from it.
    """

    OPENED = "opened"
    WORSE = "worse"
    RENAMED = "renamed"
    WITHDRAWN = "withdrawn"
    CLOSED = "closed"

    @property
    def is_finding(self) -> bool:
        """Whether something is wrong now; else what was reported is over."""
        return self not in OVER


OVER = (EventChange.WITHDRAWN, EventChange.CLOSED)


class Pending(NamedTuple):
    """A change that was seen, and is reported once it has held.

    Attributes:
        change: what changes.
        finding: what describes the event then.
        first_rows: how many rows the log held when it was first seen.
        first_seconds: when that was.
        hold: for how long it must be seen.
        again: whether the event was reported before.
    """

    change: EventChange
    finding: Incident
    first_rows: int
    first_seconds: float
    hold: Hold
    again: bool = False

    @property
    def is_urgent(self) -> bool:
        """Whether it is bad news that nobody has had."""
        return self.change is EventChange.WORSE or (self.change is EventChange.OPENED and not self.again)

    @property
    def ends(self) -> bool:
        """Whether it is the error that a process died of, as far as the log says."""
        return self.change.is_finding and ENDS in self.finding.leaf.events


@dataclass(slots=True)
class RunEvent:
    """One trouble of a run, whichever leaves describe it.

    Attributes:
        number: its number within the watch.
        run: the run.
        first_rows: how many rows the log held when it was first found.
        first_seconds: when that was.
        kinds: the kinds of event that it is, and the leaves that described it.
        onset_row: how many rows of the run are before it.
        of_setting: whether it is a setting that is wrong.
        reported: the finding as it was last reported; None before that.
        reported_step: the last step of the log then.
        state: the last change that was reported.
        changes: how many were.
        pending: the change that waits.
    """

    number: int
    run: str
    first_rows: int
    first_seconds: float
    kinds: set[str] = field(default_factory=set)
    onset_row: int = 0
    of_setting: bool = False
    reported: Incident | None = None
    reported_step: int = 0
    state: EventChange | None = None
    changes: int = 0
    pending: Pending | None = None

    @property
    def is_open(self) -> bool:
        """Whether it was reported, and is not over."""
        return self.state is not None and self.state.is_finding

    def is_ahead(self, rows: int, last_step: int | None) -> bool:
        """Return whether it was found, or reported, beyond the end of a log of so many rows up to such a step."""
        if last_step is None:
            return False
        if self.reported is not None:
            return self.reported_step > last_step
        return self.first_rows > rows

    def takes(self, finding: Incident, run: Run) -> None:
        """Take in that a finding describes it now."""
        self.kinds |= kinds_of(finding)
        self.onset_row = _onset_row(finding, run)
        self.of_setting = is_setting(finding)

    def is_described_by(self, finding: Incident) -> bool:
        """Return whether a finding that does not count is of the same kind, or of the same step."""
        onset = self.reported.onset_step if self.reported is not None else None
        same_step = onset is not None and finding.onset_step == onset
        return same_step or not kinds_of(finding).isdisjoint(self.kinds)

    def change_to(self, finding: Incident) -> EventChange | None:
        """Return what a finding that describes it now changes; None for nothing."""
        before = self.reported
        if before is None:
            return EventChange.OPENED
        rank, rank_before = finding.leaf.severity.rank, before.leaf.severity.rank
        if not self.is_open:
            # A finding goes on to describe what is over for as long as its rows are in the log.
            anew = self.state is EventChange.WITHDRAWN or finding.open or rank > rank_before
            return EventChange.OPENED if anew else None
        if rank > rank_before:
            return EventChange.WORSE
        if finding.leaf.id != before.leaf.id:
            return EventChange.RENAMED
        return EventChange.CLOSED if before.open and not finding.open else None


def kinds_of(finding: Incident) -> set[str]:
    """Return the kinds of event that a finding describes, and the leaves that do."""
    kinds: set[str] = set()
    for part in finding.parts:
        kinds |= {part.leaf.id, *part.leaf.events}
    return kinds


def assign(
    events: Sequence[RunEvent], findings: Sequence[Incident], run: Run, new: Callable[[Incident], RunEvent]
) -> dict[int, list[Incident]]:
    """Return the findings that describe each event now, by its number; the one that it is named by comes first.

    A finding goes to the event that has its leaf, else to one of its kind that nothing else describes now, else to
    one that began in the same rows, which goes first where it alone was reported. What is left is an event of its own.

    Args:
        events: the events of the run so far.
        findings: what was found, worst first.
        run: the run.
        new: makes an event of a finding.
    """
    taken: dict[int, list[Incident]] = {}

    def give(event: RunEvent, finding: Incident) -> None:
        taken.setdefault(event.number, []).append(finding)

    rest: list[Incident] = []
    for finding in findings:
        event = _named_alike(events, finding)
        if event is not None and event.reported is None:
            # Its onset may have moved since, to one that was reported.
            event = _beside([item for item in events if item.reported is not None], finding, run) or event
        if event is None:
            rest.append(finding)
        else:
            give(event, finding)
    known = list(events)
    for finding in rest:
        event = _of_one_kind(known, finding, taken) or _beside(known, finding, run)
        if event is None:
            event = new(finding)
            known.append(event)
        give(event, finding)
    return {number: _named_first(known, number, found) for number, found in taken.items()}


def _named_first(events: Iterable[RunEvent], number: int, found: list[Incident]) -> list[Incident]:
    """Return findings worst first; of equally bad ones the one that the event was reported by comes first."""
    event = next(item for item in events if item.number == number)
    named = event.reported.leaf.id if event.reported is not None else ""
    return sorted(found, key=lambda item: (-item.leaf.severity.rank, item.leaf.id != named))


def _begun(event: RunEvent, finding: Incident) -> bool:
    """Return whether a finding can belong to an event: what begins after that was reported is another one.

    The onset of what is open and of no single moment is an estimate, and may move to any row.
    """
    moves = event.is_open and (finding.leaf.lasting or finding.by_levels or not finding.leaf.events)
    if event.reported is None or finding.onset_step is None or moves:
        return True
    return finding.onset_step <= event.reported_step


def _named_alike(events: Sequence[RunEvent], finding: Incident) -> RunEvent | None:
    same = [event for event in events if finding.leaf.id in event.kinds and _begun(event, finding)]
    exact = [event for event in same if event.reported is not None and event.reported.leaf.id == finding.leaf.id]
    return next(iter([*exact, *reversed(same)]), None)


def _of_one_kind(events: Sequence[RunEvent], finding: Incident, taken: Mapping[int, object]) -> RunEvent | None:
    kinds = kinds_of(finding)
    found = [event for event in events if not kinds.isdisjoint(event.kinds) and _begun(event, finding)]
    return next((event for event in reversed(found) if event.number not in taken), None)


def _onset_row(finding: Incident, run: Run) -> int:
    """Return how many rows of the run are before a finding, whichever series shows it: one may be logged seldom."""
    return rows_before(finding, run, metric="")


def _beside(events: Sequence[RunEvent], finding: Incident, run: Run) -> RunEvent | None:
    """Return the event that began in the same rows, as far as the onset of either is known."""
    if is_setting(finding):
        return None
    row = _onset_row(finding, run)
    near = [event for event in events if not event.of_setting and _begun(event, finding)]
    near = [event for event in near if abs(event.onset_row - row) <= max(MIN_ROWS, SHARE * event.onset_row)]
    return min(near, key=lambda event: (not event.is_open, abs(event.onset_row - row)), default=None)
