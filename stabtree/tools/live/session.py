"""One growing log: when it is judged, what is found in it then, and what of that is news.

`stabtree watch` and the Recorder both use it. Each judgement reads the whole log, as `stabtree diagnose` would then.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.errors import StabtreeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.judging.judge import Judging
    from stabtree.judging.verdict import Outcome
    from stabtree.loaders import Loaded
    from stabtree.run import Run, Setting
    from stabtree.tools.live.events import Announcer, News

GROWTH = 0.02
"""A log that has grown by this share is judged, so that each row costs the same however long the log is."""
PAUSE_SECONDS = 5.0
PAUSE_SHARE = 0.05
"""After a pause any growth is enough, if the last judgement took no more than this share of the pause."""
MAX_READS = 100
"""All judgements together read a log so many times where signs call for them; growth alone comes to 50 times."""
FREE_SECONDS, LOOP_SHARE, LOOP_PAUSE_SECONDS = 2.0, 0.01, 1.0
"""Inside a training loop judging may take so many seconds, and this share of the time, with a pause between two."""
SIGN_SECONDS, SIGN_SHARE = 10.0, 0.02
"""The same for judgements that a sign calls for."""
LOOKS = 4
"""What a row is a sign of may take some more rows to show."""


class Signs:
    """What single rows show: a sign calls for a judgement of the log, and is no finding by itself."""

    def __init__(self) -> None:
        self._before: frozenset[str] = frozenset()
        self._looks = 0

    def in_row(self, row: Mapping[str, object]) -> bool:
        """Return whether a row shows what the row before did not, or comes soon after one that did."""
        numbers = {name: value for name, value in row.items() if isinstance(value, int | float)}
        signs = {f"{name} is not finite" for name, value in numbers.items() if not math.isfinite(value)}
        signs |= {f"{name} is 0" for name in ("loss", "grad_norm") if numbers.get(name) == 0.0}
        if numbers.get("loss_scale", 1.0) < 1.0:  # it divides: seeds/phase19, section 3
            signs.add("loss_scale is below 1")
        return self.call(frozenset(signs))

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
    ) -> None:
        self._judge = judge
        self.announcer = announcer
        self._in_loop = in_loop
        self.clock = clock
        self.outcomes: Sequence[Outcome] = ()
        self._size = self._read = 0
        self._begun = self._ended = clock()
        self._last_seconds = self._spent = 0.0

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
        return self._judged(size) if self._is_due(size, sign=sign) else ()

    def ended(self, size: int) -> tuple[News, ...]:
        """Judge the log without waiting for further rows: for the last time, or since it has fallen silent."""
        return self._judged(size, final=True)

    def _has_rows_for_what_waits(self, size: int) -> bool:
        """Return whether the log should hold the rows that a change waits for, by the average length of its rows."""
        until = self.announcer.judge_at(self.clock())
        if until is None or not self._size:
            return False
        return self.announcer.rows * size / self._size >= until - 0.5

    def _is_due(self, size: int, *, sign: bool) -> bool:
        now = self.clock()
        if size <= self._size:
            return size < self._size  # written anew
        may_read = self._read + size <= MAX_READS * size
        if sign and may_read and (not self._in_loop or self._may_spend(SIGN_SECONDS, SIGN_SHARE, now)):
            return True
        waited = now - self._ended
        if self._in_loop and (waited < LOOP_PAUSE_SECONDS or not self._may_spend(FREE_SECONDS, LOOP_SHARE, now)):
            return False
        if may_read and self._has_rows_for_what_waits(size):
            return True
        paused = waited >= PAUSE_SECONDS and self._last_seconds <= PAUSE_SHARE * waited
        return paused or size - self._size >= max(GROWTH * self._size, 1)

    def _may_spend(self, seconds: float, share: float, now: float) -> bool:
        return self._spent + self._last_seconds <= seconds + share * (now - self._begun)

    def _judged(self, size: int, *, final: bool = False) -> tuple[News, ...]:
        began, is_first = self.clock(), not self._read
        try:
            self.outcomes = self._judge()
            return self.announcer.judged(self.outcomes, final=final, now=began)
        finally:  # a failure takes its time too
            if size < self._size:
                self._read = 0
            self._read += size
            self._size = size
            self._ended = self.clock()
            self._last_seconds = 0.0 if is_first else self._ended - began  # the first one imports what it needs
            self._spent += self._last_seconds


class LogJudge:
    """Judges runs by their logs, as `diagnose` does, and by the configuration that the logs hold, as `check` does.

    Args:
        judging: how runs are judged; rules about configurations may be ignored too.
    """

    def __init__(self, judging: Judging) -> None:
        from stabtree.judging.judge import Judging
        from stabtree.tools.check.judge import rules

        self._ignored = frozenset(judging.ignore)
        of_logs = judging.ignore
        if self._ignored:
            of_configs = rules(Judging(judging.settings, trees=judging.trees)).leaves
            of_logs = tuple(name for name in judging.ignore if name not in of_configs)
        self.logs = replace(judging, ignore=of_logs)
        self._configs = Judging(judging.settings, trees=judging.trees, baseline=judging.baseline)
        self._checked: dict[str, tuple[Mapping[str, Setting], Diagnosis | None]] = {}

    def outcome(self, loaded: Loaded) -> Outcome:
        """Return the outcome of a run, with what is wrong in its configuration among the findings."""
        from stabtree.diagnosis.result import worst_first
        from stabtree.judging.verdict import ORDER

        outcome = self.logs.outcome(loaded)
        found = outcome.found
        if isinstance(found, StabtreeError) or not found.run.config:
            return outcome
        before = self._checked.get(outcome.name)
        if before is None or before[0] != found.run.config:  # a configuration is judged once, not at each row
            before = self._checked[outcome.name] = found.run.config, self._check(found.run)
        config = before[1]
        wrong: list[Incident] = []
        if config is not None:
            wrong = [item for item in config.findings if item.is_alarm and item.leaf.id not in self._ignored]
        if config is None or not wrong:
            return outcome
        leaves = {item.leaf.id for item in wrong}
        walks = [visits for visits in (config.path, *config.further) if visits]
        walks = [visits for visits in walks if leaves & set(visits[-1].question.go.values())]
        verdicts = [found.verdict, *(str(item.leaf.severity) for item in wrong)]
        tree, other = found.tree, config.tree
        sections = [section for section in other.sections if section.id not in {item.id for item in tree.sections}]
        both = replace(
            found,
            findings=tuple(worst_first([*found.findings, *wrong])),
            further=(*found.further, *walks),
            tree=replace(
                tree,
                sections=(*tree.sections, *sections),
                questions={**other.questions, **tree.questions},
                leaves={**other.leaves, **tree.leaves},
                groups={**other.groups, **tree.groups},
                entries={**other.entries, **tree.entries},
            ),
            verdict=min(verdicts, key=ORDER.index),
            setting_notes=(),
        )
        return outcome._replace(found=both)

    def _check(self, run: Run) -> Diagnosis | None:
        from stabtree.run import Run
        from stabtree.tools.check.judge import checked
        from stabtree.tools.check.load import completed, header_settings

        settings = header_settings(run.config)
        if not settings:
            return None
        return checked(Run(run.name, {}, completed(settings), sources=run.sources), self._configs)
