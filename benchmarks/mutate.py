"""Which numbers of the trees a real run feels: each is halved and doubled, and all labelled logs are judged again.

    python -m benchmarks.mutate [--shared DIR] [--cache DIR] [--tree phase19] [--list] [ID.PARAM ...]

A number is felt when a public log, a run of a real trainer or a labelled run of faultbench gets another verdict,
another leaf or another onset, or when a cause is borne out and was not, or the other way round. A whole number too
small to be halved moves by one, a switch is turned. A number that a document gives is held by the document, and a
fitted one by its fit. Runs that were made for the number itself hold nothing.

`benchmarks/survivors.yaml` names the numbers that nothing feels, each with why it stays all the same. The exit code is
1 when another one is felt by nothing, or when a listed one is felt.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import yaml

from benchmarks.documents import documented
from benchmarks.fit.logs import SIMULATED, WORKERS, logs_of
from stabtree.diagnosis.walk import answering, diagnose
from stabtree.facts import FACTS
from stabtree.tree.calibration import calibrations
from stabtree.tree.load import load_trees
from stabtree.tree.params import find_node, stated
from tests.corpus import told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from benchmarks.fit.logs import Log
    from stabtree.common.answer import Answer
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.diagnosis.walker import Overrides
    from stabtree.facts.registry import Param
    from stabtree.tree.model import Question, Tree
    from stabtree.tree.params import Asking

ROOT = Path(__file__).resolve().parents[1]
SURVIVORS = Path(__file__).with_name("survivors.yaml")
HALVES = (0.5, 2.0)
ROUND = 60
"""Logs that are tried before what they feel is left out of the rest."""


class Knob(NamedTuple):
    """A parameter: the node that states it, its name, its value and the tree that it is from."""

    node: str
    name: str
    value: Param
    tree: str

    @property
    def id(self) -> str:
        """Return it as `--set` spells it."""
        return f"{self.node}.{self.name}"


def knobs(tree: Tree) -> Iterator[Knob]:
    """Yield every number and switch that the trees state and that neither a document gives nor a fit."""
    homes = {section.id: section.tree for section in tree.sections}
    of = {question.id: homes[question.section] for question in tree.questions.values()}
    of |= {item.id: "signatures" for item in tree.signatures}
    groups = {group.id: homes[group.section] for group in tree.groups.values()}
    for leaf in tree.leaves.values():
        of = {cause.id: {**of, **groups}[leaf.of] for cause in leaf.causes} | of
    for (id_, name), value in stated(tree).items():
        held = documented(tree, id_, name) or name in calibrations().of(id_).limit
        if not isinstance(value, str) and not held:
            yield Knob(id_, name, value, of.get(id_, tree.name))


def moved(value: Param) -> list[Param]:
    """Return the other values of a parameter; texts and 0 have no half and no double."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, str) or not value:
        return []
    if isinstance(value, float):
        return [value * factor for factor in HALVES]
    low, high = (round(value * factor) for factor in HALVES)
    return [low if low != value else value - 1, high]


def felt_by(log: Log, wanted: Sequence[Knob]) -> set[Knob]:
    """Return the parameters that the runs of a log feel."""
    found: set[Knob] = set()
    for run in log.runs:
        plain = diagnose(run, load_trees(run))
        ask, before = answering(plain), told(plain)
        for knob in wanted:
            if knob not in found and any(_changes(plain, ask, before, knob, value) for value in moved(knob.value)):
                found.add(knob)
    return found


def _changes(
    plain: Diagnosis, ask: Callable[[Question, Overrides], Answer], before: object, knob: Knob, value: Param
) -> bool:
    """Return whether a run is judged otherwise; it is walked anew only where the changed node answers otherwise."""
    change = {knob.node: {knob.name: value}}
    if knob.node not in FACTS and not _asks_otherwise(plain, ask, knob, change):
        return False
    return told(diagnose(plain.run, plain.tree, overrides=change)) != before


def _asks_otherwise(
    plain: Diagnosis, ask: Callable[[Question, Overrides], Answer], knob: Knob, change: Overrides
) -> bool:
    for visit in chain(plain.path, *plain.further):
        if knob.node in _like(plain.tree, visit.question):
            before, after = visit.answer, ask(visit.question, change)
            if _steers(before) != _steers(after):
                return True
    causes = chain.from_iterable(finding.leaf.causes for finding in plain.reached)
    return any(knob.node in _like(plain.tree, cause) for cause in causes)


def _like(tree: Tree, node: Asking) -> set[str]:
    found = {node.id}
    while node.like:
        node = find_node(tree, node.like)
        found.add(node.id)
    return found


def _steers(answer: Answer) -> tuple[object, ...]:
    return answer.verdict, answer.onset_step, answer.last_good_step, answer.strength


def felt(logs: Sequence[Log], wanted: Sequence[Knob]) -> dict[Knob, str]:
    """Return the parameters that are felt, each with a log that feels it."""
    found: dict[Knob, str] = {}
    for start in range(0, len(logs), ROUND):
        some, left = logs[start : start + ROUND], [knob for knob in wanted if knob not in found]
        with ProcessPoolExecutor(WORKERS, get_context("fork"), _hold, (some, left)) as pool:
            for log, knobs_ in zip(some, pool.map(_felt_by, range(len(some))), strict=True):
                found.update({knob: f"{log.source} {log.name}" for knob in knobs_ if knob not in found})
    return found


_HELD: list[tuple[Sequence[Log], Sequence[Knob]]] = []


def _hold(logs: Sequence[Log], wanted: Sequence[Knob]) -> None:
    _HELD[:] = [(logs, wanted)]


def _felt_by(index: int) -> set[Knob]:
    logs, wanted = _HELD[0]
    return felt_by(logs[index], wanted)


def report(wanted: Sequence[Knob], by: Mapping[Knob, str], known: Mapping[str, str], *, listed: bool) -> int:
    """Print the table and what is not as listed; return the exit code."""
    if listed:
        for knob in wanted:
            print(f"{knob.id:40s} {knob.value!s:>10s} {by.get(knob, 'FELT BY NOTHING')}")
    print("| tree | numbers | felt | share |\n|---|---|---|---|")
    for tree, count in Counter(knob.tree for knob in wanted).items():
        held = sum(knob.tree == tree for knob in by)
        print(f"| {tree} | {count} | {held} | {held / count:.1%} |")
    unfelt = {knob.id for knob in wanted if knob not in by}
    wrong = [f"{name} is felt by nothing: take it out, or say why not here" for name in sorted(unfelt - known.keys())]
    wrong += [f"{name} is listed and is felt" for name in sorted({knob.id for knob in by} & known.keys())]
    print(f"not as listed: {len(wrong)}")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


def main() -> int:
    """Try all numbers; exit with 1 when those that nothing feels are not those that are listed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", help="parameters as ID.PARAM, all when none is given")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared", help="where the labelled logs are")
    parser.add_argument("--cache", type=Path, help="the folder that `benchmarks.fit --cache` made")
    parser.add_argument("--tree", help="only the parameters of this tree")
    parser.add_argument("--list", action="store_true", help="a line for each number with the log that feels it")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    wanted = [knob for knob in knobs(load_trees()) if options.tree in (None, knob.tree) and moved(knob.value)]
    wanted = [knob for knob in wanted if not options.only or knob.id in options.only]
    logs = [log for log in logs_of(options.shared, options.cache) if log.source != SIMULATED]
    known = yaml.safe_load(SURVIVORS.read_text(encoding="utf-8")) or {}
    return report(wanted, felt(logs, wanted), known, listed=options.list)


if __name__ == "__main__":
    sys.exit(main())
