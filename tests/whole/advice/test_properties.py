"""All that is said of a run agrees with itself, in every output and for every run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.walk import diagnose
from stabtree.judging.verdict import Outcome
from stabtree.loaders import load_runs
from stabtree.report.outputs import RUNS, RenderOptions, output
from stabtree.tree.load import load_trees
from tests import corpus
from tests.conftest import ROOT, recorded
from tests.report.test_contract import wrong
from tests.report.test_screen import checked
from tests.whole.advice.outputs import Outputs
from tests.whole.advice.properties import PROPERTIES

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.diagnosis.result import Diagnosis

SHARED = ROOT.parent / "shared"  # the corpora of public and of trainers' logs, which not every checkout has beside it
EVERY = 16  # of their small logs one in so many is read, to stay within seconds
SMALL = 100_000  # bytes
CASES = [case for case in corpus.cases() if not case.endswith("by the letter")]
KNOWN = [*CASES[::16], *(case for case in CASES if case.startswith("fixtures/"))]


def contradictions(diagnosis: Diagnosis) -> list[str]:
    """What contradicts itself in all that is said of a run, a line each."""
    out = Outputs(diagnosis)
    return [f"{name}: {text}" for name, yields in PROPERTIES.items() for text in yields(out)]


def test_known_runs_are_not_contradicted() -> None:
    """All fixtures, and one in sixteen of the labelled runs and the made ones of the leaves."""
    found = {case: contradictions(corpus.diagnosed(case, load_trees())) for case in KNOWN}
    assert not any(found.values()), found


def test_real_logs_are_not_contradicted() -> None:
    """Nor leaves whatever they lead to the contract of JSON, or the screen; a refusal too, where the logs are there."""
    for log in [path for path in real_logs() if path.stat().st_size < SMALL][::EVERY]:
        try:
            loaded = [(item.name, item.run) for item in load_runs(log)]
        except StabtreeError as problem:
            loaded = [(log.name, problem)]
        outcomes = []
        for name, run in loaded:
            if isinstance(run, StabtreeError):
                outcomes.append(Outcome(name, run))
                continue
            outcomes.append(Outcome(name, diagnose(run, load_trees(run))))
            assert not contradictions(diagnose(run, load_trees(run))), log
            checked(run, 80)
        assert wrong(json.loads("".join(output(RUNS, "json")(recorded(*outcomes), RenderOptions())))) == [], log


def real_logs() -> list[Path]:
    """The logs of other people's runs."""
    return [path for name in ("logs", "wild") for path in sorted((SHARED / name).rglob("*")) if path.is_file()]
