"""Logged values that mean something else: placeholders, masked NaN, scaled gradients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.common.passes import extremes
from stabtree.common.shared import FACTOR, ROWS_SHORT, SHARE_MOST, SHARE_SOME
from stabtree.common.stats import median, true_at_end

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.common.lazy import Floats
    from stabtree.run import Series, Setting

PLACEHOLDER_SCALES = (-1.0, 1.0)  # what DeepSpeed and Megatron print where no scaler is in use
MOVED = SHARE_SOME  # relative change of a loss that no run has without a gradient
MASKED_ROWS = 2  # rows to the end with a gradient of 0; one is enough where it is NaN
RL_SIGNS = frozenset(("reward_std", "frac_reward_zero_std"))  # a policy's loss moves without a gradient, too
MIN_ROWS = ROWS_SHORT
MIN_RANGE = FACTOR  # a scale that moved by two halvings at least
SLOPE = (0.75, 1.25)  # of log grad_norm over log loss_scale: 1 when the norm is multiplied by the scale
EXPLAINED = SHARE_MOST  # share of the norm's variance that the scale must explain

SeriesByName = dict[str, "Series"]


def interpret(series: Mapping[str, Series], config: Mapping[str, Setting]) -> tuple[SeriesByName, tuple[str, ...]]:
    """Return the series with the values that their trainer meant, and a note for each change."""
    dtype = config["dtype"].value if "dtype" in config else None
    found: SeriesByName = dict(series)
    with np.errstate(all="ignore"):  # NaN and infinity are data here
        notes = (
            _placeholder_scale(found, dtype),
            _placeholder_norm(found),
            _masked_nan(found),
            _scaled_norm(found),
        )
    return found, tuple(filter(None, notes))


def _placeholder_scale(found: SeriesByName, dtype: object) -> str:
    """Remove a loss scale of -1 throughout, or of 1 outside of fp16, which is no scaler's; return the note."""
    scale = found.get("loss_scale")
    if scale is None or not len(scale) or dtype == "fp16":
        return ""
    value = float(scale.values[0])
    if value not in PLACEHOLDER_SCALES or not (scale.values == value).all():
        return ""
    del found["loss_scale"]
    return f"loss_scale is {value:g} throughout, which is written where no scaler is in use: taken as not logged."


def _placeholder_norm(found: SeriesByName) -> str:
    """Remove a grad_norm of exactly 0 throughout under a loss that moves: it was never measured; return the note.

    With a reward the loss moves without a gradient as well, and the 0 is real.
    """
    norm, loss = found.get("grad_norm"), found.get("loss")
    if norm is None or loss is None or len(norm) < 2 or extremes(norm) != (0, 0, True):
        return ""
    values = loss.values[np.isfinite(loss.values)]
    if RL_SIGNS & found.keys() or len(values) < MIN_ROWS:
        return ""
    part = max(1, len(values) // 10)
    first, last = median(values[:part]), median(values[-part:])
    if abs(first - last) <= MOVED * abs(first):
        return ""
    del found["grad_norm"]
    return "grad_norm is 0 throughout although the loss moves, so it was not measured: taken as not logged."


def _masked_nan(found: SeriesByName) -> str:
    """Replace a loss that a filter wrote for NaN, up to the end of the log, by NaN; return the note.

    Hugging Face's filter writes 0.0, or the mean so far again and again. That is assumed where each row to the end has
    a grad_norm of NaN; or of 0, if the loss was above 0 before. With a reward in the log a loss of 0 is what the method
    gives.
    """
    loss, norm = found.get("loss"), found.get("grad_norm")
    if loss is None or norm is None or not len(loss) or "reward" in found:
        return ""
    if loss.values[-1] != 0 and not (loss.values[-2:-1] == loss.values[-1]).any():
        return ""
    zero = loss.values == 0
    repeated = np.append([False], loss.values[1:] == loss.values[:-1])
    beside = _norm_beside(loss, norm)
    rows = true_at_end((zero | repeated) & np.isnan(beside))
    still = true_at_end(zero & (np.isnan(beside) | (beside == 0)))
    if still >= MASKED_ROWS and (loss.values[: len(loss) - still] > 0).any():
        rows = max(rows, still)
    if not rows:
        return ""
    first = len(loss) - rows
    values = loss.values.copy()
    values[first:] = np.nan
    values.flags.writeable = False
    found["loss"] = replace(loss, values=values)
    return (
        f"From step {int(loss.steps[first]):,} on the loss is written as {float(loss.values[-1]):g} while grad_norm is "
        "NaN or 0, as trainers do that filter NaN out of their logs (logging_nan_inf_filter): read as NaN."
    )


def _norm_beside(loss: Series, norm: Series) -> Floats:
    """Return the gradient norm at each step of the loss, infinity where there is none; float64 (n,)."""
    at = np.minimum(np.searchsorted(norm.steps, loss.steps), len(norm) - 1)
    if not len(norm):
        return np.full(len(loss), np.inf)
    return np.where(norm.steps[at] == loss.steps, norm.values[at], np.inf)


def _scaled_norm(found: SeriesByName) -> str:
    """Divide a grad_norm that was logged before unscaling, so that it moves with the loss scale; return the note.

    On a skipped step the old norm is written once more; those rows are left out.
    """
    norm, scale = found.get("grad_norm"), found.get("loss_scale")
    if norm is None or scale is None or len(norm) < MIN_ROWS or not len(scale):
        return ""
    own = extremes(scale)
    if own.finite and own.highest < MIN_RANGE * own.lowest:
        return ""
    at = np.searchsorted(scale.steps, norm.steps, side="right") - 1
    by = np.where(at >= 0, scale.values[np.maximum(at, 0)], np.nan)
    scaled = np.isfinite(by) & (by > 0)
    stale = np.append([False], (np.diff(norm.values) == 0) & (np.diff(by) != 0))
    usable = scaled & np.isfinite(norm.values) & (norm.values > 0) & ~stale
    slope = _slope(np.log(by[usable]), np.log(norm.values[usable]))
    if not SLOPE[0] < slope < SLOPE[1]:
        return ""
    values = np.where(scaled, norm.values / np.where(scaled, by, 1.0), norm.values)[~stale]
    values.flags.writeable = False
    found["grad_norm"] = replace(norm, steps=norm.steps[~stale], values=values, divided_by="loss_scale")
    left_out = ""
    if stale.any():
        left_out = f"; {int(stale.sum()):,} rows of skipped steps repeat the old norm and are left out"
    return (
        f"grad_norm goes with the loss scale (slope {slope:.2f} in logarithms), so it was logged before unscaling: "
        f"divided by the scale{left_out}."
    )


def _slope(scale: Floats, norm: Floats) -> float:
    """Return the slope of a norm over a scale, both logarithms (n,); NaN where the scale does not explain the norm."""
    if len(scale) < MIN_ROWS or np.exp(np.ptp(scale)) < MIN_RANGE:
        return math.nan
    if float(np.var(norm - scale)) > (1 - EXPLAINED) * float(np.var(norm)):
        return math.nan
    off = scale - scale.mean()
    return float((off * (norm - norm.mean())).sum() / (off**2).sum())
