"""What is reported of a growing log, and when: one event for each trouble, and a notice for each change of it."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.diagnosis.result import Diagnosis
from stabtree.tools.live.event import EventChange, Pending, RunEvent, assign, kinds_of
from stabtree.tools.live.hold import HOLD_SECONDS, SHARE, Hold, hold_of, rows_before
from stabtree.tools.live.sizes import LogSizes, rows_of
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stabtree.diagnosis.result import Incident
    from stabtree.judging.outcome import Outcome
    from stabtree.run import Run

HOLD_ROWS = 3
"""Of 53 healthy runs 10 alarm in some row where nothing is held, 5 with 3 rows alone, 1 with all that is here; 1
and 2 rows leave 3 and 2, so that 3 over 2 rests on one run. Each row more is one row later for every failure."""
TOLD_FROM = Severity.WARNING


@dataclass(frozen=True, slots=True)
class News:
    """A change of an event when it is reported.

    Attributes:
        run: the name of the run.
        finding: what describes the event now; what did so last, where the log no longer shows it.
        diagnosis: all that was found then.
        rows: how many rows its log held, of all runs in that file.
        first_rows: how many it held when the change was first seen.
        again: whether its event was reported before, or its leaf was and has begun anew.
        change: what happened to the event.
        incident: the number of the event within the watch, which all its changes have.
        before: the leaf that it was last reported as; empty for one that is new.
    """

    run: str
    finding: Incident
    diagnosis: Diagnosis
    rows: int
    first_rows: int
    again: bool = False
    change: EventChange = EventChange.OPENED
    incident: int = 0
    before: str = ""


def _diagnoses(outcomes: Iterable[Outcome]) -> list[tuple[str, Diagnosis]]:
    """Return the runs that could be judged, by name."""
    return [(item.name, item.found) for item in outcomes if isinstance(item.found, Diagnosis)]


class Announcer:
    """The events of one or several logs so far, and what of them was reported.

    Args:
        hold_rows: for so many rows at least a change must have been seen at every judgement before it is reported.
        told_from: the mildest severity that is reported.
    """

    def __init__(self, hold_rows: int = HOLD_ROWS, told_from: Severity = TOLD_FROM) -> None:
        self.hold_rows = hold_rows
        self.told_from = told_from
        self._events: list[RunEvent] = []
        self._keys: dict[tuple[str, ...], str] = {}
        self._judged = False
        self._sizes = LogSizes()
        self._made = 0

    @property
    def rows(self) -> int:
        """How many rows all logs hold."""
        return self._sizes.rows

    @property
    def awaits_end(self) -> bool:
        """Whether an error was found that the run may have died of, or may survive."""
        return any(event.pending is not None and event.pending.ends for event in self._events)

    def judged(self, outcomes: Iterable[Outcome], *, final: bool = False, now: float = 0.0) -> tuple[News, ...]:
        """Return what is to be reported after a judgement.

        Args:
            outcomes: the runs of the logs as `diagnose` judges them.
            final: whether no row follows, so that nothing is waited for.
            now: seconds on a clock that does not go back.
        """
        found = _diagnoses(outcomes)
        judged = [(self._key(name, diagnosis.run), name, diagnosis) for name, diagnosis in found]
        if not judged:
            return ()  # half written just now: what is known of it stays
        self._sizes.count([(key, diagnosis.run) for key, _, diagnosis in judged])
        news: list[News] = []
        for key, name, diagnosis in judged:
            news += self._forget_ahead(key, name, diagnosis)
            for event, finding in self._changes(key, diagnosis, now):
                if final or self._has_held(event, now):
                    news.append(self._announce(event, name, finding, diagnosis))
        self._events = [event for event in self._events if event.reported is not None or event.pending is not None]
        self._judged = True
        return tuple(sorted(news, key=lambda item: not item.change.is_finding))

    def _forget_ahead(self, key: str, name: str, diagnosis: Diagnosis) -> Iterator[News]:
        """Forget what lies beyond a log that is written anew, or goes back behind it: what was open is withdrawn."""
        rows, last = self._sizes.of(key), diagnosis.run.last_step or 0
        for event in [item for item in self._events if item.run == key and item.is_ahead(rows, last)]:
            self._events.remove(event)
            if event.is_open and event.reported is not None:
                event.pending = Pending(EventChange.WITHDRAWN, event.reported, rows, 0.0, Hold(0))
                yield self._announce(event, name, event.reported, diagnosis)

    def _changes(self, key: str, diagnosis: Diagnosis, now: float) -> Iterator[tuple[RunEvent, Incident]]:
        """Take in what was found in a run; yield the events that wait to be reported, each with what describes it."""
        findings = [item for item in diagnosis.findings if self._counts(item)]
        events = [event for event in self._events if event.run == key]
        found = assign(events, findings, diagnosis.run, partial(self._new, key, diagnosis.run, now))
        for event in [item for item in self._events if item.run == key]:
            milder = [item for item in diagnosis.findings if item not in findings]
            finding, change = _described(event, found.get(event.number, []), milder, diagnosis.run)
            if finding is None or change is None:
                event.pending = None
                continue
            self._wait(event, change, finding, diagnosis.run, now)
            yield event, finding

    def _counts(self, finding: Incident) -> bool:
        """Return whether a finding is severe enough, and nobody has accepted it."""
        return finding.leaf.severity.rank >= self.told_from.rank and not finding.accepted

    def waits_until(self, now: float = 0.0) -> int | None:
        """Return the number of rows of all logs at which to judge again for what waits; None where nothing does.

        It is the lowest: as if all that come were of the log that it waits for. What was found once is looked for in
        each of the rows that anything must hold, since what comes and goes may be there in the last of them too; then
        when it is due.
        """
        missing = []
        for event in self._events:
            pending = event.pending
            if pending is None:
                continue
            rows = self._sizes.of(event.run)
            late = pending.is_urgent and now - pending.first_seconds >= HOLD_SECONDS
            if late or rows < pending.first_rows + self.hold_rows:
                missing.append(1)
            else:
                missing.append(max(1, pending.first_rows + pending.hold.due_rows - rows))
        if missing:
            return self.rows + min(missing)
        return None

    def _has_held(self, event: RunEvent, now: float) -> bool:
        """Return whether what waits was seen for so many rows, or for so long and in a row since."""
        pending = event.pending
        if pending is None:
            return False
        rows = pending.hold.due_rows
        if pending.is_urgent and now - pending.first_seconds >= HOLD_SECONDS:
            rows = min(rows, max(1, pending.hold.known_rows))
        return self._sizes.reached(event.run, pending.first_rows + rows)

    def _key(self, name: str, run: Run) -> str:
        """What a run is known by for good: what it was first called; a second log beside it gives it another name."""
        files = [(run.name, source.path) for source in run.sources[:1]]
        key = next((known for place in ((name,), *files) if (known := self._keys.get(place))), name)
        self._keys |= dict.fromkeys([(name,), *files], key)
        return key

    def _new(self, key: str, run: Run, now: float, finding: Incident) -> RunEvent:
        """Make an event of a finding; what a log held before it was watched, it has held since that began."""
        since = 0
        if not self._judged and finding.onset_step is not None:
            since = max(0, rows_of(run) - rows_before(finding, run) - 1)
        self._made += 1
        event = RunEvent(self._made, key, self._sizes.of(key) - since, now)
        event.takes(finding, run)
        self._events.append(event)
        return event

    def _wait(self, event: RunEvent, change: EventChange, finding: Incident, run: Run, now: float) -> None:
        """Take in that an event is seen to change; what was seen to do so before goes on to be."""
        rows, before = self._sizes.of(event.run), event.pending
        first, seconds = rows, now
        if event.reported is None:
            if before is not None and kinds_of(before.finding).isdisjoint(kinds_of(finding)):
                # A leaf of another kind has not been found for as long as the one before it was.
                event.first_rows, event.first_seconds = rows, now
            first, seconds = event.first_rows, event.first_seconds
        elif before is not None and (before.change, before.finding.leaf.id) == (change, finding.leaf.id):
            first, seconds = before.first_rows, before.first_seconds
        age = max(0, first - (rows - rows_of(run)) - rows_before(finding, run) - 1)
        hold = Hold(max(self.hold_rows, math.ceil(SHARE * age)))
        if change.is_finding:
            hold = hold_of(finding, run, age, self.hold_rows)
        if change is not EventChange.WORSE:
            hold = Hold(hold.rows * max(1, event.changes), hold.known_rows)  # what comes and goes is not to be reported
        event.pending = Pending(change, finding, first, seconds, hold, again=event.reported is not None)

    def _announce(self, event: RunEvent, name: str, finding: Incident, diagnosis: Diagnosis) -> News:
        pending = event.pending
        assert pending is not None  # noqa: S101 - only what waits is announced
        rows, leaf = self._sizes.of(event.run), finding.leaf.id
        told = [item.reported for item in self._events if item.run == event.run and item.reported is not None]
        before = event.reported.leaf.id if event.reported is not None else ""
        again = bool(before) or any(leaf == item.leaf.id for item in told)
        news = News(name, finding, diagnosis, rows, pending.first_rows, again, pending.change, event.number, before)
        event.reported, event.reported_step = finding, diagnosis.run.last_step or 0
        event.state, event.pending = pending.change, None
        event.changes += 1
        return news


def _described(
    event: RunEvent, found: Sequence[Incident], milder: Sequence[Incident], run: Run
) -> tuple[Incident | None, EventChange | None]:
    """Return what describes an event now, and what that changes; nothing where it changes nothing.

    What is now only a note, or is accepted, is over; what nothing describes any more is withdrawn.

    Args:
        event: the event.
        found: what was found of it, what it is named by first.
        milder: what was found that does not count.
        run: the run.
    """
    if found:
        for finding in reversed(found):
            event.takes(finding, run)
        return found[0], event.change_to(found[0])
    if not event.is_open:
        return None, None
    same = next((item for item in milder if event.is_described_by(item)), None)
    if same is not None:
        return same, EventChange.CLOSED
    return event.reported, EventChange.WITHDRAWN
