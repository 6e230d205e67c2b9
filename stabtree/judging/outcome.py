"""The outcomes of runs: for each a diagnosis, or why its log can't be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.answer import UNKNOWN
from stabtree.common.errors import StabtreeError
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.result import Diagnosis

UNREAD = "unread"
ORDER = (Severity.CRITICAL, Severity.WARNING, UNREAD, UNKNOWN, Severity.NOTE, Severity.OK)
"""The verdicts, worst first; a log that can't be read may hide anything."""


class Outcome(NamedTuple):
    """The outcome of one of several runs: its name, and its diagnosis or why it can't be read."""

    name: str
    found: Diagnosis | StabtreeError

    @property
    def verdict(self) -> str:
        """The verdict, `unread` for a log that can't be read."""
        if isinstance(self.found, StabtreeError):
            return UNREAD
        return str(self.found.verdict)

    @property
    def partial(self) -> bool:
        """Whether every check that could run passed."""
        return not isinstance(self.found, StabtreeError) and self.found.partial


def worst(outcomes: Sequence[Outcome]) -> str:
    """Return the worst verdict of several runs."""
    return min((outcome.verdict for outcome in outcomes), key=ORDER.index)
