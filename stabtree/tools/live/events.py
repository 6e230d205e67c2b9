"""When a growing log is judged, and what of it is news: one event for each trouble of a run, and each change of it.

`stabtree watch` and the Recorder both use it. Each judgement reads the whole log, as `stabtree diagnose` would then.

What a log shows while it is young passes: its noise is hardly known, and what seems to rise is the scatter of the last
rows. So only what a single row proves is reported at once; everything else must hold for some rows first. The numbers
were chosen with `python -m benchmarks.watch` on 163 healthy labelled logs.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from stabtree.diagnosis.result import STRONG, Diagnosis
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from stabtree.diagnosis.result import Incident
    from stabtree.judging.verdict import Outcome
    from stabtree.run import Run

GROWTH = 0.02
"""A log that has grown by this share is judged, so that each row costs the same however long the log is."""
PAUSE_SECONDS, PAUSE_SHARE = 5.0, 0.05
"""After a pause any growth is enough, if the last judgement took no more than this share of the pause."""
MAX_READS = 100
"""All judgements together read a log so many times where signs call for them; growth alone comes to 50 times."""
LOOP_PAUSE_SECONDS = 1.0
LOOP_BUDGET, SIGN_BUDGET = (2.0, 0.01), (10.0, 0.02)
"""Inside a training loop judging may take so many seconds, and this share of the time; more where there is a sign."""
LEAP = 6.0
"""So many mean distances above the mean, a row of ordinary noise lies once in some thousands."""
LOOKS = 4
"""What a row is a sign of may take some more rows to show."""
HOLD_ROWS = 3
"""Of 53 healthy runs 10 alarm in some row where nothing is held, 5 with 3 rows alone, 1 with all the rules here."""
SHARE = 0.2
"""Levels of noise rise and fall again within this share of their age: with 0.1 two more healthy logs of 163 alarm."""
MIN_ROWS = 10
"""The shortest window of any statistic: a shorter log gets no warning, and a loss that stays up must be up so long."""
WINDOW_ROWS = 100
"""A spike is known only beside as many steps before it (phase19, Q2.1)."""
HOLD_SECONDS = 300.0
"""After so long the next row decides: where a row is an epoch, three of them may be hours."""
REPORTED_FROM = Severity.WARNING
ENDS = "end"
"""The kind of event that ends a process."""
NEVER_ZERO = ("loss", "grad_norm")


class EventChange(StrEnum):
    """What happened to an event.

    `opened`: reported for the first time, or again after it was over. `worse`: graver than before. `renamed`: a
    milder leaf describes it now. `withdrawn`: the log no longer shows it. `closed`: the run recovered from it.
    """

    OPENED = "opened"
    WORSE = "worse"
    RENAMED = "renamed"
    WITHDRAWN = "withdrawn"
    CLOSED = "closed"

    @property
    def is_finding(self) -> bool:
        """Whether something is wrong now; otherwise what was reported is over."""
        return self not in (EventChange.WITHDRAWN, EventChange.CLOSED)


class News(NamedTuple):
    """A change of an event when it is reported.

    Attributes:
        run: the name of the run.
        finding: what describes the event now, or last described it.
        diagnosis: the whole diagnosis at that time.
        rows: the number of rows in its log, of all runs in that file.
        first_rows: the number of rows when the change was first seen.
        again: whether the event, or its leaf, was reported before.
        change: what happened to the event.
        incident: the number of the event within the watch.
        before: the leaf that it was last reported as; empty for a new event.
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

    @property
    def is_update(self) -> bool:
        """Whether an incident goes by another leaf than it was reported, which is no new alarm."""
        return self.change in (EventChange.WORSE, EventChange.RENAMED)


