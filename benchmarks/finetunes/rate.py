"""What stabtree says of the fine-tunes, against their labels."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.wild import judge
from faultbench.scoring import ALARMS, NOT_JUDGED

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Rated:
    """One run: its label, and what was said of it."""

    file: str
    framework: str
    healthy: bool
    fault: str
    visible: str
    note: str
    verdict: str
    alarms: tuple[str, ...]

    @property
    def alarmed(self) -> bool:
        """Whether anything in it was called a warning or worse."""
        return self.verdict in ALARMS


def rated(folder: Path) -> list[Rated]:
    """Judge every run of a folder."""
    with (folder / "INDEX.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    runs = []
    for row in rows:
        verdict, alarms, _ = judge(folder / row["file"])
        leaves = tuple(f"{leaf}@{onset}" for leaf, onset, _ in alarms)
        labels = (row["fault"], row["visible"], row["note"], verdict, leaves)
        runs.append(Rated(row["file"], row["framework"], row["healthy"] == "yes", *labels))
    return runs


def report(runs: Iterable[Rated]) -> str:
    """Return the rates, by fault and by trainer, and every run that was answered wrongly."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    wrong = []
    for run in runs:
        kinds = ("healthy", f"healthy {run.framework}") if run.healthy else (f"{run.visible:4s} visible",)
        faults = (f"  {run.fault}",) if run.visible == "yes" else ()
        for kind in (*kinds, *faults):
            counts[kind].update(runs=1, alarmed=int(run.alarmed), unjudged=int(run.verdict in NOT_JUDGED))
        if run.alarmed if run.healthy else run.visible == "yes" and not run.alarmed:
            how = "FALSE " if run.healthy else "MISSED"
            wrong.append(f"{how} {run.verdict:8s} {run.file} {run.fault} {' '.join(run.alarms[:4])} | {run.note}")
    lines = [f"{'':28s} {'alarmed':>14s} {'not judged':>11s}"]
    for kind, count in sorted(counts.items(), key=lambda item: (item[0].startswith("  "), item[0])):
        of = f"{count['alarmed']}/{count['runs']}"
        lines.append(f"{kind:28s} {of:>7s} {count['alarmed'] / count['runs']:6.0%} {count['unjudged']:>11d}")
    return "\n".join([*lines, "", *sorted(wrong)])
