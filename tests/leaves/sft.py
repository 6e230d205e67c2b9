"""Supervised fine-tuning: a loss that stops early and high, gradients that are large, an eval loss of nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.leaves.grpo import AT, HEALTHY, learning, noise
from tests.leaves.levels import Bar, beyond, near, sparse

if TYPE_CHECKING:
    from stabtree.run import Run
    from tests.leaves.make import Floats, Maker

# The metrics that a fine-tuning run logs.
TUNING = {name: HEALTHY[name] for name in ("loss", "lr", "grad_norm", "token_accuracy", "eval_loss")}
BAR = Bar("sft-grad-norm-high", "grad_norm", 100.0, share=0.1, rows=20, steps=0)


def tuning(interval: int = 1, **changed: object) -> Run:
    """A sound run of fine-tuning with other columns, logged every so many steps."""
    rewards = dict.fromkeys(name for name in HEALTHY if name not in TUNING)
    return learning(interval, **{**rewards, "loss": loss(end=1.2), **changed})


def stopped(**changed: Any) -> Run:
    """The same without an eval loss, which would show that the run still learns."""
    return tuning(eval_loss=None, **changed)


def loss(end: float = 2.24, late: float = 0.04) -> Floats:
    """A loss that goes from 4.5 to its end, and wins a share of that between the middle of its rows and its end."""
    won = [0, 0, 1 - 1.5 * late, 1 - late, 1 - late, 1, 1]
    way = np.interp(AT, [0, 0.05, 0.25, 0.5, 0.56, 0.8, 1], won)
    return np.asarray(4.5 + (end - 4.5) * way + noise(0.01))


def high_for(rows: int, value: float = 112.0) -> Floats:
    """A grad_norm that stands at a value for some rows in the middle of the run."""
    stretch = np.arange(len(AT)) - 200
    return np.where((stretch >= 0) & (stretch < rows), value, TUNING["grad_norm"])


def by_axolotl(**changed: Any) -> Run:
    """The same as axolotl logs it: no accuracy, but the memory of the GPU."""
    return tuning(token_accuracy=None, gpu_memory=np.full(len(AT), 31.5), **changed)


RUNS: dict[str, Maker] = {
    "sft-loss-plateau": lambda: stopped(loss=loss()),
    "sft-grad-norm-high": beyond(BAR, TUNING, tuning),
    "sft-grad-norm-was-high": lambda: tuning(grad_norm=high_for(6)),
    "sft-ok": tuning,
}

EDGE: dict[str, Maker] = {
    "sft-grad-norm-high: sparsely logged": sparse(BAR, TUNING, tuning),
    "sft-loss-plateau: by axolotl": lambda: by_axolotl(loss=loss(), eval_loss=None),
    "sft-grad-norm-high: by axolotl": lambda: by_axolotl(grad_norm=np.full(len(AT), 150.0)),
    "sft-grad-norm-was-high: by axolotl": lambda: by_axolotl(grad_norm=high_for(40, 400.0)),
}

NEAR: dict[str, Maker] = {
    **near(BAR, TUNING, tuning),
    "sft-grad-norm-high: share of rows": lambda: tuning(
        grad_norm=np.where(len(AT) - 3 == AT, 112.0, TUNING["grad_norm"])
    ),
    "sft-grad-norm-was-high: share of rows": lambda: tuning(grad_norm=high_for(4)),
    "sft-grad-norm-was-high: level": lambda: tuning(grad_norm=high_for(40, 88.0)),
    "sft-loss-plateau: level": lambda: stopped(loss=loss(end=1.76)),
    "sft-loss-plateau: late gain": lambda: stopped(loss=loss(late=0.06)),
    "sft-loss-plateau: eval loss still falls": lambda: tuning(loss=loss()),
}