class _Pending(NamedTuple):
    """A change that was seen, and is reported once it has been seen at every judgement of `rows` rows.

    Attributes:
        change: what changes.
        finding: what describes the event then.
        first_rows: the number of rows in the log when it was first seen.
        first_seconds: the time when it was first seen.
        rows: the number of rows for which it must hold.
        least_rows: the number of rows for which it must hold even after `HOLD_SECONDS`.
        urgent: whether it is bad news that nobody has had.
    """

    change: EventChange
    finding: Incident
    first_rows: int
    first_seconds: float
    rows: int = 0
    least_rows: int = 0
    urgent: bool = False

    def due(self, now: float) -> int:
        """Return the number of rows in the log at which it is reported."""
        rows = max(self.rows, self.least_rows)
        if self.urgent and now - self.first_seconds >= HOLD_SECONDS:
            rows = min(rows, max(1, self.least_rows))
        return self.first_rows + rows


class _Event:
    """One trouble of a run, whichever leaves describe it.

    Args:
        number: its number within the watch.
        run: the key of its run.
        rows: the number of rows in the log when it was first found.
        seconds: the time when it was first found.
    """

    def __init__(self, number: int, run: str, rows: int, seconds: float) -> None:
        self.number, self.run, self.first_rows, self.first_seconds = number, run, rows, seconds
        self.kinds: set[str] = set()
        self.onset_row = 0.0
        self.reported: Incident | None = None
        self.reported_step = 0
        self.state: EventChange | None = None
        self.changes = 0
        self.pending: _Pending | None = None

    @property
    def is_open(self) -> bool:
        """Whether it was reported, and is not over."""
        return self.state is not None and self.state.is_finding

    def describe(self, finding: Incident, run: Run) -> None:
        """Take in a finding that describes it now."""
        self.kinds |= _kinds(finding)
        self.onset_row = _rows_before(finding, run, metric="")
        if _is_setting(finding):
            self.onset_row = -math.inf  # it began in no row: no other finding is of this event

    def may_be(self, finding: Incident) -> bool:
        """Return whether a finding can belong to it: what begins after it was reported is another event.

        The onset of an open event that has no single moment is an estimate, and may move to any row.
        """
        moves = self.is_open and (finding.leaf.lasting or finding.by_levels or not finding.leaf.events)
        if self.reported is None or finding.onset_step is None or moves:
            return True
        return finding.onset_step <= self.reported_step

    def change_to(self, finding: Incident) -> EventChange | None:
        """Return what a finding that describes it now changes; None for nothing."""
        before = self.reported
        if before is None:
            return EventChange.OPENED
        graver = finding.leaf.severity.rank - before.leaf.severity.rank
        if not self.is_open:
            # A finding goes on describing what is over for as long as its rows are in the log.
            is_anew = self.state is EventChange.WITHDRAWN or finding.open or graver > 0
            return EventChange.OPENED if is_anew else None
        if graver:  # a name that says no more is no news
            return EventChange.WORSE if graver > 0 else EventChange.RENAMED
        return EventChange.CLOSED if before.open and not finding.open else None

    def now(
        self, found: Sequence[Incident], milder: Sequence[Incident], run: Run
    ) -> tuple[Incident, EventChange | None] | None:
        """Return what describes it now, and what that changes; None for either where there is nothing.

        What is only a note now, or accepted, is over; what nothing describes any more is withdrawn.
        """
        reported = self.reported
        if found:
            named = reported and reported.leaf.id
            worst_first = sorted(found, key=lambda item: (-item.leaf.severity.rank, item.leaf.id != named))
            for finding in reversed(worst_first):
                self.describe(finding, run)
            return worst_first[0], self.change_to(worst_first[0])
        if not self.is_open or reported is None:
            return None
        for item in milder:
            same_step = reported.onset_step is not None and item.onset_step == reported.onset_step
            if same_step or self.kinds & _kinds(item):
                return item, EventChange.CLOSED
        return reported, EventChange.WITHDRAWN


