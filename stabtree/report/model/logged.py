"""What to log next: what would decide between the causes that a report shows."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common.text import in_words
from stabtree.diagnosis.judged import CauseState
from stabtree.diagnosis.missing import RERUN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.report.model.report import CauseRow
    from stabtree.run import Run

MAX_NAMES = 2
OPEN = 2  # causes between which something is to be decided
SEPARATES = ("it separates", "they separate")
MAX_DECIDED = 48  # characters: with what to log a line of a screen


def log_next(diagnosis: Diagnosis, rows: Sequence[CauseRow]) -> str:
    """Return what to log and what it decides; empty where nothing would decide anything about the finding.

    Args:
        diagnosis: what was found.
        rows: the causes that are shown.
    """
    open_ = [row.judged for row in rows if not row.silent]
    settled = bool(diagnosis.findings) and diagnosis.findings[0].decision is not None
    if settled or any(judged.state == CauseState.CONFIRMED for judged in open_):
        return ""
    if len({judged.cause.short or judged.cause.text for judged in open_}) < OPEN:
        return ""
    wanted = dict.fromkeys(chain.from_iterable(judged.missing for judged in open_))
    names = [name for name in wanted if _is_lacking(name, diagnosis.run)]
    if names:
        return f"{_named(names)}: {SEPARATES[len(names[:MAX_NAMES]) > 1]} these causes"
    return _decided(diagnosis)


def _decided(diagnosis: Diagnosis) -> str:
    """Return the first thing to log whose purpose fits beside it on a line; empty where there is none."""
    for item in diagnosis.log_next:
        text = next((text for text in item.decides if not text.startswith("whether the cause is")), "")
        if text and len(text) <= MAX_DECIDED:
            return f"{_named(item.names)}: decides {text}"
    return ""


def _is_lacking(name: str, run: Run) -> bool:
    """Return whether something can be logged, and was not."""
    return name != RERUN and not run.has(name) and run.setting(name) is None


def _named(names: Sequence[str]) -> str:
    return in_words(list(names)[:MAX_NAMES])
