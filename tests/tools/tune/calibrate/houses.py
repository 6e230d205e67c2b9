"""A tree whose thresholds are known to the digit, and runs on both sides of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stabtree.judging.judge import Judging
from stabtree.judging.settings import Settings
from stabtree.loaders import Loaded
from stabtree.tools.tune.calibrate.calibrating import calibrate
from stabtree.tools.tune.calibrate.faults import Faults
from stabtree.tools.tune.calibrate.walks import Walks
from tests.conftest import falling, make_run

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import Run
    from stabtree.tools.tune.calibrate.result import Calibration

HOUSE = """
name: house
title: The house's own
source: the house
uses: [phase19]
sections:
  - {id: first, title: First looks, entry: H1, when: [grad_norm]}
questions:
  - id: H1
    section: first
    ask: Does grad_norm stay above 5?
    short: grad_norm above 5?
    why: It has always come before a divergence.
    rule: "grad_norm at or above {level:g} in {share:.0%} of the last {rows} rows"
    test: stays_above
    params: {metric: grad_norm, level: 5.0, share: 0.9, rows: 50}
    go: {yes: too-large, no: Q1.1}
    source: the house
leaves:
  - id: too-large
    of: H1
    title: The gradients are too large
    severity: warning
    why: Ours keep below.
    fixes: [Lower the learning rate.]
    source: the house
"""
LEVEL = 5.0
KEY = "H1.level"


def house(folder: Path) -> Judging:
    """How runs are judged by the tree, which is written to a folder."""
    file = folder / "house.yaml"
    file.write_text(HOUSE, encoding="utf-8")
    return Judging(tree=str(file))


def steady(level: float) -> Run:
    """A healthy run whose grad_norm stays at a level."""
    return make_run({"loss": falling(200), "grad_norm": np.full(200, level), "lr": np.full(200, 1e-3)}, dtype="fp32")


def with_set(judging: Judging, values: dict[str, float]) -> Judging:
    """The same as a project's settings have it."""
    return Judging(Settings("stabtree.toml", set=values), judging.tree, judging.trees, set=judging.set)


def alarms(judging: Judging, run: Run) -> set[str]:
    """What a run is told, from warnings on."""
    found: Diagnosis = judging.diagnosed(run)
    return {item.leaf.id for item in found.reached if item.leaf.severity in ("warning", "critical")}


def calibrated(
    judging: Judging, runs: dict[str, Run], faults: dict[str, Run] | None = None, *, trust: bool = False
) -> Calibration:
    """What calibrating finds."""
    walks = Walks(judging)
    given = [Loaded(name, run) for name, run in runs.items()]
    return calibrate(given, walks, Faults(walks, faults or {}), trust=trust)