class Announcer:
    """The events of one or several logs so far, and what was reported of them.

    Args:
        hold_rows: the number of rows for which anything must hold that can pass.
        reported_from: the mildest severity that is reported.

    Attributes:
        rows: the number of rows of all logs at the last judgement.
    """

    def __init__(self, hold_rows: int = HOLD_ROWS, reported_from: Severity = REPORTED_FROM) -> None:
        self.hold_rows = hold_rows
        self.reported_from = reported_from
        self.rows = 0
        self._events: list[_Event] = []
        self._logs: dict[str, tuple[int, float]] = {}  # by key: rows, and when they became so many
        self._numbers = 0
        self._judged = False

    @property
    def awaits_end(self) -> bool:
        """Whether an error was found that the run may have died of, or may survive."""
        waiting = [event.pending for event in self._events if event.pending is not None]
        return any(item.change.is_finding and ENDS in item.finding.leaf.events for item in waiting)

    def judge_at(self, now: float) -> int | None:
        """Return the number of rows of all logs at which to judge again for what waits; None where nothing waits.

        What was found once is looked for in each of the first rows, since what comes and goes may be there in the last
        of them too; then when it is due.
        """
        missing = []
        for event in self._events:
            if (pending := event.pending) is not None:
                rows = self._logs[event.run][0]
                due = max(1, pending.due(now) - rows)
                missing.append(1 if rows < pending.first_rows + self.hold_rows else due)
        return self.rows + min(missing) if missing else None

    def judged(self, outcomes: Iterable[Outcome], *, final: bool = False, now: float = 0.0) -> tuple[News, ...]:
        """Return what is to be reported after a judgement.

        Args:
            outcomes: the runs of the logs as `diagnose` judges them.
            final: whether no row follows, so that nothing is waited for.
            now: seconds on a clock that does not go back.
        """
        runs = [(_key(found.run), name, found) for name, found in outcomes if isinstance(found, Diagnosis)]
        if not runs:
            return ()  # it is half written just now: what was found before stays
        rows = Counter[str]()  # of each file, which may hold several runs
        for key, _, diagnosis in runs:
            rows[key.partition("\0")[0]] += row_count(diagnosis.run)
        self.rows = rows.total()
        news: list[News] = []
        for key, name, diagnosis in runs:
            count = rows[key.partition("\0")[0]]
            if self._logs.get(key, (None,))[0] != count:
                self._logs[key] = count, now
            news += self._forget_ahead(key, name, diagnosis)
            for event, pending in self._changes(key, diagnosis, now):
                # A log that grows no more is not waited for while others do.
                silent = len(self._logs) > 1 and now - self._logs[key][1] >= HOLD_SECONDS
                if final or silent or count >= pending.due(now):
                    news.append(self._report(event, pending, name, diagnosis))
        self._events = [event for event in self._events if event.reported is not None or event.pending is not None]
        self._judged = True
        return tuple(sorted(news, key=lambda item: not item.change.is_finding))

    def _forget_ahead(self, key: str, name: str, diagnosis: Diagnosis) -> Iterator[News]:
        """Forget what lies beyond the end of a log in which another run began; what was open is over."""
        rows, last = self._logs[key][0], diagnosis.run.last_step or 0
        for event in [item for item in self._events if item.run == key]:
            reported = event.reported
            if event.first_rows > rows if reported is None else event.reported_step > last:
                self._events.remove(event)
                if event.is_open and reported is not None:
                    yield self._report(event, _Pending(EventChange.CLOSED, reported, rows, 0.0), name, diagnosis)

    def _changes(self, key: str, diagnosis: Diagnosis, now: float) -> Iterator[tuple[_Event, _Pending]]:
        """Take in the findings of a run; yield the events that change, each with its change."""
        run = diagnosis.run
        counting: list[Incident] = []
        milder: list[Incident] = []
        for finding in diagnosis.findings:
            counts = finding.leaf.severity.rank >= self.reported_from.rank and not finding.accepted
            (counting if counts else milder).append(finding)
        assigned = self._assign(key, counting, run, now)
        for event in [item for item in self._events if item.run == key]:
            described = event.now(assigned.get(event.number, []), milder, run)
            if described is None or described[1] is None:
                event.pending = None
                continue
            event.pending = pending = self._pending(event, described[0], described[1], run, now)
            yield event, pending

    def _assign(self, key: str, findings: Sequence[Incident], run: Run, now: float) -> dict[int, list[Incident]]:
        """Return the findings that describe each event of a run, by its number.

        A finding goes to the event that has its leaf, else to one of its kind that nothing else describes now, or that
        it shows as well, else to one that began in the same rows. What is left is an event of its own.
        """
        events = [event for event in self._events if event.run == key]
        assigned: dict[int, list[Incident]] = {}
        rest = []
        for finding in findings:
            event = _same_leaf(events, finding)
            if event is not None and event.reported is None:  # its onset may have moved to one that was reported
                event = _same_rows([item for item in events if item.reported is not None], finding, run) or event
            if event is None:
                rest.append(finding)
            else:
                assigned.setdefault(event.number, []).append(finding)
        for finding in rest:
            alike = [item for item in events if item.kinds & _kinds(finding) and item.may_be(finding)]
            free = [item for item in alike if item.number not in assigned or not finding.leaf.events]
            event = free[-1] if free else _same_rows(events, finding, run)
            if event is None:
                since = 0  # what a log held before it was watched has held since it began
                if not self._judged and finding.onset_step is not None:
                    since = max(0, row_count(run) - _rows_before(finding, run) - 1)
                self._numbers += 1
                event = _Event(self._numbers, key, self._logs[key][0] - since, now)
                event.describe(finding, run)
                self._events.append(event)
                events.append(event)
            assigned.setdefault(event.number, []).append(finding)
        return assigned

    def _pending(self, event: _Event, finding: Incident, change: EventChange, run: Run, now: float) -> _Pending:
        """Return the change of an event that is seen for the first time, or as at the judgement before."""
        rows, before = self._logs[event.run][0], event.pending
        first, seconds = rows, now
        if event.reported is None:
            if before is not None and _kinds(before.finding).isdisjoint(_kinds(finding)):
                event.first_rows, event.first_seconds = rows, now  # another kind has not been found for as long
            first, seconds = event.first_rows, event.first_seconds
        elif before is not None and (before.change, before.finding.leaf.id) == (change, finding.leaf.id):
            first, seconds = before.first_rows, before.first_seconds
        age = max(0, first - (rows - row_count(run)) - _rows_before(finding, run) - 1)
        hold, least = max(self.hold_rows, math.ceil(SHARE * age)), 0
        if change.is_finding:
            hold, least = _hold(finding, run, age, hold)
        if change is not EventChange.WORSE:
            hold *= max(1, event.changes)  # what comes and goes is reported less and less
        urgent = change is EventChange.WORSE or (change is EventChange.OPENED and event.reported is None)
        return _Pending(change, finding, first, seconds, hold, least, urgent)

    def _report(self, event: _Event, pending: _Pending, name: str, diagnosis: Diagnosis) -> News:
        finding = pending.finding
        earlier = [item.reported.leaf.id for item in self._events if item.run == event.run and item.reported]
        before = event.reported.leaf.id if event.reported is not None else ""
        event.reported, event.reported_step = finding, diagnosis.run.last_step or 0
        event.state, event.pending = pending.change, None
        event.changes += 1
        rows, again = self._logs[event.run][0], bool(before) or finding.leaf.id in earlier
        return News(name, finding, diagnosis, rows, pending.first_rows, again, pending.change, event.number, before)


