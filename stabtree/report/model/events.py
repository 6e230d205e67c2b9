"""What happened around the onset, by groups of series."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.text import in_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.diagnosis.result import Happening


def by_group(events: Iterable[Happening]) -> list[list[Happening]]:
    """Return the events of each group of series, as `weight_norm/<group>`, in the order of their first events."""
    groups: dict[str, list[Happening]] = {}
    for event in events:
        groups.setdefault(event.metric.partition("/")[0], []).append(event)
    return list(groups.values())


def event_groups(events: Iterable[Happening]) -> list[tuple[Happening, int]]:
    """Return the first event of each group of series, and how many of its group followed.

    What several groups did at one step in the same words is one event. Where only one group moved there is nothing to
    list: the headline reports that.
    """
    groups = by_group(events)
    if len(groups) < 2:
        return []
    alike: dict[tuple[int, str], list[list[Happening]]] = {}
    for group in groups:
        alike.setdefault((group[0].step, group[0].text), []).append(group)
    return [_merged(same) for same in alike.values()]


def _merged(groups: list[list[Happening]]) -> tuple[Happening, int]:
    first = groups[0][0]
    metric = in_words([group[0].metric for group in groups])
    leads = any(group[0].first for group in groups)
    return replace(first, metric=metric, first=leads), sum(len(group) - 1 for group in groups)


def followers(count: int) -> str:
    """Say how many more of a group followed its first event; empty where none did."""
    if count:
        return f" and {count:,} more after it"
    return ""
