"""The log of a training loop, judged inside the loop: what is found is told the way that its owner asked for."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.judging.judge import Judging, accepted_by
from stabtree.judging.levels import LEVELS, fails, levels_of
from stabtree.judging.outcome import Outcome
from stabtree.judging.settings import read_settings
from stabtree.live.cadence import Cadence
from stabtree.live.news import HOLD_ROWS, TOLD_FROM, Announcer
from stabtree.live.watching import Watching
from stabtree.loaders import load_runs
from stabtree.metrics.names import named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from stabtree.live.news import News

WARN, RAISE = "warn", "raise"

_log = logging.getLogger(__name__)


class TrainingStoppedError(StabtreeError):
    """What `on_finding="raise"` raises.

    Attributes:
        news: the finding that stops the run.
    """

    def __init__(self, news: News, path: Path) -> None:
        self.news = news
        super().__init__(told(news), where=str(path), hint=f"type stabtree diagnose {path}")


def told(news: News) -> str:
    """A finding in a line: its leaf, what it is, and its step."""
    leaf, finding = news.finding.leaf, news.finding
    at = f" at {news.diagnosis.run.unit} {finding.onset_step:,}" if finding.onset_step is not None else ""
    return f"{leaf.severity} {leaf.id}{at}: {leaf.title}"


class LoopWatch:
    """Judges the log that a loop writes, at its judging points, as `stabtree diagnose` would judge the file then.

    Args:
        path: the log.
        on_finding: `warn`, `raise`, or what is called with each finding at or above `fail_on`.
        fail_on: the levels, as of `--fail-on`.
        budget: the share of the time that has passed that judging may take.
        judging: how it is judged; as the settings of the working directory say, where not given.
        hold_rows: for so many rows a finding must hold before it is told.

    Attributes:
        news: all that was told.
        should_stop: the first of it at or above `fail_on`.

    Raises:
        StabtreeError: for an `on_finding` or a level that is none, or settings that make no sense.
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
            problem, hint = f"{on_finding!r} is no way to tell a finding", f"{WARN!r}, {RAISE!r}, or a function"
            raise StabtreeError(problem, where="Recorder: on_finding", hint=hint)
        self.path = path
        self._file = path.absolute()
        self.news: tuple[News, ...] = ()
        self.should_stop: News | None = None
        self._on_finding = on_finding
        try:
            self._levels = levels_of([fail_on] if isinstance(fail_on, str) else [*fail_on])
        except StabtreeError as error:
            raise StabtreeError(error.problem, where="Recorder: fail_on", hint=error.hint) from None
        self._judging = judging or _project()
        settings = self._judging.settings
        self._reading = settings.reading()
        self._names = named(settings.column, settings.step_column or None)
        mildest = min([TOLD_FROM, *(level for level in LEVELS if level in self._levels)], key=lambda level: level.rank)
        announcer = Announcer(HOLD_ROWS if hold_rows is None else hold_rows, mildest)
        self._watching = Watching(self._judge, cadence=Cadence(budget=budget), announcer=announcer)

    @property
    def waits(self) -> bool:
        """Whether something was found that is told once it has held for some rows."""
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

    def tell(self, new: tuple[News, ...], *, last: bool) -> None:
        """Tell what is new; of a log that has ended, nothing raises.

        Raises:
            TrainingStoppedError: with `on_finding="raise"`.
        """
        self.news += new
        bad = [item for item in new if fails(item.finding.leaf.severity, self._levels)]
        self.should_stop = self.should_stop or next(iter(bad), None)
        if self._on_finding == WARN or (self._on_finding == RAISE and last):
            for item in new:
                _log.warning("%s; stabtree diagnose %s", told(item), self.path)
        elif bad and self._on_finding == RAISE:
            raise TrainingStoppedError(bad[0], self.path)
        elif callable(self._on_finding):
            for item in bad:
                self._on_finding(item)


def _project() -> Judging:
    """How the settings of the working directory say that runs are judged."""
    settings = read_settings()
    return Judging(settings, baseline=accepted_by(None, settings))
