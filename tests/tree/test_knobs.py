"""By which framework a run was made, from its log alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stabtree.facts.circumstances import framework_of
from stabtree.run import ColumnUse, FileUse
from stabtree.tree.knobs import KNOBS
from tests.conftest import make_run


def framework(columns: str, format_: str = "csv", path: str = "log", first: float | None = None) -> str:
    """The framework of a run with one file of these columns."""
    used = tuple(ColumnUse(name.strip(), name.strip(), first=first) for name in columns.split(","))
    return framework_of(replace(make_run({"loss": [1.0]}), sources=(FileUse(path, format_, 1, used),)))


@pytest.mark.parametrize(
    ("columns", "format_", "path", "expected"),
    [
        ("step, loss", "trainer_state", "out", "huggingface"),
        ("step, epoch, loss, grad_norm, learning_rate", "text", "train.log", "huggingface"),
        ("train/loss, train/learning_rate, train/epoch", "tfevents", "runs", "huggingface"),
        ("step, epoch, loss, grad_norm, learning_rate, memory/max_allocated (GiB)", "text", "a.log", "axolotl"),
        ("current_steps, total_steps, percentage, loss, lr", "jsonl", "trainer_log.jsonl", "llamafactory"),
        ("epoch, step, train_loss", "csv", "lightning_logs/version_0/metrics.csv", "lightning"),
        ("epoch, step, lr-AdamW, train_loss", "csv", "metrics.csv", "lightning"),
        ("step, skipped, lr, mom", "text", "train.log", "deepspeed"),
        ("iteration, lm loss, grad norm", "text", "train.log", "megatron"),
        ("iter, train loss, val loss", "text", "train.log", "nanogpt"),
        ("epoch, accuracy, loss, val_accuracy, val_loss", "csv", "training.log", "keras"),
        ("time/fps, train/learning_rate, rollout/ep_rew_mean", "tfevents", "PPO_1", "sb3"),
        ("step, loss, lr, grad_norm", "csv", "metrics.csv", ""),
        ("epoch, loss, accuracy, val_loss, val_accuracy", "csv", "log.csv", ""),  # no alphabet: somebody's own loop
        ("epoch, loss", "csv", "log.csv", ""),
    ],
)
def test_a_framework_is_known_by_what_no_other_writes(columns: str, format_: str, path: str, expected: str) -> None:
    """By its columns, its format or its folder; where nothing tells, none is named."""
    assert framework(columns, format_, path) == expected


def test_an_own_loop_that_counts_epochs_from_one_is_not_keras() -> None:
    """CSVLogger begins at 0."""
    assert framework("epoch, loss, val_loss", first=0.0) == "keras"
    assert framework("epoch, loss, val_loss", first=1.0) == ""


def test_every_knob_has_a_word_for_all_others() -> None:
    """Where the framework is not known, or spells it in no way of its own."""
    assert all("" in spellings for spellings in KNOBS.values())
