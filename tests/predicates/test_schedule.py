"""The learning rate against its schedule."""

from __future__ import annotations

import numpy as np

from stabtree.diagnosis.walk import diagnose
from stabtree.tree.load import load_trees
from tests.conftest import falling, make_run

TREES = load_trees()


def test_a_schedule_at_its_floor_in_mid_run_was_stepped_too_often() -> None:
    """A cosine that rests at 10% of its peak from a quarter of the plan on; a milestone schedule may."""
    at = np.arange(1000)
    lr = 1e-3 * (0.1 + 0.45 * (1 + np.cos(np.pi * np.minimum(at / 250, 1))))
    for schedule, leaf in (("cosine", True), ("multistep", False)):
        run = make_run({"loss": falling(1000), "lr": lr}, lr_schedule=schedule, max_steps=1000, warmup_steps=0)
        assert ("lr-ends-early" in [finding.leaf.id for finding in diagnose(run, TREES).findings]) == leaf
