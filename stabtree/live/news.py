"""What is told of a growing log, and when: each event once, as soon as it has held for some rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from stabtree.diagnosis.result import Diagnosis
from stabtree.live.hold import rows_before, rows_to_hold
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stabtree.diagnosis.result import Finding
    from stabtree.judging.outcome import Outcome
    from stabtree.run import Run

HOLD_ROWS = 3
"""Of 53 healthy runs 10 alarm in some row where nothing is held, 5 with 3 rows alone, 1 with all that stands here; 1
and 2 rows leave 3 and 2, so that 3 over 2 rests on one run. Each row more is one row later for every failure."""
TOLD_FROM = Severity.WARNING


@dataclass(frozen=True, slots=True)
class News:
    """A finding when it is told.

    Attributes:
        run: the name of the run.
        finding: the finding.
        diagnosis: all that was found then.
        rows: how many rows its log held, of all runs in that file.
        first_rows: how many it held when it was first found.
        again: whether its event was told before, and now goes by another leaf; or its leaf was, and has begun anew.
    """

    run: str
    finding: Finding
    diagnosis: Diagnosis
    rows: int
    first_rows: int
    again: bool = False


@dataclass(slots=True)
class _Event:
    """Something that happened in a run, whichever leaves tell of it.

    Attributes:
        run: the run.
        kinds: the kinds of event that it is, and the leaves that told of it.
        first_rows: how many rows the log held when it was first found.
        leaves: the leaves that tell of it now, each with how many rows the log held when it first did.
        due_rows: how many it holds when what is not told will have held long enough, by leaf.
        told: the leaves that were told of it.
        told_step: the last step of the log when it was last told.
    """

    run: str
    kinds: set[str]
    first_rows: int
    leaves: dict[str, int] = field(default_factory=dict)
    due_rows: dict[str, int] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    told_step: int = 0

    def since(self, leaf: str) -> int:
        """How many rows the log held when it was first found: the event, and once that was told, the leaf."""
        return self.leaves[leaf] if self.told else self.first_rows

    def is_ahead(self, rows: int, last_step: int | None) -> bool:
        """Whether it was found, or told, where a log of so many rows, up to such a step of its run, does not reach."""
        return last_step is not None and (self.told_step > last_step if self.told else self.first_rows > rows)

    def goes_on(self, run: str, kinds: set[str], onset_step: int | None) -> bool:
        """Whether a finding may tell of it: what begins after it was told is another event."""
        begun = not self.told or onset_step is None or onset_step <= self.told_step
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
    """The file that a run is told in: the first of several."""
    return run.sources[0].path if run.sources else ""


def rows_of(run: Run) -> int:
    """How many rows a run has: those of its longest series."""
    return max(map(len, run.series.values()), default=0)


class Announcer:
    """What was found of one or several logs so far, and what of it was told.

    Rows are counted by log: those of one do not make hold what was found in another, unless it grows no more.

    Args:
        hold_rows: for so many rows at least a finding must have been found at every judgement before it is told.
        told_from: the mildest severity that is told.
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
        """What is to be told after a judgement.

        Args:
            outcomes: the runs of the logs as `diagnose` judges them.
            final: whether no row follows, so that nothing is waited for.
        """
        found = [(item.name, item.found) for item in outcomes if isinstance(item.found, Diagnosis)]
        judged = [(self._key(name, diagnosis.run), diagnosis) for name, diagnosis in found]
        if not judged:
            return ()  # half written just now: what is known of it stays
        self._count(judged)
        ends = {name: diagnosis.run.last_step or 0 for name, diagnosis in judged}
        # A log that is written anew, or goes back behind what was told of it, tells it anew.
        self._events = [
            event for event in self._events if not event.is_ahead(self._logs[event.run].rows, ends.get(event.run))
        ]
        before = {id(event): event.leaves for event in self._events}
        for event in self._events:
            event.leaves, event.due_rows = {}, {}
        told = []
        for (name, _), (key, diagnosis) in zip(found, judged, strict=True):
            for finding in diagnosis.findings:
                if finding.leaf.severity.rank < self.told_from.rank or finding.accepted:
                    continue
                event = self._event(key, finding, diagnosis.run)
                self._see(event, finding, diagnosis.run, before.get(id(event), {}))
                due = event.due_rows.get(finding.leaf.id)
                if due is not None and (final or self._has_held(key, due)):
                    told.append(self._tell(event, name, finding, diagnosis))
        self._events = [event for event in self._events if event.told or event.leaves]
        self._judged = True
        return tuple(told)

    def waits_until(self) -> int | None:
        """The number of rows of all logs at which to judge again for what waits; None where nothing does.

        It is the least: as if all that come were of the log that it waits for. What was found once is looked for in
        each of the rows that anything must hold, since what comes and goes may be there in the last of them too; then
        when it is due.
        """
        missing = []
        for event in self._events:
            rows = self._logs[event.run].rows
            for leaf, due in event.due_rows.items():
                missing.append(1 if rows < event.since(leaf) + self.hold_rows else max(1, due - rows))
        return self.rows + min(missing) if missing else None

    def _count(self, judged: Sequence[tuple[str, Diagnosis]]) -> None:
        """Count the rows of each log, and of all."""
        rows: Counter[str] = Counter()
        for _, diagnosis in judged:
            rows[_log_of(diagnosis.run)] += rows_of(diagnosis.run)
        self.rows = rows.total()
        for key, diagnosis in judged:
            known, count = self._logs.get(key), rows[_log_of(diagnosis.run)]
            still = known is not None and known.rows == count
            self._logs[key] = _LogSize(count, known.all_rows if known and still else self.rows, len(rows))

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

    def _event(self, name: str, finding: Finding, run: Run) -> _Event:
        """The event that a finding tells of: one that was found before, or a new one."""
        kinds = {kind for part in finding.parts for kind in (part.leaf.id, *part.leaf.events)}
        same = [event for event in self._events if event.goes_on(name, kinds, finding.onset_step)]
        if same:
            event = next((item for item in same if finding.leaf.id in item.told), same[-1])
            event.kinds |= kinds
            return event
        # What a log held before it was watched, it has held since it began.
        since = 0 if self._judged or finding.onset_step is None else rows_of(run) - rows_before(finding, run) - 1
        event = _Event(name, kinds, self._logs[name].rows - max(since, 0))
        self._events.append(event)
        return event

    def _see(self, event: _Event, finding: Finding, run: Run, leaves: Mapping[str, int]) -> None:
        """Take in that a leaf tells of an event, which `leaves` told of before."""
        leaf, rows = finding.leaf.id, self._logs[event.run].rows
        event.leaves[leaf] = leaves.get(leaf, rows)
        if leaf in event.told:
            return
        first = event.since(leaf)
        age = max(0, first - (rows - rows_of(run)) - rows_before(finding, run) - 1)
        event.due_rows[leaf] = first + rows_to_hold(finding, run, age, self.hold_rows)

    def _tell(self, event: _Event, name: str, finding: Finding, diagnosis: Diagnosis) -> News:
        leaf = finding.leaf.id
        again = bool(event.told) or any(leaf in item.told for item in self._events if item.run == event.run)
        first = event.since(leaf)
        del event.due_rows[leaf]
        event.told.add(leaf)
        event.told_step = diagnosis.run.last_step or 0
        return News(name, finding, diagnosis, self._logs[event.run].rows, first, again)


def worst(told: Sequence[News]) -> Severity:
    """The worst severity of what was told, ok for nothing."""
    return max((item.finding.leaf.severity for item in told), key=lambda severity: severity.rank, default=Severity.OK)
