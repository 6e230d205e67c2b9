"""What kind of run it is, as far as its configuration and its columns say: causes hold in some kinds only."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from stabtree.facts.registry import fact
from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.run import FileUse, Run

# What a cause may ask for under `holds`. A word that is known to be so or not so counts, whatever else is known.
WORDS: Mapping[str, tuple[str, ...]] = {
    "precision": ("fp32", "fp16", "bf16", "fp8", "pure-fp16"),
    "optimizer": ("adam", "adamw", "sgd", "rmsprop", "adafactor", "lion", "muon"),
    "framework": ("huggingface", "deepspeed", "megatron", "lightning", "keras", "ultralytics", "sb3"),
    "library": ("torch", "keras"),
    "device": ("cpu", "cuda", "mps", "tpu", "gtx16"),
    "task": ("language-model", "classifier", "regression", "ctc", "preference", "reinforcement"),
    "clipping": ("on", "off"),
    "overlap": ("on", "off"),
    "logging": ("mean", "step"),
}
HOSTS = ("huggingface", "lightning", "megatron")  # they may run on DeepSpeed without a word of it in the log
SPELLED_AS = {"trl": "huggingface"}
BUILT_ON = {"llamafactory": "huggingface", "axolotl": "huggingface"}
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
AVERAGED = ("huggingface", "megatron", "keras", "ultralytics")  # a row of theirs is the mean since the row before
_LANGUAGE = ("perplexity", "ppl", "num_tokens", "num_input_tokens_seen", "mean_token_accuracy", "token_accuracy")
# How a configuration names its task: next-char, CAUSAL_LM, text-generation; SEQ_CLS, image classification.
_SAYS_TEXT = re.compile(r"language|next.?(?:char|token|word)|causal|text.?gen|(?:^|[^a-z])lm(?:$|[^a-z])")
_SAYS_CLASS = re.compile(r"classif|(?:^|[^a-z])cls(?:$|[^a-z])")
_SAYS_PAIRS = re.compile(r"preference|(?:^|[^a-z])dpo(?:$|[^a-z])")
# Columns of equations that are solved, and of images that are told apart: no text is trained there.
_PHYSICS = re.compile(r"(?:^|_)(?:pde|ode|pinn|physics|residuals?|boundary)(?:_|$)|l2_(?:rel|err)|rel\w*_l2")
_IMAGES = ("iou", "miou", "dice", "bbox", "map50", "top5")
_SPEECH = ("wer", "cer", "ctc", "ctc_loss", "loss_ctc", "cer_ctc", "wer_ctc")
_RIGHT = ("accuracy", "acc")
# Errors of numbers, and the terms of an autoencoder's loss; each may be the end of a longer name.
_NUMBERS = ("mse", "rmse", "mae", "mape", "nse", "r2", "psnr", "recon", "reconstruction", "kld")
_ANSWERS = ("completion_length", "token_accuracy")
_PREFERENCE = ("preference_margin", "preference_accuracy")


class Circumstances(NamedTuple):
    """Which words of `WORDS` are known to hold, and which not to; what is not there is not known."""

    known: Mapping[str, Mapping[str, bool]]

    def fit(self, holds: Mapping[str, Sequence[str]]) -> bool | None:
        """Whether all that a cause needs holds; None where some of it is not known, and nothing is known against it."""
        found = [self._fits(key, words) for key, words in holds.items()]
        return False if False in found else None if None in found else True

    def unknown(self, holds: Mapping[str, Sequence[str]]) -> str:
        """The conditions of which nothing is known, in words."""
        return " and ".join(
            f"the {key} ({' or '.join(words)})" for key, words in holds.items() if self._fits(key, words) is None
        )

    def _fits(self, key: str, words: Sequence[str]) -> bool | None:
        said = [self.known.get(key, {}).get(word) for word in words]
        return True if True in said else None if None in said else False


@fact()
def circumstances(run: Run) -> Circumstances:
    """What the configuration and the columns tell of the kinds in `WORDS`."""
    columns = {normalize(use.name) for source in run.sources for use in source.columns}
    ends = columns | {name.rsplit("_", 1)[-1] for name in columns}
    clip, overlap = run.setting("grad_clip"), run.setting("overlap_comm")
    framework = _framework(run)
    return Circumstances(
        {
            "precision": _precision(run),
            "optimizer": _optimizer(run),
            "framework": framework,
            # Nearly all that is not known to be Keras is PyTorch, and told of in its words.
            "library": _only("library", "keras" if framework.get("keras") else "torch"),
            "device": _device(run),
            "task": _task(run, ends),
            "clipping": {} if clip is None else {"on": bool(clip), "off": not clip},
            "overlap": {} if overlap is None else {"on": bool(overlap), "off": not overlap},
            "logging": _logging(run, framework),
        }
    )


def framework_of(run: Run) -> str:
    """The framework that wrote the log of a run, or that its configuration is for; empty where nothing says so."""
    said = str(run.setting("framework") or "")
    return next(filter(None, map(_wrote, run.sources)), SPELLED_AS.get(said, said))


def _only(key: str, *words: str) -> dict[str, bool]:
    """These words hold, and no other of the key does."""
    return {word: word in words for word in WORDS[key]}


def _precision(run: Run) -> dict[str, bool]:
    dtype, scale = str(run.setting("dtype") or ""), run.get("loss_scale")
    scaled = scale is not None and bool((scale.values > 1).any())
    if not dtype and not scaled:
        return {}
    found = _only("precision", dtype or "fp16")
    if found["fp16"]:
        mixed = run.setting("mixed")
        # A loss scaler needs weights in fp32: what is scaled is mixed.
        found |= {"pure-fp16": False} if scaled or mixed is True else {"pure-fp16": True} if mixed is False else {}
        if not scaled and mixed is None:
            del found["pure-fp16"]
    return found


def _optimizer(run: Run) -> dict[str, bool]:
    name = normalize(str(run.setting("optimizer") or ""))
    return _only("optimizer", *(word for word in WORDS["optimizer"] if word in name)) if name else {}


def _framework(run: Run) -> dict[str, bool]:
    name = framework_of(run)
    found = [BUILT_ON.get(name, name)] if name else []
    if run.setting("overlap_comm") is not None:
        found.append("deepspeed")
    known = _only("framework", *found) if found else {}
    if set(found) & set(HOSTS) and "deepspeed" not in found:
        del known["deepspeed"]
    return known


def _wrote(source: FileUse) -> str:
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


def _logging(run: Run, framework: Mapping[str, bool]) -> dict[str, bool]:
    """What a row of the loss stands for: as configured, by a column that Lightning averages, or by the framework."""
    reduced = run.setting("log_reduce")
    if reduced is not None:
        return _only(
            "logging", "mean" if "mean" in normalize(str(reduced)) or "avg" in normalize(str(reduced)) else "step"
        )
    read = {normalize(use.name) for source in run.sources for use in source.columns if use.metric == "loss"}
    mean = any(framework.get(name) for name in AVERAGED) or any(name.endswith("_epoch") for name in read)
    return _only("logging", "mean") if mean else {}


def _device(run: Run) -> dict[str, bool]:
    name = normalize(str(run.setting("device") or ""))
    if not name:
        return {}
    for word in ("cpu", "mps", "tpu"):
        if word in name:
            return _only("device", word)
    if "16" in name and "gtx" in name:
        return _only("device", "cuda", "gtx16")
    plain = name.split("_")[0] in ("cuda", "gpu")  # which card it is remains open
    return {word: on for word, on in _only("device", "cuda").items() if not (plain and word == "gtx16")}


def _task(run: Run, columns: set[str]) -> dict[str, bool]:
    said = str(run.setting("task") or "").lower()
    language = run.setting("vocab_size") is not None or bool(columns.intersection(_LANGUAGE) or _SAYS_TEXT.search(said))
    language = language or any(metric in run.series for metric in _ANSWERS)
    classes = run.setting("n_classes") is not None or bool(
        columns.intersection((*_RIGHT, *_IMAGES)) or _SAYS_CLASS.search(said)
    )
    numbers = bool(columns.intersection(_NUMBERS)) or "regress" in said or any(map(_PHYSICS.search, columns))
    found = {
        "language-model": language,
        "classifier": not language and classes,
        "regression": not language and not classes and numbers,
        "ctc": not columns.isdisjoint(_SPEECH),
        "preference": any(metric in run.series for metric in _PREFERENCE) or bool(_SAYS_PAIRS.search(said)),
        "reinforcement": "reward" in run.series,
    }
    named = [name for name, holds in found.items() if holds]
    # Pairs are always logged as such; text is often logged as a bare loss.
    return _only("task", *named) if named else {"preference": False}
