"""The steps of checkpoints, from what their files are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree import diagnose
from stabtree.errors import StabtreeError
from stabtree.loaders import load_run
from stabtree.loaders.paths.checkpoints import named_checkpoints

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("checkpoint-500", 500),
        ("step_1000.pt", 1000),
        ("global_step1500", 1500),
        ("iter_0002000", 2000),
        ("epoch=3-step=2500.ckpt", 2500),
        ("ckpt3000.pth", 3000),
        ("3500", 3500),
        ("model_4000.safetensors", 4000),
    ],
)
def test_every_trainers_name_tells_its_step(tmp_path: Path, name: str, step: int) -> None:
    """As Hugging Face, DeepSpeed, Megatron, Lightning and others write them."""
    (tmp_path / name).touch()
    (tmp_path / "optimizer.pt").touch()
    assert dict(named_checkpoints(tmp_path)) == {step: str(tmp_path / name)}


def test_a_folder_without_checkpoints_is_refused(tmp_path: Path) -> None:
    """Empty, or not there."""
    for folder, problem in ((tmp_path, "no name that tells a step"), (tmp_path / "none", "can't be read")):
        with pytest.raises(StabtreeError, match=problem):
            named_checkpoints(folder)


def test_the_restart_is_one_that_is_there(tmp_path: Path) -> None:
    """Of the checkpoints in the folder the newest before the trouble, well before the NaN storm."""
    (tmp_path / "ckpt").mkdir()
    for step in (200, 370, 500):
        (tmp_path / "ckpt" / f"checkpoint-{step}").mkdir()
    rows = "".join(f"{i},{3 - i / 400 if i < 400 else 'nan'},1.0\n" for i in range(600))
    (tmp_path / "m.csv").write_text("step,loss,grad_norm\n" + rows, encoding="utf-8")
    found = diagnose(load_run(tmp_path / "m.csv", checkpoints=tmp_path / "ckpt"))
    restart = found.findings[0].restart
    assert restart is not None
    assert restart.checkpoint_step == 370
