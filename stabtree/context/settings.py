"""What the configuration of a run says of it, with where it says so."""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import TYPE_CHECKING

from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import broken_rows, extremes
from stabtree.common.shared import ROWS_SHORT
from stabtree.common.text import clean
from stabtree.context.model import CONFIGURED, INFERRED, LOGGED, Known

if TYPE_CHECKING:
    from stabtree.run import Run

# By what occurs in a name, longer ones first: `adamw_8bit` and `torch.optim.AdamW` are AdamW, which is not Adam.
OPTIMIZERS = (
    *("adamw", "adamax", "adafactor", "adagrad", "adadelta", "nadam", "radam", "adam", "rmsprop", "sgd"),
    *("lion", "muon", "lamb", "lars", "sophia", "shampoo", "adopt", "prodigy", "lbfgs"),
)
BF16_BITS = (7, 8)  # no limit: of the mantissa, with the leading one; what has two decimals by chance uses fewer


def why(run: Run, key: str) -> str:
    """Return the evidence of a setting: its value and where it is from; empty where it is not set."""
    found = run.config.get(key)
    if not found:
        return ""
    source = found.source
    if source.startswith("column "):
        return source
    return f"{found.spelled or key}={clean(found.value, 40)}, {clean(PurePath(source).name or source, 40)}"


def how(run: Run, key: str) -> str:
    """Return whether a setting was read from a configuration or from the lines and columns of a text log."""
    source = run.config[key].source
    name = PurePath(source).name
    printed = any(PurePath(use.path).name == name and use.format.startswith("text") for use in run.sources)
    if printed or source.startswith(("column ", "the loss's name")):
        return LOGGED
    return CONFIGURED


def precision_of(run: Run) -> Known[str]:
    """Return the precision: as configured, else fp16 where a loss was scaled, bf16 where a loss was computed in it."""
    dtype, scale = run.setting("dtype"), run.get("loss_scale")
    if isinstance(dtype, str):
        return Known(dtype, how(run, "dtype"), why(run, "dtype"))
    # bf16 has the range of fp32: nobody scales its loss, though some log a scale that is always 1.
    if scale is not None:
        infinite = bool(np.isposinf(scale.values[broken_rows(scale)]).any())
        highest = math.inf if infinite else extremes(scale).highest
        if highest > 1:
            return Known("fp16", INFERRED, f"a loss scale up to {figure(highest, 6)} is logged")
    return _of_the_loss(run)


def _of_the_loss(run: Run) -> Known[str]:
    """Return bf16 where every loss is a number of that format, as next to no loss is that was computed in another."""
    from stabtree.profile.quantum import bits_used

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


def optimizer_of(run: Run) -> Known[str]:
    """Return the optimizer by its usual name."""
    spelled = str(run.setting("optimizer") or "").lower()
    name = next((name for name in OPTIMIZERS if name in spelled), "")
    if not name:
        return Known()
    return Known(name, how(run, "optimizer"), why(run, "optimizer"))


def planned_steps_of(run: Run) -> Known[int]:
    """Return the planned optimizer steps."""
    planned = run.config.get("max_steps")
    if planned and isinstance(planned.value, int):
        return Known(planned.value, how(run, "max_steps"), why(run, "max_steps"))
    return Known()


def peak_lr_of(run: Run) -> Known[float]:
    """Return the highest rate that was logged, else the one that was configured."""
    series, planned = run.get("lr"), run.setting("lr")
    if series is not None:
        rates = len(series) - len(broken_rows(series))
        if rates:
            return Known(extremes(series).highest, LOGGED, f"highest of {rates:,} rates")
    if isinstance(planned, int | float):
        return Known(float(planned), how(run, "lr"), why(run, "lr"))
    return Known()


def classes_of(run: Run) -> Known[int]:
    """Return the classes, or the tokens of the vocabulary, that one guess of the model is among."""
    for key in ("n_classes", "vocab_size"):
        value = run.setting(key)
        if isinstance(value, int) and value > 1:
            return Known(value, how(run, key), why(run, key))
    return Known()
