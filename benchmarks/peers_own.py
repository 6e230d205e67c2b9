"""What stabtree says of labelled runs or of logs, in the form that `faultbench` scores.

    python -m benchmarks.peers_own DIR --out FOLDER

DIR is a folder as `python -m faultbench unpack` leaves it, `dev` or `trainers`, or one that holds INDEX.csv, as
`benchmarks.peers_logs` takes it.
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
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True, help=f"the folder that gets {OWN}.json")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.folder.name == "dev":
        made = {run.name: of_run(run) for run in sorted((options.folder / "runs").iterdir())}
    else:
        made = {path: of_log(options.folder / path) for path in logs(options.folder)}
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"{OWN}.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    print(f"{OWN}: {len(made)} runs or logs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
