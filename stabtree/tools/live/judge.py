"""How the log of a training loop is judged inside the loop, what becomes of what is found, and when the ranks stop."""

from __future__ import annotations

import logging
import math
import pickle
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.judging.judge import Judging, accepted_by
from stabtree.judging.settings import read_settings
from stabtree.judging.verdict import LEVELS, Outcome, fails, levels_of
from stabtree.run import Run
from stabtree.tools.live.events import REPORTED_FROM, Announcer, Signs, Watching
from stabtree.tools.live.writer import described, distributed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from stabtree.tools.live.events import News
    from stabtree.tools.live.writer import Problems

WARN, RAISE = "warn", "raise"
AHEAD_ROWS = 2
"""A rank can't be more rows ahead of another where each row waits for the gradients that all of them make together."""

_log = logging.getLogger(__name__)
_runs: Counter[str] = Counter()


class TrainingStoppedError(StabtreeError):
    """What `on_finding="raise"` raises.

    Attributes:
        news: the finding that stops the run.
    """

    def __init__(self, news: News, path: Path) -> None:
        self.news = news
        super().__init__(_describe(news), where=str(path), hint=f"type stabtree diagnose {path}")


def _describe(news: News) -> str:
    """Return a finding in a line: its leaf, what it is, and its step."""
    leaf, step = news.finding.leaf, news.finding.onset_step
    at = "" if step is None else f" at {news.diagnosis.run.unit} {step:,}"
    return f"{leaf.severity} {leaf.id}{at}: {leaf.title}"


class LoopJudge:
    """Judges the log of a loop now and then, and stops the loop: all ranks of it at the same step.

    Args:
        path: the log.
        problems: reports what goes wrong.
        on_finding: `warn`, `raise`, or what is called with each finding at or above `fail_on`.
        fail_on: the levels, as of `--fail-on`.
        ranks: those of the run; None where each decides by itself.
        judges: whether this is the rank that judges.

    Attributes:
        news: the incidents that were reported, each as it was last found.
        should_stop: what the loop is to stop for.

    Raises:
        StabtreeError: for an `on_finding` or a level that is none, or settings that are wrong.
    """

    def __init__(
        self,
        path: Path,
        problems: Problems,
        on_finding: str | Callable[[News], object],
        fail_on: str | Iterable[str],
        ranks: Ranks | None,
        *,
        judges: bool,
    ) -> None:
        if on_finding not in (WARN, RAISE) and not callable(on_finding):
            problem, hint = f"{on_finding!r} is not a way to report a finding", f"{WARN!r}, {RAISE!r}, or a function"
            raise StabtreeError(problem, where="Recorder: on_finding", hint=hint)
        try:
            self._levels = levels_of([fail_on] if isinstance(fail_on, str) else [*fail_on])
        except StabtreeError as error:
            raise StabtreeError(error.problem, where="Recorder: fail_on", hint=error.hint) from None
        self._path, self._problems, self._on_finding, self._ranks = path, problems, on_finding, ranks
        self._signs = Signs()
        self._watching: Watching | None = None
        self._has_rows = False
        self._new: tuple[News, ...] = ()
        self._worst: News | None = None
        self.news: tuple[News, ...] = ()
        self.should_stop: News | None = None
        if judges:
            mildest = min([REPORTED_FROM, *(it for it in LEVELS if it in self._levels)], key=lambda it: it.rank)
            judge, announcer = _judging(path.absolute()), Announcer(reported_from=mildest)
            self._watching = Watching(judge, announcer, in_loop=True, cost=time.thread_time)

    def wrote(self, row: Mapping[str, Any], size: int) -> None:
        """Take in a row that was written, by its values, and judge the log, now so many bytes, if it is time to."""
        if self._watching is not None:
            self._has_rows = True
            self._judge(lambda watching: watching.grown(size, sign=self._signs.in_row(row)))

    def report(self, step: int) -> None:
        """Report what was found since the last step, and stop the loop where it is time to.

        Raises:
            TrainingStoppedError: with `on_finding="raise"`.
        """
        stop = self._report(warns=self._on_finding == WARN)
        if self._ranks is not None:
            try:
                stop = self._ranks.stops(step, self._worst) if self.should_stop is None else None
            except Exception as error:  # whatever torch says, as where the process that keeps the values is gone
                self._ranks, stop = None, self._worst
                problem = f"the ranks can't agree on when to stop any more: {described(error)}"
                self._problems.report("ranks", problem)
        self.should_stop = self.should_stop or stop
        if stop is not None and self._on_finding == RAISE:
            raise TrainingStoppedError(stop, self._path)

    def ended(self, size: int) -> None:
        """Report what is found in a log that has ended, and raise nothing."""
        if self._has_rows:  # else the rows are those of another run
            self._judge(lambda watching: watching.ended(size))
        stop = self._report(warns=not callable(self._on_finding))
        self.should_stop = self.should_stop or stop

    def _judge(self, judge: Callable[[Watching], tuple[News, ...]]) -> None:
        if self._watching is not None:
            try:
                self._new += judge(self._watching)
            except Exception as error:  # a fault of ours must not end the training
                problem = f"the log could not be judged; it is tried again as it grows: {described(error)}"
                self._problems.report("judge", problem)
            for text in [text for _, found in self._watching.outcomes for text in getattr(found, "setting_notes", ())]:
                self._problems.report(text, text)

    def _report(self, *, warns: bool) -> News | None:
        """Report what is new and not over; return the first incident that is now at or above `fail_on`."""
        new = [item for item in self._new if item.change.is_finding]
        told = {item.incident: item for item in self.news}
        bad = [item for item in new if self._fails(item) and not (item.is_update and self._fails(told[item.incident]))]
        self._new, self.news = (), tuple((told | {item.incident: item for item in new}).values())
        first = next(iter(bad), None)
        self._worst = self._worst or first
        if warns:
            for item in new:
                was = f", first {item.before}" if item.is_update else ""
                _log.warning("%s%s; stabtree diagnose %s", _describe(item), was, self._path)
        elif callable(self._on_finding):
            for item in bad:
                self._on_finding(item)
        return first

    def _fails(self, news: News) -> bool:
        return fails(news.finding.leaf.severity, self._levels)


