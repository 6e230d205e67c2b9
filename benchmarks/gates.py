"""Every figure that the project promised, in one go: what it was to be, what it is now, and which fell.

    python -m benchmarks.gates [--shared DIR] [--healthy 400] [--record VERSION] [NAME ...]

A figure is a line of `GATES`: its name, the bound, and the function that measures it. Those that need data which is not
in the repository (the benchmark, real logs) are left out where it is not there, and told so. Names choose figures by
how they begin. The exit code is 1 when a figure fell. Where no figure is named, the verdicts that changed since the
last release are printed too (`benchmarks/verdicts.py`); `--record` writes down those of a version.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import verdicts
from benchmarks.faultbench import predict
from benchmarks.wild import rates, read
from faultbench.scoring import DONE
from tests import corpus
from tests.corpus import labelled
from tests.whole.test_false_alarms import alarms

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent


class NotHereError(Exception):
    """What a figure needs is not here."""


@dataclass(frozen=True, slots=True)
class Options:
    """Where the data lie, and how many simulated runs are judged."""

    shared: Path
    healthy: int

    def folder(self, name: str) -> Path:
        """A folder of data that are not in the repository.

        Raises:
            NotHereError: where it is not there.
        """
        found = self.shared / name
        if not found.is_dir():
            raise NotHereError(f"{name} is not here")
        return found


@dataclass(frozen=True, slots=True)
class Gate:
    """A figure.

    Attributes:
        name: what it is.
        bound: what it must not fall short of.
        measure: what it is now.
        most: whether the bound is the most that is allowed; else it is the least.
    """

    name: str
    bound: float
    measure: Callable[[Options], float]
    most: bool = False

    def holds(self, now: float) -> bool:
        """Whether a value keeps the bound."""
        return now <= self.bound if self.most else now >= self.bound


# ------------------------------------------------------------------ labelled runs
@cache
def _labelled() -> dict[str, float]:
    """What is said of the labelled runs that the repository holds, in the terms of the benchmark's score."""
    count: Counter[str] = Counter()
    for id_, truth in labelled.truth().items():
        said = predict(corpus.found(f"labelled/{id_}"))
        if truth["fault"] in labelled.CALM:
            count["false alarms"] += not said["healthy"]
        elif truth["fault"] != DONE:
            count["faulted"] += 1
            count["missed"] += said["healthy"]
            count["section"] += not said["healthy"] and said["section"] in truth["acceptable_sections"]
            count["leaf"] += not said["healthy"] and said["leaf"] in truth["acceptable_leaves"]
            count["cause"] += truth["fault"] in said["causes"]
    shares = {name: count[name] / count["faulted"] for name in ("section", "leaf", "cause")}
    return {"false alarms": count["false alarms"], "missed": count["missed"], **shares}


def labelled_figure(name: str, _: Options) -> float:
    """A figure of the committed labelled runs."""
    return _labelled()[name]


@cache
def _scored(bench: Path) -> dict[str, float]:
    """What the benchmark's own script says of the runs as they were logged."""
    with tempfile.TemporaryDirectory() as folder:
        predictions, out = Path(folder, "predictions.json"), Path(folder, "score.json")
        _run(sys.executable, "benchmarks/faultbench.py", bench / "dev" / "runs", "--predictions", predictions)
        score = (bench / "score.py", "--split", "dev", "--predictions", predictions, "--json", out)
        _run(sys.executable, "-B", *score)
        found = json.loads(out.read_text(encoding="utf-8"))
    shares = {"section": "section_accuracy", "leaf": "leaf_accuracy", "cause": "cause_hit"}
    counts = {"false alarms": len(found["false_alarms"]), "missed": len(found["misses"])}
    return {**counts, **{name: float(found[key]) for name, key in shares.items()}}


def scored_figure(name: str, options: Options) -> float:
    """A figure of the benchmark as it was handed out."""
    return _scored(options.folder("faultbench"))[name]


def simulated(options: Options) -> float:
    """False alarms in 2,000 simulated healthy runs, counted on as many as are asked for."""
    return len(alarms(options.healthy)) * 2000 / options.healthy


