"""How much rests on each threshold: move them one at a time, and choose them again without a part of the runs.

    python -m benchmarks.sensitivity BENCH [--split dev] [--every 1 2 5]

BENCH is a copy of faultbench: `score.py`, and `runs/` and `truth/` below the split's folder. With `--every` each run is
judged several times, with only every so many rows of its log, and the counts are sums: on whole logs next to nothing is
wrong with the shipped values, so there is little that a choice could win. Three tables:

- Sensitivity: every number that a question of the shipped trees may set, moved by a quarter down and up, and what
  `score.py` says of the predictions then. The rows in which anything moves come first.
- Grid: the thresholds of the next table at multiples of their shipped values, to see where the nearest cliff is.
- Cross-validation: one model family, or one kind of fault, is held out. On the rest each threshold gets the multiple of
  its shipped value with the least cost (three for a false alarm, one for a miss; of several the one nearest to the
  shipped value), one threshold at a time; the held-out runs are then judged with the chosen and the shipped value.
  The shipped values were settled on the whole of the dev split, which this can't undo: it shows how far a choice
  depends on single families or faults, no more.

The truth is read here and by `score.py`, never by stabtree.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import stabtree
from benchmarks.faultbench import predict
from stabtree.tree.params import stated

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from stabtree.run import Run
    from stabtree.tree.model import Tree

    Log = tuple[str, int]  # a run, and every how many rows of it are judged

WORKERS = 2
QUARTER = (0.75, 1.25)
GRID = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
ALWAYS_CHOSEN = {
    "Q2.1": ("chance",),
    "Q2.3": ("far_chance", "far_share", "start_factor"),
    "Q4.1": ("trend_z", "noise_factor", "range_share"),
    "O0": ("min_share",),
}
FALSE_ALARM_COST = 3


class Knob(NamedTuple):
    """A threshold: the question that sets it, its name and its shipped value."""

    question: str
    name: str
    value: int | float

    def times(self, factor: float) -> int | float:
        """A multiple of the shipped value; of a whole number the nearest other one."""
        moved = self.value * factor
        if isinstance(self.value, float) or factor == 1.0:
            return moved if isinstance(self.value, float) else self.value
        return round(moved) if round(moved) != self.value else self.value + (1 if factor > 1 else -1)


Setting = tuple[Knob, float]
"""A threshold and the multiple of its shipped value that it is set to."""


class Split(NamedTuple):
    """What is judged: a split of a benchmark's folder, at every so many rows of its logs."""

    bench: Path
    name: str
    every: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What `score.py` says, and the predictions themselves.

    Attributes:
        false_alarms: healthy logs that were flagged, as run and thinning.
        misses: faulted logs that were not.
        section: faulted logs with the right section.
        leaf: faulted logs with the right leaf.
        called: what each log is called: healthy or not, section and leaf.
    """

    false_alarms: frozenset[Log]
    misses: frozenset[Log]
    section: int
    leaf: int
    called: Mapping[Log, tuple[Any, ...]]

    def counts(self) -> str:
        """False alarms and misses."""
        return f"{len(self.false_alarms)}/{len(self.misses)}"

    def row(self) -> str:
        """The four counts."""
        return f"{self.counts()}/{self.section}/{self.leaf}"

    def changed(self, other: Outcome) -> int:
        """How many logs are called otherwise."""
        return sum(called != other.called[log] for log, called in self.called.items())

    def among(self, some: Collection[str]) -> tuple[int, int]:
        """False alarms and misses among some runs."""
        false, missed = (sum(run in some for run, _ in logs) for logs in (self.false_alarms, self.misses))
        return false, missed


@cache
def trees() -> Tree:
    """The shipped trees."""
    return stabtree.load_trees()


@cache
def thinned(folder: Path, every: int) -> Mapping[str, Run]:
    """Every run with only every so many rows of each series but the eval loss, read once in each process."""
    found = {}
    for path in sorted(folder.rglob("manifest.json")):
        run = stabtree.load_run(path.parent)
        series = {
            key: one if key == "eval_loss" else replace(one, steps=one.steps[::every], values=one.values[::every])
            for key, one in run.series.items()
        }
        found[path.parent.name] = replace(run, series=series)
    return found


def knobs(tree: Tree) -> Iterator[Knob]:
    """Every number that the trees state, of facts, questions and causes."""
    for (id_, name), value in stated(tree).items():
        if isinstance(value, int | float) and not isinstance(value, bool) and value:
            yield Knob(id_, name, value)


def outcome(split: Split, setting: Setting | None) -> Outcome:
    """The score of all logs with one threshold moved, or none."""
    overrides = {}
    if setting is not None:
        knob, factor = setting
        overrides = {knob.question: {knob.name: knob.times(factor)}}
    false_alarms: set[Log] = set()
    misses: set[Log] = set()
    called: dict[Log, tuple[Any, ...]] = {}
    section = leaf = 0
    for every in split.every:
        logs = thinned(split.bench / split.name / "runs", every)
        found = {name: predict(stabtree.diagnose(run, trees(), overrides=overrides)) for name, run in logs.items()}
        score = scored(split, found)
        false_alarms.update((item[0], every) for item in score["false_alarms"])
        misses.update((item[0], every) for item in score["misses"])
        called.update({(name, every): (p["healthy"], p["section"], p["leaf"]) for name, p in found.items()})
        section += score["_sec"]
        leaf += score["_leaf"]
    return Outcome(frozenset(false_alarms), frozenset(misses), section, leaf, called)


def scored(split: Split, predictions: Mapping[str, Any]) -> dict[str, Any]:
    """What the benchmark's own script says of predictions."""
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder) / "predictions.json", Path(folder) / "score.json"
        given.write_text(json.dumps(predictions), encoding="utf-8")
        command = [sys.executable, "-B", str(split.bench / "score.py"), "--split", split.name]
        command += ["--predictions", str(given), "--json", str(out)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        score: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return score


class Bench:
    """The outcomes of settings, each computed once."""

    def __init__(self, split: Split, pool: ProcessPoolExecutor) -> None:
        self._split, self._pool = split, pool
        self._known: dict[Setting, Outcome] = {}
        self.shipped = outcome(split, None)

    def compute(self, settings: Sequence[Setting]) -> None:
        """Compute what is not known yet, in parallel."""
        new = [s for s in dict.fromkeys(settings) if s[1] != 1.0 and s not in self._known]
        jobs = [self._pool.submit(outcome, self._split, setting) for setting in new]
        self._known.update({setting: job.result() for setting, job in zip(new, jobs, strict=True)})

    def at(self, knob: Knob, factor: float) -> Outcome:
        """The outcome of a threshold at a multiple of its shipped value."""
        return self.shipped if factor == 1.0 else self._known[knob, factor]


def sensitivity(bench: Bench) -> list[Knob]:
    """Print what a quarter down and up does to each threshold; returns those that change any log."""
    all_knobs = list(knobs(trees()))
    bench.compute([(knob, factor) for knob in all_knobs for factor in QUARTER])
    table = []
    for knob in all_knobs:
        down, up = (bench.at(knob, factor) for factor in QUARTER)
        changed = down.changed(bench.shipped), up.changed(bench.shipped)
        same = down.row() == up.row() == bench.shipped.row()
        counts = f"{down.row()} | {bench.shipped.row()} | {up.row()} | {changed[0]} | {changed[1]}"
        table.append((same, -sum(changed), knob, counts))
    print("Sensitivity: false alarms/misses/section/leaf, and how many logs are called otherwise\n")
    print("| threshold | value | -25% | shipped | +25% | logs -25% | logs +25% |\n|---|---|---|---|---|---|---|")
    for _, _, knob, counts in sorted(table):
        print(f"| {knob.question}.{knob.name} | {knob.value:g} | {counts} |")
    moving = [knob for _, changed_count, knob, _ in sorted(table) if changed_count]
    print(f"\n{len(all_knobs)} thresholds, {len(moving)} of them change any log, the rest none.\n")
    return moving


def grid(bench: Bench, candidates: Sequence[Knob]) -> None:
    """Print false alarms and misses of each threshold at multiples of its shipped value."""
    bench.compute([(knob, factor) for knob in candidates for factor in GRID])
    print("Grid: false alarms/misses at multiples of the shipped value\n")
    print(f"| threshold | value | {' | '.join(f'×{factor:g}' for factor in GRID)} |\n|---|---|{'---|' * len(GRID)}")
    for knob in candidates:
        counts = " | ".join(bench.at(knob, factor).counts() for factor in GRID)
        print(f"| {knob.question}.{knob.name} | {knob.value:g} | {counts} |")
    print()


def chosen_factor(bench: Bench, knob: Knob, rest: Collection[str]) -> float:
    """The multiple with the least cost on some runs, of several the one nearest to the shipped value."""

    def cost(factor: float) -> tuple[int, float]:
        false, missed = bench.at(knob, factor).among(rest)
        return FALSE_ALARM_COST * false + missed, abs(math.log(factor))

    return min(GRID, key=cost)


def cross_validation(bench: Bench, candidates: Sequence[Knob], groups: Mapping[str, Collection[str]]) -> None:
    """Print, for each threshold, how the held-out runs are judged with chosen and with shipped values."""
    print("| threshold | value | chosen multiples | held out, chosen | held out, shipped |\n|---|---|---|---|---|")
    totals = [0, 0, 0, 0]
    for knob in candidates:
        counts, choices = _held_out(bench, knob, groups)
        totals = [a + b for a, b in zip(totals, counts, strict=True)]
        told = ", ".join(choices) or "the shipped value each time"
        row = f"{counts[0]}/{counts[1]} | {counts[2]}/{counts[3]}"
        print(f"| {knob.question}.{knob.name} | {knob.value:g} | {told} | {row} |")
    print(f"| total | | | {totals[0]}/{totals[1]} | {totals[2]}/{totals[3]} |\n")


def _held_out(bench: Bench, knob: Knob, groups: Mapping[str, Collection[str]]) -> tuple[list[int], list[str]]:
    """False alarms and misses, chosen and shipped, over all groups; and where another multiple was chosen."""
    counts = [0, 0, 0, 0]
    chosen: dict[float, list[str]] = {}
    for group, held in groups.items():
        factor = chosen_factor(bench, knob, {run for other, some in groups.items() if other != group for run in some})
        chosen.setdefault(factor, []).append(group)
        outcomes = (*bench.at(knob, factor).among(held), *bench.shipped.among(held))
        counts = [a + b for a, b in zip(counts, outcomes, strict=True)]
    told = (
        f"×{factor:g} without {', '.join(some) if len(some) <= 3 else f'each of {len(some)}'}"
        for factor, some in sorted(chosen.items())
        if factor != 1.0
    )
    return counts, list(told)


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("--split", default="dev")
    parser.add_argument("--every", type=int, nargs="+", default=[1], help="judge every so many rows of each log")
    options = parser.parse_args()
    folder = options.bench / options.split / "truth"
    truth = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    with ProcessPoolExecutor(WORKERS) as pool:
        bench = Bench(Split(options.bench.resolve(), options.split, tuple(options.every)), pool)
        moving = sensitivity(bench)
        always = [knob for knob in knobs(trees()) if knob.name in ALWAYS_CHOSEN.get(knob.question, ())]
        candidates = list(dict.fromkeys([*moving, *always]))
        grid(bench, candidates)
        for what in ("family", "fault"):
            groups: dict[str, set[str]] = {}
            for run, facts in truth.items():
                groups.setdefault(str(facts[what]), set()).add(run)
            print(f"Cross-validation, one {what} of {len(groups)} held out: false alarms/misses of the held-out runs\n")
            cross_validation(bench, candidates, groups)
    return 0


if __name__ == "__main__":
    sys.exit(main())
