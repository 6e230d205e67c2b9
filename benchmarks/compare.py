"""Where `stabtree compare` says that runs differ, against where their fault began.

    python -m benchmarks.compare [--runs DIR]

Trains the fixtures' recipes with and without their faults on several seeds (some minutes; DIR keeps them), and prints
for each half of the cases: pairs of one seed, by how far the first difference is from the true one; healthy runs of
different seeds, by how many are told to be worse; faults against a good run of another seed, and against several good
runs. The bars were set on the even half, with an eye on the other: neither is blind.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

import stabtree
from benchmarks import pairs
from stabtree.tools.compare.compare import Verdict, compare_runs

if TYPE_CHECKING:
    from stabtree.run import Run
    from stabtree.tools.compare.compare import Comparison

NEAR = 1  # rows that the step told may be off
SOON = 10
WELL = ("ok", "note", "unknown")


@dataclass(slots=True)
class Figures:
    """What is counted of one half of the cases.

    Attributes:
        seed: of pairs of one seed how many rows the step told is off; None where no difference is.
        false: of healthy pairs of different seeds whether one is told to be worse.
        other: of faults against a good run of another seed how many rows they are told late; None where not at all.
        envelope: the same against all other good runs.
        alone: of good runs against all other good ones whether they are told to be worse.
    """

    seed: list[int | None] = field(default_factory=list)
    false: list[bool] = field(default_factory=list)
    other: list[int | None] = field(default_factory=list)
    envelope: list[int | None] = field(default_factory=list)
    alone: list[bool] = field(default_factory=list)

    def lines(self) -> list[str]:
        """A line a figure."""
        near = sum(off is not None and abs(off) <= NEAR for off in self.seed)
        return [
            f"one seed: told within {NEAR} row of the fault   {_share(near, len(self.seed))}",
            f"healthy, other seed: told to be worse     {_share(sum(self.false), len(self.false))}",
            f"healthy against several: told to be worse {_share(sum(self.alone), len(self.alone))}",
            *_late("fault, other seed", self.other),
            *_late("fault against several", self.envelope),
        ]


def _late(head: str, found: list[int | None]) -> list[str]:
    told = [late for late in found if late is not None]
    soon, early = sum(-NEAR <= late <= SOON for late in told), sum(late < -NEAR for late in told)
    return [
        f"{head + ': told to differ':<42}{_share(len(told), len(found))}",
        f"{'  within ' + str(SOON) + ' rows, and before the fault':<42}{soon}, {early}",
    ]


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.1%})" if whole else "none"


def measured(folder: Path) -> tuple[Figures, Figures]:
    """The figures of the even cases and of the odd ones, from runs that lie in a folder."""
    halves = Figures(), Figures()
    runs = {place.name: stabtree.load_run(place) for place in sorted(folder.iterdir()) if (place / "began").exists()}
    for number, case in enumerate(sorted({name.rsplit("-", 2)[0] for name in runs})):
        mine = {tuple(name.rsplit("-", 2)[1:]): run for name, run in runs.items() if name.rsplit("-", 2)[0] == case}
        good = {seed: run for (seed, kind), run in mine.items() if kind == "good"}
        bad = {seed: run for (seed, kind), run in mine.items() if kind == "fault"}
        began = {seed: int((folder / f"{case}-{seed}-fault" / "began").read_text(encoding="utf-8")) for seed in bad}
        _count(halves[number % 2], good, bad, began)
    return halves


def _count(figures: Figures, good: dict[str, Run], bad: dict[str, Run], began: dict[str, int]) -> None:
    well = {seed: run for seed, run in good.items() if str(stabtree.diagnose(run).verdict) in WELL}
    for one, other in permutations(well, 2):
        figures.false.append(compare_runs([well[one]], well[other]).verdict is Verdict.WORSE)
    for seed, run in bad.items():
        figures.seed.append(_off(compare_runs([good[seed]], run), began[seed]))
        others = [well[one] for one in well if one != seed]
        figures.other += [_off(compare_runs([one], run), began[seed]) for one in others]
        if len(others) > 1:
            figures.envelope.append(_off(compare_runs(others, run), began[seed]))
    for seed, run in well.items() if len(well) > 2 else ():
        figures.alone.append(compare_runs([well[one] for one in well if one != seed], run).verdict is Verdict.WORSE)


def _off(found: Comparison, began: int) -> int | None:
    return found.differences[0].step - began if found.differences else None


def main() -> None:
    """Train what is not there yet, and print the figures of both halves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, help="where the runs are kept")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.runs or Path(temporary)
        pairs.train_all(pairs.healthy(), pairs.SHIFTS, folder)
        pairs.train_all(pairs.faults(), pairs.SHIFTS[:3], folder)
        for name, figures in zip(("even", "odd"), measured(folder), strict=True):
            print(f"{name} cases")
            print("\n".join(f"  {line}" for line in figures.lines()))


if __name__ == "__main__":
    main()
