"""Gradients that add up, and norms that only look like it."""

from __future__ import annotations

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.tree.load import load_trees
from tests.conftest import falling, make_run

TREES = load_trees()


@pytest.mark.parametrize("interval", [1, 10])
def test_gradients_that_add_up_are_known_however_soon_they_level_off(interval: int) -> None:
    """A sum leaves the level of its first batch at once; a noisy norm that grows as much is none."""
    at = np.arange(0, 2000, interval)
    noise = np.exp(np.random.default_rng(7).normal(0, 0.2, len(at)))
    loss = falling(len(at))
    for norm, wanted in ((np.minimum(1 + at, 60 + 0.01 * at), True), (np.linspace(1, 60, len(at)) * noise, False)):
        found = diagnose(make_run({"loss": loss, "grad_norm": norm}, steps=at), TREES)
        assert ("gradients-add-up" in [finding.leaf.id for finding in found.findings]) == wanted


def test_a_weight_decay_that_blows_up_the_gradients_does_not_add_them_up() -> None:
    """A norm that grows smoothly, beside a loss that is smoother still, is no sum of batches."""
    at = np.arange(2000)
    noise = np.random.default_rng(8).normal(0, 1, (2, len(at)))
    columns = {"loss": 1 + 3 * np.exp(-at / 400 + 0.001 * noise[0]), "grad_norm": np.exp(at / 500 + 0.02 * noise[1])}
    found = diagnose(make_run(columns), TREES)
    assert "gradients-add-up" not in [finding.leaf.id for finding in found.findings]
