"""What to log next: what would decide between the causes that a report shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.text import in_words
from stabtree.diagnosis.missing import RERUN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.report.model.report import CauseRow
    from stabtree.run import Run

MAX_NAMES = 3
MAX_DECIDED = 48  # characters: with what to log a line of a screen


def log_next(diagnosis: Diagnosis, rows: Sequence[CauseRow]) -> str:
    """Return what to log and what it decides; empty where nothing would decide anything about the finding.

    Args:
        diagnosis: what was found.
        rows: the causes that are shown.
    """
    open_ = [row.judged for row in rows if not row.silent]
    wanted = {name: None for judged in open_ for name in judged.missing if _is_lacking(name, diagnosis.run)}
    if wanted:
        deciding = [judged.cause for judged in open_ if judged.missing]
        if len(deciding) == 1:
            cause = deciding[0]
            return f"{_named(list(wanted))}: shows whether it is {cause.short or cause.text}"
        return f"{_named(list(wanted))}: {'they decide' if len(wanted) > 1 else 'it decides'} between the causes"
    for item in diagnosis.log_next:
        if item.decides and any(not text.startswith("whether the cause is") for text in item.decides):
            text = next(text for text in item.decides if not text.startswith("whether the cause is"))
            named = f"{_named(item.names)}: "
            return named + (f"decides {text}" if len(text) <= MAX_DECIDED else "shows which of several things it is")
    return ""


def _is_lacking(name: str, run: Run) -> bool:
    """Return whether something can be logged, and was not."""
    return name != RERUN and not run.has(name) and run.setting(name) is None


def _named(names: Sequence[str]) -> str:
    return in_words(list(names)[:MAX_NAMES])
