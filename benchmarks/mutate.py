"""Which thresholds are held by a test: move each one and see whether any known run is told otherwise.

    python -m benchmarks.mutate [--tree phase19] [--list] [ID.PARAM ...]

A mutant is a tree with one parameter changed: a number halved and doubled (a whole number too small for that, by one),
a document's own number a quarter down and up besides, a switch turned. It is caught when a run of `tests/corpus` that
asks the changed node gets another verdict, another leaf or another onset, or when the changed node is a cause and its
state is another: then `tests/whole/test_corpus.py` turns red. Texts and 0 have no half and no double.

`benchmarks/survivors.yaml` names the mutants that nothing catches, each with its reason. The exit code is 1 when
another one survives or when a listed one is caught, so that the list stays true.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import yaml

from benchmarks.reask import change_to, told_otherwise
from stabtree.tree.params import stated
from tests import corpus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.facts.registry import Param
    from stabtree.tree.model import Cause, FactParams, Question, Signature, Tree

T = TypeVar("T", "FactParams", "Question", "Cause", "Signature")
WORKERS = 2
SURVIVORS = Path(__file__).with_name("survivors.yaml")
HALVES = (0.5, 2.0)
QUARTERS = (0.75, 1.25)
# The numbers that the documents give themselves. Our own guards may be moved by less than a factor of two.
DOCUMENTS = {
    *("spike.window_steps", "spike.sigma", "spike.back_sigma", "spike.horizon_steps", "levels.window_steps"),
    *("Q2.3.grad_norm_factor", "Q3.2.collapse_below", "Q4.3.factor", "checkpoints.assumed_every_steps"),
}
MAIN = "phase19"
TARGETS = {MAIN: 0.95, "the others": 0.85}


class Knob(NamedTuple):
    """A parameter: the node that has it for its own, its name, its value and the tree it comes from."""

    node: str
    name: str
    value: Param
    tree: str

    @property
    def id(self) -> str:
        """As `--set` spells it."""
        return f"{self.node}.{self.name}"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A parameter set to another value."""

    knob: Knob
    value: Param

    def __str__(self) -> str:
        old, new = (str(v).lower() if isinstance(v, bool) else f"{v:g}" for v in (self.knob.value, self.value))
        return f"{self.knob.id} {old} -> {new}"


def knobs(tree: Tree) -> Iterator[Knob]:
    """Every number and switch that the trees state, of facts, questions and causes; each stands in one place."""
    homes = {section.id: section.tree for section in tree.sections}
    of = {question.id: homes[question.section] for question in tree.questions.values()}
    of |= {item.id: "signatures" for item in tree.signatures}
    groups = {group.id: homes[group.section] for group in tree.groups.values()}
    for leaf in tree.leaves.values():
        of = {cause.id: {**of, **groups}[leaf.of] for cause in leaf.causes} | of
    for (id_, name), value in stated(tree).items():
        if not isinstance(value, str):
            yield Knob(id_, name, value, of.get(id_, tree.name))


def moved(knob: Knob) -> list[Param]:
    """The other values of a parameter."""
    value = knob.value
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, str) or not value:
        return []
    factors = (*HALVES, *QUARTERS) if knob.id in DOCUMENTS else HALVES
    if isinstance(value, float):
        return [value * factor for factor in factors]
    whole = (round(value * factor) for factor in factors)
    return [
        new if new != value else value + (1 if factor > 1 else -1) for new, factor in zip(whole, factors, strict=True)
    ]


def mutated(tree: Tree, mutant: Mutant) -> Tree:
    """The tree with one parameter changed, wherever its fact or node stands."""
    id_, change = mutant.knob.node, {mutant.knob.name: mutant.value}

    def set_in(item: T) -> T:
        fine = mutant.knob.name in item.advanced
        mapping = {**(item.advanced if fine else item.params), **change}
        return replace(item, advanced=mapping) if fine else replace(item, params=mapping)

    if id_ in tree.facts:
        return replace(tree, facts={**tree.facts, id_: set_in(tree.facts[id_])})
    if id_ in tree.questions:
        return replace(tree, questions={**tree.questions, id_: set_in(tree.questions[id_])})
    leaves = {
        leaf.id: replace(leaf, causes=tuple(set_in(c) if c.id == id_ and states(c, mutant) else c for c in leaf.causes))
        for leaf in tree.leaves.values()
    }
    signatures = tuple(set_in(item) if item.id == id_ else item for item in tree.signatures)
    return replace(tree, leaves=leaves, signatures=signatures)


