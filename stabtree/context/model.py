"""What is known of a run as a whole and how, and the columns, settings and signs that show it."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from msgspec import Struct, field

from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import broken_rows, extremes
from stabtree.common.shared import ROWS_SHORT
from stabtree.common.text import clean
from stabtree.metrics.metric import names
from stabtree.metrics.table import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stabtree.run import Run

T = TypeVar("T", str, int, float)

CONFIGURED, LOGGED, INFERRED, UNKNOWN = "configured", "logged", "inferred", "unknown"

GRPO, ON_POLICY, OFF_POLICY, REINFORCEMENT = "grpo", "on-policy-rl", "off-policy-rl", "reinforcement"
LANGUAGE, CLASSIFICATION, REGRESSION = "language-model", "classification", "regression"
DETECTION, SEGMENTATION, DIFFUSION, GAN = "detection", "segmentation", "diffusion", "gan"
CTC, CONTRASTIVE, PREFERENCE = "ctc", "contrastive", "preference"
FROM_REWARDS = (GRPO, ON_POLICY, OFF_POLICY, REINFORCEMENT)
"""The tasks that learn from rewards; `REINFORCEMENT` where it is open whether from the policy's own samples."""
TASKS = (
    *(LANGUAGE, CLASSIFICATION, REGRESSION, DETECTION, SEGMENTATION, DIFFUSION, GAN, CTC, CONTRASTIVE, PREFERENCE),
    *FROM_REWARDS,
)

FROM_SCRATCH, CONTINUED, FINE_TUNE, LORA = "from scratch", "continued", "fine-tune", "LoRA"


class Known(Struct, Generic[T], frozen=True):
    """A value, and how it is known.

    Attributes:
        value: the value; None where it is not known.
        how: `configured`, `logged`, `inferred` or `unknown`.
        why: the evidence in a few words; empty where nothing is known.
    """

    value: T | None = None
    how: str = UNKNOWN
    why: str = ""


class Context(Struct, frozen=True):
    """Who a run is.

    Attributes:
        task: one of `TASKS`.
        algorithm: `ppo`, `dqn`, `dpo`, ..., of tasks that have several.
        phase: `from scratch`, `continued`, `fine-tune` or `LoRA`.
        framework: the id of the trainer's file in `stabtree.frameworks`.
        precision: `fp32`, `fp16`, `bf16` or `fp8`; a fact of its own, so that what is found in another one is not the
            fact of another context.
        optimizer: its usual name in lower case.
        planned_steps: the optimizer steps that the run was to make.
        peak_lr: the highest learning rate, as configured or logged.
        classes: how many classes, or tokens of a vocabulary, one guess is among.
        outcome: the metric that says how well the run does: the reward, else the quality on held-out data, else the
            held-out loss, else the training loss.
        better: `lower` or `higher`: where the outcome goes while the run does well.
        chance: the value of the outcome for an uninformed guess.
        restless: why the loss of this run need not fall and may burst; empty if it should fall as any loss does.
    """

    task: Known[str] = Known()
    algorithm: Known[str] = Known()
    phase: Known[str] = Known()
    framework: Known[str] = Known()
    precision: Known[str] = Known()
    optimizer: Known[str] = Known()
    planned_steps: Known[int] = Known()
    peak_lr: Known[float] = Known()
    classes: Known[int] = Known()
    outcome: Known[str] = Known()
    better: str = ""
    chance: Known[float] = Known()
    restless: str = ""

    @property
    def learns_from_rewards(self) -> bool:
        """Whether the run is one of reinforcement learning."""
        return self.task.value in FROM_REWARDS


PARTS = (
    *("task", "algorithm", "phase", "framework", "precision", "optimizer"),
    *("planned_steps", "peak_lr", "classes", "outcome", "chance"),
)
"""The attributes of a context that say how they are known, in the order in which they are shown."""


def as_dict(context: Context) -> dict[str, Any]:
    """Return a context as plain values: each part with its value, how it is known, and the evidence."""
    parts = {name: getattr(context, name) for name in PARTS}
    found: dict[str, Any] = {name: {"value": p.value, "how": p.how, "why": p.why} for name, p in parts.items()}
    found["outcome"]["better"] = context.better or None
    return found


MAX_WORDS = 4  # of the longest name that a sign asks for
MAX_COLUMNS = 2000  # a log of every layer repeats itself
MAX_NAME = 100  # no sign is that long; what is longer holds a message
SHOWN = 3
_WORD = re.compile(r"[a-z0-9]+")


