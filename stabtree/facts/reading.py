"""How much of the log was read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common import shared
from stabtree.common.lazy import np
from stabtree.facts.registry import fact
from stabtree.metrics.metric import Role
from stabtree.metrics.role import describe_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.common.files import UnreadKind
    from stabtree.run import Run

# A verdict rests on these; a section whose own metric was misread reports it itself.
JUDGED = ("step", "loss", "grad_norm")
OUTCOMES = frozenset((Role.LOSS, Role.HELD_OUT_LOSS, Role.REWARD, Role.QUALITY))
_VALUE = re.compile(
    r"(?<![\w.])([a-z][\w/.-]{0,60}) ?[:=]\s?([-+]?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|nan|inf))(?!\w|\.\d)", re.IGNORECASE
)


class Reading(NamedTuple):
    """How many lines of the log were read and left unread, and why those read do not represent the run, if so."""

    read: int
    unread: int
    misread: str


@fact()
def reading(run: Run, *, unread_share: float = shared.SHARE_SOME) -> Reading:
    """Judge whether what was read represents the run: at most `unread_share` of its lines or of a series is misread."""
    unread = sum(source.skipped_count for source in run.sources)
    read = sum(source.rows for source in run.sources)
    problems = [
        *_lines(read, unread, unread_share),
        *_damaged(run, unread_share),
        *_cells(run, unread_share),
        *_kinds(run),
    ]
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


def _kinds(run: Run) -> Iterator[str]:
    """Yield the lines that hold a loss, a reward or a quality, were not read, and are as many as half of the rows."""
    for source in run.sources:
        for kind in source.unread:
            if not kind.harmless and kind.count >= max(shared.ROWS_SHORT, shared.SHARE_HALF * source.rows):
                yield from _unread_outcomes(run, kind)


def _unread_outcomes(run: Run, kind: UnreadKind) -> Iterator[str]:
    """Yield that lines of a kind were not read, if they hold an outcome whose value was not read elsewhere."""
    for name, value in _VALUE.findall(kind.example):
        if describe_name(name).role in OUTCOMES and not _was_read(run, float(value)):
            yield f"{kind.count:,} lines with {name}, the first is line {kind.line:,}, were not read"
            return


def _was_read(run: Run, value: float) -> bool:
    return any(bool(np.any(series.values == value)) for series in (*run.series.values(), *run.others.values()))
