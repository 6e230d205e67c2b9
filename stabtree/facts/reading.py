"""How much of the log was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.facts.registry import fact

if TYPE_CHECKING:
    from stabtree.run import Run


class Reading(NamedTuple):
    """How many lines of the log were read and left unread, and whether those read stand for the run."""

    read: int
    unread: int
    stands: bool


@fact()
def reading(run: Run, *, unread_share: float) -> Reading:
    """Whether what was read stands for the run: no more than `unread_share` of its lines could not be read."""
    unread = sum(source.skipped_count for source in run.sources)
    read = sum(source.rows for source in run.sources)
    return Reading(read, unread, unread <= unread_share * read)
