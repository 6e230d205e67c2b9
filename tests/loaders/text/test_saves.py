"""Lines of a text log that say that a checkpoint was saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree.loaders import load_run

if TYPE_CHECKING:
    from pathlib import Path


def saved(tmp_path: Path, line: str) -> dict[int, int]:
    """Where a log says that checkpoints were saved, with a line after the row of step 30."""
    rows = [f"step {step} | loss {5 - step / 50:.3f} | lr 0.001" for step in range(0, 100, 10)]
    file = tmp_path / "train.log"
    file.write_text("\n".join([*rows[:4], line, *rows[4:]]) + "\n", encoding="utf-8")
    return dict(load_run(file).saved)


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("saving checkpoint to out", 30),
        ("Saved checkpoint to runs/a/state_step000035.pt", 35),
        ("[08/30 16:32:10] fvcore.common.checkpoint INFO: Saving checkpoint to ./output/model_0000034.pth", 34),
        ("Saving model checkpoint to out/checkpoint-30", 30),
        (">> Model checkpoint saved!", 30),
        ("Best model saved at epoch 7", 30),
    ],
)
def test_a_line_that_says_so_gives_the_step(tmp_path: Path, line: str, step: int) -> None:
    """Its own number where that lies between the rows around it, else that of the row before."""
    assert saved(tmp_path, line) == {step: 5}


@pytest.mark.parametrize(
    "line",
    [
        "checkpoints will be saved to out",
        "the loss did not improve: model not saved",
        "Full config saved to checkpoints/a/config.yaml",
        "torch.save(model.state_dict(), 'model.pt')",
        "model save path: runs/a.pt",
        "Loading checkpoint from out",
    ],
)
def test_a_line_that_speaks_of_it_only_gives_none(tmp_path: Path, line: str) -> None:
    """What will be saved, was not, or is code."""
    assert saved(tmp_path, line) == {}
