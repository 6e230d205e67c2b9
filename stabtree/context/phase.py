"""Whether the run trains from scratch, goes on, or trains a model that was trained before."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common.shared import SHARE_HALF
from stabtree.common.stats import interval
from stabtree.context import model
from stabtree.context.model import INFERRED, Known
from stabtree.context.settings import how, why

if TYPE_CHECKING:
    from stabtree.run import Run

# An untrained model gives every class much the same chance, so its first loss is near the logarithm of their number.
MIN_UNTRAINED, MAX_UNTRAINED = 0.85, 1.5
# A model that was trained before begins far below; a smaller gap may be what was learned up to the first row.
MAX_TRAINED = SHARE_HALF
FIRST_STEPS = 10  # a first row later than that, or the mean of more steps, shows a model that has learned already
MISSED_ROWS = 10  # a log that begins so many of its intervals after step 0 lacks its beginning


def phase_of(run: Run, task: Known[str], classes: Known[int]) -> Known[str]:
    """Return the phase: as configured or printed, else as the first loss or the first step shows."""
    found = _configured(run)
    if not found.value:
        found = _by_first_loss(run, task.value or "", classes.value)
    if not found.value:
        found = _by_first_step(run)
    if not found.value and task.value in (model.GRPO, model.PREFERENCE):
        return Known(model.FINE_TUNE, INFERRED, f"{task.value} begins with a trained model")
    return found


def _configured(run: Run) -> Known[str]:
    adapter = str(run.setting("adapter") or "").lower()
    if run.setting("lora_rank") is not None:
        return Known(model.LORA, how(run, "lora_rank"), why(run, "lora_rank"))
    if adapter:
        phase = model.LORA if "lora" in adapter or adapter == "peft" else model.FINE_TUNE
        if adapter not in ("none", "false", "no"):
            return Known(phase, how(run, "adapter"), why(run, "adapter"))
    start = str(run.setting("init_from") or "").lower()
    if not start:
        return Known()
    phase = {"scratch": model.FROM_SCRATCH, "resume": model.CONTINUED}.get(start, model.FINE_TUNE)
    return Known(phase, how(run, "init_from"), why(run, "init_from"))


def _by_first_loss(run: Run, task: str, classes: int | None) -> Known[str]:
    loss = run.get("loss")
    if loss is None or not len(loss) or not classes or task not in (model.LANGUAGE, model.CLASSIFICATION):
        return Known()
    first, step = float(loss.values[0]), int(loss.steps[0])
    if step > FIRST_STEPS * run.step_size or run.by_epoch or not math.isfinite(first):
        return Known()
    chance = math.log(classes)
    text = f"first loss {first:.3g}, ln {classes:,} = {chance:.3g}"
    if MIN_UNTRAINED * chance <= first <= MAX_UNTRAINED * chance:
        return Known(model.FROM_SCRATCH, INFERRED, text)
    if 0 < first < MAX_TRAINED * chance:
        return Known(model.FINE_TUNE, INFERRED, text)
    return Known()


def _by_first_step(run: Run) -> Known[str]:
    loss = run.get("loss")
    if loss is None or len(loss) < 3 or run.by_row:
        return Known()
    first = int(loss.steps[0])
    if first > MISSED_ROWS * interval(loss.steps):
        return Known(model.CONTINUED, INFERRED, f"the log begins at step {first:,}")
    return Known()
