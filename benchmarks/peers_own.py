"""What stabtree says of the runs of `faultbench/` and of public logs, in the form that its scorer reads.

    python -m benchmarks.peers_own RUNS --out FOLDER [--public DIR]

RUNS is the folder into which `python -m faultbench unpack` unpacked; DIR holds INDEX.csv and the public logs. FOLDER
gets a folder for each set with a file of predictions, as `benchmarks.peers` and `benchmarks.peers_logs` write them.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import stabtree
from benchmarks.faultbench import predict
from benchmarks.kinds import LEAVES, names
from benchmarks.peers_logs import logs
from benchmarks.wild import judge
from stabtree.tree.load import load_trees

if TYPE_CHECKING:
    from collections.abc import Iterable

OWN = stabtree.__name__
KINDS = (*LEAVES, "error-line")


def kinds_of(leaves: Iterable[str]) -> list[str]:
    """All kinds of failure, as labels name them, that some leaves stand for."""
    return sorted({kind for leaf in leaves for kind in KINDS if names(leaf, kind)})


def of_run(folder: Path) -> dict[str, Any]:
    """The prediction on a run of `dev`."""
    return predict(stabtree.diagnose(stabtree.load_run(folder), load_trees()))


def of_log(path: Path) -> dict[str, Any]:
    """The prediction on a log of `trainers` or of the public ones."""
    verdict, alarms, _ = judge(path)
    return {"verdict": verdict, "kinds": kinds_of(leaf for leaf, _, _ in alarms)}


def main() -> int:
    """Write the predictions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--public", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    runs = sorted((options.runs / "dev" / "runs").iterdir())
    told: dict[str, dict[str, Any]] = {"dev": {run.name: of_run(run) for run in runs}}
    for name, folder in (("trainers", options.runs / "trainers"), ("public", options.public)):
        if folder:
            told[name] = {path: of_log(folder / path) for path in logs(folder)}
    for name, made in told.items():
        (options.out / name).mkdir(parents=True, exist_ok=True)
        (options.out / name / f"{OWN}.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
        print(f"{OWN} {name}: {len(made)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
