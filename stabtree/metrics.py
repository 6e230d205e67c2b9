"""The table of known metrics: the names that loaders map to and predicates ask for.

A metric's aliases are compared after `normalize`, so `Train/Loss`, `train loss` and `train_loss`
are one name. Where several columns of a file carry one metric, the alias that stands first wins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Metric:
    """A known series.

    Attributes:
        name: the canonical name; a predicate's positional parameter of this name asks for it.
        meaning: what the series holds, with its unit.
        aliases: names seen in real logs, best first; the canonical name itself is always one.
        grouped: whether `name/<group>` (per parameter group or layer) is a series of its own.
        log: how to log it, told to the user where a question could not be answered without it.
    """

    name: str
    meaning: str
    aliases: tuple[str, ...] = ()
    grouped: bool = False
    log: str = ""


METRICS: tuple[Metric, ...] = (
    Metric(
        "loss",
        "training loss of the step, or its mean since the last row",
        (
            "train_loss",
            "train_loss_step",
            "train_step_loss",
            "training_loss",
            "lm_loss",
            "total_loss",
            "train_total_loss",
            "loss_train",
            "loss_total",
            "train_batch_loss",
            "batch_loss",
            "step_loss",
            "reduced_train_loss",
            "mean_loss",
            "train_loss_mean",
            "avg_loss",
            "train_nll",
            "nll_loss",
            "train_cross_entropy",
            "cross_entropy_loss",
            "train_crossentropyloss",
            "loss_train_total",
            "train_loss_epoch",
            "epoch_loss",
            "average_loss",
            "trl",
            "train_crossentropy",
            "train_loss_train_total",
            "train_metrics_train_languagecrossentropy",
            "metrics_train_languagecrossentropy",
            "ppyoloeloss_loss",
            "actor_loss",
            "actor_pg_loss",
            "act_loss",
        ),
        log="the training loss at every step",
    ),
    Metric(
        "eval_loss",
        "loss on held-out data",
        (
            "val_loss",
            "valid_loss",
            "validation_loss",
            "dev_loss",
            "test_loss",
            "loss_eval",
            "loss_val",
            "loss_valid",
            "eval_eval_loss",
            "val_loss_epoch",
            "lm_loss_value",
            "validation_lm_loss",
            "average_val_loss",
            "tel",
        ),
        log="the loss on held-out data every few hundred steps",
    ),
    Metric(
        "grad_norm",
        "global L2 norm of the unscaled gradient before clipping",
        (
            "train_grad_norm",
            "gradnorm",
            "gnorm",
            "train_gnorm",
            "gradient_norm",
            "global_grad_norm",
            "total_grad_norm",
            "grad_norm_total",
            "grad_norm_preclip",
            "grad_norm_pre_clip",
            "grad_global_norm",
            "grad_l2",
            "optimizer_grad_norm",
            "actor_grad_norm",
            "norm",
        ),
        grouped=True,
        log="grad_norm: what clip_grad_norm_ returns (in fp16 after scaler.unscale_), at every step",
    ),
    Metric(
        "lr",
        "learning rate of the step",
        (
            "learning_rate",
            "train_lr",
            "train_learning_rate",
            "learningrate",
            "lr_0",
            "lr_pg0",
            "lr_group0",
            "optim_lr",
            "optim0_lr0",
            "base_lr",
            "opt_lr",
            "current_lr",
            "actor_lr",
            "lr_decoupledadamw_group0",
            "train_lr_decoupledadamw_group0",
            "lr_adamw_group0",
            "train_lr_adamw_group0",
        ),
        log="lr: scheduler.get_last_lr()[0], at every step",
    ),
    Metric(
        "loss_scale",
        "loss scale of mixed-precision training",
        (
            "grad_scale",
            "scale",
            "scaler_scale",
            "grad_scaler_scale",
            "amp_scale",
            "loss_scaler",
            "fp16_scale",
            "train_loss_scale",
            "lossscale",
        ),
        log="loss_scale: scaler.get_scale(), at every step",
    ),
    Metric(
        "weight_norm",
        "L2 norm of the parameters, whole or per parameter group",
        ("param_norm", "params_norm", "parameter_norm", "weights_norm", "weightnorm", "train_weight_norm"),
        grouped=True,
        log="weight_norm/<group>: the L2 norm of each parameter group",
    ),
    Metric(
        "activation_max",
        "largest absolute value in a layer's output",
        ("act_max", "max_abs", "abs_max", "absmax", "activation_absmax", "act_absmax", "activation_abs_max"),
        grouped=True,
        log="activation_max/<layer>: the largest absolute value of each layer's output, from a forward hook",
    ),
    Metric(
        "activation_finite",
        "1 where all of a layer's output is finite, else 0",
        ("finite", "is_finite", "isfinite", "act_finite", "all_finite"),
        grouped=True,
        log="activation_finite/<layer>: torch.isfinite(output).all(), from a forward hook on each layer",
    ),
    Metric(
        "batch_id",
        "which batch the step saw: an index or a hash, compared for equality only",
        ("batch_hash", "batch_idx", "batch_index", "data_batch_id", "data_index", "batch"),
        log="batch_id: the index or a hash of the batch, at every step",
    ),
)

STEP_ALIASES: tuple[str, ...] = (
    "step",
    "global_step",
    "train_global_step",
    "trainer_global_step",
    "training_global_step",
    "optimizer_step",
    "update_step",
    "num_updates",
    "train_step",
    "training_step",
    "current_steps",
    "current_step",
    "steps",
    "iteration",
    "iterations",
    "iter",
    "iters",
    "iter_num",
    "n_iter",
    "it",
    "train_iter",
    "update",
    "updates",
    "time_total_timesteps",
    "_step",
)
EPOCH_ALIASES: tuple[str, ...] = ("epoch", "train_epoch", "training_epoch", "epochs", "epoch_num")
RANK_ALIASES: tuple[str, ...] = (
    "rank",
    "global_rank",
    "local_rank",
    "process_index",
    "process_rank",
    "worker_rank",
)

_SEPARATORS = re.compile(r"[\s\-./:|\\]+")


def normalize(name: str) -> str:
    """The form in which names are compared: lower case, every separator an underscore."""
    return _SEPARATORS.sub("_", name.strip().lower())


@cache
def _exact() -> dict[str, tuple[str, int]]:
    return {
        alias: (metric.name, place) for metric in METRICS for place, alias in enumerate((metric.name, *metric.aliases))
    }


@cache
def by_name() -> dict[str, Metric]:
    """The metrics by canonical name."""
    return {metric.name: metric for metric in METRICS}


def match(column: str) -> tuple[str, int] | None:
    """The metric that a column name stands for, and its place among the aliases (0 is best).

    A grouped metric is recognised as a prefix (`grad_norm/embed`, `weight_norm.block0`) or as a suffix
    (`block0.attn/absmax`); it comes back as `metric/<group>`.

    >>> match("train/Learning_Rate")
    ('lr', 3)
    >>> match("param_norm/head")
    ('weight_norm/head', 1)
    """
    found = _exact().get(normalize(column))
    if found:
        return found
    parts = [part for part in re.split(r"[/.:|]", column.strip()) if part]
    for cut in range(1, len(parts)):
        for name, group in ((parts[:cut], parts[cut:]), (parts[cut:], parts[:cut])):
            found = _exact().get(normalize("/".join(name)))
            if found and by_name()[found[0]].grouped:
                return f"{found[0]}/{'.'.join(group)}", found[1]
    return None


def is_label(column: str) -> bool:
    """Whether a column's cells are labels, compared for equality only, so that text is no mistake in them."""
    found = match(column)
    return (found is not None and found[0] == "batch_id") or normalize(column) in RANK_ALIASES
