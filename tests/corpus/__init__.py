"""Every run whose diagnosis is known, and what it must be: the runs that hold the thresholds.

The cases are the fixtures, the labelled runs, the made runs of the leaves and those made close to one threshold each.
What each of them must be told stands in `expected.json`, a line a case; `python -m tests.corpus` writes it anew, and
every line that changes is a verdict that changes: look at it before you commit it.
"""

from __future__ import annotations

import json
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.tree.load import load_trees
from tests import leaves
from tests.conftest import FIXTURES
from tests.corpus import labelled, made

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import Run
    from stabtree.tree.model import Tree

    Make = Callable[[], Run | tuple[Run, dict[str, Any]]]

EXPECTED = Path(__file__).with_name("expected.json")
LEAVES = ("RUNS", "EDGE", "NEAR", "MORE")  # the made runs of tests.leaves, by what they show
BORNE_OUT = ("confirmed", "likely")


class Found(NamedTuple):
    """One finding: its leaf, its onset, the checkpoint to restart from, and where its precursors began."""

    leaf: str
    onset_step: int | None
    restart_step: int | None
    precursors: list[int]


class Told(NamedTuple):
    """What a diagnosis says, as far as a threshold may change it.

    Attributes:
        verdict: the verdict.
        end: the leaf at which the document's own walk ends.
        findings: what was found, worst first.
        causes: the causes that the log bears out, as `leaf cause state`.
    """

    verdict: str
    end: str
    findings: list[Found]
    causes: list[str]


@cache
def trees() -> Tree:
    """The shipped trees."""
    return load_trees()


class Case(NamedTuple):
    """How to make a run, perhaps with what `diagnose` is told besides, and whether the document's letter is asked."""

    make: Make
    literal: bool = False


@cache
def cases() -> Mapping[str, Case]:
    """All cases by name; the fixtures and the labelled runs are asked by the document's letter as well."""
    fixtures = sorted(path.parent.relative_to(FIXTURES).as_posix() for path in FIXTURES.glob("*/*/manifest.json"))
    logged: dict[str, Make] = {f"fixtures/{name}": partial(load_run, FIXTURES / name) for name in fixtures}
    logged |= {f"labelled/{id_}": partial(_labelled, id_) for id_ in labelled.truth()}
    return {
        **{name: Case(make) for name, make in logged.items()},
        **{f"{name} by the letter": Case(make, literal=True) for name, make in logged.items()},
        **{f"leaves/{name}": Case(make) for name, make in _leaves().items()},
        **{f"made/{pin.name}": Case(pin.make, pin.literal) for pin in made.PINS},
    }


def _leaves() -> Mapping[str, Make]:
    """The made runs of the leaves, by what they show and its name."""
    return {f"{kind} {name}": make for kind in LEAVES for name, make in getattr(leaves, kind, {}).items()}


def _labelled(id_: str) -> Run:
    return labelled.runs()[id_]


@cache
def _run(make: Make) -> tuple[Run, dict[str, Any]]:
    made_ = make()
    return made_ if isinstance(made_, tuple) else (made_, {})


def given(case: str) -> tuple[Run, dict[str, Any]]:
    """The run of a case, and what `diagnose` is told besides."""
    make, literal = cases()[case]
    run, told_ = _run(make)
    return run, {"literal": literal, **told_}


def diagnosed(case: str, tree: Tree) -> Diagnosis:
    """The diagnosis of a case by a tree."""
    run, options = given(case)
    return diagnose(run, tree, **options)


@cache
def found(case: str) -> Diagnosis:
    """The diagnosis of a case by the shipped trees."""
    return diagnosed(case, trees())


def told(diagnosis: Diagnosis) -> Told:
    """What a diagnosis says."""
    causes = (
        f"{finding.leaf.id} {judged.cause.id} {judged.state}"
        for finding in diagnosis.findings
        for judged in finding.causes
        if judged.state in BORNE_OUT
    )
    findings = [
        Found(
            finding.leaf.id,
            finding.onset_step,
            finding.restart.checkpoint_step if finding.restart else None,
            [item.steps[0] for item in finding.precursors],
        )
        for finding in diagnosis.reached
    ]
    return Told(str(diagnosis.verdict), diagnosis.end.id, findings, sorted(causes))


@cache
def expected() -> Mapping[str, Told]:
    """What each case must be told."""
    stored = json.loads(EXPECTED.read_text(encoding="utf-8"))
    return {
        case: Told(verdict, end, [Found(*item) for item in findings], causes)
        for case, (verdict, end, findings, causes) in stored.items()
    }
