"""A configuration's diagnosis for a pull request: a table of what to fix, and what was not judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.judging.outcome import UNREAD
from stabtree.report.markdown import escape, folded, listed, paged, table
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.verdicts import BADGES
from stabtree.report.words import accepted_notes, badge, headline
from stabtree.tools.check.report import closing, coverage, items, read_from, unjudged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.judging.outcome import Outcome

HEADS = ("", "what", "now", "what it costs", "fix", "source")


def markdown(outcomes: Sequence[Outcome], look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the diagnoses in Markdown, one after the other, in the order of the paths."""
    parts = []
    for outcome in outcomes:
        found = outcome.found
        if isinstance(found, StabtreeError):
            parts.append(f"### {BADGES[UNREAD].word}: {escape(outcome.name)}: {escape(found.problem)}\n")
        else:
            parts.append(_section(found, outcome.name, look))
    return "\n".join(parts)


def _section(diagnosis: Diagnosis, name: str, look: RenderOptions) -> str:
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
    judged = escape(coverage(diagnosis))
    missing = [escape(f"{rule.id}: {rule.ask} {rule.reason}") for rule in unjudged(diagnosis)]
    return paged(
        f"### {BADGES[badge(diagnosis)].word}: {escape(name)}: {escape(headline(diagnosis))}",
        table(HEADS, rows) if rows else "",
        folded(judged, listed(missing)) if missing else judged,
        listed(map(escape, (*read_from(diagnosis, name), *accepted_notes(diagnosis), *diagnosis.run.notes))),
        f"**{escape(closing(diagnosis, look.exit_code))}**",
    )
