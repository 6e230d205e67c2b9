"""The clues that causes and fixes may ask for. Trees name them; a new one is one function, listed here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.predicates.clues import lines, rates, rows, settings

if TYPE_CHECKING:
    from stabtree.predicates.clues.registry import Clue

CLUES: dict[str, Clue] = {
    item.name: item
    for item in (
        lines.failing_line,
        lines.several_ranks,
        rates.decay_share,
        rates.rate_for_update,
        rows.lone_infinite_norms,
        rows.recovery_rows,
        settings.decay_over_run,
        settings.rate_over_usual,
    )
}
