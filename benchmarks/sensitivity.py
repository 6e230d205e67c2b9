"""How much rests on each threshold: move them one at a time, and choose them again without a part of the runs.

    python benchmarks/sensitivity.py BENCH [--split dev]

BENCH is a copy of faultbench: `score.py`, and `runs/` and `truth/` below the split's folder. Two tables:

- Sensitivity: every number that a question of the shipped trees may set, moved by a quarter down and up, and what
  `score.py` says of the predictions then. The rows in which anything moves come first.
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
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import stabtree
from benchmarks.faultbench import predict
from stabtree.treecheck import resolved

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stabtree.run import Run
    from stabtree.tree import Tree

WORKERS = 2
QUARTER = (0.75, 1.25)
GRID = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
ALWAYS_CHOSEN = {
    "Q2.1": ("chance",),
    "Q2.3": ("far_chance", "far_share", "start_factor"),
    "Q4.1": ("trend_z", "noise_factor", "range_share"),
    "O0": ("least_share",),
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


class Setting(NamedTuple):
    """A threshold at a multiple of its shipped value."""

    knob: Knob
    factor: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What `score.py` says, and the predictions themselves.

    Attributes:
        false_alarms: ids of healthy runs that were flagged.
        misses: ids of faulted runs that were not.
        section: faulted runs with the right section.
        leaf: faulted runs with the right leaf.
        called: what each run is called: healthy or not, section and leaf.
    """

    false_alarms: frozenset[str]
    misses: frozenset[str]
    section: int
    leaf: int
    called: Mapping[str, tuple[Any, ...]]

    def row(self) -> str:
        """The four counts."""
        return f"{len(self.false_alarms)}/{len(self.misses)}/{self.section}/{self.leaf}"

    def changed(self, other: Outcome) -> list[str]:
        """The runs that are called otherwise."""
        return [run for run, called in self.called.items() if called != other.called[run]]

    def cost(self, runs: Iterable[str]) -> int:
        """False alarms and misses among some runs, weighed."""
        some = set(runs)
        return FALSE_ALARM_COST * len(self.false_alarms & some) + len(self.misses & some)


@cache
def trees() -> Tree:
    """The shipped trees."""
    return stabtree.load_trees()


@cache
def runs(folder: Path) -> Mapping[str, Run]:
    """Every run of a split, read once in each process."""
    return {path.parent.name: stabtree.load_run(path.parent) for path in sorted(folder.rglob("manifest.json"))}


def knobs(tree: Tree) -> Iterator[Knob]:
    """Every number that a question sets or leaves at its default; what it takes over from another question is there."""
    for question in tree.questions.values():
        taken = resolved(tree, tree.questions[question.like]) if question.like else {}
        for name, value in resolved(tree, question).items():
            if isinstance(value, int | float) and not isinstance(value, bool) and value and name not in taken:
                yield Knob(question.id, name, value)