def row_count(run: Run) -> int:
    """Return the number of rows of a run: those of its longest series."""
    return max(map(len, run.series.values()), default=0)


def _is_setting(finding: Incident) -> bool:
    """Return whether a setting is wrong: no row of the log shows it."""
    return finding.onset_step is None and not any(item.metric for item in finding.evidence)


def _hold(finding: Incident, run: Run, age: int, rows: int) -> tuple[int, int]:
    """Return the number of rows for which a finding must hold, and the least number, whatever time has passed.

    Args:
        finding: the finding.
        run: the run as long as it is now.
        age: the number of rows after its onset at which it was first found.
        rows: the number of rows for which anything of this age must hold.
    """
    leaf, before, least = finding.leaf, _rows_before(finding, run), 0
    if _is_certain(finding):
        return 0, 0
    if leaf.severity is not Severity.CRITICAL:
        least = MIN_ROWS - before - age - 1
    if "rise" in leaf.events and leaf.lasting:
        least = max(least, MIN_ROWS - age)
    passed = bool(leaf.events) and not (leaf.lasting or leaf.restart)  # it left nothing to go back for
    if "rise" in leaf.events and not before:  # what it rose from is its first row alone, which may lie low by chance
        rows = max(rows, age)
    # A cause that names no step holds from the start: it bears out what begins there, and no later event.
    strong = [cause.evidence for cause in finding.causes if cause.state in STRONG]
    if passed and not any(before < MIN_ROWS or any(item.steps for item in evidence) for evidence in strong):
        least = max(least, WINDOW_ROWS - before)
    return rows, max(least, 0)


