"""How much rests on each threshold on real public logs: what changes with one moved by a factor of 1.25.

    python -m benchmarks.wild_sensitivity DIR [--half dev|held] [--only ID ...]

DIR is that of `benchmarks.wild`. Each log is read once; each number that the shipped trees state is then set to 0.8 and
to 1.25 times its value, one at a time. Printed are those that move any verdict, worst first: false alarms on healthy
logs, failures missed, and how many logs get another verdict. `--only` takes the thresholds of some nodes or facts.
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import stabtree
from benchmarks.sensitivity import WORKERS, Knob, Setting, knobs, trees
from benchmarks.wild import VERDICTS, half
from faultbench.scoring import ALARMS, NO_RATE
from stabtree.loaders import load_runs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.run import Run

FACTORS = (0.8, 1.25)


class Logs(NamedTuple):
    """Which logs are judged: the folder of an index, and the half of its repositories or all."""

    folder: Path
    half: str | None


class Count(NamedTuple):
    """What all logs together say.

    Attributes:
        false_alarms: healthy logs that alarm.
        missed: failures that don't.
        verdicts: the verdict of each log, by its file.
    """

    false_alarms: int
    missed: int
    verdicts: Mapping[str, str]

    def changed(self, other: Count) -> int:
        """How many logs get another verdict."""
        return sum(verdict != other.verdicts[file] for file, verdict in self.verdicts.items())


@cache
def loaded(logs: Logs) -> Mapping[str, tuple[str, tuple[Run, ...]]]:
    """By file, the label and the runs of each log that can be read and that a rate counts; read once in a process."""
    with (logs.folder / "INDEX.csv").open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["label"] not in NO_RATE]
    found = {}
    for row in rows:
        if logs.half and half(row["repo"]) != logs.half:
            continue
        try:
            runs = tuple(item.run for item in load_runs(logs.folder / row["file"]))
        except stabtree.StabtreeError:
            continue
        if sound := tuple(run for run in runs if not isinstance(run, stabtree.StabtreeError)):
            found[row["file"]] = (row["label"], sound)
    return found


def count(logs: Logs, setting: Setting | None) -> Count:
    """What all logs say with one threshold moved, or none."""
    overrides = {setting[0].question: {setting[0].name: setting[0].times(setting[1])}} if setting else {}
    false_alarms = missed = 0
    verdicts = {}
    for file, (label, runs) in loaded(logs).items():
        said = [str(stabtree.diagnose(run, trees(), overrides=overrides).verdict) for run in runs]
        verdicts[file] = min(said, key=VERDICTS.index, default="refused")
        alarmed = verdicts[file] in ALARMS
        false_alarms += alarmed and label == "healthy"
        missed += not alarmed and label != "healthy"
    return Count(false_alarms, missed, verdicts)


def report(shipped: Count, moved: Mapping[Setting, Count]) -> None:
    """Print the thresholds that move a verdict, those that make most logs wrong first."""

    def worse(item: tuple[Setting, Count]) -> tuple[int, int]:
        _, found = item
        wrong = found.false_alarms + found.missed - shipped.false_alarms - shipped.missed
        return -wrong, -found.changed(shipped)

    print(f"{'threshold':42s} {'value':>10s} {'times':>6s} {'false alarms':>13s} {'missed':>7s} {'verdicts':>9s}")
    print(f"{'as shipped':59s} {shipped.false_alarms:>14d} {shipped.missed:>7d}")
    for (knob, factor), found in sorted(moved.items(), key=worse):
        if changed := found.changed(shipped):
            told = f"{knob.question + '.' + knob.name:42s} {knob.value:>10g} {factor:>6g}"
            print(f"{told} {found.false_alarms:>13d} {found.missed:>7d} {changed:>9d}")


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--half", choices=("dev", "held"))
    parser.add_argument("--only", nargs="+", metavar="ID", help="the thresholds of these nodes or facts")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logs = Logs(options.folder.resolve(), options.half)
    wanted: list[Knob] = [knob for knob in knobs(trees()) if not options.only or knob.question in options.only]
    settings: list[Setting] = [(knob, factor) for knob in wanted for factor in FACTORS]
    with ProcessPoolExecutor(WORKERS) as pool:
        moved = dict(zip(settings, pool.map(partial(count, logs), settings), strict=True))
    report(count(logs, None), moved)
    return 0


if __name__ == "__main__":
    sys.exit(main())
