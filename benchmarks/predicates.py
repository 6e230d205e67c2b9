"""How often the answers of each question, and of each predicate, were right on labelled runs.

    python -m benchmarks.predicates [SHARED] [--write FILE]

SHARED (default ../shared) holds faultbench/dev, trainers and wild; what is not there is left out. An answer *led to* a
finding where the walk went from it to a warning or worse before it began another section. A failed run is *of a
question's kind* where one of the findings that the question can lead to is what the label allows the run to be called.
`--write` records the figures for the site's pages: docs/figures/predicates.json.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import warnings
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import stabtree
from benchmarks.faultbench import LEAVES as FAULTBENCH
from benchmarks.faultbench import PERSISTENT_CAUSES
from benchmarks.kinds import names
from faultbench.scoring import ALARMS, DONE, NO_RATE
from stabtree.common.answer import UNKNOWN
from stabtree.loaders import load_runs
from stabtree.tree.load import load_trees

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.tree.model import Tree

WHAT = {
    "faultbench": "small models really trained, with a fault put into data, loss, schedule or precision",
    "trainers": "runs of real frameworks with a fault put into the loop; of the failed those whose curves show it",
    "wild": "public logs, labelled by reading their curves",
}


@dataclass(frozen=True, slots=True)
class Labelled:
    """A run of which it is known how it went.

    Attributes:
        sample: where it is from.
        path: its log.
        healthy: whether nothing is wrong with it.
        right: the findings that a failed one may be called.
    """

    sample: str
    path: Path
    healthy: bool
    right: frozenset[str]


class Turn(NamedTuple):
    """An answer that the log gave, and the finding at which the walk through it ended; empty where that is no alarm."""

    question: str
    verdict: str
    leaf: str


@dataclass(slots=True)
class Counts:
    """What was counted of a question or a predicate."""

    healthy: dict[str, int] = field(default_factory=lambda: {"asked": 0, "alarms": 0})
    failed: dict[str, int] = field(default_factory=lambda: {"asked": 0, "right": 0, "elsewhere": 0})
    answers: dict[str, list[int]] = field(default_factory=dict)

    def add(self, turns: list[Turn], run: Labelled, reached: set[str]) -> None:
        """Count a run that was asked."""
        for verdict in sorted({turn.verdict for turn in turns}):
            self.answers.setdefault(verdict, [0, 0])[not run.healthy] += 1
        told = {turn.leaf for turn in turns if turn.leaf}
        if run.healthy:
            self.healthy["asked"] += 1
            self.healthy["alarms"] += bool(told)
        else:
            self.failed["asked"] += 1
            self.failed["right"] += bool(told & run.right)
            self.failed["elsewhere"] += bool(reached & run.right) and not told & run.right


def faultbench(folder: Path, leaves: Iterable[str]) -> Iterator[Labelled]:
    """The runs of faultbench, but for those that are merely done."""
    leaves = tuple(leaves)
    for file in sorted((folder / "faultbench" / "dev" / "truth").glob("*.json")):
        truth = json.loads(file.read_text(encoding="utf-8"))
        if truth["fault"] == DONE:
            continue
        allowed = {name for name in truth["acceptable_leaves"] if name}
        right = frozenset(leaf for leaf in leaves if _theirs(leaf) & allowed)
        yield Labelled("faultbench", folder / "faultbench" / "dev" / "runs" / file.stem, truth["healthy"], right)


def _theirs(leaf: str) -> set[str]:
    """The benchmark's names for a leaf of ours; which of the NaN ones it is, the number format decides."""
    if leaf.startswith("nan-") or leaf in ("loss-stops", "eval-nonfinite"):
        return {"s1.nan_fp32", "s1.nan_bf16", "s1.nan_fp16_overflow", FAULTBENCH.get(leaf, "")} - {""}
    if leaf == "spike-persistent":
        return {FAULTBENCH[leaf], *PERSISTENT_CAUSES.values()}
    return {FAULTBENCH[leaf]} if leaf in FAULTBENCH else set()


def trainers(folder: Path, leaves: Iterable[str]) -> Iterator[Labelled]:
    """The runs of real frameworks, each by the log that a user would point at."""
    leaves = tuple(leaves)
    for file in sorted((folder / "trainers" / "truth").glob("*.json")):
        truth = json.loads(file.read_text(encoding="utf-8"))
        if not truth["healthy"] and truth["visible"] != "yes":
            continue
        right = frozenset(leaf for leaf in leaves for kind in truth["kinds"] if names(leaf, kind))
        path = folder / "trainers" / truth["targets"][0]["path"]
        yield Labelled("trainers", path, truth["healthy"], right)


def wild(folder: Path, leaves: Iterable[str]) -> Iterator[Labelled]:
    """The public logs that can be judged."""
    leaves = tuple(leaves)
    index = folder / "wild" / "INDEX.csv"
    rows = list(csv.DictReader(index.read_text(encoding="utf-8").splitlines())) if index.is_file() else []
    for row in rows:
        if row["label"] not in NO_RATE:
            right = frozenset(leaf for leaf in leaves if names(leaf, row["label"]))
            yield Labelled("wild", folder / "wild" / row["file"], row["label"] == "healthy", right)


