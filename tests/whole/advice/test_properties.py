"""All that is said of a run agrees with itself, in every output and for every run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_runs
from stabtree.run import Run
from stabtree.tree.load import load_trees
from tests import corpus
from tests.conftest import ROOT
from tests.whole.advice.outputs import Outputs
from tests.whole.advice.properties import PROPERTIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from stabtree.diagnosis.result import Diagnosis

SHARED = ROOT.parent / "shared"  # the corpora of public and of trainers' logs, which not every checkout has beside it
EVERY = 48  # of their logs one in so many is read, to stay within seconds
KNOWN = [case for case in corpus.cases() if not case.endswith("by the letter")][::4]


OPEN = ("nothing_moves_while_all_is_good", "restart_before_the_damage")
"""Where a series moves some rows before the onset, the last good step is not yet moved with it."""


def contradictions(diagnosis: Diagnosis, names: Iterable[str] = PROPERTIES.keys() - {*OPEN}) -> list[str]:
    """What contradicts itself in all that is said of a run, a line each."""
    out = Outputs(diagnosis)
    return [f"{name}: {text}" for name in sorted(names) for text in PROPERTIES[name](out)]


@pytest.mark.parametrize("case", KNOWN)
def test_a_known_run_is_not_contradicted(case: str) -> None:
    """One in four of the fixtures, the labelled runs and the made ones of the leaves."""
    assert not contradictions(corpus.found(case))


@pytest.mark.parametrize("log", [pytest.param(path, id=path.name) for path in sorted(SHARED.glob("wild/*/*"))[::EVERY]])
def test_a_public_log_is_not_contradicted(log: Path) -> None:
    """Every so many logs of the public corpus, where it is there."""
    found = {run.name: contradictions(diagnose(run, load_trees(run))) for run in _runs(log)}
    assert not any(found.values()), found


def _runs(log: Path) -> Iterator[Run]:
    """Yield the runs that can be read."""
    try:
        loaded = load_runs(log)
    except StabtreeError:
        return
    yield from (item.run for item in loaded if isinstance(item.run, Run))
