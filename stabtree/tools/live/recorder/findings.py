"""What was found in the log of a loop, and what becomes of it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.judging.levels import LEVELS, fails, levels_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from stabtree.tools.live.news import News
    from stabtree.tree.model import Severity

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


class Findings:
    """Reports what is found the way that the owner of a Recorder asked for.

    Args:
        path: the log.
        on_finding: `warn`, `raise`, or what is called with each finding at or above `fail_on`.
        fail_on: the levels, as of `--fail-on`.

    Attributes:
        news: all that was reported.
        worst: the first of it at or above `fail_on`.
        mildest: the mildest level that is reported, where it is milder than a warning.

    Raises:
        StabtreeError: for an `on_finding` or a level that is none.
    """

    def __init__(self, path: Path, on_finding: str | Callable[[News], object], fail_on: str | Iterable[str]) -> None:
        if on_finding not in (WARN, RAISE) and not callable(on_finding):
            problem, hint = f"{on_finding!r} is not a way to report a finding", f"{WARN!r}, {RAISE!r}, or a function"
            raise StabtreeError(problem, where="Recorder: on_finding", hint=hint)
        if isinstance(fail_on, str):
            fail_on = [fail_on]
        try:
            self._levels = levels_of([*fail_on])
        except StabtreeError as error:
            raise StabtreeError(error.problem, where="Recorder: fail_on", hint=error.hint) from None
        self._path = path
        self._on_finding = on_finding
        self.news: tuple[News, ...] = ()
        self.worst: News | None = None
        self.mildest: Severity | None = None
        for level in LEVELS:
            if level in self._levels and (self.mildest is None or level.rank < self.mildest.rank):
                self.mildest = level

    @property
    def raises(self) -> bool:
        """Whether the run ends in an error."""
        return self._on_finding == RAISE

    def report(self, new: tuple[News, ...], *, last: bool = False) -> News | None:
        """Report what is new and not over, and return the first of it that is at or above `fail_on`.

        Args:
            new: what is new.
            last: whether the log has ended, so that nothing is raised.
        """
        new = tuple(item for item in new if item.change.is_finding)
        self.news += new
        bad = [item for item in new if fails(item.finding.leaf.severity, self._levels)]
        first = next(iter(bad), None)
        self.worst = self.worst or first
        if self._on_finding == WARN or (self.raises and last):
            for item in new:
                _log.warning("%s; stabtree diagnose %s", describe(item), self._path)
        elif callable(self._on_finding):
            for item in bad:
                self._on_finding(item)
        return first