def _judging(file: Path) -> Callable[[], list[Outcome]]:
    """Return what judges a log, as the settings of the working directory say."""
    settings = read_settings()
    judging = Judging(settings, baseline=accepted_by(None, settings))
    judging.diagnosed(Run("nothing yet", {}))  # what it can't be judged by, no run can

    def judged() -> list[Outcome]:
        from stabtree.loaders import load_runs

        try:
            return [judging.outcome(item) for item in load_runs(file, **settings.reading())]
        except StabtreeError as error:  # as after it was moved away: it is begun anew, and judged again
            return [Outcome(str(file), error)]

    return judged


class Ranks:
    """The ranks of a run, each with its Recorder, which stop at the same step.

    Rank 0, which judges, names in the store of torch.distributed a step that no rank has passed yet.

    Args:
        store: where all ranks set and read values by key.
        rank: which of them this is.
        key: the key of the step.
    """

    def __init__(self, store: Any, rank: int, key: str) -> None:
        self._store, self._rank, self._key = store, rank, key
        self._last_step = math.inf
        self._stride = 1
        self._news: News | None = None
        self._stop_step = 0

    def stops(self, step: int, found: News | None) -> News | None:
        """Return what stops the run at a step that was just logged; None where it goes on.

        Args:
            step: the step.
            found: what was found that stops the run, on the rank that judges.
        """
        if step > self._last_step:
            self._stride = step - int(self._last_step)
        self._last_step = step
        if self._news is None and found is not None and not self._rank:
            self._news, self._stop_step = found, step + AHEAD_ROWS * self._stride
            run = replace(found.diagnosis.run, series={})  # which the other ranks need not read
            bare = found._replace(diagnosis=replace(found.diagnosis, run=run))
            self._store.set(self._key, pickle.dumps((self._stop_step, bare)))
        elif self._news is None and self._rank and self._store.check([self._key]):
            self._stop_step, self._news = pickle.loads(self._store.get(self._key))  # noqa: S301 - by rank 0 of this run
        return self._news if self._news is not None and step >= self._stop_step else None


def ranks_here(path: Path) -> Ranks | None:
    """Return the ranks that torch.distributed knows; None where there is only one.

    Args:
        path: the log of rank 0, which names the run.
    """
    known = distributed()
    if known is None or known.get_world_size() < 2:
        return None
    _runs[str(path)] += 1
    with suppress(Exception):  # another version of torch, or a backend without a store
        store = known.distributed_c10d._get_default_store()  # noqa: SLF001 - there is no public way
        return Ranks(store, known.get_rank(), f"stabtree/{path}/{_runs[str(path)]}/stop")
    _log.warning("%s: the ranks can't agree on when to stop: each stops by itself", path)
    return None
