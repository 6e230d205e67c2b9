"""The log of a training loop, judged inside the loop: what is found is reported the way that its owner asked for."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.judging.judge import Judging, accepted_by
from stabtree.judging.levels import LEVELS, fails, levels_of
from stabtree.judging.outcome import Outcome
from stabtree.judging.settings import read_settings
from stabtree.loaders import load_runs
from stabtree.metrics.names import named
from stabtree.tools.live.cadence import Cadence
from stabtree.tools.live.news import HOLD_ROWS, TOLD_FROM, Announcer
from stabtree.tools.live.watch.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from stabtree.tools.live.news import News

WARN, RAISE = "warn", "raise"

_log = logging.getLogger(__name__)


class TrainingStoppedError(StabtreeError):
    """What `on_finding="raise"` raises.

    Attributes:
        news: the finding that stops the run.
    """

    def __init__(self, news: News, path: Path) -> None:
        self.news = news
        super().__init__(describe(news), where=str(path), hint=f"type stabtree diagnose {path}")


def describe(news: News) -> str:
    """Return a finding in a line: its leaf, what it is, and its step."""
    leaf, finding = news.finding.leaf, news.finding
    at = ""
    if finding.onset_step is not None:
        at = f" at {news.diagnosis.run.unit} {finding.onset_step:,}"
    return f"{leaf.severity} {leaf.id}{at}: {leaf.title}"


class LoopWatch:
    """Judges the log that a loop writes, at its judging points, as `stabtree diagnose` would judge the file then.

    Args:
        path: the log.
        on_finding: `warn`, `raise`, or what is called with each finding at or above `fail_on`.
        fail_on: the levels, as of `--fail-on`.
        budget: the share of the time that has passed that judging may take.
        judging: how it is judged; as the settings of the working directory say, where not given.
        hold_rows: for so many rows a finding must hold before it is reported.

    Attributes:
        news: all that was reported.
        should_stop: the first of it at or above `fail_on`.

    Raises:
        StabtreeError: for an `on_finding` or a level that is none, or settings that are wrong.
    """

    def __init__(
        self,
        path: Path,
        on_finding: str | Callable[[News], object],
        *,
        fail_on: str | Iterable[str],
        budget: float,
        judging: Judging | None,
        hold_rows: int | None,
    ) -> None:
        if on_finding not in (WARN, RAISE) and not callable(on_finding):
            problem, hint = f"{on_finding!r} is not a way to report a finding", f"{WARN!r}, {RAISE!r}, or a function"
            raise StabtreeError(problem, where="Recorder: on_finding", hint=hint)
        self.path = path
        self._file = path.absolute()
        self.news: tuple[News, ...] = ()
        self.should_stop: News | None = None
        self._on_finding = on_finding
        if isinstance(fail_on, str):
            fail_on = [fail_on]
        try:
            self._levels = levels_of([*fail_on])
        except StabtreeError as error:
            raise StabtreeError(error.problem, where="Recorder: fail_on", hint=error.hint) from None
        self._judging = judging or _project()
        settings = self._judging.settings
        self._reading = settings.reading()
        self._names = named(settings.column, settings.step_column or None)
        mildest = min([TOLD_FROM, *(level for level in LEVELS if level in self._levels)], key=lambda level: level.rank)
        if hold_rows is None:
            hold_rows = HOLD_ROWS
        announcer = Announcer(hold_rows, mildest)
        self._watching = Watching(self._judge, cadence=Cadence(budget=budget), announcer=announcer)

    @property
    def waits(self) -> bool:
        """Whether something was found that is reported once it has held for some rows."""
        return self._watching.waits

    def grown(self, row: Mapping[str, float], size: int) -> tuple[News, ...]:
        """Take in a row that was written, and judge the log where it makes a judging point: what is new.

        Args:
            row: its numbers by the names under which they were written.
            size: the length of the log in bytes.
        """
        known = {metric: value for name, value in row.items() if (metric := self._names.metric(name))}
        return self._watching.grown([known], size)

    def ended(self, size: int) -> tuple[News, ...]:
        """Judge the log for the last time: what is new, whether it held or not."""
        return self._watching.ended(size)

    def _judge(self) -> list[Outcome]:
        try:
            return [self._judging.outcome(item) for item in load_runs(self._file, **self._reading)]
        except StabtreeError as error:
            return [Outcome(str(self.path), error)]  # as after it was moved away: it is begun anew, and judged again

    def notify(self, new: tuple[News, ...], *, last: bool) -> None:
        """Tell what is new, and not what is over; of a log that has ended, nothing raises.

        Raises:
            TrainingStoppedError: with `on_finding="raise"`.
        """
        new = tuple(item for item in new if item.change.is_finding)
        self.news += new
        bad = [item for item in new if fails(item.finding.leaf.severity, self._levels)]
        self.should_stop = self.should_stop or next(iter(bad), None)
        if self._on_finding == WARN or (self._on_finding == RAISE and last):
            for item in new:
                _log.warning("%s; stabtree diagnose %s", describe(item), self.path)
        elif bad and self._on_finding == RAISE:
            raise TrainingStoppedError(bad[0], self.path)
        elif callable(self._on_finding):
            for item in bad:
                self._on_finding(item)


def _project() -> Judging:
    """Return how the settings of the working directory say that runs are judged."""
    settings = read_settings()
    return Judging(settings, baseline=accepted_by(None, settings))
