"""The figures of `benchmarks.watch`: who was alarmed, how soon, and what of it the whole log still shows."""

from __future__ import annotations

import statistics
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.watch import Seen

GOALS = {"1": "k + 1", "2 seen": "5", "2 persistent": "60", "3": "k + 1", "4": "its window", "other": "none"}
LEAF, _SEVERITY, ROWS, FIRST, ONSET, STEP = range(6)


def report(seen: Sequence[Seen]) -> None:
    """Print all figures, for each hold and each half."""
    for one in seen:
        if one.error:
            print(f"not watched: {one.case.id}: {one.error[:150]}")
    watched = [one for one in seen if not one.error]
    print(f"{len(watched)} of {len(seen)} logs, {sum(one.judged for one in watched):,} judgements")
    for hold in dict.fromkeys(hold for one in watched for hold in one.told):
        for half in ("dev", "held"):
            _report(hold, half, [one for one in watched if one.case.half == half and hold in one.told])


def _report(hold: str, half: str, seen: Sequence[Seen]) -> None:
    if not seen:
        return
    healthy = [one for one in seen if not one.case.fault]
    faults = [one for one in seen if one.case.fault]
    alarmed = [one for one in healthy if one.told[hold]]
    print(f"\n== hold {hold}, half {half}")
    passing = sum(not one.final for one in alarmed)
    print(f"healthy ever alarmed {len(alarmed)}/{len(healthy)}, {passing} of them not by the whole log")
    for one in alarmed:
        final = "whole too" if one.final else "in passing"
        print(f"  {final:10s} {one.case.id} of {one.rows} rows: {_told(one, hold)}")
    told = [one for one in faults if one.told[hold]]
    late = [one.case.id for one in faults if one.final and not one.told[hold]]
    print(f"faults told {len(told)}/{len(faults)}; by the whole log alone: {' '.join(late) or 'none'}")
    _lags(hold, told)
    early = [one for one in told if _before(one, hold)]
    print(f"told before the log shows it: {len(early)}")
    for one in early:
        print(f"  {one.case.id} {one.case.fault} visible in row {one.visible_row}: {_told(one, hold, early=True)}")
    gone = [one for one in told if not one.final]
    renamed = [one for one in told if one.final and {item[LEAF] for item in one.told[hold]} - _leaves(one)]
    print(f"told, and nothing in the whole log: {len(gone)}; another leaf than in the whole log: {len(renamed)}")
    for one in (*gone, *renamed):
        leaves = ", ".join(sorted(_leaves(one))) or "nothing"
        print(f"  {one.case.id} {one.case.fault} {_told(one, hold)}; in the end {leaves}")
    saved = [(one.last_step - one.told[hold][0][STEP], one.last_step) for one in told if one.last_step]
    if saved:
        share = statistics.median(steps / total for steps, total in saved)
        print(f"steps saved: {sum(one for one, _ in saved):,} of {sum(of for _, of in saved):,}; median {share:.0%}")


def _lags(hold: str, told: Sequence[Seen]) -> None:
    """Rows from the one that first shows a fault to the one at which it is told, by section."""
    lags: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for one in told:
        after = [item for item in one.told[hold] if not _is_before(one, item)]
        if one.visible_row is not None and after:
            lags[one.case.section].append((after[0][ROWS] - one.visible_row, f"{one.case.id}:{after[0][LEAF]}"))
    for section, found in sorted(lags.items()):
        rows = sorted(lag for lag, _ in found)
        at = rows[min(len(rows) - 1, int(0.9 * len(rows)))]
        worst = ", ".join(f"{lag} {name}" for lag, name in sorted(found, reverse=True)[:4])
        median = f"median {statistics.median(rows):g}, 90% {at}"
        print(f"  §{section:13s} {len(rows):3d} told, rows {median} (goal {GOALS[section]}); worst {worst}")


def _is_before(one: Seen, item: list[Any]) -> bool:
    return one.visible_row is not None and item[ROWS] < one.visible_row


def _before(one: Seen, hold: str) -> bool:
    return any(_is_before(one, item) for item in one.told[hold])


def _leaves(one: Seen) -> set[str]:
    return {leaf for leaf, *_ in one.final}


def _told(one: Seen, hold: str, *, early: bool = False) -> str:
    items = [item for item in one.told[hold] if not early or _is_before(one, item)]
    return " ".join(f"{item[LEAF]}@{item[ONSET]} row {item[FIRST]}>{item[ROWS]}" for item in items)