def _is_certain(finding: Incident) -> bool:
    """Return whether a single row, or none, proves it: a loss that is NaN or 0, a wrong setting."""
    events = finding.leaf.events
    if ENDS in events:
        return False  # a run may survive an error that it prints
    if "nan" in events and finding.leaf.severity is Severity.CRITICAL:
        return finding.storm
    return ("zero" in events and finding.metric in NEVER_ZERO) or _is_setting(finding)


def _rows_before(finding: Incident, run: Run, metric: str | None = None) -> int:
    """Return the number of rows before a finding begins, of its own series or else of the longest; 0 if unknown."""
    series = run.series.get(finding.metric if metric is None else metric)
    series = series or max(run.series.values(), key=len, default=None)
    if series is None or finding.onset_step is None:
        return 0
    return int((series.steps < finding.onset_step).sum())


def _key(run: Run) -> str:
    """Return what identifies a run while its log grows: its file and its name in it."""
    return f"{run.sources[0].path if run.sources else ''}\0{run.name}"


def _kinds(finding: Incident) -> set[str]:
    """Return the kinds of event that a finding describes, the kinds that their causes explain, and its leaves."""
    kinds: set[str] = set()
    for part in finding.parts:
        kinds |= {part.leaf.id, part.leaf.kind, *part.leaf.events}
    return kinds - {"other"}


def _same_leaf(events: Sequence[_Event], finding: Incident) -> _Event | None:
    same = [event for event in events if finding.leaf.id in event.kinds and event.may_be(finding)]
    exact = [event for event in same if event.reported is not None and event.reported.leaf.id == finding.leaf.id]
    return next(iter([*exact, *reversed(same)]), None)


def _same_rows(events: Sequence[_Event], finding: Incident, run: Run) -> _Event | None:
    """Return the event that began in the same rows, as exactly as onsets are known."""
    if _is_setting(finding):
        return None
    row = _rows_before(finding, run, metric="")
    near = [event for event in events if abs(event.onset_row - row) <= max(MIN_ROWS, SHARE * event.onset_row)]
    near = [event for event in near if event.may_be(finding)]
    return min(near, key=lambda event: (not event.is_open, abs(event.onset_row - row)), default=None)


class Signs:
    """What single rows show: a sign calls for a judgement of the log, and is no finding by itself."""

    def __init__(self) -> None:
        self._before: frozenset[str] = frozenset()
        self._looks = 0
        self._levels: dict[str, tuple[int, float, float]] = {}

    def in_row(self, row: Mapping[str, object]) -> bool:
        """Return whether a row shows what the row before did not, or comes soon after one that did."""
        numbers = {name: value for name, value in row.items() if isinstance(value, int | float)}
        signs = {f"{name} is not finite" for name, value in numbers.items() if not math.isfinite(value)}
        signs |= {f"{name} is 0" for name in NEVER_ZERO if numbers.get(name) == 0.0}
        signs |= {f"{name} leaps" for name in NEVER_ZERO if name in numbers and self._leaps(name, numbers[name])}
        if numbers.get("loss_scale", 1.0) < 1.0:  # it divides: seeds/phase19, section 3
            signs.add("loss_scale is below 1")
        return self.call(frozenset(signs))

    def _leaps(self, name: str, value: float) -> bool:
        """Return whether a value is far above the mean of those before it, by their mean distance from that."""
        rows, level, scatter = self._levels.get(name, (0, value, 0.0))
        above = value - level
        if rows >= MIN_ROWS and not above <= LEAP * scatter:
            return True
        share = max(1 / (rows + 1), 1 / WINDOW_ROWS)
        self._levels[name] = rows + 1, level + share * above, scatter + share * (abs(above) - scatter)
        return False

    def call(self, signs: frozenset[str]) -> bool:
        """Return whether there is a sign that was not there before, or was new a few calls ago."""
        if not signs <= self._before:
            self._looks = LOOKS
        elif self._looks:
            self._looks -= 1
        self._before = signs
        return self._looks > 0


