"""What stabtree says of real public logs, against their labels.

    python -m benchmarks.wild DIR [--half dev|held] [--confident] [--list] [--verdicts FILE]

DIR holds INDEX.csv (file, repo, label, confidence, onset). Rates are those of its README: *coverage*, *precision*,
*recall*; besides, the kind and the onset of what was named, and alarms on logs that can't be judged. `--half` takes
the repositories of one half only: tune on `dev`, report both. `--verdicts` scores another tool's answers, a verdict a
log, as `benchmarks.peers_logs` writes them; they name no kind and no onset.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import warnings
import zlib
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import stabtree
from benchmarks.kinds import names
from faultbench.scoring import ALARMS, NO_RATE
from stabtree.loaders import load_runs
from stabtree.tree.load import load_trees

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stabtree.run import Run

VERDICTS = (*ALARMS, "note", "ok", "unknown", "refused")
ONSET_ROWS, ONSET_SHARE = 10, 0.02


@dataclass(frozen=True, slots=True)
class Judged:
    """One log: its label, the worst verdict of its runs, and the alarms as (leaf, onset, rows until it is right)."""

    file: str
    repo: str
    label: str
    onset: int | None
    verdict: str
    alarms: tuple[tuple[str, int | None, float], ...]
    why: str

    @property
    def alarmed(self) -> bool:
        """Whether anything in it was called a warning or worse."""
        return self.verdict in ALARMS

    @property
    def kind_right(self) -> bool:
        """Whether one of the alarms names what its label says."""
        return any(names(leaf, self.label) for leaf, _, _ in self.alarms)

    @property
    def onset_right(self) -> bool:
        """Whether one of the alarms begins where the failure does."""
        return any(
            onset is not None and self.onset is not None and abs(onset - self.onset) <= slack
            for _, onset, slack in self.alarms
        )


def half(repo: str) -> str:
    """Which half a repository belongs to; the letter makes the halves hold about as many failures each."""
    return "dev" if zlib.crc32(b"a" + repo.encode()) % 2 == 0 else "held"


def judge(path: Path) -> tuple[str, tuple[tuple[str, int | None, float], ...], str]:
    """The worst verdict of a file's runs, its alarms, and what is to be said of a log without a verdict."""
    found: list[str] = []
    alarms: list[tuple[str, int | None, float]] = []
    why = ""
    try:
        for item in load_runs(path):
            if isinstance(item.run, stabtree.StabtreeError):
                found.append("refused")
                why = why or item.run.problem
                continue
            judged = stabtree.diagnose(item.run, load_trees(item.run))
            found.append(str(judged.verdict))
            slack = _slack(item.run)
            alarms += [(f.leaf.id, f.onset_step, slack) for f in judged.reached if f.leaf.severity in ALARMS]
            if judged.verdict == "unknown":
                why = why or "; ".join(f"{miss.id} {miss.reason}" for miss in judged.missing[:2])
    except stabtree.StabtreeError as error:
        return "refused", (), error.problem
    order = {name: place for place, name in enumerate(VERDICTS)}
    return min(found or ["refused"], key=order.__getitem__), tuple(alarms), why


def _slack(run: Run) -> float:
    """How many steps an onset may be off: ten rows, or a fiftieth of the log."""
    longest = max(run.series.values(), key=len, default=None)
    if longest is None or len(longest) < 2:
        return 0.0
    covered = float(longest.steps[-1] - longest.steps[0])
    return max(ONSET_ROWS * covered / (len(longest) - 1), ONSET_SHARE * covered)


