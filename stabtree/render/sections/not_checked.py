"""What could not be checked, and what to log next time, with how to log it: as `--full` tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.render.report.words import some

if TYPE_CHECKING:
    from stabtree.render.page import Page
    from stabtree.render.report.model import Open, Report

MOST = 3  # things to log, and reasons that no log would mend
MOST_DECIDED = 2


def not_checked(page: Page, report: Report) -> None:
    """The first things to log, and the first reasons why nothing to log would answer the rest."""
    if not report.open:
        return
    page.heading("Not checked, and what to log next time")
    logs = reasons = 0
    told: set[str] = set()
    for item in report.open:
        if item.how and logs < MOST:
            logs += 1
            _advice(page, logs, item, told)
            told |= set(item.decides)
        elif not item.how and reasons < MOST:
            reasons += 1
            page.item(("·", "id"), [(f"{some(item.unlocks)}: {item.text}", "dim")], indent=1, head_width=3)
    rest = len(report.open) - logs - reasons
    if rest:
        page.line((f"and {rest} more; --json lists all", "dim"), indent=4)


def _advice(page: Page, place: int, item: Open, told: set[str]) -> None:
    head, colon, how = item.how.partition(": ")
    if colon and head.startswith(item.text):
        names = head  # with its groups, where it has any
    else:
        names, how = item.text, item.how
    page.item(
        (f"{place}.", "number"), [(f"{names} → {some(item.unlocks)}", ""), (f": {how}", "dim")], indent=1, head_width=3
    )
    decides = [text for text in item.decides if text not in told][:MOST_DECIDED]
    if decides:
        page.line((f"decides {'; '.join(decides)}", "dim"), indent=4)
