"""The steps of checkpoints, from what their files are called."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stabtree import diagnose
from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_run
from stabtree.loaders.paths import stored
from stabtree.loaders.paths.stored import named_checkpoints

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
    for folder, problem in ((tmp_path, "no name with a step in it"), (tmp_path / "none", "can't be read")):
        with pytest.raises(StabtreeError, match=problem):
            named_checkpoints(folder)


def log_in(folder: Path, rows: int = 600, broken: int = 400, column: str = "step") -> Path:
    """A log in a folder, of a loss that is NaN from some row on."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{i},{3 - i / rows if i < broken else 'nan'},1.0\n" for i in range(rows))
    file = folder / "metrics.csv"
    file.write_text(f"{column},loss,grad_norm\n" + lines, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "names",
    [
        ("checkpoint-300", "checkpoint-500"),  # Hugging Face, TRL, axolotl, LLaMA-Factory
        ("global_step300", "global_step500"),  # DeepSpeed
        ("iter_0000300", "iter_0000500"),  # Megatron
        ("step_300", "step_500"),
        ("step-300.pt", "step-500.pt"),
        ("epoch=0-step=300.ckpt", "epoch=1-step=500.ckpt"),  # Lightning
        ("ckpt_300.pt", "ckpt_500.pt"),
        ("model_300.pt", "model_500.pt"),
        ("rl_model_300_steps.zip", "rl_model_500_steps.zip"),  # Stable-Baselines3
        ("checkpoint_2_300.pt", "checkpoint_4_500.pt"),  # fairseq
    ],
)
def test_checkpoints_beside_a_log_are_found_by_their_names(tmp_path: Path, names: tuple[str, ...]) -> None:
    """Of each trainer's, for the file and for the folder: the restart names the one that is older than the trouble."""
    log = log_in(tmp_path)
    for name in names:
        (tmp_path / name).touch() if "." in name else (tmp_path / name).mkdir()
    for path in (log, tmp_path):
        restart = diagnose(load_run(path)).findings[0].restart
        assert restart is not None
        assert (restart.checkpoint_step, restart.path, restart.assumed) == (300, str(tmp_path / names[0]), False)


@pytest.mark.parametrize(
    "name",
    [
        "model-00001-of-00300.safetensors",
        "rng_state_300.pth",
        "optimizer_300.pt",
        "step_300.log",
        "metrics_step_300.csv",
        "run-300.txt",
    ],
)
def test_what_is_no_checkpoint_is_none(tmp_path: Path, name: str) -> None:
    """Pieces of one, the optimizer's state and other logs may have a number too."""
    log = log_in(tmp_path)
    (tmp_path / name).touch()
    assert not load_run(log).checkpoints


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A link may lead out of the folder, and back to where one was."""
    log = log_in(tmp_path / "run")
    (tmp_path / "far" / "checkpoint-300").mkdir(parents=True)
    (tmp_path / "run" / "checkpoints").symlink_to(tmp_path / "far")
    (tmp_path / "run" / "checkpoint-200").symlink_to(tmp_path / "far" / "checkpoint-300")
    assert not load_run(log).checkpoints


def test_a_log_of_epochs_has_checkpoints_by_epoch(tmp_path: Path) -> None:
    """A name with both is read by its epoch; one of steps alone can't be placed in it."""
    log = log_in(tmp_path, 30, 20, "epoch")
    (tmp_path / "checkpoint-4000").mkdir()
    assert not load_run(log).checkpoints
    (tmp_path / "epoch=7-step=4000.ckpt").touch()
    run = load_run(log)
    assert list(run.checkpoints) == [7]
    restart = diagnose(run).findings[0].restart
    assert restart is not None
    assert (restart.checkpoint_step, restart.unit == "epoch") == (7, True)


def test_numbers_that_count_epochs_are_not_taken_for_steps(tmp_path: Path) -> None:
    """One by one in a log of many steps: nothing says at which step the fifth epoch ended."""
    log = log_in(tmp_path)
    for epoch in range(1, 6):
        (tmp_path / f"checkpoint-{epoch}.pth.tar").touch()
    assert not load_run(log).checkpoints


def test_a_folder_of_many_logs_is_listed_once(tmp_path: Path) -> None:
    """For as long as nothing was saved in it; one that has just changed may change again unseen."""

    def found() -> list[int]:
        return list(stored.checkpoints_beside([str(tmp_path / "run.csv")], by_epoch=False, last_step=900))

    for at in (10, 20):
        (tmp_path / f"checkpoint-{at}00").mkdir()
        assert found() == [100 * step for step in (10, 20) if step <= at]
    os.utime(tmp_path, (1e9, 1e9))
    before = stored._names.cache_info().misses
    assert [found() for _ in range(5)] == [[1000, 2000]] * 5
    assert stored._names.cache_info().misses == before + 1
