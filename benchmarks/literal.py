"""The document's rules by their letter, and with our guards: how often each cries wolf, and what each finds.

    python -m benchmarks.literal [--shared DIR]

Walks simulated healthy losses (an exponential fall with Gaussian noise, no fault anywhere) of three lengths, and the
labelled runs of `faultbench`, twice: with `literal` and without. Writes `docs/figures/literal.json`, from which
`docs/explanation/guarded.md` takes its numbers. Without the labelled runs their rows stay as they were.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import stabtree
from benchmarks.faultbench import predict
from faultbench.scoring import ALARMS, CALM, DONE
from stabtree.tree.load import load_trees
from tests.conftest import make_run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.run import Run
    from stabtree.tree.model import Tree

    Truth = dict[str, Any]

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "figures" / "literal.json"
LENGTHS = (500, 2_000, 10_000)  # rows
SIMULATED = 100


def simulated(seed: int, rows: int) -> Run:
    """A loss that falls from 3 to 0.5 and nothing else, with noise of 0.05."""
    noise = np.random.default_rng(seed).normal(0, 0.05, rows)
    return make_run({"loss": 0.5 + 2.5 * np.exp(-5 * np.arange(rows) / rows) + noise})


def alarmed(runs: Iterable[Run], tree: Tree, *, literal: bool) -> int:
    """How many are called a warning or worse."""
    told = (stabtree.diagnose(run, tree, literal=literal).verdict for run in runs)
    return sum(verdict in ALARMS for verdict in told)


def labelled(bench: Path) -> tuple[list[Run], list[tuple[Run, Truth]]]:
    """The healthy and the failed runs of the benchmark; those that were done training are neither."""
    calm: list[Run] = []
    failed: list[tuple[Run, Truth]] = []
    for file in sorted((bench / "dev" / "truth").glob("*.json")):
        truth: Truth = json.loads(file.read_text(encoding="utf-8"))
        run = stabtree.load_run(bench / "dev" / "runs" / file.stem)
        if truth["fault"] in CALM:
            calm.append(run)
        elif truth["fault"] != DONE:
            failed.append((run, truth))
    return calm, failed


def named(runs: Iterable[tuple[Run, Truth]], tree: Tree, *, literal: bool) -> int:
    """How many failed runs are alarmed for what is wrong in them: the first finding is one that the label allows."""
    told = ((predict(stabtree.diagnose(run, tree, literal=literal)), truth) for run, truth in runs)
    return sum(not said["healthy"] and said["leaf"] in truth["acceptable_leaves"] for said, truth in told)


def main() -> int:
    """Measure, record, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared", help="where the labelled runs lie")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tree = load_trees()
    found = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    sets = {f"simulated {rows:,}": [simulated(seed, rows) for seed in range(SIMULATED)] for rows in LENGTHS}
    failed: list[tuple[Run, Truth]] = []
    if (options.shared / "faultbench").is_dir():
        sets["labelled healthy"], failed = labelled(options.shared / "faultbench")
        sets["labelled failed"] = [run for run, _ in failed]
    for name, runs in sets.items():
        found[name] = {
            "runs": len(runs),
            "literal": alarmed(runs, tree, literal=True),
            "guarded": alarmed(runs, tree, literal=False),
        }
        print(name, found[name], flush=True)
    if failed:
        rates = {way: named(failed, tree, literal=way == "literal") for way in ("literal", "guarded")}
        found["labelled failed, named right"] = {"runs": len(failed), **rates}
        print("named right", rates)
    FIGURES.parent.mkdir(exist_ok=True)
    FIGURES.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
