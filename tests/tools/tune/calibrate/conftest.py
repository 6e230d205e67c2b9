"""Fewer labelled faults than come with stabtree, where a test is of something else than them."""

from __future__ import annotations

import shutil

import pytest

from stabtree.tools.tune.calibrate import faults
from tests.conftest import FIXTURES

FEW = ("phase19/nan-forward", "phase19/spike-unexplained", "convergence/lr-too-low")


@pytest.fixture
def few_faults(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of a NaN, one of a spike, one that does not learn; `test_calibrating` has them all."""
    place = tmp_path_factory.mktemp("shipped")
    for name in FEW:
        shutil.copytree(FIXTURES / name, place / name)
    monkeypatch.setattr(faults, "shipped_runs", lambda: place)