class ColumnNames(Struct, frozen=True):
    """The columns of a run.

    Attributes:
        names: up to `MAX_WORDS` words in a row of each column, joined by `_` -> the first such column, as written.
    """

    names: Mapping[str, str]
    _known: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)

    def first(self, marks: tuple[str, ...]) -> tuple[str, ...]:
        """Return the columns of the first mark all of whose names are there; empty where none is.

        Args:
            marks: names of columns, or parts of them, separated by spaces.
        """
        if marks not in self._known:
            fitting = (parts for parts in map(str.split, marks) if all(part in self.names for part in parts))
            self._known[marks] = tuple(self.names[part] for part in next(fitting, ()))
        return self._known[marks]


def columns_of(run: Run) -> ColumnNames:
    """Return the columns of a run's files, ignored ones too."""
    written = dict.fromkeys(use.name for use in chain.from_iterable(source.columns for source in run.sources))
    # A run that was made of values in memory has series alone.
    return _named(tuple(written or run.series)[:MAX_COLUMNS])


@lru_cache(maxsize=64)
def _named(names: tuple[str, ...]) -> ColumnNames:
    """Return the columns of these names; several rooms ask who one run is, and the runs of a scan are alike."""
    found: dict[str, str] = {}
    for name in names:
        # `mAP50` is one word, and several.
        for inner in (_WORD.findall(name.lower()), words(name)) if len(name) <= MAX_NAME else ():
            for start in range(len(inner)):
                for end in range(start + 1, start + MAX_WORDS + 1):
                    found.setdefault("_".join(inner[start:end]), name)
    return ColumnNames(found)


def shown(names: Iterable[str]) -> str:
    """Return the names of columns for a line of evidence."""
    kept = list(dict.fromkeys(names))
    return f"column{'s' if len(kept) > 1 else ''} {', '.join(clean(name, 40) for name in kept[:SHOWN])}"


# By what occurs in a name, longer ones first: `adamw_8bit` and `torch.optim.AdamW` are AdamW, which is not Adam.
OPTIMIZERS = (
    *("adamw", "adamax", "adafactor", "adagrad", "adadelta", "nadam", "radam", "adam", "rmsprop", "sgd"),
    *("lion", "muon", "lamb", "lars", "sophia", "shampoo", "adopt", "prodigy", "lbfgs"),
)
BF16_BITS = (7, 8)  # no limit: of the mantissa, with the leading one; what has two decimals by chance uses fewer


def stated(run: Run, key: str, value: T) -> Known[T]:
    """Return what a setting says, whether it was configured or printed in a text log, and where."""
    found = run.config[key]
    source, name = found.source, PurePath(found.source).name
    printed = any(PurePath(use.path).name == name and use.format.startswith("text") for use in run.sources)
    logged = printed or source.startswith(("column ", "the loss's name"))
    why = f"{found.spelled or key}={clean(found.value, 40)}, {clean(name or source, 40)}"
    return Known(value, LOGGED if logged else CONFIGURED, source if source.startswith("column ") else why)


def precision_of(run: Run) -> Known[str]:
    """Return the precision: as configured, else fp16 where a loss was scaled, bf16 where a loss was computed in it."""
    dtype, scale = run.setting("dtype"), run.get("loss_scale")
    if isinstance(dtype, str):
        return stated(run, "dtype", dtype)
    # bf16 has the range of fp32: nobody scales its loss, though some log a scale that is always 1.
    if scale is not None:
        infinite = bool(np.isposinf(scale.values[broken_rows(scale)]).any())
        highest = math.inf if infinite else extremes(scale).highest
        if highest > 1:
            return Known("fp16", INFERRED, f"a loss scale up to {figure(highest, 6)} is logged")
    return _of_the_loss(run)


def _of_the_loss(run: Run) -> Known[str]:
    """Return bf16 where every loss is a number of that format, as next to no loss is that was computed in another."""
    from stabtree.profile.model import bits_used

    loss = run.get("loss")
    if loss is None:
        return Known()
    values = loss.values[np.isfinite(loss.values)]
    fractions = values[values != np.floor(values)]
    # The first few rule it out in nearly all runs; `unique` sorts, and imports much of numpy.
    if not len(fractions) or bits_used(fractions[:ROWS_SHORT]).max() > max(BF16_BITS):
        return Known()
    if bits_used(fractions).max() not in BF16_BITS or len(np.unique(fractions)) < ROWS_SHORT:
        return Known()
    return Known("bf16", INFERRED, f"all {len(values):,} values of the loss are bf16 numbers")


