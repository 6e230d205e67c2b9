"""A watch: looks at the logs at intervals, has them judged, and says how the run goes, until something ends it."""

from __future__ import annotations

import re
import time
from collections import deque
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.stats import LARGEST
from stabtree.common.text import clean
from stabtree.tools.live.sizes import rows_of
from stabtree.tools.live.watch.complete import is_complete

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stabtree.common.lazy import Floats
    from stabtree.judging.outcome import Outcome
    from stabtree.run import Run
    from stabtree.tools.live.news import News
    from stabtree.tools.live.watch.follow import Follower, Growth
    from stabtree.tools.live.watch.watching import Watching

EVERY_SECONDS = 1.0
ROUSED_SECONDS = 0.1  # a look at a file takes a tenth of a millisecond
SILENT_SECONDS = 300.0  # a run that failed may well write no more of the rows that a finding waits for
END_SECONDS = 10.0  # behind an error, after which the process is taken for dead
RATE_SECONDS = 60.0  # the rows of the last minute make the rate
SETTLED_SECONDS = 60.0  # without a byte, after which a run that says it is complete is believed
SETTLED_TIMES = 2  # the time between two looks, and the longest that was waited for a row: the last one may be to come
POINTS = 64  # of the loss that is drawn
_NUMBER = re.compile(r"\d+")  # a line or a count, which goes on as the log does


class End(StrEnum):
    """What ended a watch."""

    ASKED = "stopped"
    FOUND = "found"
    STALLED = "stalled"
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class RunStatus:
    """How a watched run goes.

    Attributes:
        there: whether there is anything to watch yet.
        step: the last step that was logged; None where the log holds none.
        loss: the last one; None where none was logged.
        losses: the loss from the beginning on, thinned out; None where it was not finite.
        outcomes: what was last found.
        rate: rows a second; None where that is not known yet.
        quiet_seconds: since anything was written.
    """

    there: bool = False
    step: int | None = None
    loss: float | None = None
    losses: tuple[float | None, ...] = ()
    outcomes: Sequence[Outcome] = ()
    rate: float | None = None
    quiet_seconds: float = 0.0


class Round(NamedTuple):
    """What one look brought: what is reported, what is out of the ordinary with the files, and how the run goes."""

    news: tuple[News, ...]
    notes: tuple[str, ...]
    status: RunStatus


