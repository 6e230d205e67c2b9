"""All that is said of a run agrees with itself, in every output and for every run."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
EVERY = 32  # of their small logs one in so many is read, to stay within seconds
SMALL = 100_000  # bytes
KNOWN = [case for case in corpus.cases() if not case.endswith("by the letter")][::8]


OPEN = ("nothing_moves_while_all_is_good", "restart_before_the_damage")
"""Where a series moves some rows before the onset, the last good step is not yet moved with it."""


def contradictions(diagnosis: Diagnosis, names: Iterable[str] = PROPERTIES.keys() - {*OPEN}) -> list[str]:
    """What contradicts itself in all that is said of a run, a line each."""
    out = Outputs(diagnosis)
    return [f"{name}: {text}" for name in sorted(names) for text in PROPERTIES[name](out)]


def test_known_runs_are_not_contradicted() -> None:
    """One in eight of the fixtures, the labelled runs and the made ones of the leaves."""
    found = {case: contradictions(corpus.diagnosed(case, load_trees())) for case in KNOWN}
    assert not any(found.values()), found


def test_public_logs_are_not_contradicted() -> None:
    """Every so many logs of the public corpus, where it is there."""
    for log in [path for path in sorted(SHARED.glob("wild/*/*")) if path.stat().st_size < SMALL][::EVERY]:
        found = {run.name: contradictions(diagnose(run, load_trees(run))) for run in _runs(log)}
        assert not any(found.values()), (log.name, found)


def _runs(log: Path) -> Iterator[Run]:
    """Yield the runs that can be read."""
    try:
        loaded = load_runs(log)
    except StabtreeError:
        return
    yield from (item.run for item in loaded if isinstance(item.run, Run))
