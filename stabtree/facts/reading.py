"""How much of the log was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.facts.registry import fact

if TYPE_CHECKING:
    from stabtree.run import Run

# A verdict rests on these; a section whose own metric was misread says so by itself.
JUDGED = ("step", "loss", "grad_norm")


class Reading(NamedTuple):
    """How many lines of the log were read and left unread, and whether those read stand for the run."""

    read: int
    unread: int
    stands: bool


@fact()
def reading(run: Run, *, unread_share: float) -> Reading:
    """Whether what was read stands for the run: at most `unread_share` of its lines, or of a series, was misread."""
    unread = sum(source.skipped_count for source in run.sources)
    read = sum(source.rows for source in run.sources)
    uses = [use for source in run.sources for use in source.columns if use.metric in JUDGED]
    misread = any(use.misread > unread_share * max(use.logged or 0, use.misread) for use in uses)
    return Reading(read, unread, unread <= unread_share * read and not misread)
