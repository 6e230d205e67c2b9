"""What is reported of a growing log, and when: each event once, as soon as it has held for some rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from stabtree.diagnosis.result import Diagnosis
from stabtree.tools.live.hold import rows_before, rows_to_hold
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stabtree.diagnosis.result import Incident
    from stabtree.judging.outcome import Outcome
    from stabtree.run import Run

HOLD_ROWS = 3
"""Of 53 healthy runs 10 alarm in some row where nothing is held, 5 with 3 rows alone, 1 with all that is here; 1
and 2 rows leave 3 and 2, so that 3 over 2 rests on one run. Each row more is one row later for every failure."""
TOLD_FROM = Severity.WARNING


@dataclass(frozen=True, slots=True)
class News:
    """A finding when it is reported.

    Attributes:
        run: the name of the run.
        finding: the finding.
        diagnosis: all that was found then.
        rows: how many rows its log held, of all runs in that file.
        first_rows: how many it held when it was first found.
        again: whether its event was reported before, and now goes by another leaf; or its leaf was, and has begun anew.
    """

    run: str
    finding: Incident
    diagnosis: Diagnosis
    rows: int
    first_rows: int
    again: bool = False


@dataclass(slots=True)
class _Event:
    """Something that happened in a run, whichever leaves report it.

    Attributes:
        run: the run.
        kinds: the kinds of event that it is, and the leaves that reported it.
        first_rows: how many rows the log held when it was first found.
        leaves: the leaves that report it now, each with how many rows the log held when it first did.
        due_rows: how many it holds when what is not reported will have held long enough, by leaf.
        announced: the leaves that were reported for it.
        announced_step: the last step of the log when it was last reported.
    """

    run: str
    kinds: set[str]
    first_rows: int
    leaves: dict[str, int] = field(default_factory=dict)
    due_rows: dict[str, int] = field(default_factory=dict)
    announced: set[str] = field(default_factory=set)
    announced_step: int = 0

    def since(self, leaf: str) -> int:
        """Return how many rows the log held when the event, or once that was reported the leaf, was first found."""
        if self.announced:
            return self.leaves[leaf]
        return self.first_rows

    def is_ahead(self, rows: int, last_step: int | None) -> bool:
        """Return whether it was found, or reported, beyond the end of a log of so many rows up to such a step."""
        if last_step is None:
            return False
        if self.announced:
            return self.announced_step > last_step
        return self.first_rows > rows

    def goes_on(self, run: str, kinds: set[str], onset_step: int | None) -> bool:
        """Return whether a finding may belong to it: what begins after it was reported is another event."""
        begun = not self.announced or onset_step is None or onset_step <= self.announced_step
        return self.run == run and begun and not kinds.isdisjoint(self.kinds)


class _LogSize(NamedTuple):
    """The log of a run when it was judged.

    Attributes:
        rows: how many rows it holds, of all its runs.
        all_rows: how many all logs held when it was first seen as long.
        beside: how many logs there are, with itself.
    """

    rows: int
    all_rows: int
    beside: int


def _log_of(run: Run) -> str:
    """Return the file that a run is in: the first of several."""
    if run.sources:
        return run.sources[0].path
    return ""


def _diagnoses(outcomes: Iterable[Outcome]) -> list[tuple[str, Diagnosis]]:
    """Return the runs that could be judged, by name."""
    return [(item.name, item.found) for item in outcomes if isinstance(item.found, Diagnosis)]


def rows_of(run: Run) -> int:
    """Return how many rows a run has: those of its longest series."""
    return max(map(len, run.series.values()), default=0)


class Announcer:
    """What was found of one or several logs so far, and what of it was reported.

    Rows are counted by log: those of one do not make hold what was found in another, unless it grows no more.

    Args:
        hold_rows: for so many rows at least a finding must have been found at every judgement before it is reported.
        told_from: the mildest severity that is reported.
    """

    def __init__(self, hold_rows: int = HOLD_ROWS, told_from: Severity = TOLD_FROM) -> None:
        self.hold_rows = hold_rows
        self.told_from = told_from
        self._events: list[_Event] = []
        self._keys: dict[tuple[str, ...], str] = {}
        self._judged = False
        self._logs: dict[str, _LogSize] = {}
        self.rows = 0

    def judged(self, outcomes: Iterable[Outcome], *, final: bool = False) -> tuple[News, ...]:
        """Return what is to be reported after a judgement.

        Args:
            outcomes: the runs of the logs as `diagnose` judges them.
            final: whether no row follows, so that nothing is waited for.
        """
        found = _diagnoses(outcomes)
        judged = [(self._key(name, diagnosis.run), diagnosis) for name, diagnosis in found]
        if not judged:
            return ()  # half written just now: what is known of it stays
        self._count(judged)
        self._forget_ahead(judged)
        before = self._begin_anew()
        news: list[News] = []
        for (name, _), (key, diagnosis) in zip(found, judged, strict=True):
            for event, finding in self._seen(key, diagnosis, before):
                if final or self._has_held(key, event.due_rows[finding.leaf.id]):
                    news.append(self._announce(event, name, finding, diagnosis))
        self._events = [event for event in self._events if event.announced or event.leaves]
        self._judged = True
        return tuple(news)

    def _forget_ahead(self, judged: Sequence[tuple[str, Diagnosis]]) -> None:
        """Forget what lies beyond a log that is written anew, or goes back behind it: that is reported anew."""
        ends = {name: diagnosis.run.last_step or 0 for name, diagnosis in judged}
        self._events = [
            event for event in self._events if not event.is_ahead(self._logs[event.run].rows, ends.get(event.run))
        ]

    def _begin_anew(self) -> dict[int, dict[str, int]]:
        """Take from each event the leaves that report it; return them by the event's id."""
        before = {id(event): event.leaves for event in self._events}
        for event in self._events:
            event.leaves, event.due_rows = {}, {}
        return before

    def _seen(
        self, key: str, diagnosis: Diagnosis, before: Mapping[int, dict[str, int]]
    ) -> Iterator[tuple[_Event, Incident]]:
        """Take in the findings of a run one by one; yield those that wait to be reported, with their events."""
        for finding in self._reportable(diagnosis):
            event = self._event(key, finding, diagnosis.run)
            self._see(event, finding, diagnosis.run, before.get(id(event), {}))
            if finding.leaf.id in event.due_rows:
                yield event, finding

    def _reportable(self, diagnosis: Diagnosis) -> list[Incident]:
        """Return the findings that are severe enough, and that nobody has accepted."""
        lowest = self.told_from.rank
        return [item for item in diagnosis.findings if item.leaf.severity.rank >= lowest and not item.accepted]

    def waits_until(self) -> int | None:
        """Return the number of rows of all logs at which to judge again for what waits; None where nothing does.

        It is the least: as if all that come were of the log that it waits for. What was found once is looked for in
        each of the rows that anything must hold, since what comes and goes may be there in the last of them too; then
        when it is due.
        """
        missing = []
        for event in self._events:
            rows = self._logs[event.run].rows
            for leaf, due in event.due_rows.items():
                if rows < event.since(leaf) + self.hold_rows:
                    missing.append(1)
                else:
                    missing.append(max(1, due - rows))
        if missing:
            return self.rows + min(missing)
        return None

    def _count(self, judged: Sequence[tuple[str, Diagnosis]]) -> None:
        """Count the rows of each log, and of all."""
        rows: Counter[str] = Counter()
        for _, diagnosis in judged:
            rows[_log_of(diagnosis.run)] += rows_of(diagnosis.run)
        self.rows = rows.total()
        for key, diagnosis in judged:
            known, count = self._logs.get(key), rows[_log_of(diagnosis.run)]
            all_rows = self.rows
            if known is not None and known.rows == count:
                all_rows = known.all_rows
            self._logs[key] = _LogSize(count, all_rows, len(rows))

    def _has_held(self, key: str, due_rows: int) -> bool:
        """Whether a run's log holds so many rows; or it grows no more, and each of the others got what it lacks."""
        log = self._logs[key]
        return log.rows >= due_rows or self.rows - log.all_rows >= log.beside * (due_rows - log.rows)

    def _key(self, name: str, run: Run) -> str:
        """What a run is known by for good: what it was first called; a second log beside it gives it another name."""
        files = [(run.name, source.path) for source in run.sources[:1]]
        key = next((known for place in ((name,), *files) if (known := self._keys.get(place))), name)
        self._keys |= dict.fromkeys([(name,), *files], key)
        return key

    def _event(self, name: str, finding: Incident, run: Run) -> _Event:
        """Return the event that a finding belongs to: one that was found before, or a new one."""
        kinds: set[str] = set()
        for part in finding.parts:
            kinds |= {part.leaf.id, *part.leaf.events}
        same = [event for event in self._events if event.goes_on(name, kinds, finding.onset_step)]
        if same:
            event = next((item for item in same if finding.leaf.id in item.announced), same[-1])
            event.kinds |= kinds
            return event
        # What a log held before it was watched, it has held since it began.
        if self._judged or finding.onset_step is None:
            since = 0
        else:
            since = rows_of(run) - rows_before(finding, run) - 1
        event = _Event(name, kinds, self._logs[name].rows - max(since, 0))
        self._events.append(event)
        return event

    def _see(self, event: _Event, finding: Incident, run: Run, leaves: Mapping[str, int]) -> None:
        """Take in that a leaf reports an event, which `leaves` reported before."""
        leaf, rows = finding.leaf.id, self._logs[event.run].rows
        event.leaves[leaf] = leaves.get(leaf, rows)
        if leaf in event.announced:
            return
        first = event.since(leaf)
        age = max(0, first - (rows - rows_of(run)) - rows_before(finding, run) - 1)
        event.due_rows[leaf] = first + rows_to_hold(finding, run, age, self.hold_rows)

    def _announce(self, event: _Event, name: str, finding: Incident, diagnosis: Diagnosis) -> News:
        leaf = finding.leaf.id
        again = bool(event.announced) or any(leaf in item.announced for item in self._events if item.run == event.run)
        first = event.since(leaf)
        del event.due_rows[leaf]
        event.announced.add(leaf)
        event.announced_step = diagnosis.run.last_step or 0
        return News(name, finding, diagnosis, self._logs[event.run].rows, first, again)


def worst(news: Sequence[News]) -> Severity:
    """Return the worst severity of what was reported, ok for nothing."""
    return max((item.finding.leaf.severity for item in news), key=lambda severity: severity.rank, default=Severity.OK)
