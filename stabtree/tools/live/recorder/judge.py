"""Who judges the log of a loop, and when the loop is to stop."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from stabtree.judging.judge import Judging, accepted_by
from stabtree.judging.settings import read_settings
from stabtree.tools.live.recorder.beside import JudgeProcess, Setup
from stabtree.tools.live.recorder.findings import Findings, TrainingStoppedError
from stabtree.tools.live.recorder.writer import described

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stabtree.tools.live.news import News
    from stabtree.tools.live.recorder.in_loop import LoopWatch
    from stabtree.tools.live.recorder.ranks import Ranks
    from stabtree.tools.live.recorder.writer import Problems

_log = logging.getLogger(__name__)


class LogJudge:
    """Has a log judged while it is written, and stops the loop: all ranks of it at the same step.

    Args:
        path: the log.
        findings: reports what is found.
        problems: reports what goes wrong.

    Attributes:
        should_stop: what the loop is to stop for.
    """

    def __init__(self, path: Path, findings: Findings, problems: Problems) -> None:
        self._path, self._findings, self._problems = path, findings, problems
        self._ranks: Ranks | None = None
        self._setup: Setup | None = None
        self._watch: JudgeProcess | LoopWatch | None = None
        self._new: tuple[News, ...] = ()
        self.should_stop: News | None = None

    @property
    def news(self) -> tuple[News, ...]:
        """All that was reported."""
        return self._findings.news

    @property
    def waits(self) -> bool:
        """Whether something was found that is reported once it has held for some rows."""
        return self._watch is not None and self._watch.waits

    def stops_with(self, ranks: Ranks | None) -> None:
        """Stop the loop at the same step as other ranks; None where each decides by itself."""
        self._ranks = ranks

    def start(self, judging: Judging | None, hold_rows: int | None) -> None:
        """Have the log judged by a process beside the loop, or inside the loop where none can be started.

        Args:
            judging: how it is judged; as the settings of the working directory say, where not given.
            hold_rows: for so many rows a finding must hold before it is reported.

        Raises:
            StabtreeError: for settings that are wrong.
        """
        if judging is None:
            settings = read_settings()
            judging = Judging(settings, baseline=accepted_by(None, settings))
        self._setup = Setup(self._path.absolute(), judging, hold_rows, self._findings.mildest)
        try:
            self._watch = JudgeProcess(self._setup, self._failed)
        except Exception as error:  # whatever the system says, or whatever can't be sent to another process
            self._judge_inside(self._setup, error)

    def wrote(self, row: Mapping[str, Any]) -> None:
        """Take in a row that was written."""
        if self._watch is None or self._setup is None:
            return
        numbers = {name: value for name, value in row.items() if not isinstance(value, str)}
        try:
            self._new += self._watch.grown(numbers)
        except ChildProcessError as error:
            self._watch.abandon()
            self._judge_inside(self._setup, error)
        except Exception as error:  # a fault of ours must not end the training
            self._failed(f"the log could not be judged; it is tried again as it grows: {described(error)}")

    def report(self, step: int) -> None:
        """Report what was found since, and stop the loop where it is time to.

        Raises:
            TrainingStoppedError: with `on_finding="raise"`.
        """
        new, self._new = self._new, ()
        stop = self._findings.report(new)
        if self._ranks is not None:
            stop = self._agreed(self._ranks, step)
        self.should_stop = self.should_stop or stop
        if stop is not None and self._findings.raises:
            raise TrainingStoppedError(stop, self._path)

    def ended(self) -> None:
        """Report what is found in a log that has ended, and raise nothing."""
        if self._watch is not None:
            try:
                self._new += self._watch.ended()
            except Exception as error:  # as in `wrote`
                self._failed(f"the log could not be judged to its end: {described(error)}")
        new, self._new = self._new, ()
        stop = self._findings.report(new, last=True)
        self.should_stop = self.should_stop or stop

    def abandon(self) -> None:
        """Judge no more."""
        if self._watch is not None:
            self._watch.abandon()

    def _failed(self, problem: str) -> None:
        self._problems.report("judge", problem)

    def _agreed(self, ranks: Ranks, step: int) -> News | None:
        """Return what all ranks stop for at a step, once."""
        if self.should_stop is not None:
            return None
        try:
            return ranks.stops(step, self._findings.worst)
        except Exception as error:  # whatever torch says, as where the process that keeps the values is gone
            self._ranks = None
            self._problems.report("ranks", f"the ranks can't agree on when to stop any more: {described(error)}")
            return self._findings.worst

    def _judge_inside(self, setup: Setup, error: Exception) -> None:
        """Judge the log inside the loop, since no process can do it."""
        text = "%s: no process can be started to judge it, so that it is judged inside the loop, now and then: %s"
        _log.warning(text, self._path, described(error))
        from stabtree.tools.live.recorder.in_loop import LoopWatch

        self._watch = LoopWatch(setup)
