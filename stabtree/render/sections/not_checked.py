"""What could not be checked, and what to log next time, on a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.render.report.build import reasons_of

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis, LogNext
    from stabtree.render.page import Page

MOST = 3  # things to log, and reasons that no log would mend
MOST_IDS = 4
MOST_DECIDED = 2


def not_checked(page: Page, diagnosis: Diagnosis) -> None:
    """What to log next time, the most useful first, and why nothing to log would answer the rest.

    What keeps the run from a verdict and is no matter of logging goes before all.
    """
    vital = {miss.id for miss in diagnosis.lacking}
    reasons = list(reasons_of(diagnosis, vital).items())
    if not diagnosis.log_next and not reasons:
        return
    page.heading("Not checked, and what to log next time")
    first = sum(not vital.isdisjoint(ids) for _, ids in reasons[:MOST])
    for reason, ids in reasons[:first]:
        _reason_line(page, reason, ids)
    told: set[str] = set()
    for place, item in enumerate(diagnosis.log_next[:MOST], 1):
        _advice(page, place, item, told)
        told |= set(item.decides)
    for reason, ids in reasons[first:MOST]:
        _reason_line(page, reason, ids)
    rest = max(len(diagnosis.log_next) - MOST, 0) + max(len(reasons) - MOST, 0)
    if rest:
        page.line((f"and {rest} more; --json lists all", "dim"), indent=4)


def _reason_line(page: Page, reason: str, ids: list[str]) -> None:
    page.item(("·", "id"), [(f"{_some(ids)}: {reason}", "dim")], indent=1, head_width=3)


def _advice(page: Page, place: int, item: LogNext, told: set[str]) -> None:
    names = f"{', '.join(item.names[:-1])} and {item.names[-1]}" if len(item.names) > 1 else item.names[0]
    head, colon, log = item.log.partition(": ")
    if colon and len(item.names) == 1 and head.startswith(names):
        names = head  # with its groups, where it has any
    else:
        log = item.log
    page.item(
        (f"{place}.", "number"), [(f"{names} → {_some(item.unlocks)}", ""), (f": {log}", "dim")], indent=1, head_width=3
    )
    decides = [text for text in item.decides if text not in told][:MOST_DECIDED]
    if decides:
        page.line((f"decides {'; '.join(decides)}", "dim"), indent=4)


def _some(ids: tuple[str, ...] | list[str]) -> str:
    told = ", ".join(ids[:MOST_IDS])
    return f"{told} and {len(ids) - MOST_IDS} more" if len(ids) > MOST_IDS else told
