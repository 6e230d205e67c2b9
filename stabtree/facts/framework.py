"""By which framework a run was made, from its log alone: its settings are spelled, and its causes told, by that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from stabtree.run import FileUse, Run

# A framework is known by columns that no other writes so; all of one set must be there. First match wins.
_COLUMNS: tuple[tuple[str, frozenset[str]], ...] = tuple(
    (name, frozenset(columns.split()))
    for name, columns in (
        ("llamafactory", "current_steps total_steps percentage"),
        ("sb3", "time_fps"),
        ("sb3", "rollout_ep_rew_mean"),
        ("sb3", "train_clip_range"),
        ("sb3", "train_explained_variance"),
        ("megatron", "lm_loss"),
        ("megatron", "number_of_skipped_iterations"),
        ("megatron", "consumed_samples"),
        ("deepspeed", "skipped mom lr"),
        ("deepspeed", "train_samples_lr"),
        ("lightning", "hp_metric"),
        ("nanogpt", "iter train_loss val_loss"),
        ("nanogpt", "iter mfu"),
        ("keras", "epoch_loss epoch_learning_rate"),
        ("ultralytics", "train_box_loss"),
        ("ultralytics", "metrics_map50_b"),
        ("ultralytics", "metrics_accuracy_top1"),
        ("huggingface", "loss grad_norm learning_rate epoch"),
        ("huggingface", "eval_loss eval_runtime eval_samples_per_second"),
        ("huggingface", "train_loss train_learning_rate train_epoch"),
        ("huggingface", "train_global_step train_learning_rate"),
        ("huggingface", "train_runtime"),
        ("huggingface", "train_samples_per_second"),
        ("huggingface", "frac_reward_zero_std"),
        ("huggingface", "rewards_chosen"),
    )
)
# Axolotl logs as Hugging Face does, with these besides.
_AXOLOTL = "memory_max_"


def framework_of(run: Run) -> str:
    """The framework that wrote the log of a run; empty where nothing says so."""
    return next(filter(None, map(_framework, run.sources)), "")


def _framework(source: FileUse) -> str:
    columns = {normalize(column.name) for column in source.columns}
    if "lightning_logs" in source.path or any(column.name.lower().startswith("lr-") for column in source.columns):
        return "lightning"
    if source.format.startswith("trainer_state"):
        found = "huggingface"
    else:
        found = next((name for name, mark in _COLUMNS if mark <= columns), "") or _csv_logger(source)
    axolotl = found == "huggingface" and any(_AXOLOTL in name for name in columns)
    return "axolotl" if axolotl else found


def _csv_logger(source: FileUse) -> str:
    """Keras's CSVLogger: the epoch, from 0, then all metrics in alphabetical order, each with its `val_` twin."""
    if not source.columns:
        return ""
    first, *rest = source.columns
    names = [column.name for column in rest]
    own = {name for name in names if not name.startswith("val_") and name not in ("lr", "learning_rate")}
    twins = "loss" in own and own == {name.removeprefix("val_") for name in names if name.startswith("val_")}
    begins = first.name == "epoch" and first.first in (None, 0)
    return "keras" if begins and twins and names == sorted(names) and source.format.startswith("csv") else ""
