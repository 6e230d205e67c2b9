"""The table of known metrics: the names that loaders map to and predicates ask for.

A metric's aliases are compared after `normalize`, so `Train/Loss`, `train loss` and `train_loss`
are one name. Where several columns of a file carry one metric, the alias that stands first wins.
"""

from __future__ import annotations

import re
from functools import cache

from stabtree.metrics.metric import Metric, names
from stabtree.metrics.pace import TIME_METRICS
from stabtree.metrics.rl import RL_METRICS

METRICS: tuple[Metric, ...] = (
    Metric(
        "loss",
        "training loss of the step, or its mean since the last row",
        names(
            "reduced_train_loss loss train_loss train_loss_step train_step_loss training_loss lm_loss "
            "total_loss train_total_loss total_train_loss loss_train loss_total loss_train_total "
            "train_loss_total train_batch_loss batch_loss step_loss loss_step train_inner_loss "
            "train_language_cross_entropy train_languagecrossentropy metrics_train_languagecrossentropy "
            "train_crossentropyloss train_ce_loss cross_entropy train_cross_entropy loss_metrics_global_avg_loss "
            "global_avg_loss mean_loss train_mean_loss train_loss_mean loss_mean avg_loss train_avg_loss "
            "loss_avg train_loss_avg trl train_nll nll_loss cross_entropy_loss train_loss_epoch "
            "train_epoch_loss epoch_loss loss_epoch average_loss train_crossentropy train_loss_train_total "
            "train_metrics_train_languagecrossentropy ppyoloeloss_loss actor_pg_loss act_loss ppo_loss_total "
            "rllib_total_loss"
        ),
        log="the training loss at every step",
    ),
    Metric(
        "eval_loss",
        "loss on held-out data",
        names(
            "val_loss valid_loss validation_loss dev_loss test_loss loss_eval loss_val loss_valid "
            "loss_validation loss_val_total loss_eval_total eval_eval_loss eval_total_loss val_total_loss "
            "validation_total_loss evaluation_loss eval_avg_loss val_avg_loss avg_val_loss val_loss_mean "
            "lm_loss_value lm_loss_validation validation_metrics_global_avg_loss "
            "metrics_eval_languagecrossentropy eval_cross_entropy val_cross_entropy valid_cross_entropy "
            "validation_cross_entropy eval_nll_loss valid_nll_loss val_nll tel "
            "val_loss_epoch val_loss_step val_epoch_loss final_eval_loss "
            "eval_evaluation_loss_vs_iterations eval_epoch_loss validation_lm_loss average_val_loss"
        ),
        log="the loss on held-out data every few hundred steps",
    ),
    Metric(
        "eval_quality",
        "what the model gets right on held-out data, higher is better: accuracy, mAP, BLEU, F1, ...",
        names(
            "eval_accuracy val_accuracy valid_accuracy validation_accuracy test_accuracy dev_accuracy eval_acc val_acc "
            "valid_acc validation_acc test_acc dev_acc val_acc_epoch val_accuracy_epoch val_acc1 test_acc1 eval_top1 "
            "val_top1 eval_acc_top1 val_categorical_accuracy val_sparse_categorical_accuracy val_binary_accuracy "
            "eval_mean_token_accuracy eval_token_accuracy val_token_accuracy eval_f1 val_f1 valid_f1 test_f1 "
            "eval_macro_f1 eval_f1_macro val_f1_score val_macro_f1 eval_exact_match eval_bleu val_bleu valid_bleu "
            "eval_rougel eval_rouge_l eval_auc val_auc val_auroc eval_map val_map metrics_map50_95(b) metrics_map50_95 "
            "metrics_map_0_5_0_95 "
            "val_miou val_mean_iou val_iou val_dice val_psnr eval_matthews_correlation eval_pearson"
        ),
        log="eval_accuracy, or another measure of what the model gets right, beside every eval_loss",
    ),
    Metric(
        "grad_norm",
        "global L2 norm of the unscaled gradient before clipping",
        names(
            "train_grad_norm training_grad_norm gradnorm gnorm train_gnorm gradient_norm train_gradient_norm "
            "global_grad_norm global_gradient_norm total_grad_norm optim_total_grad_norm grad_norm_total "
            "grad_norm_global grad_norm_preclip grad_norm_pre_clip grad_norm_before_clip grad_global_norm "
            "grads_norm grad_norm_l2 l2_norm_grad_global grad_l2 optimizer_grad_norm grad_2_0_norm_total "
            "grad_2_norm_total total_norm actor_grad_norm norm rllib_grad_gnorm "
            "rllib_gradients_default_optimizer_global_norm"
        ),
        grouped=True,
        log="grad_norm: what clip_grad_norm_ returns (in fp16 after scaler.unscale_), at every step",
    ),
    Metric(
        "lr",
        "learning rate of the step",
        names(
            "learning_rate train_lr train_learning_rate training_learning_rate learningrate "
            "train_learningrate lr_0 lr0 lr_pg0 lr_group0 lr_group_0 learning_rate_0 learning_rate_group0 "
            "optim_lr optim0_lr0 optim_learning_rate_group0 optimizer_lr opt_lr current_lr "
            "epoch_learning_rate lr_adamw lr_adamw_pg1 lr_adam lr_adam_pg1 lr_sgd lr_sgd_pg1 "
            "lr_decoupledadamw_group0 train_lr_decoupledadamw_group0 lr_adamw_group0 train_lr_adamw_group0 actor_lr "
            "base_lr current_learning_rate x_lr0 ppo_learning_rate rllib_cur_lr rllib_default_optimizer_learning_rate"
        ),
        log="lr: scheduler.get_last_lr()[0], at every step",
    ),
    Metric(
        "loss_scale",
        "loss scale of mixed-precision training",
        names(
            "grad_scale scale scaler_scale grad_scaler_scale grad_scaler amp_scale amp_loss_scale loss_scaler "
            "dynamic_loss_scale cur_scale fp16_scale train_loss_scale lossscale"
        ),
        log="loss_scale: scaler.get_scale(), at every step",
    ),
    Metric(
        "weight_norm",
        "L2 norm of the parameters, whole or per parameter group",
        names(
            "param_norm params_norm parameter_norm weights_norm weightnorm train_weight_norm train_param_norm "
            "total_param_norm optim_total_param_norm l2_norm_param"
        ),
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
        "update_ratio",
        "size of the update over the size of the weights, ‖Δw‖/‖w‖, whole or per parameter group",
        ("update_to_weight", "update_to_weight_ratio", "update_weight_ratio", "relative_update", "upd_ratio"),
        grouped=True,
        log="update_ratio: ‖Δw‖/‖w‖ of the step, whole or per parameter group",
    ),
    Metric(
        "dead_relu_frac",
        "share of a layer's units that no input of the batch activates, 0 to 1",
        ("dead_relu", "dead_relus", "dead_relu_fraction", "dead_units", "dead_unit_frac", "dead_neurons", "dead_frac"),
        grouped=True,
        log="dead_relu_frac: the share of units that are 0 for the whole batch, from a forward hook",
    ),
    Metric(
        "skipped_steps",
        "steps skipped because their gradient was not finite, cumulative or since the last row",
        names(
            "skipped_iterations number_of_skipped_iterations num_skipped_steps skipped_steps_total n_skipped "
            "overflow_count num_overflows skipped skip_count"
        ),
        log="skipped_steps: a counter of the steps whose update was skipped",
    ),
    Metric(
        "logits_max",
        "largest absolute output logit of the batch",
        ("max_logit", "logits_abs_max", "max_logits", "output_logits_max", "logit_max"),
        log="logits_max: logits.abs().max() of the batch",
    ),
    Metric(
        "logsumexp",
        "mean log of the softmax's denominator, log Z",
        ("log_z", "logz", "logits_logsumexp"),
        log="logsumexp: torch.logsumexp(logits, -1).mean()",
    ),
    Metric(
        "attention_logits_max",
        "largest Q·K of a layer before the softmax",
        ("attn_logits_max", "max_attention_logit", "max_attn_logit", "attention_logit_max", "attn_logit_max"),
        grouped=True,
        log="attention_logits_max/<layer>: the largest Q·K before the softmax, from a forward hook",
    ),
    Metric(
        "pad_share",
        "share of padding among the batch's tokens, 0 to 1",
        ("padding_share", "pad_fraction", "padding_fraction", "pad_ratio", "padding_ratio", "pad_frac"),
        log="pad_share: (tokens == pad_id).float().mean() of the batch",
    ),
    *RL_METRICS,
    Metric(
        "batch_id",
        "which batch the step saw: an index or a hash, compared for equality only",
        ("batch_hash", "batch_idx", "batch_index", "data_batch_id", "data_index", "batch"),
        log="batch_id: the index or a hash of the batch, at every step",
    ),
    *TIME_METRICS,
)

