"""What happened around the onset, by groups of series."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.diagnosis.judged import Happening


def by_group(events: Iterable[Happening]) -> list[list[Happening]]:
    """Return the events of each group of series, as `weight_norm/<group>`, in the order of their first events."""
    groups: dict[str, list[Happening]] = {}
    for event in events:
        groups.setdefault(event.metric.partition("/")[0], []).append(event)
    return list(groups.values())


def followers(count: int) -> str:
    """Say how many more of a group followed its first event; empty where none did."""
    if count:
        return f" and {count:,} more after it"
    return ""