def rates(logs: Iterable[Judged]) -> dict[str, tuple[int, int]]:
    """Each rate as (right, of)."""
    count: Counter[str] = Counter()
    for log in logs:
        if log.label == "unclear":
            count["unclear"] += 1
            count["unclear alarmed"] += log.alarmed
        if log.label in NO_RATE:
            continue
        failed = log.label != "healthy"
        count["logs"] += 1
        count["covered"] += log.verdict not in ("unknown", "refused")
        count["alarms"] += log.alarmed
        count["right alarms"] += log.alarmed and failed
        count["failures"] += failed
        if failed and log.alarmed:
            count["kinds"] += log.kind_right
            if log.onset:
                count["with onset"] += 1
                count["onsets"] += log.onset_right
    return {
        "coverage": (count["covered"], count["logs"]),
        "precision": (count["right alarms"], count["alarms"]),
        "recall": (count["right alarms"], count["failures"]),
        "kind right": (count["kinds"], count["right alarms"]),
        "onset right": (count["onsets"], count["with onset"]),
        "unclear alarmed": (count["unclear alarmed"], count["unclear"]),
    }


def read(
    folder: Path,
    wanted: str | None = None,
    *,
    confident: bool = False,
    told: Mapping[str, str] | None = None,
) -> list[Judged]:
    """Judge the logs of a folder, or take the verdicts that another tool told of them."""
    with (folder / "INDEX.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    logs = []
    for row in rows:
        if (wanted and half(row["repo"]) != wanted) or (confident and row["confidence"] == "unsure"):
            continue
        verdict, alarms, why = (told[row["file"]], (), "") if told else judge(folder / row["file"])
        onset = int(row["onset"]) if row["onset"].strip().isdigit() else None
        logs.append(Judged(row["file"], row["repo"], row["label"], onset, verdict, alarms, why))
    return logs


def report(logs: list[Judged]) -> None:
    """Print the tables: verdicts by label, and the rates by file and averaged over repositories."""
    by_label: dict[str, Counter[str]] = defaultdict(Counter)
    repos: dict[str, list[Judged]] = defaultdict(list)
    for log in logs:
        by_label[log.label][log.verdict] += 1
        repos[log.repo].append(log)
    print(f"{'label':22s}" + "".join(f"{name:>10s}" for name in VERDICTS))
    for label, count in sorted(by_label.items()):
        print(f"{label:22s}" + "".join(f"{count[name]:>10d}" for name in VERDICTS))
    print(f"\n{'rate':18s} {'by file':>18s} {'by repository':>14s}")
    inner = [rates(of) for of in repos.values()]
    for name, (good, total) in rates(logs).items():
        shares = [rate[name][0] / rate[name][1] for rate in inner if rate[name][1]]
        mean = sum(shares) / len(shares) if shares else float("nan")
        print(f"{name:18s} {good:>4d}/{total:<4d} = {good / max(total, 1):6.1%} {mean:>13.1%}")


def wrong(log: Judged) -> str:
    """What is wrong with the answer to a log; empty where nothing is."""
    if log.label == "not-a-log":
        return ""
    if log.label in ("healthy", "unclear"):
        told = f"false alarm on {log.label}" if log.alarmed else ""
        return told or ("not judged" if log.label == "healthy" and log.verdict in ("unknown", "refused") else "")
    if not log.alarmed:
        return "missed"
    if not log.kind_right:
        return "misnamed"
    return "onset" if log.onset and not log.onset_right else ""


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--half", choices=("dev", "held"))
    parser.add_argument("--confident", action="store_true", help="leave the unsure labels out")
    parser.add_argument("--list", action="store_true", help="every log that is answered wrongly")
    parser.add_argument("--verdicts", type=Path, help="another tool's answers")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    told = json.loads(options.verdicts.read_text(encoding="utf-8")) if options.verdicts else None
    logs = read(options.folder, options.half, confident=options.confident, told=told)
    if options.list:
        for log in sorted(logs, key=lambda log: (wrong(log), log.file)):
            if wrong(log):
                alarms = " ".join(f"{leaf}@{onset}" for leaf, onset, _ in log.alarms[:5])
                told = f"{wrong(log):24s} {log.label:18s} {log.onset or '':>7} {log.verdict:9s}"
                print(f"{told} {log.file} {alarms} {log.why[:110]}")
        print()
    report(logs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
