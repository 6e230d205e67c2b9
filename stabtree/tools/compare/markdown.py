"""A comparison for a pull request or an issue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.report.markdown import code, escape, listed, paged, table
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions
from stabtree.report.verdicts import BADGES
from stabtree.tools.compare import report as words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stabtree.tools.compare.result import Comparison

MAX_PARTINGS = 20


def markdown(comparison: Comparison, _look: RenderOptions = DEFAULT_OPTIONS) -> str:
    """Return the comparison in Markdown."""
    word, _ = words.WORDS[comparison.parted]
    rows = words.partings(comparison)
    verdicts = ((BADGES[row.badge].word, row.name, row.text) for row in words.verdicts(comparison))
    return paged(
        f"### {word}: {escape(words.title(comparison))}",
        escape(words.basis(comparison)),
        listed(map(escape, comparison.notes)),
        _part("Who parted first", ("where", "series", "good", "bad", ""), rows[:MAX_PARTINGS]),
        f"And {len(rows) - MAX_PARTINGS} more." if len(rows) > MAX_PARTINGS else "",
        _part("Settings that differ", ("setting", "good", "bad"), map(words.setting, comparison.settings)),
        _part("Verdict of each run", ("verdict", "run", "what was found"), verdicts),
        escape(words.findings_apart(comparison)),
        _part("Not compared", ("series", "why"), comparison.left_out),
        f"**{escape(words.closing(comparison))}**",
        code(words.next_command(comparison)),
    )


def _part(head: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [list(map(escape, row)) for row in rows]
    if cells:
        return f"#### {head}\n\n{table(heads, cells)}"
    return ""