def outcome(bench: Path, split: str, setting: Setting | None) -> Outcome:
    """The score of all runs with one threshold moved, or none."""
    overrides = {}
    if setting is not None:
        knob = setting.knob
        overrides = {knob.question: {knob.name: knob.times(setting.factor)}}
    found = {
        name: predict(stabtree.diagnose(run, trees(), overrides=overrides))
        for name, run in runs(bench / split / "runs").items()
    }
    with tempfile.TemporaryDirectory() as folder:
        predictions, out = Path(folder) / "predictions.json", Path(folder) / "score.json"
        predictions.write_text(json.dumps(found), encoding="utf-8")
        command = [sys.executable, "-B", str(bench / "score.py"), "--split", split]
        command += ["--predictions", str(predictions), "--json", str(out)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        score = json.loads(out.read_text(encoding="utf-8"))
    return Outcome(
        frozenset(item[0] for item in score["false_alarms"]),
        frozenset(item[0] for item in score["misses"]),
        score["_sec"],
        score["_leaf"],
        {name: (p["healthy"], p["section"], p["leaf"]) for name, p in found.items()},
    )


class Bench:
    """The outcomes of settings, each computed once."""

    def __init__(self, bench: Path, split: str, pool: ProcessPoolExecutor) -> None:
        self._bench, self._split, self._pool = bench, split, pool
        self._known: dict[Setting, Outcome] = {}
        self.shipped = outcome(bench, split, None)

    def compute(self, settings: Sequence[Setting]) -> None:
        """Compute what is not known yet, in parallel."""
        new = [s for s in dict.fromkeys(settings) if s.factor != 1.0 and s not in self._known]
        jobs = [self._pool.submit(outcome, self._bench, self._split, setting) for setting in new]
        self._known.update({setting: job.result() for setting, job in zip(new, jobs, strict=True)})

    def at(self, knob: Knob, factor: float) -> Outcome:
        """The outcome of a threshold at a multiple of its shipped value."""
        return self.shipped if factor == 1.0 else self._known[Setting(knob, factor)]


def sensitivity(bench: Bench) -> list[Knob]:
    """Print what a quarter down and up does to each threshold; returns those that change any run."""
    all_knobs = list(knobs(trees()))
    bench.compute([Setting(knob, factor) for knob in all_knobs for factor in QUARTER])
    table = []
    for knob in all_knobs:
        down, up = (bench.at(knob, factor) for factor in QUARTER)
        lost, won = down.changed(bench.shipped), up.changed(bench.shipped)
        same = down.row() == up.row() == bench.shipped.row()
        table.append((same, -len(lost) - len(won), knob, down.row(), up.row(), len(lost), len(won)))
    print("Sensitivity: false alarms/misses/section/leaf, and how many runs are called otherwise\n")
    print("| threshold | value | -25% | shipped | +25% | runs -25% | runs +25% |\n|---|---|---|---|---|---|---|")
    for _, _, knob, down_row, up_row, lost_count, won_count in sorted(table):
        counts = f"{down_row} | {bench.shipped.row()} | {up_row} | {lost_count} | {won_count}"
        print(f"| {knob.question}.{knob.name} | {knob.value:g} | {counts} |")
    moving = [item[2] for item in sorted(table) if item[1]]
    print(f"\n{len(all_knobs)} thresholds, {len(moving)} of them change any run, the rest none.\n")
    return moving


def chosen_factor(bench: Bench, knob: Knob, rest: Iterable[str]) -> float:
    """The multiple with the least cost on some runs, of several the one nearest to the shipped value."""
    some = list(rest)
    return min(GRID, key=lambda factor: (bench.at(knob, factor).cost(some), abs(math.log(factor))))


def cross_validation(bench: Bench, moving: Iterable[Knob], truth: Mapping[str, Mapping[str, Any]]) -> None:
    """Print, for each threshold, how the held-out runs are judged with chosen and with shipped values."""
    fixed = [k for k in knobs(trees()) if k.name in ALWAYS_CHOSEN.get(k.question, ())]
    candidates = list(dict.fromkeys([*moving, *fixed]))
    bench.compute([Setting(knob, factor) for knob in candidates for factor in GRID])
    for what in ("family", "fault"):
        groups: dict[str, list[str]] = {}
        for name, facts in truth.items():
            groups.setdefault(str(facts[what]), []).append(name)
        print(f"Cross-validation, one {what} of {len(groups)} held out: false alarms/misses of the held-out runs\n")
        print("| threshold | value | chosen multiples | held out, chosen | held out, shipped |\n|---|---|---|---|---|")
        totals = [0, 0, 0, 0]
        for knob in candidates:
            counts, choices = _held_out(bench, knob, groups, truth)
            totals = [a + b for a, b in zip(totals, counts, strict=True)]
            told = ", ".join(choices) or "the shipped value each time"
            row = f"{counts[0]}/{counts[1]} | {counts[2]}/{counts[3]}"
            print(f"| {knob.question}.{knob.name} | {knob.value:g} | {told} | {row} |")
        print(f"| total | | | {totals[0]}/{totals[1]} | {totals[2]}/{totals[3]} |\n")


def _held_out(
    bench: Bench, knob: Knob, groups: Mapping[str, Sequence[str]], truth: Mapping[str, Any]
) -> tuple[list[int], list[str]]:
    """False alarms and misses, chosen and shipped, over all groups; and where another multiple was chosen."""
    counts, choices = [0, 0, 0, 0], []
    for group, held in groups.items():
        factor = chosen_factor(bench, knob, [name for name in truth if name not in held])
        if factor != 1.0:
            choices.append(f"{factor:g} without {group}")
        for place, found in enumerate((bench.at(knob, factor), bench.shipped)):
            counts[2 * place] += len(found.false_alarms.intersection(held))
            counts[2 * place + 1] += len(found.misses.intersection(held))
    return counts, choices


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("--split", default="dev")
    options = parser.parse_args()
    folder = options.bench / options.split / "truth"
    truth = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    with ProcessPoolExecutor(WORKERS) as pool:
        bench = Bench(options.bench.resolve(), options.split, pool)
        cross_validation(bench, sensitivity(bench), truth)
    return 0


if __name__ == "__main__":
    sys.exit(main())