def peak_lr_of(run: Run) -> Known[float]:
    """Return the highest rate that was logged, else the one that was configured."""
    series, planned = run.get("lr"), run.setting("lr")
    if series is not None:
        rates = len(series) - len(broken_rows(series))
        if rates:
            return Known(extremes(series).highest, LOGGED, f"highest of {rates:,} rates")
    if isinstance(planned, int | float):
        return stated(run, "lr", float(planned))
    return Known()


def classes_of(run: Run) -> Known[int]:
    """Return the classes, or the tokens of the vocabulary, that one guess of the model is among."""
    for key in ("n_classes", "vocab_size"):
        value = run.setting(key)
        if isinstance(value, int) and value > 1:
            return stated(run, key, value)
    return Known()


class Sign(NamedTuple):
    """What shows a task.

    Attributes:
        task: the task.
        algorithm: the algorithm, where the sign shows it too.
        marks: names of columns, or parts of names, that must all be there; one mark of several is enough.
    """

    task: str
    algorithm: str
    marks: tuple[str, ...]


# In this order: what is special comes before what others log as well. A reward model beside a language model logs
# tokens, a detector accuracies, and a critic a mean squared error.
SIGNS_OF_REWARDS = (
    Sign(
        GRPO,
        "grpo",
        (
            "frac_reward_zero_std",
            "completions_mean_length reward",
            "completion_length reward_std",
            "completions_clipped_ratio",
        ),
    ),
    Sign(PREFERENCE, "orpo", ("log_odds_ratio log_odds_chosen",)),
    Sign(PREFERENCE, "kto", ("logps_chosen kl",)),
    Sign(
        PREFERENCE,
        "dpo",
        ("rewards_chosen rewards_rejected logps_chosen", "rewards_margins rewards_accuracies", "chosen_logps"),
    ),
    Sign(PREFERENCE, "reward-model", ("min_reward max_reward margin", "chosen_reward reject_reward")),
    Sign(
        ON_POLICY,
        "ppo",
        (
            *("objective_rlhf_reward", "actor_ppo_kl critic_vf_loss", "clip_fraction approx_kl", "clipfrac"),
            *("policy_gradient_loss clip_range", "ppo_loss", "loss_clip loss_vf"),
        ),
    ),
    Sign(GRPO, "grpo", ("actor_pg_loss response_length_mean", "grpo_loss")),
    Sign(
        ON_POLICY,
        "",
        (
            *("approx_kl", "approxkl", "policy_gradient_loss", "explained_variance value_loss", "surrogate_loss"),
            *("policy_loss value_loss entropy", "policy_loss value_loss entropy_loss", "reinforce_loss"),
            *("average_policy_std", "explained_variance mean_kl", "explained_variance average_return"),
        ),
    ),
    Sign(
        OFF_POLICY,
        "sac",
        ("ent_coef critic_loss", "ent_coef_loss", "alpha_loss critic_loss", "alpha_loss qf1_loss", "alpha_loss q_loss"),
    ),
    Sign(OFF_POLICY, "dqn", ("exploration_rate loss", "td_loss q_values")),
    Sign(
        OFF_POLICY,
        "",
        (
            *("qf1_loss", "qf_loss", "q1_loss", "q_values", "td_error", "mean_q", "exploration_rate"),
            *("epsilon reward", "epsilon score", "epsilon return", "replay_buffer_size"),
        ),
    ),
)
SIGNS = (
    Sign(
        GAN,
        "",
        (
            *("d_loss g_loss", "loss_d loss_g", "disc_loss gen_loss", "discriminator_loss generator_loss", "errd errg"),
            *("loss_disc loss_gen", "err_d err_g", "lossd lossg", "d_real d_fake", "loss_discriminator loss_generator"),
            *("cycle_a cycle_b", "cycled_a", "cycled_b", "d_a g_a"),
        ),
    ),
    Sign(
        DIFFUSION,
        "",
        (
            *("diffusion_loss", "loss_diffusion", "denoising_loss", "loss_simple", "loss_q0", "mse_q0", "ddpm_loss"),
            *("noise_pred_loss", "noise_loss", "flow_matching_loss", "score_matching_loss"),
        ),
    ),
    Sign(CTC, "", ("ctc_loss", "loss_ctc", "ctc", "cer_ctc", "wer_ctc")),
    Sign(
        CONTRASTIVE,
        "",
        (
            *("contrastive_loss", "loss_contrastive", "infonce", "info_nce", "nt_xent", "ntxent", "simclr_loss"),
            *("itc_loss", "loss_itc", "triplet_loss", "logit_scale"),
        ),
    ),
    Sign(
        SEGMENTATION,
        "",
        (
            *("seg_loss", "loss_mask", "mask_loss", "segm_ap", "miou", "mean_iou", "dice", "dice_loss", "pixel_acc"),
            *("pixel_accuracy", "mask_iou", "iou_score", "jaccard"),
        ),
    ),
    Sign(
        DETECTION,
        "",
        (
            *("map50", "map_50", "bbox_ap", "bbox_map", "loss_bbox", "bbox_loss", "box_loss", "loss_giou", "giou_loss"),
            *("loss_box_reg", "loss_rpn_cls", "rpn_cls_loss", "loss_rpn_loc", "obj_loss"),
            *("conf_loss loc_loss", "loss_conf loss_loc", "class_error cardinality_error"),
        ),
    ),
    Sign(SEGMENTATION, "", ("iou",)),
    Sign(
        LANGUAGE,
        "",
        names(
            "perplexity ppl num_tokens ntokens num_input_tokens_seen mean_token_accuracy token_accuracy lm_loss"
            " mlm_loss val_bpb bpb bpc tokens_per_second tokens_per_sec tok_s tok_sec tokens_seen consumed_tokens bleu"
            " rouge rouge1 rougel tokens_per_second_per_gpu"
        ),
    ),
)
TAUGHT = (
    *("byol_loss", "loss_byol", "dino_loss", "loss_dino", "ibot_loss", "loss_ibot", "teacher_momentum"),
    *("momentum_teacher", "teacher_tau", "tau_teacher", "ema_tau", "tau_ema"),
)
"""What is logged where a student learns to predict a teacher that is a moving average of itself."""
CLASSES = (
    *("accuracy", "acc", "top1", "top5", "acc1", "acc5", "acc_1", "acc_5", "top_1", "top_5", "prec1", "prec_1"),
    *("f1", "macro_f1", "auc", "auroc", "precision recall", "balanced_accuracy"),
)
"""What a classifier logs, and much else besides: a sign where nothing speaks for another task."""
PLAIN = frozenset(
    names(
        "train training val valid validation test eval evaluation dev heldout epoch step batch iter mean avg average"
        " running best final overall global total per sample at k macro micro weighted balanced class cls score metric"
        " metrics chart charts log logs model accuracy acc acc1 acc5 prec prec1 precision recall f1 auc auroc roc top"
        " top1 top5 categorical sparse binary"
    )
)
"""The words of an accuracy that is no more than that; any other word says that something else is right or wrong."""
NUMBERS = (
    *("mse", "rmse", "mae", "mape", "smape", "nse", "r2", "psnr", "spearman", "pearson"),
    *("pde", "ode", "pinn", "residual", "residuals", "l2_rel", "rel_l2", "l2_error", "physics"),
)
"""Errors of numbers, and the terms of equations that are solved."""
NO_CLASSES = (*NUMBERS, "smoothl1", "smooth_l1", "l1_loss", "huber")
"""What no classifier logs; the last ones are the errors of boxes and of pictures too."""

# A configuration's words for a task -> task, algorithm; in this order.
WORDS = (
    ("grpo dapo rloo gspo", GRPO, ""),
    ("dpo kto orpo simpo cpo ipo", PREFERENCE, ""),
    ("rm preference", PREFERENCE, "reward-model"),
    ("ppo a2c a3c trpo reinforce impala", ON_POLICY, ""),
    ("dqn ddqn rainbow sac td3 ddpg cql iql", OFF_POLICY, ""),
    ("rl reinforcement", REINFORCEMENT, ""),
    ("sft causal lm language token char seq2seq translation summarization mlm", LANGUAGE, ""),
    ("segment segmentation", SEGMENTATION, ""),
    ("detect detection", DETECTION, ""),
    ("classify classification classifier cls", CLASSIFICATION, ""),
    ("regression regress", REGRESSION, ""),
    ("diffusion", DIFFUSION, ""),
    ("gan", GAN, ""),
    ("ctc", CTC, ""),
    ("contrastive", CONTRASTIVE, ""),
)
