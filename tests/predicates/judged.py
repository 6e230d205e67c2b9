"""Runs that are easily judged wrong: what they are made of, and how each is checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from stabtree.diagnosis.walk import diagnose
from stabtree.tree.load import load_tree
from tests.conftest import falling, make_run

Case = tuple[dict[str, Any], dict[str, Any], str]
"""Columns, configuration, and the leaf that the run must end at."""

TREE = load_tree()
ROWS = 1000
AT = np.arange(ROWS)
ONES = np.ones(ROWS)


def loss(**changes: Any) -> Any:
    """A healthy loss of 1,000 rows; `nan_from`, `spike` (step, height) and `rise` (step, height) change it."""
    values = falling(ROWS, 0.03)
    if "spike" in changes:
        values[changes["spike"][0]] += changes["spike"][1]
    if "rise" in changes:
        start, height = changes["rise"]
        values[start:] += np.linspace(0, height, ROWS - start)
    if "nan_from" in changes:
        values[changes["nan_from"] :] = np.nan
    return values


def nan_from(step: int, values: Any = ONES) -> Any:
    """A series that is NaN from a step on."""
    return np.where(step > AT, values, np.nan)


def check(case: Case) -> None:
    """The worst finding is the case's leaf, and no finding blames a number format that is not the run's."""
    columns, config, leaf = case
    found = diagnose(make_run(columns, **config), TREE)
    worst = [f.leaf.id for f in found.findings if f.leaf.severity in ("warning", "critical")]
    assert (worst or [found.end.id])[0] == leaf, [(v.question.id, v.answer.verdict) for v in found.path]
    for finding in found.findings:
        if config.get("dtype") != "fp16":
            assert not finding.leaf.id.startswith(("fp16", "scale"))