# The optimizer's own count goes first: beside it a plain `step` often counts micro-batches.
STEP_ALIASES: tuple[str, ...] = names(
    "optimizer_step optimizer_steps optim_step opt_step update_step num_updates global_step "
    "train_global_step trainer_global_step training_global_step global_step_max_steps step train_step "
    "training_step current_steps current_step steps iteration iterations iter iters iter_num n_iter it "
    "train_iter training_iteration update updates time_total_timesteps total_timesteps timesteps_total "
    "timesteps time_batch _step itr n_itr env_step env_steps total_env_steps num_env_steps_sampled "
    "timesteps_so_far total_env_interacts num_timesteps timestep"
)
# Words in the name of a column of steps by which it counts something else than optimizer steps.
OTHER_COUNTS = frozenset(
    names(
        "token tokens sample samples example examples sequence sequences seq seqs image images img kimg frame frames "
        "byte bytes word words consumed seen episode episodes epoch epochs ep env timestep timesteps interacts"
    )
)
EPOCH_ALIASES: tuple[str, ...] = (
    "epoch",
    "train_epoch",
    "training_epoch",
    "epochs",
    "epoch_num",
    "episode",
    "episodes",
    "time_episodes",
    "epoca",
    "época",
    "epoche",
    "époque",
    "эпоха",
)
RANK_ALIASES: tuple[str, ...] = (
    "rank",
    "global_rank",
    "local_rank",
    "process_index",
    "process_rank",
    "worker_rank",
)
RUN_ALIASES: tuple[str, ...] = (
    "run",
    "run_name",
    "run_id",
    "experiment",
    "experiment_name",
    "experiment_id",
    "exp_name",
    "trial",
    "trial_name",
    "trial_id",
)

