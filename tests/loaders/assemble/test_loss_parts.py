"""Losses that are logged in parts only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.loaders import load_run
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "epoch,train/box_loss,train/cls_loss,train/dfl_loss,val/box_loss,val/cls_loss,val/dfl_loss,lr/pg0\n"


def test_the_parts_of_ultralytics_are_summed_up(tmp_path: Path) -> None:
    """With a note; a part that is infinite makes the sum so, one that is missing leaves the row out."""
    run = load_run(write(tmp_path, HEAD + "1,1,2,3,4,5,6,.1\n2,1,1,1,1,inf,1,.1\n3,1,,1,1,1,1,.1\n", "results.csv"))
    assert run.series["loss"].values.tolist() == [6, 3]
    assert run.series["eval_loss"].values.tolist() == [15, np.inf, 3]
    assert "No column holds the loss: it is the sum of its parts" in run.notes[0]
    used = run.sources[0].columns[1]
    assert (used.metric, used.why, used.role) == ("loss", "computed from it", "part of a loss")


@pytest.mark.parametrize(
    "head",
    ["step,generator_loss,discriminator_loss", "step,boundary_loss,residual_loss", "step,actor_loss,critic_loss"],
)
def test_other_parts_are_not_summed_up(tmp_path: Path, head: str) -> None:
    """How they are weighted is not in the log; the one that is looked at first stands for them."""
    run = load_run(write(tmp_path, head + "\n1,1,2\n2,1.5,2.5\n"))
    assert run.series["loss"].origin in head.split(",")
    assert "; override with --column loss=" in run.notes[0]