SAMPLES: dict[str, Callable[[Path, Iterable[str]], Iterator[Labelled]]] = {
    "faultbench": faultbench,
    "trainers": trainers,
    "wild": wild,
}


def ends(tree: Tree) -> dict[str, frozenset[str]]:
    """The alarms that each question can lead to before another section begins."""
    entries = {section.entry for section in tree.sections}
    found: dict[str, frozenset[str]] = {}

    def of(id_: str) -> frozenset[str]:
        if id_ in tree.leaves:
            return frozenset((id_,)) if tree.leaves[id_].severity in ALARMS else frozenset()
        if id_ not in found:
            onward = (end for end in tree.questions[id_].go.values() if end not in entries)
            found[id_] = frozenset().union(*map(of, onward))
        return found[id_]

    return {id_: of(id_) for id_ in tree.questions}


def turns(diagnosis: Diagnosis) -> Iterator[Turn]:
    """The answers that a log gave, each with where it led."""
    tree = diagnosis.tree
    entries = {section.entry for section in tree.sections}
    for visits in (diagnosis.path, *diagnosis.further):
        begins = [place for place, visit in enumerate(visits) if place and visit.question.id in entries]
        for start, end in zip([0, *begins], [*begins, len(visits)], strict=True):
            target = visits[end - 1].target
            alarm = end == len(visits) and target in tree.leaves and tree.leaves[target].severity in ALARMS
            for visit in visits[start:end]:
                if visit.question.test and visit.answer.verdict != UNKNOWN:
                    yield Turn(visit.question.id, visit.answer.verdict, target if alarm else "")


def judged(path: Path) -> tuple[list[Turn], set[str]] | None:
    """All turns of the runs in a log, and the alarms that were reached; None where none can be read."""
    found: list[Turn] = []
    reached: set[str] = set()
    read = False
    try:
        for item in load_runs(path):
            if isinstance(item.run, stabtree.StabtreeError):
                continue
            diagnosis = stabtree.diagnose(item.run, load_trees(item.run))
            found += turns(diagnosis)
            reached |= {one.leaf.id for one in diagnosis.reached if one.leaf.severity in ALARMS}
            read = True
    except stabtree.StabtreeError:
        return None
    return (found, reached) if read else None


def measured(runs: Iterable[Labelled], tree: Tree) -> dict[str, Any]:
    """The figures, as they are recorded."""
    able = ends(tree)
    questions: dict[str, Counts] = defaultdict(Counts)
    predicates: dict[str, Counts] = defaultdict(Counts)
    samples: dict[str, dict[str, Any]] = {}
    for run in runs:
        told = judged(run.path)
        if told is None:
            continue
        held = samples.setdefault(run.sample, {"healthy": 0, "failed": 0, "what": WHAT[run.sample]})
        held["healthy" if run.healthy else "failed"] += 1
        asked = [turn for turn in told[0] if run.healthy or able[turn.question] & run.right]
        by_question: dict[str, list[Turn]] = defaultdict(list)
        by_predicate: dict[str, list[Turn]] = defaultdict(list)
        for turn in asked:
            by_question[turn.question].append(turn)
            by_predicate[tree.questions[turn.question].test].append(turn)
        for counts, grouped in ((questions, by_question), (predicates, by_predicate)):
            for name, group in grouped.items():
                counts[name].add(group, run, told[1])
    return {
        "version": stabtree.__version__,
        "samples": samples,
        "questions": _plain(questions),
        "predicates": _plain(predicates),
    }


def _plain(counts: Mapping[str, Counts]) -> dict[str, Any]:
    return {
        name: {"healthy": held.healthy, "failed": held.failed, "answers": dict(sorted(held.answers.items()))}
        for name, held in sorted(counts.items())
    }


def main() -> int:
    """Print the figures, and record them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("../shared"))
    parser.add_argument("--write", type=Path, help="record the figures")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tree = load_trees()
    runs = [run for sample in SAMPLES.values() for run in sample(options.folder, tree.leaves)]
    if not runs:
        print(f"no labelled runs below {options.folder}: nothing is measured")
        return 0
    found = measured(runs, tree)
    print(f"{'predicate':26s} {'healthy':>8s} {'alarms':>7s} {'failed':>7s} {'right':>6s} {'elsewhere':>10s}")
    for name, held in found["predicates"].items():
        healthy, failed = held["healthy"], held["failed"]
        print(
            f"{name:26s} {healthy['asked']:>8d} {healthy['alarms']:>7d} "
            f"{failed['asked']:>7d} {failed['right']:>6d} {failed['elsewhere']:>10d}"
        )
    for name, held in found["samples"].items():
        print(f"{name}: {held['healthy']} healthy, {held['failed']} failed")
    if options.write:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        options.write.write_text(f"{json.dumps(found, indent=1)}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