class Session:
    """One watch over the logs of some paths; it ends by itself when all runs say that they are complete.

    Args:
        follower: looks at them.
        watching: judges them.
        every: seconds between two looks.
        stall: seconds without anything written that end it; None for never.
        until: whether a finding that is reported ends it.
        stopped: whether it was asked to end.
        sleep: waits for so many seconds by the clock of `watching`, or until it was asked to end.

    Attributes:
        end: what ended it.
        silence: seconds without anything written when it ended.
    """

    def __init__(
        self,
        follower: Follower,
        watching: Watching,
        *,
        every: float = EVERY_SECONDS,
        stall: float | None = None,
        until: Callable[[News], bool] = lambda _news: False,
        stopped: Callable[[], bool] = lambda: False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._follower, self._watching = follower, watching
        self._every, self._stall, self._until, self._stopped = every, stall, until, stopped
        self._clock, self._sleep = watching.clock, sleep
        self._judged: Sequence[Outcome] = ()
        self._shown = RunStatus()
        self._rows = self._size = 0
        self._counts: deque[tuple[float, int]] = deque()
        self._silent = False
        self._reported: set[tuple[str, str]] = set()
        self._grew = self._clock()
        self._longest = 0.0  # without a byte, since there is one
        self._whole: bool | None = None  # as far as it was asked since anything changed
        self.end = End.ASKED
        self.silence = 0.0

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """What was last found."""
        return self._judged

    def rounds(self) -> Iterator[Round]:
        """Yield what each look brings; the last one is after the log was judged once more, as it is at the end."""
        while True:
            growth = self._follower.look()
            if growth.there:
                news = self._watching.grown(growth.rows, growth.size, growth.files)
            else:
                news = ()
            if self._fell_silent(growth):
                news += self._watching.ended(growth.size)
            yield self._round(growth, news)._replace(notes=(*growth.notes, *self._unread()))
            if self._ends(news):
                break
            self._sleep(self._pause())
        growth = self._follower.look()
        yield self._round(growth, self._watching.ended(growth.size))

    def _pause(self) -> float:
        """Return the seconds until the next look: few while rows come that a finding waits for."""
        if self._watching.waits and self._clock() - self._grew < self._every:
            return min(self._every, ROUSED_SECONDS)
        return self._every

    def _fell_silent(self, growth: Growth) -> bool:
        """Return whether nothing was written for so long that what waits for further rows is reported without them."""
        before, came = self._silent, bool(growth.rows) or growth.size != self._size
        patience = END_SECONDS if self._watching.awaits_end else SILENT_SECONDS
        self._silent = growth.there and not came and self._clock() - self._grew >= patience
        return self._silent and not before

    def _unread(self) -> Iterator[str]:
        """Yield what can't be read, each problem once: nothing else would say so before the end."""
        new: dict[str, list[tuple[str, str]]] = {}
        for name, found in self._judged:
            if not isinstance(found, StabtreeError):
                continue
            problem = _NUMBER.sub("", found.problem)
            if (name, problem) not in self._reported:
                self._reported.add((name, problem))
                new.setdefault(problem, []).append((name, found.problem))
        for (name, problem), *others in new.values():
            who = clean(name)
            if others:
                who = f"{who} (and {len(others)} more)"
            yield f"{who} is not judged just now: {clean(problem)}"

    def _ends(self, news: Sequence[News]) -> bool:
        self.silence = self._clock() - self._grew
        settled = max(SETTLED_SECONDS, SETTLED_TIMES * max(self._every, self._longest))
        stalled = self._stall is not None and self.silence >= self._stall
        if any(self._until(item) for item in news if item.change.is_finding):
            self.end = End.FOUND
        elif (stalled or self.silence >= settled) and self._is_whole():
            self.end = End.COMPLETE
        elif stalled:
            self.end = End.STALLED
        else:
            return self._stopped()
        return True

    def _is_whole(self) -> bool:
        """Return whether all runs are complete; while nothing changes, the logs are asked once."""
        if self._whole is None:
            runs = [item.found for item in self._judged]
            self._whole = bool(runs) and all(
                not isinstance(one, StabtreeError) and is_complete(one.run) for one in runs
            )
        return self._whole

    def _round(self, growth: Growth, news: tuple[News, ...]) -> Round:
        now = self._clock()
        self._take_growth(growth, now)
        shown = self._shown
        step, loss, losses = shown.step, shown.loss, shown.losses
        if self._watching.outcomes is not self._judged:
            runs = self._take_outcomes()
            if runs:
                step, loss, losses = _state(runs[0])
        if growth.rows and len(self._judged) < 2:
            step = int(next((row["step"] for row in reversed(growth.rows) if "step" in row), step or 0))
            loss = next((row["loss"] for row in reversed(growth.rows) if "loss" in row), loss)
        self._shown = RunStatus(growth.there, step, loss, losses, self._judged, self._rate(now), now - self._grew)
        return Round(news, growth.notes, self._shown)

    def _take_growth(self, growth: Growth, now: float) -> None:
        """Keep how large the logs are, and when they grew last."""
        self._rows += len(growth.rows)
        if growth.size == self._size and not growth.rows:
            return
        if self._size:
            self._longest = max(self._longest, now - self._grew)
        else:
            self._longest = 0.0
        self._size, self._grew, self._whole = growth.size, now, None

    def _take_outcomes(self) -> list[Run]:
        """Keep what was found at the last judgement, and return the runs that could be judged."""
        self._judged, self._whole = self._watching.outcomes, None
        runs = [item.found.run for item in self._judged if not isinstance(item.found, StabtreeError)]
        self._follower.reads(source.path for source in chain.from_iterable(run.sources for run in runs))
        self._rows = sum(map(rows_of, runs))
        return runs

    def _rate(self, now: float) -> float | None:
        if not self._judged:
            return None
        counts = self._counts
        counts.append((now, self._rows))
        while len(counts) > 2 and counts[1][0] <= now - RATE_SECONDS:
            counts.popleft()
        since, rows = counts[0]
        if now > since:
            return max(0, self._rows - rows) / (now - since)
        return None


def _state(run: Run) -> tuple[int | None, float | None, tuple[float | None, ...]]:
    """Return the last step of a run, its last loss, and its loss thinned out."""
    series = run.get("loss")
    if series is None or not len(series):
        return run.last_step, None, ()
    blocks = np.array_split(series.values, min(POINTS, len(series)))
    return run.last_step, float(series.values[-1]), tuple(map(_mean, blocks))


def _mean(values: Floats) -> float | None:
    if np.isfinite(values).all():
        return float(np.clip(values, -LARGEST, LARGEST).mean())
    return None
