"""A configuration's diagnosis for a pull request: a table of what to mend, and what was not judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.judging.outcome import UNREAD
from stabtree.render.look import LOOK, Look
from stabtree.render.markdown.text import escape, folded, listed, paged, table
from stabtree.render.report.preflight import closing, coverage, items, read_from, unjudged
from stabtree.render.report.words import badge, headline, known
from stabtree.render.verdicts import LOOKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.judging.outcome import Outcome

HEADS = ("", "what", "now", "what it costs", "fix", "source")


def markdown(outcomes: Sequence[Outcome], look: Look = LOOK) -> str:
    """The diagnoses as GitHub and GitLab show them, one after the other, in the order of the paths."""
    parts = []
    for outcome in outcomes:
        found = outcome.found
        if isinstance(found, StabtreeError):
            parts.append(f"### {LOOKS[UNREAD].word}: {escape(outcome.name)}: {escape(found.problem)}\n")
        else:
            parts.append(_told(found, outcome.name, look))
    return "\n".join(parts)


def _told(diagnosis: Diagnosis, name: str, look: Look) -> str:
    rows = [
        (
            f"**{item.severity}**",
            f"{escape(item.title)} ({escape(item.leaf)})",
            escape(item.now),
            escape(item.cost),
            "<br>".join(map(escape, item.fixes)),
            escape(item.source),
        )
        for item in items(diagnosis)
    ]
    open_ = [escape(f"{rule.id}: {rule.ask} {rule.reason}") for rule in unjudged(diagnosis)]
    return paged(
        f"### {LOOKS[badge(diagnosis)].word}: {escape(name)}: {escape(headline(diagnosis))}",
        table(HEADS, rows) if rows else "",
        folded(escape(coverage(diagnosis)), listed(open_)) if open_ else escape(coverage(diagnosis)),
        listed(map(escape, (*read_from(diagnosis, name), *known(diagnosis), *diagnosis.run.notes))),
        f"**{escape(closing(diagnosis, look.exit_code))}**",
    )
