"""Which conditions of causes a run meets: a cause may apply to some trainers, tasks or precisions only."""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from stabtree.context import model
from stabtree.context.signs import OPTIMIZERS
from stabtree.frameworks.load import framework, frameworks
from stabtree.metrics.table import normalize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.context.model import Context, Known
    from stabtree.run import Run

_WORDS: Mapping[str, tuple[str, ...]] = {
    "precision": ("fp32", "fp16", "bf16", "fp8", "pure-fp16"),
    "optimizer": OPTIMIZERS,
    "framework": (),  # those of `stabtree.frameworks`
    "library": ("torch", "keras"),
    "device": ("cpu", "cuda", "mps", "tpu", "gtx16"),
    "task": model.TASKS,
    "clipping": ("on", "off"),
    "overlap": ("on", "off"),
    "logging": ("mean", "step"),
}
# What else is true of a task: a detector classifies boxes, and what learns from answers is a language model.
_ALSO: Mapping[str, tuple[str, ...]] = {
    model.GRPO: (model.REINFORCEMENT, model.LANGUAGE),
    model.ON_POLICY: (model.REINFORCEMENT,),
    model.OFF_POLICY: (model.REINFORCEMENT,),
    model.PREFERENCE: (model.LANGUAGE,),
    model.DETECTION: (model.CLASSIFICATION,),
    model.SEGMENTATION: (model.CLASSIFICATION,),
}


@cache
def known_words() -> Mapping[str, tuple[str, ...]]:
    """Return what a cause may ask for under `holds`."""
    return {**_WORDS, "framework": tuple(one.id for one in frameworks().values() if not one.built_on)}


class Conditions(NamedTuple):
    """Which words of `known_words()` are known to be true, and which not to be; what is not there is not known."""

    known: Mapping[str, Mapping[str, bool]]

    def fit(self, holds: Mapping[str, Sequence[str]]) -> bool | None:
        """Return whether a run is all that a cause needs; None if some is not known and nothing contradicts it."""
        found = [self._fits(key, words) for key, words in holds.items()]
        if False in found:
            return False
        return None if None in found else True

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


def conditions_of(run: Run, context: Context, precision: Known[str]) -> Conditions:
    """Return what a run is known to be, and known not to be.

    Args:
        run: the run.
        context: who it is.
        precision: in which precision it trains.
    """
    trainer, optimizer, task = _framework(run, context), context.optimizer.value, context.task.value
    # Pairs are always logged as such; text is often logged as a bare loss.
    tasks = _only("task", task, *_ALSO.get(task, ())) if task else {model.PREFERENCE: False}
    if task and ("completion_length" in run.series or run.setting("vocab_size") is not None):
        tasks[model.LANGUAGE] = True
    return Conditions(
        {
            "precision": _precision(run, precision),
            # AdamW is an Adam.
            "optimizer": _only("optimizer", *(word for word in OPTIMIZERS if word in optimizer)) if optimizer else {},
            "framework": trainer,
            "library": _only("library", framework(context.framework.value or "").library),
            "device": _device(run),
            "task": tasks,
            "clipping": _switch(run.setting("grad_clip")),
            "overlap": _switch(run.setting("overlap_comm")),
            "logging": _logging(run, trainer),
        }
    )


def _only(key: str, *words: str) -> dict[str, bool]:
    """Return that these words are true, and no other of the key is."""
    return {word: word in words for word in known_words()[key]}


def _switch(value: object) -> dict[str, bool]:
    return {} if value is None else {"on": bool(value), "off": not value}


def _precision(run: Run, known: Known[str]) -> dict[str, bool]:
    if not known.value:
        return {}
    found = _only("precision", known.value)
    if found["fp16"]:
        scale, mixed = run.get("loss_scale"), run.setting("mixed")
        scaled = scale is not None and bool((scale.values > 1).any())
        # A loss scaler needs weights in fp32: what is scaled is mixed.
        if scaled or mixed is not None:
            found["pure-fp16"] = not scaled and mixed is False
        else:
            del found["pure-fp16"]
    return found


def _framework(run: Run, context: Context) -> dict[str, bool]:
    name = context.framework.value
    found = [framework(name).base] if name else []
    if run.setting("overlap_comm") is not None:
        found.append("deepspeed")
    known = _only("framework", *found) if found else {}
    for one in found:
        for engine in framework(one).may_run_on:
            if engine not in found:
                known.pop(engine, None)
    return known


def _logging(run: Run, trainer: Mapping[str, bool]) -> dict[str, bool]:
    """Return whether a row of the loss is one step or a mean: as configured, by its column, or by the trainer."""
    reduced = run.setting("log_reduce")
    if reduced is not None:
        word = normalize(str(reduced))
        mean = "mean" in word or "avg" in word
        return {"mean": mean, "step": not mean}
    columns = chain.from_iterable(source.columns for source in run.sources)
    of_an_epoch = any(use.metric == "loss" and normalize(use.name).endswith("_epoch") for use in columns)
    if of_an_epoch or any(on and framework(name).defaults.mean_rows for name, on in trainer.items()):
        return _only("logging", "mean")
    return {}


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