# The names of nested modules, joined, come nowhere near this; what is longer is text.
MAX_NAME = 300
# The most words of an alias of a grouped metric.
MAX_PARTS = max(
    alias.count("_") + 1 for metric in METRICS if metric.grouped for alias in (metric.name, *metric.aliases)
)

# llm.c prints the gradient's norm under this name; `norm/block0` is anything's.
ALONE = ("norm",)

# RLlib logs what each policy learns under its name: `info/learner/default_policy/learner_stats/total_loss`.
_RLLIB = re.compile(r"^(?:info/)?learners?/[^/]+/(?:learner_stats/)?(?=[^/]+$)")
# TRL logs the mean of each reward function between two words.
_REWARD_FUNCTION = re.compile(r"^(?:train/)?rewards/([^/]+)/mean$")
_SEPARATORS = re.compile(r"[\s\-./:|\\]+")
_WORDS = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+")
_LOSS_AT_END = re.compile(r"(.*)(loss)(?:es)?\d*")


def normalize(name: str) -> str:
    """The form in which names are compared: lower case, every separator an underscore."""
    return _SEPARATORS.sub("_", name.strip().lower())


def words(name: str) -> list[str]:
    """The words of a name, in lower case, however they are told apart.

    >>> words("TrainLoss"), words("Qloss"), words("val/losses")
    (['train', 'loss'], ['q', 'loss'], ['val', 'loss'])
    """
    found = []
    for word in _WORDS.findall(name):
        at_end = _LOSS_AT_END.fullmatch(word.lower())
        found += [part for part in at_end.groups() if part] if at_end else [word.lower()]
    return found


@cache
def _exact() -> dict[str, tuple[str, int]]:
    return {alias: (metric.name, place) for metric in METRICS for place, alias in enumerate(_ordered(metric))}


def _ordered(metric: Metric) -> tuple[str, ...]:
    """The names of a metric, best first: the canonical one unless the aliases give it another place."""
    return metric.aliases if metric.name in metric.aliases else (metric.name, *metric.aliases)


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
    if len(column) > MAX_NAME:
        return None
    column = _RLLIB.sub("rllib_", column.removeprefix("ray/tune/"))
    column = _REWARD_FUNCTION.sub(r"reward_function/\1", column)
    found = _exact().get(normalize(column)) or _exact().get("_".join(words(column)))
    if found:
        return found
    parts = [part for part in re.split(r"[/.:|]", column.strip()) if part]
    # The name of a metric has few parts, so that of a long name only the two ends are tried.
    begin, end = min(MAX_PARTS, len(parts) - 1), max(MAX_PARTS + 1, len(parts) - MAX_PARTS)
    for cut in (*range(1, begin + 1), *range(end, len(parts))):
        for name, group in ((parts[:cut], parts[cut:]), (parts[cut:], parts[:cut])):
            if len(name) > MAX_PARTS:
                continue
            found = _exact().get(normalize("/".join(name)))
            if found and by_name()[found[0]].grouped and normalize("/".join(name)) not in ALONE:
                return f"{found[0]}/{'.'.join(group)}", found[1]
    return None


def is_label(column: str) -> bool:
    """Whether a column's cells are labels, compared for equality only, so that text is no mistake in them."""
    found = match(column)
    return (found is not None and found[0] == "batch_id") or normalize(column) in (*RANK_ALIASES, *RUN_ALIASES)
