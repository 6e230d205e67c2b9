"""What calibrating on one half of healthy runs does for the other half, and what it costs in faults.

    python -m benchmarks.calibrate [--faultbench DIR] [--wild DIR]

`--faultbench` names a split with runs/ and truth/: every second healthy run is given, the faults are those it names.
It is judged as shipped, with notes for alarms, and by the document's letter, whose bare thresholds cry wolf the most.
`--wild` names a folder with INDEX.csv: the healthy logs of one half of the repositories are given (`benchmarks.wild`).
A line each: alarms on the given half and on the other one, and faults without an alarm, before and after.
"""

from __future__ import annotations

import argparse
import csv
import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.wild import half
from stabtree.common.errors import StabtreeError
from stabtree.judging.judge import Judging
from stabtree.loaders import load_runs
from stabtree.run import Run
from stabtree.tools.tune.calibrate.calibrating import calibrate
from stabtree.tools.tune.calibrate.faults import faults_of, load_faults
from stabtree.tools.tune.calibrate.walks import Walks
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.loaders import Loaded

WAYS = {
    "as shipped": (Judging(), Severity.WARNING),
    "with notes": (Judging(), Severity.NOTE),
    "by the letter": (Judging(literal=True), Severity.WARNING),
}


def figures(name: str, given: Sequence[Loaded], others: Sequence[Loaded], faults: Sequence[Loaded], way: str) -> None:
    """Print a line of figures, and what was set."""
    judging, level = WAYS[way]
    walks = Walks(judging)
    found = calibrate(given, walks, faults_of(load_faults(None, {}), walks), level=level)

    def alarms(runs: Sequence[Loaded], set_: Mapping[str, float], bar: Severity) -> int:
        return sum(bool(walks.reached(item.run, set_).alarms(bar)) for item in runs if isinstance(item.run, Run))

    def both(runs: Sequence[Loaded], bar: Severity) -> str:
        return f"{alarms(runs, {}, bar):>3} -> {alarms(runs, found.settings, bar):<3} of {len(runs):<3}"

    print(f"{name:11} {way:14} given {both(given, level)}  other {both(others, level)}", end="  ")
    caught = alarms(faults, {}, Severity.WARNING), alarms(faults, found.settings, Severity.WARNING)
    print(f"faults missed {len(faults) - caught[0]:>3} -> {len(faults) - caught[1]:<3} of {len(faults)}")
    print(
        f"   expected by leaving out {found.expected.count} of {found.expected.of}, at most {found.expected.high:.1%}"
    )
    print(f"   set {found.settings}, left {[(item.leaf, len(item.runs)) for item in found.left]}")
    print(f"   of {found.caught} shipped faults missed: {[miss.name for miss in found.missed]}")


def faultbench(folder: Path) -> None:
    """The figures of a split of the benchmark."""
    healthy: list[Loaded] = []
    faults: list[Loaded] = []
    for file in sorted((folder / "truth").glob("*.json")):
        truth = json.loads(file.read_text(encoding="utf-8"))
        (healthy if truth["healthy"] else faults).extend(load_runs(folder / "runs" / file.stem))
    for way in WAYS:
        figures("faultbench", healthy[::2], healthy[1::2], faults, way)


def wild(folder: Path) -> None:
    """The figures of the real logs: each half of the repositories is given once."""
    with (folder / "INDEX.csv").open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["label"] == "healthy"]
    halves: dict[str, list[Loaded]] = {"dev": [], "held": []}
    for row in rows:
        try:
            found = load_runs(folder / row["file"])
        except StabtreeError:
            continue
        halves[half(row["repo"])] += [item for item in found if isinstance(item.run, Run)]
    for given, others in (("dev", "held"), ("held", "dev")):
        figures(f"wild {given}", halves[given], halves[others], (), "as shipped")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faultbench", type=Path)
    parser.add_argument("--wild", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.faultbench:
        faultbench(options.faultbench)
    if options.wild:
        wild(options.wild)


if __name__ == "__main__":
    main()