def states(cause: Cause, mutant: Mutant) -> bool:
    """Whether a cause states the parameter itself."""
    return mutant.knob.name in {**cause.params, **cause.advanced}


def caught_by(mutant: Mutant) -> str:
    """The first case that is told otherwise, empty where none is; those made for the threshold are tried first."""
    change = change_to(mutated(corpus.trees(), mutant))
    made_for_it = f"made/{mutant.knob.node}."
    cases = sorted(corpus.expected(), key=lambda name: not name.startswith(made_for_it))
    return next((case for case in cases if told_otherwise(case, change)), "")


def survivors() -> Mapping[str, str]:
    """The mutants that nothing catches, with the reason."""
    found: Mapping[str, str] = yaml.safe_load(SURVIVORS.read_text(encoding="utf-8")) or {}
    return found


def stale() -> list[str]:
    """The cases that are told otherwise by the trees as they are."""
    return [case for case in corpus.cases() if corpus.told(corpus.found(case)) != corpus.expected().get(case)]


def report(mutants: Sequence[Mutant], by: Sequence[str], *, listed: bool) -> int:
    """Print the table and what is wrong; the exit code."""
    all_, caught = (
        Counter(m.knob.tree for m in mutants),
        Counter(m.knob.tree for m, b in zip(mutants, by, strict=True) if b),
    )
    if listed:
        for mutant, case in zip(mutants, by, strict=True):
            print(f"{mutant!s:50s} {case or 'SURVIVES'}")
    known = survivors()
    print("| tree | mutants | caught | share |\n|---|---|---|---|")
    for tree, count in all_.items():
        print(f"| {tree} | {count} | {caught[tree]} | {caught[tree] / count:.1%} |")
    wrong = []
    for of, target in TARGETS.items():
        trees = [tree for tree in all_ if (tree == MAIN) == (of == MAIN)]
        share = sum(caught[tree] for tree in trees) / max(sum(all_[tree] for tree in trees), 1)
        if trees and share < target:
            wrong.append(f"{of}: {share:.1%} caught, the target is {target:.0%}")
    lives = {str(mutant) for mutant, case in zip(mutants, by, strict=True) if not case}
    gone = (known.keys() & {str(mutant) for mutant in mutants}) - lives
    wrong += [
        f"{name} survives; pin it in tests/corpus/made, or say why not here" for name in sorted(lives - known.keys())
    ]
    wrong += [f"{name} is listed and is caught now; take it out" for name in sorted(gone)]
    print(f"not as listed: {len(wrong)}")
    if wrong:
        print(f"\nAgainst {SURVIVORS.name}:")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


def main() -> int:
    """Try all mutants; exit with 1 when the survivors are not those that are listed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", help="parameters as ID.PARAM, all when none is given")
    parser.add_argument("--tree", help="only the parameters of this tree")
    parser.add_argument("--list", action="store_true", help="a line for each mutant with the run that catches it")
    options = parser.parse_args()
    if moved_cases := stale():
        print(f"{len(moved_cases)} cases are told otherwise than expected.json says: {', '.join(moved_cases[:5])}")
        return 1
    found = [knob for knob in knobs(corpus.trees()) if options.tree in (None, knob.tree)]
    mutants = [
        Mutant(knob, value) for knob in found for value in moved(knob) if not options.only or knob.id in options.only
    ]
    with ProcessPoolExecutor(WORKERS) as pool:
        by = list(pool.map(caught_by, mutants, chunksize=4))
    return report(mutants, by, listed=options.list)


if __name__ == "__main__":
    sys.exit(main())
