"""Rows of training and of held-out data in the same columns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from stabtree import load_run
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

EPOCHS = range(20)
TRAIN = [(epoch, "train", 2 - epoch / 20) for epoch in EPOCHS]
VAL = [(epoch, "val", 3 - epoch / 20) for epoch in EPOCHS]
ORDERS = {"in turn": [row for pair in zip(TRAIN, VAL, strict=True) for row in pair], "one below the other": TRAIN + VAL}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("as_json", [False, True])
def test_phases_get_columns_of_their_own(tmp_path: Path, order: str, *, as_json: bool) -> None:
    """Each row of validation goes to the row of training of the same epoch."""
    rows = ORDERS[order]
    text = "epoch,phase,loss\n" + "".join(f"{epoch},{phase},{loss}\n" for epoch, phase, loss in rows)
    if as_json:
        text = "".join(json.dumps(dict(zip(("epoch", "split", "loss"), row, strict=True))) + "\n" for row in rows)
    run = load_run(write(tmp_path, text, "a.jsonl" if as_json else "a.csv"))
    for metric, own in (("loss", TRAIN), ("eval_loss", VAL)):
        assert run.series[metric].steps.tolist() == list(EPOCHS)
        assert run.series[metric].values.tolist() == [loss for _, _, loss in own]
    assert any("says which rows are of train, val" in note for note in run.notes)


@pytest.mark.parametrize("labels", [("easy", "hard"), ("train", ""), ("val", "test")])
def test_other_labels_split_nothing(tmp_path: Path, labels: tuple[str, str]) -> None:
    """Labels that are no phases, rows without one, and results without training stay in one table."""
    rows = "".join(f"{step},{labels[step % 2]},{4 - step / 20}\n" for step in range(40))
    assert len(load_run(write(tmp_path, f"step,mode,loss\n{rows}")).series["loss"]) == 40
