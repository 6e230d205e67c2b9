"""What kind of run it is, as far as its configuration and columns show: some causes apply to some kinds only."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from stabtree.facts.registry import fact
from stabtree.frameworks.load import framework as framework_called
from stabtree.frameworks.load import frameworks
from stabtree.frameworks.recognise import LoggedFile, of_log
from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.run import FileUse, Run

# What a cause may ask for under `holds`. A word that is known to be so or not so counts, whatever else is known.
_WORDS: Mapping[str, tuple[str, ...]] = {
    "precision": ("fp32", "fp16", "bf16", "fp8", "pure-fp16"),
    "optimizer": ("adam", "adamw", "sgd", "rmsprop", "adafactor", "lion", "muon"),
    "framework": (),  # those of `stabtree.frameworks`
    "library": ("torch", "keras"),
    "device": ("cpu", "cuda", "mps", "tpu", "gtx16"),
    "task": ("language-model", "classifier", "regression", "ctc", "preference", "reinforcement"),
    "clipping": ("on", "off"),
    "overlap": ("on", "off"),
    "logging": ("mean", "step"),
}
_LANGUAGE = ("perplexity", "ppl", "num_tokens", "num_input_tokens_seen", "mean_token_accuracy", "token_accuracy")
# How a configuration names its task: next-char, CAUSAL_LM, text-generation; SEQ_CLS, image classification.
_SAYS_TEXT = re.compile(r"language|next.?(?:char|token|word)|causal|text.?gen|(?:^|[^a-z])lm(?:$|[^a-z])")
_SAYS_CLASS = re.compile(r"classif|(?:^|[^a-z])cls(?:$|[^a-z])")
_SAYS_PAIRS = re.compile(r"preference|(?:^|[^a-z])dpo(?:$|[^a-z])")
# Columns of equations that are solved, and of images that are classified: no text is trained there.
_PHYSICS = re.compile(r"(?:^|_)(?:pde|ode|pinn|physics|residuals?|boundary)(?:_|$)|l2_(?:rel|err)|rel\w*_l2")
_IMAGES = ("iou", "miou", "dice", "bbox", "map50", "top5")
_SPEECH = ("wer", "cer", "ctc", "ctc_loss", "loss_ctc", "cer_ctc", "wer_ctc")
_RIGHT = ("accuracy", "acc")
# Errors of numbers, and the terms of an autoencoder's loss; each may be the end of a longer name.
_NUMBERS = ("mse", "rmse", "mae", "mape", "nse", "r2", "psnr", "recon", "reconstruction", "kld")
_ANSWERS = ("completion_length", "token_accuracy")
_PREFERENCE = ("preference_margin", "preference_accuracy")


@cache
def known_words() -> Mapping[str, tuple[str, ...]]:
    """Return what a cause may ask for under `holds`."""
    return {**_WORDS, "framework": tuple(one.id for one in frameworks().values() if not one.built_on)}


class Circumstances(NamedTuple):
    """Which words of `known_words()` are known to hold, and which not to; what is not there is not known."""

    known: Mapping[str, Mapping[str, bool]]

    def fit(self, holds: Mapping[str, Sequence[str]]) -> bool | None:
        """Return whether all that a cause needs holds; None if some of it is not known and nothing contradicts it."""
        return _all_of([self._fits(key, words) for key, words in holds.items()])

    def unknown(self, holds: Mapping[str, Sequence[str]]) -> str:
        """Describe the conditions of which nothing is known."""
        return " and ".join(
            f"the {key} ({' or '.join(words)})" for key, words in holds.items() if self._fits(key, words) is None
        )

    def _fits(self, key: str, words: Sequence[str]) -> bool | None:
        known = [self.known.get(key, {}).get(word) for word in words]
        if True in known:
            return True
        return None if None in known else False


def _all_of(found: Sequence[bool | None]) -> bool | None:
    if False in found:
        return False
    return None if None in found else True


@fact()
def circumstances(run: Run) -> Circumstances:
    """Find what the configuration and the columns show of the kinds in `known_words()`."""
    columns = {normalize(use.name) for source in run.sources for use in source.columns}
    ends = columns | {name.rsplit("_", 1)[-1] for name in columns}
    clip, overlap = run.setting("grad_clip"), run.setting("overlap_comm")
    framework = _framework(run)
    return Circumstances(
        {
            "precision": _precision(run),
            "optimizer": _optimizer(run),
            "framework": framework,
            "library": _only("library", framework_called(framework_of(run)).library),
            "device": _device(run),
            "task": _task(run, ends),
            "clipping": {} if clip is None else {"on": bool(clip), "off": not clip},
            "overlap": {} if overlap is None else {"on": bool(overlap), "off": not overlap},
            "logging": _logging(run, framework),
        }
    )


def framework_of(run: Run) -> str:
    """Return the framework that wrote the log or that the configuration is for; empty where neither shows it."""
    configured = str(run.setting("framework") or "")
    return next(filter(None, map(_wrote, run.sources)), configured)


def _only(key: str, *words: str) -> dict[str, bool]:
    """Return that these words hold, and no other of the key does."""
    return {word: word in words for word in known_words()[key]}


def _precision(run: Run) -> dict[str, bool]:
    dtype, scale = str(run.setting("dtype") or ""), run.get("loss_scale")
    scaled = scale is not None and bool((scale.values > 1).any())
    if not dtype and not scaled:
        return {}
    found = _only("precision", dtype or "fp16")
    if found["fp16"]:
        mixed = run.setting("mixed")
        # A loss scaler needs weights in fp32: what is scaled is mixed.
        if scaled or mixed is not None:
            found["pure-fp16"] = not scaled and mixed is False
        else:
            del found["pure-fp16"]
    return found


def _optimizer(run: Run) -> dict[str, bool]:
    name = normalize(str(run.setting("optimizer") or ""))
    return _only("optimizer", *(word for word in _WORDS["optimizer"] if word in name)) if name else {}


def _framework(run: Run) -> dict[str, bool]:
    name = framework_of(run)
    found = [framework_called(name).base] if name else []
    if run.setting("overlap_comm") is not None:
        found.append("deepspeed")
    known = _only("framework", *found) if found else {}
    for one in found:
        for engine in framework_called(one).may_run_on:
            if engine not in found:
                known.pop(engine, None)
    return known


def _wrote(source: FileUse) -> str:
    begins_at = source.columns[0].first if source.columns else None
    return of_log(LoggedFile([column.name for column in source.columns], source.path, source.format, begins_at))


def _logging(run: Run, framework: Mapping[str, bool]) -> dict[str, bool]:
    """Return whether a row of the loss is one step or a mean: as configured, by its column, or by the framework."""
    reduced = run.setting("log_reduce")
    if reduced is not None:
        word = normalize(str(reduced))
        return _only("logging", "mean" if "mean" in word or "avg" in word else "step")
    read = {normalize(use.name) for source in run.sources for use in source.columns if use.metric == "loss"}
    mean = any(on and framework_called(name).defaults.mean_rows for name, on in framework.items())
    mean = mean or any(name.endswith("_epoch") for name in read)
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
    task = str(run.setting("task") or "").lower()
    language = run.setting("vocab_size") is not None or bool(columns.intersection(_LANGUAGE) or _SAYS_TEXT.search(task))
    language = language or any(metric in run.series for metric in _ANSWERS)
    classes = run.setting("n_classes") is not None or bool(
        columns.intersection((*_RIGHT, *_IMAGES)) or _SAYS_CLASS.search(task)
    )
    numbers = bool(columns.intersection(_NUMBERS)) or "regress" in task or any(map(_PHYSICS.search, columns))
    found = {
        "language-model": language,
        "classifier": not language and classes,
        "regression": not language and not classes and numbers,
        "ctc": not columns.isdisjoint(_SPEECH),
        "preference": any(metric in run.series for metric in _PREFERENCE) or bool(_SAYS_PAIRS.search(task)),
        "reinforcement": "reward" in run.series,
    }
    named = [name for name, holds in found.items() if holds]
    # Pairs are always logged as such; text is often logged as a bare loss.
    return _only("task", *named) if named else {"preference": False}