class Watching:
    """Judges a growing log often enough to be soon, and seldom enough to be cheap; reports what is new.

    Args:
        judge: reads the log as it is now, and judges its runs.
        announcer: decides what is news, and when.
        in_loop: whether a training loop waits for each judgement.
        clock: seconds that do not go back.
        cost: the seconds that judging takes; where others use the processor too, they slow down the loop as well.

    Attributes:
        outcomes: what was found at the last judgement.
    """

    def __init__(
        self,
        judge: Callable[[], Sequence[Outcome]],
        announcer: Announcer,
        *,
        in_loop: bool = False,
        clock: Callable[[], float] = time.monotonic,
        cost: Callable[[], float] | None = None,
    ) -> None:
        self._judge, self.announcer, self._in_loop, self.clock = judge, announcer, in_loop, clock
        self._cost = cost or clock
        self.outcomes: Sequence[Outcome] = ()
        self._size = self._read = 0
        self._begun = self._ended = clock()
        self._last_seconds = 0.0
        self._spent = {LOOP_BUDGET: 0.0, SIGN_BUDGET: 0.0}
        self._budget = LOOP_BUDGET

    @property
    def waits(self) -> bool:
        """Whether something was found that is reported once it has held for some rows."""
        return self.announcer.judge_at(self.clock()) is not None

    def grown(self, size: int, *, sign: bool = False) -> tuple[News, ...]:
        """Judge the log if it is time to; return what is new.

        Args:
            size: how long the log is now, in rows or bytes, always in the same unit.
            sign: whether a new row is out of the ordinary.
        """
        anew, grown = size < self._size, size > self._size
        if anew or (grown and self._is_due(size, self.clock(), sign=sign)):
            return self._judged(size)
        return ()

    def ended(self, size: int) -> tuple[News, ...]:
        """Judge the log without waiting for further rows: for the last time, or since it has fallen silent."""
        return self._judged(size, final=True)

    def _is_due(self, size: int, now: float, *, sign: bool) -> bool:
        may_read = self._read + size <= MAX_READS * size
        until = self.announcer.judge_at(now)
        # The log should hold the rows that a change waits for, by the average length of its rows.
        is_awaited = until is not None and self._size and self.announcer.rows * size / self._size >= until - 0.5
        if (sign or is_awaited) and may_read and self._may_spend(SIGN_BUDGET, now):
            return True
        waited = now - self._ended
        if self._in_loop and (waited < LOOP_PAUSE_SECONDS or not self._may_spend(LOOP_BUDGET, now)):
            return False
        paused = waited >= PAUSE_SECONDS and self._last_seconds <= PAUSE_SHARE * waited
        return paused or size - self._size >= max(GROWTH * self._size, 1)

    def _may_spend(self, budget: tuple[float, float], now: float) -> bool:
        self._budget, (seconds, share) = budget, budget
        spent = self._spent[budget] + self._last_seconds
        return not self._in_loop or spent <= seconds + share * (now - self._begun)

    def _judged(self, size: int, *, final: bool = False) -> tuple[News, ...]:
        began, before, is_first = self.clock(), self._cost(), not self._read
        try:
            self.outcomes = self._judge()
            return self.announcer.judged(self.outcomes, final=final, now=began)
        finally:  # a failure takes its time too
            if size < self._size:
                self._read = 0
            self._read += size
            self._size = size
            self._ended = self.clock()
            self._last_seconds = (self._cost() - before) * (not is_first)  # the first one imports what it needs
            self._spent[self._budget] += self._last_seconds
