"""What an incident is made of: its causes as they were judged, what to do, what happened, and the rows that show it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.common.answer import Evidence
    from stabtree.tree.model import Cause


class CauseState(StrEnum):
    """What the log says of a cause, strongest first."""

    CONFIRMED = "confirmed"
    LIKELY = "likely"
    POSSIBLE = "possible"  # no log can test it, or what it needs is not known to hold
    NOT_CONFIRMED = "not confirmed"  # tested, and the threshold was not reached
    NOT_CHECKABLE = "not checkable"  # this log can't test it
    RULED_OUT = "ruled out"  # the log speaks against it


STRONG = (CauseState.CONFIRMED, CauseState.LIKELY)  # something in the log speaks for it
WEAK = (CauseState.POSSIBLE, CauseState.NOT_CHECKABLE)  # it may be
SILENT = (CauseState.NOT_CONFIRMED, CauseState.RULED_OUT)  # it was tested, and nothing speaks for it


class JudgedCause(Struct, frozen=True):
    """A cause with what the log says of it.

    Attributes:
        cause: the cause, its fixes with the numbers of the run.
        state: what the log says of it.
        evidence: what speaks for it; of one that is ruled out, what speaks against it.
        reason: why it was not tested, or not counted.
        missing: the metrics that would test it.
        odds: how many times likelier it is than a cause of which nothing is known.
    """

    cause: Cause
    state: CauseState
    evidence: tuple[Evidence, ...] = ()
    reason: str = ""
    missing: tuple[str, ...] = ()
    odds: float = 1.0


class Decision(Struct, frozen=True):
    """What to find out first, since causes with different fixes remain.

    Attributes:
        ask: the question, or the trial to run.
        branches: what may come out of it, each with what to do then.
        causes: the ids of the causes between which it decides; empty where the leaf asks it.
    """

    ask: str
    branches: tuple[tuple[str, str], ...]
    causes: tuple[str, ...] = ()


class Fix(Struct, frozen=True):
    """One thing to do.

    Attributes:
        text: what to do.
        reason: the evidence that speaks for it; empty if none does beyond that of the finding itself.
        conditional: whether it is of use only if a merely possible cause holds.
        cause: the id of the cause that it is for; empty where it is the leaf's.
    """

    text: str
    reason: str = ""
    conditional: bool = False
    cause: str = ""


class Happening(Struct, frozen=True):
    """One thing that happened around the onset of the worst finding.

    Attributes:
        step: when.
        metric: the series.
        text: what it did, with its numbers.
        first: whether it alone moved before all others.
        unit: what `step` counts: `step`, or `row`.
    """

    step: int
    metric: str
    text: str
    first: bool = False
    unit: str = "step"

    @property
    def sentence(self) -> str:
        """The series and what it did."""
        if self.metric in self.text:
            return self.text
        return f"{self.metric} {self.text}"


class QuotedRow(Struct, frozen=True):
    """A row of the log that shows an incident.

    Attributes:
        step: its step.
        what: `last good`, `onset`, `worst` or `end`.
        values: what was logged there, by metric; None for a NaN.
    """

    step: int
    what: str
    values: Mapping[str, float | None]
