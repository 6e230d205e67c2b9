"""What to do: few actions, none that this run has done already, and none that is forbidden."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.tree.tables import tables
from tests.conftest import FIXTURES, falling, make_run

if TYPE_CHECKING:
    from pathlib import Path

RUNS = sorted(path.parent for path in (FIXTURES / "phase19").glob("*/manifest.json"))


@pytest.mark.parametrize("folder", RUNS, ids=lambda folder: folder.name)
def test_actions_are_few_and_filled_in(folder: Path) -> None:
    """At most three, each of its own kind, with this run's numbers; a test says what to do after each answer."""
    for item in diagnose(load_run(folder)).findings:
        assert len(item.actions) <= 3
        kinds = [action.kind for action in item.actions]
        assert len(kinds) == len({*kinds})
        for action in item.actions:
            assert "{" not in action.text + "".join(text for _, text in action.branches)
            assert bool(action.text) or item.restart is not None
            if action.branches:
                assert action.text.endswith("?")
                assert {answer for answer, _ in action.branches} <= {*tables().actions[action.id].splits}


def test_what_is_set_already_is_not_advised() -> None:
    """A run that clips at 0.5 is not told to clip, nor one in fp32 to leave fp16."""
    loss = np.concatenate([falling(300), np.linspace(1, 400, 60)])
    norm = np.concatenate([np.ones(300), np.geomspace(1, 1e4, 60)])
    told = {}
    for clip in (0, 0.5):
        run = make_run({"loss": loss, "grad_norm": norm}, grad_clip=clip, dtype="fp32")
        told[clip] = [action.kind for item in diagnose(run).findings for action in item.actions]
    assert "clip-gradients" in told[0]
    assert "clip-gradients" not in told[0.5]
    assert not {"use-bf16-or-fp32", "fix-loss-scaling"} & {*told[0], *told[0.5]}


def test_a_rate_far_below_the_usual_is_not_lowered() -> None:
    """Whatever else speaks for it."""
    loss = np.concatenate([falling(300), np.linspace(1, 9, 60)])
    run = make_run({"loss": loss, "lr": np.full(360, 1e-9)}, optimizer="adamw", dtype="fp32")
    assert all(action.kind != "lower-lr" for item in diagnose(run).findings for action in item.actions)
