"""What stabtree says of runs of real frameworks with injected faults, whichever of their logs it is given.

    python -m benchmarks.trainers DIR [--list] [--verdicts FILE]

DIR holds runs/ and truth/*.json (healthy, fault, kinds, visible, targets). The first target that was written decides;
the other logs of the same run should say the same, as far as they hold the same: one without rows of any series, as the
last frame of a progress bar, is counted apart. `--verdicts` scores another tool's answers, as `benchmarks.peers_logs`
writes them.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import stabtree
from benchmarks.kinds import names
from benchmarks.wild import judge
from faultbench.scoring import ALARMS
from stabtree.loaders import load_runs
from stabtree.measures.curve import FEWEST

if TYPE_CHECKING:
    from stabtree.run import Run


def same(one: str, other: str) -> bool:
    """Whether two verdicts agree on what a user does next."""
    return (one in ALARMS) == (other in ALARMS) and (one in ("unknown", "refused")) == (other in ("unknown", "refused"))


def holds_rows(path: Path) -> bool:
    """Whether a log has a series of three rows, or can't be read, which is an answer of its own."""
    try:
        runs = [item.run for item in load_runs(path)]
    except stabtree.StabtreeError:
        return True
    return any(isinstance(run, stabtree.StabtreeError) or run_length(run) >= FEWEST for run in runs)


def run_length(run: Run) -> int:
    """The number of rows of a run's longest series."""
    return max(map(len, run.series.values()), default=0)


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", action="store_true", help="every log that is answered wrongly")
    parser.add_argument("--verdicts", type=Path, help="another tool's answers")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    told = json.loads(options.verdicts.read_text(encoding="utf-8")) if options.verdicts else {}
    count: Counter[str] = Counter()
    wrong: list[str] = []
    for file in sorted((options.folder / "truth").glob("*.json")):
        _count(json.loads(file.read_text(encoding="utf-8")), options.folder, told, count, wrong)
    if options.list:
        print("\n".join(sorted(wrong)), end="\n\n")
    for name, good, total in (
        ("visible faults found", "found", "visible"),
        ("kind right among them", "kind", "found"),
        ("healthy alarmed", "false", "healthy"),
        ("healthy not judged", "unjudged", "healthy"),
        ("healthy alarmed, any log", "other false", "healthy targets"),
        ("healthy not judged, any log", "other unjudged", "healthy targets"),
        ("other logs agree", "agree", "others"),
        ("other logs without rows", "without rows", "all others"),
    ):
        print(f"{name:28s} {count[good]:>4d}/{count[total]:<4d} = {count[good] / max(count[total], 1):6.1%}")
    return 0


def _count(truth: dict[str, Any], folder: Path, told: dict[str, str], count: Counter[str], wrong: list[str]) -> None:
    targets = [target for target in truth["targets"] if (folder / target["path"]).exists()]
    paths = {target["name"]: target["path"] for target in targets}
    judged = [(name, *((told[path], (), "") if told else judge(folder / path))) for name, path in paths.items()]
    _, verdict, alarms, why = judged[0]
    line = f"{truth['id']:22s} {truth['fault']!s:14s} {judged[0][0]:7s} {verdict:9s} "
    line += " ".join(f"{leaf}@{onset}" for leaf, onset, _ in alarms[:4]) + f" {why[:110]}"
    if truth["healthy"]:
        count["healthy"] += 1
        count["false"] += verdict in ALARMS
        count["unjudged"] += verdict in ("unknown", "refused")
        count["healthy targets"] += len(judged)
        count["other false"] += sum(v in ALARMS for _, v, _, _ in judged)
        count["other unjudged"] += sum(v in ("unknown", "refused") for _, v, _, _ in judged)
        if verdict not in ("ok", "note"):
            wrong.append(f"{'FALSE' if verdict in ALARMS else 'not judged':10s} {line}")
    elif truth["visible"] == "yes":
        count["visible"] += 1
        found = verdict in ALARMS
        named = any(names(leaf, kind) for leaf, _, _ in alarms for kind in truth["kinds"])
        count["found"] += found
        count["kind"] += found and named
        if not (found and named):
            wrong.append(f"{'misnamed' if found else 'MISSED':10s} {line}")
    for name, other, found_alarms, other_why in judged[1:]:
        count["all others"] += 1
        if not holds_rows(folder / paths[name]):
            count["without rows"] += 1
            continue
        count["others"] += 1
        count["agree"] += same(verdict, other)
        if not same(verdict, other):
            leaves = " ".join(f"{leaf}@{onset}" for leaf, onset, _ in found_alarms[:3])
            wrong.append(
                f"{'other log':10s} {truth['id']:22s} {verdict} but {name}: {other} {leaves} {other_why[:110]}"
            )


if __name__ == "__main__":
    sys.exit(main())
