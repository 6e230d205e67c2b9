"""Who a run is, as a report says it: a line for each part that is known, with how it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.frameworks.load import framework

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.context.model import Context, FullContext, Known

_LINES = (("task", "task"), ("phase", "phase"), ("trainer", "framework"), ("precision", "precision"))
_WORDS = {
    "on-policy-rl": "on-policy reinforcement learning",
    "off-policy-rl": "off-policy reinforcement learning",
    "reinforcement": "reinforcement learning",
    "grpo": "GRPO",
    "gan": "GAN",
    "ctc": "CTC",
    "language-model": "language model",
}


def identity(context: FullContext) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each part that is known, its value, and how it is known."""
    for name, part in _LINES:
        known: Known[str] = getattr(context, part)
        if known.value is not None:
            yield name, _value(context, part, known.value), _how(known)
    if context.optimizer.value:
        yield "optimizer", context.optimizer.value, _how(context.optimizer)
    if context.outcome.value:
        yield "outcome", _outcome(context), _how(context.outcome)


def kind(context: Context) -> str:
    """Return what is trained and with what, as `PPO · Stable-Baselines3`; empty where neither is known."""
    task, algorithm, trainer = context.task.value, context.algorithm.value, context.framework.value
    what = _WORDS.get(task or "", task or "")
    if algorithm:
        what = algorithm.upper() if algorithm.isalnum() else algorithm
    return " · ".join(filter(None, (what, framework(trainer).name if trainer else "")))


def unknown_parts(context: FullContext) -> list[str]:
    """Return the names of the parts that are not known."""
    parts = (*_LINES, ("optimizer", "optimizer"))
    return [name for name, part in parts if getattr(context, part).value is None]


def _value(context: Context, part: str, value: str) -> str:
    if part == "framework":
        return framework(value).name
    words = _WORDS.get(value, value)
    algorithm = context.algorithm.value
    if part == "task" and algorithm and algorithm != value:
        return f"{words} ({algorithm.upper() if algorithm.isalnum() else algorithm})"
    return words


def _outcome(context: Context) -> str:
    text = str(context.outcome.value)
    if context.better:
        text += f", {context.better} is better"
    if context.chance.value is not None:
        text += f"; {context.chance.value:.4g} by chance ({context.chance.why})"
    return text


def _how(known: Known[str]) -> str:
    return f"{known.how}: {known.why}" if known.why else known.how
