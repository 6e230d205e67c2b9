"""How much of the log was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.facts.registry import fact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.run import Run

# A verdict rests on these; a section whose own metric was misread reports it itself.
JUDGED = ("step", "loss", "grad_norm")


class Reading(NamedTuple):
    """How many lines of the log were read and left unread, and why those read do not represent the run, if so."""

    read: int
    unread: int
    misread: str


@fact()
def reading(run: Run, *, unread_share: float) -> Reading:
    """Judge whether what was read represents the run: at most `unread_share` of its lines or of a series is misread."""
    unread = sum(source.skipped_count for source in run.sources)
    read = sum(source.rows for source in run.sources)
    problems = [*_lines(read, unread, unread_share), *_damaged(run, unread_share), *_cells(run, unread_share)]
    return Reading(read, unread, " and ".join(problems[:2]))


def _lines(read: int, unread: int, share: float) -> Iterator[str]:
    if unread > share * read:
        yield f"{unread:,} of {read + unread:,} lines could not be read"


def _damaged(run: Run, share: float) -> Iterator[str]:
    worst = max((source.lost_share for source in run.sources), default=0.0)
    if worst > share:
        yield f"{worst:.0%} of its bytes are damaged"


def _cells(run: Run, share: float) -> Iterator[str]:
    for source in run.sources:
        for use in source.columns:
            if use.metric in JUDGED and use.misread > share * max(use.filled, use.misread):
                what = "steps" if use.metric == "step" else f"values of {use.metric}"
                named = f" (column {use.name})" if use.name != use.metric else ""
                yield f"{use.misread:,} of {max(use.filled, use.misread):,} {what}{named} are not what was logged"
