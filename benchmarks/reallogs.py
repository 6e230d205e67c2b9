"""Read and judge every log of a folder with an INDEX.csv (file, format, n_points, has_*, label, confidence).

    python benchmarks/reallogs.py DIR [--list]

Prints, format by format, how many files were read or refused, on how many the loss has as many points as the index
counted, and which metrics were found where the index has them; then what the verdicts are against the labels.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree import diagnose, load_run, load_trees
from stabtree.common.errors import StabtreeError

if TYPE_CHECKING:
    from stabtree.run import Run

METRICS = (("has_loss", "loss"), ("has_grad_norm", "grad_norm"), ("has_lr", "lr"), ("has_loss_scale", "loss_scale"))
HEALTHY = ("healthy",)
FAILED = ("nan", "divergence", "spike-persistent", "grad-norm-inf", "inf", "overfit", "flat", "plateau", "loss-scale")
ALARMS = ("warning", "critical")


def load(file: Path) -> Run | StabtreeError:
    """The run, the first of several, or why there is none."""
    try:
        return load_run(file)
    except StabtreeError as error:
        named = re.search(r"--run '([^']+)'", error.hint)
        if not named:
            return error
        try:
            return load_run(file, run=named[1])
        except StabtreeError as second:
            return second


def main() -> int:
    """Go through the index; exit with 1 when a file crashed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", action="store_true", help="one line for each file")
    options = parser.parse_args()
    with (options.folder / "INDEX.csv").open(encoding="utf-8", newline="") as stream:
        index = list(csv.DictReader(stream))
    tree = load_trees()
    formats: dict[str, Counter[str]] = defaultdict(Counter)
    verdicts: dict[str, Counter[str]] = defaultdict(Counter)
    crashed = 0
    for row in index:
        count, told = formats[row["format"]], ""
        count["files"] += 1
        try:
            run = load(options.folder / row["file"])
            if isinstance(run, StabtreeError):
                count["refused"] += 1
                told = f"refused: {run.problem}"
            else:
                count["read"] += 1
                loss = run.get("loss")
                points = 0 if loss is None else len(loss)
                count["same"] += points == int(row["n_points"] or 0)
                for column, metric in METRICS:
                    if row[column] == "y":
                        count[f"{metric} there"] += 1
                        # A placeholder is no metric, whatever the index says.
                        noted = any(note.startswith(metric) and "not logged" in note for note in run.notes)
                        count[f"{metric} found"] += run.get(metric) is not None or noted
                found = diagnose(run, tree)
                verdicts[f"{row['label']}, {row['confidence']}"][str(found.verdict)] += 1
                ids = ", ".join(f.leaf.id for f in found.reached if f.leaf.severity in ALARMS)
                told = f"{points:,} points of {row['n_points']}; {found.verdict} {ids}"
        except Exception as error:
            crashed += 1
            told = f"CRASHED: {type(error).__name__}: {error}"
        if options.list:
            print(f"{row['file'][:70]:70s} {row['label'][:12]:12s} {told}")
    header = ("files", "read", "refused", "same")
    print(f"\n{'format':18s}" + "".join(f"{name:>9s}" for name in header) + "".join(f"{m:>14s}" for _, m in METRICS))
    for name, count in sorted(formats.items()):
        metrics = "".join(f"{count[f'{m} found']:>9d}/{count[f'{m} there']:<4d}" for _, m in METRICS)
        print(f"{name:18s}" + "".join(f"{count[item]:>9d}" for item in header) + metrics)
    total = sum(formats.values(), Counter())
    print(f"{'all':18s}" + "".join(f"{total[item]:>9d}" for item in header) + f"   crashed {crashed}\n")
    for name, count in sorted(verdicts.items()):
        print(f"{name:34s} {dict(count)}")
    return 1 if crashed else 0


if __name__ == "__main__":
    sys.exit(main())
