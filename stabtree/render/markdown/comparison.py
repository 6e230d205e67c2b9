"""A comparison for a pull request or an issue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.render.look import LOOK, Look
from stabtree.render.markdown.text import code, escape, listed, paged, table
from stabtree.render.report import comparison as words
from stabtree.render.verdicts import LOOKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.comparing.result import Comparison

MOST_PARTINGS = 20


def markdown(comparison: Comparison, _look: Look = LOOK) -> str:
    """The comparison as GitHub and GitLab show it."""
    word, _ = words.WORDS[comparison.parted]
    rows = words.partings(comparison)
    told = ((LOOKS[row.badge].word, row.name, row.text) for row in words.told(comparison))
    return paged(
        f"### {word}: {escape(words.title(comparison))}",
        escape(words.basis(comparison)),
        listed(map(escape, comparison.notes)),
        _part("Who parted first", ("where", "series", "good", "bad", ""), rows[:MOST_PARTINGS]),
        f"And {len(rows) - MOST_PARTINGS} more." if len(rows) > MOST_PARTINGS else "",
        _part("Settings that differ", ("setting", "good", "bad"), map(words.setting, comparison.settings)),
        _part("What each is told", ("verdict", "run", "what was found"), told),
        escape(words.findings_apart(comparison)),
        _part("Not compared", ("series", "why"), comparison.left_out),
        f"**{escape(words.closing(comparison))}**",
        code(words.next_command(comparison)),
    )


def _part(head: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [[escape(cell) for cell in row] for row in rows]
    return f"#### {head}\n\n{table(heads, cells)}" if cells else ""