# ------------------------------------------------------------------ real logs
@cache
def _wild(folder: Path) -> dict[str, float]:
    return {name: good / max(total, 1) for name, (good, total) in rates(read(folder)).items()}


def wild_figure(name: str, options: Options) -> float:
    """A rate of the public logs."""
    return _wild(options.folder("wild"))[name]


# ------------------------------------------------------------------ scripts that print their figures
@cache
def _printed(script: str) -> str:
    words = [sys.executable, "-m", f"benchmarks.{script}"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False)  # by figures
    return done.stdout + done.stderr


def printed(script: str, pattern: str, _: Options) -> float:
    """A number that a benchmark prints.

    Raises:
        NotHereError: where it did not.
    """
    found = re.search(pattern, _printed(script), re.MULTILINE)
    if found is None:
        last = _printed(script).strip().splitlines()[-1:]
        raise NotHereError(f"benchmarks/{script}.py does not print it: {''.join(last)[:80]}")
    return float(found[1].replace(",", ""))


def _run(*command: Any) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=ROOT, check=True, capture_output=True, text=True, encoding="utf-8"
    )
    return done.stdout


LABELLED = (("false alarms", 0, True), ("missed", 1, True), ("section", 0.98, False), ("leaf", 0.97, False))
SHARES = (*LABELLED, ("cause", 0.74, False))
WILD = (("coverage", 0.95), ("precision", 0.9), ("recall", 0.85), ("kind right", 0.92), ("onset right", 0.85))
GATES: tuple[Gate, ...] = (
    *(Gate(f"labelled runs: {name}", bound, partial(labelled_figure, name), most) for name, bound, most in SHARES),
    *(Gate(f"benchmark: {name}", bound, partial(scored_figure, name), most) for name, bound, most in SHARES),
    Gate("simulated healthy runs: alarms in 2,000", 3, simulated, most=True),
    *(Gate(f"wild logs: {name}", bound, partial(wild_figure, name)) for name, bound in WILD),
    Gate("speed: 1,000,000 rows", 1.5, partial(printed, "speed", r"^diagnose, 1,0.*ratio\s+([\d.]+)"), most=True),
    Gate("speed: 2,000 rows", 1.4, partial(printed, "speed", r"^diagnose, 2,0.*ratio\s+([\d.]+)"), most=True),
    Gate("speed: --help", 2.5, partial(printed, "speed", r"^--help.*ratio\s+([\d.]+)"), most=True),
    Gate("speed: explain", 2.5, partial(printed, "speed", r"^explain.*ratio\s+([\d.]+)"), most=True),
    Gate("memory: over the frame", 3.0, partial(printed, "speed", r"^peak.*ratio ([\d.]+) \("), most=True),
)


def main() -> int:
    """Measure all figures; exit with 1 where one fell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only the figures whose names begin so")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared", help="where the data outside lie")
    parser.add_argument("--healthy", type=int, default=400, help="how many simulated healthy runs")
    parser.add_argument("--record", default="", metavar="VERSION", help="write the verdicts of this version")
    options = parser.parse_args()
    given = Options(options.shared, options.healthy)
    fell = 0
    print(f"{'figure':45s} {'bound':>9s} {'now':>9s}")
    for gate in GATES:
        if options.names and not gate.name.startswith(tuple(options.names)):
            continue
        try:
            now = gate.measure(given)
        except NotHereError as reason:
            print(f"{gate.name:45s} {'':>9s} {'-':>9s}  left out: {reason}", flush=True)
            continue
        ok = gate.holds(now)
        fell += not ok
        sign = "<=" if gate.most else ">="
        print(f"{gate.name:45s} {sign} {gate.bound:>6g} {now:>9.4g}  {'ok' if ok else 'FELL'}", flush=True)
    print(f"\n{fell} fell" if fell else "\nnone fell")
    if not options.names:
        print("\nVerdicts that changed:", verdicts.report(options.shared, options.record), sep="\n\n", end="")
    return 1 if fell else 0


if __name__ == "__main__":
    sys.exit(main())
