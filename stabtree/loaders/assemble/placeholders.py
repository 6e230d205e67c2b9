"""What logged values mean where they don't mean what they say: placeholders, masked NaN, scaled gradients."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.lazy import np
from stabtree.common.stats import median, true_at_end

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stabtree.common.lazy import Floats
    from stabtree.run import Series, Setting

PLACEHOLDER_SCALES = (-1.0, 1.0)  # what DeepSpeed and Megatron print where no scaler is in use
MOVED = 0.05  # relative change of a loss that no run has without a gradient
MASKED_ROWS = 2  # rows to the end with a gradient of 0; one is enough where it is NaN
RL_SIGNS = frozenset(("reward_std", "frac_reward_zero_std"))  # a policy's loss moves without a gradient, too
LEAST_ROWS = 8
LEAST_RANGE = 4.0  # a scale that moved by two halvings at least
SLOPE = (0.75, 1.25)  # of log grad_norm over log loss_scale: 1 when the norm is multiplied by the scale
EXPLAINED = 0.8  # share of the norm's variance that the scale must explain

Made = dict[str, "Series"]


def meant(series: Mapping[str, Series], config: Mapping[str, Setting]) -> tuple[Made, tuple[str, ...]]:
    """The series with their values as they are meant, and a note for each change."""
    dtype = config["dtype"].value if "dtype" in config else None
    found: Made = dict(series)
    notes = []
    readings: tuple[Callable[[Made, object], str], ...]
    readings = (_placeholder_scale, _placeholder_norm, _masked_nan, _scaled_norm)
    with np.errstate(all="ignore"):  # NaN and infinity are data here
        for reading in readings:
            note = reading(found, dtype)
            if note:
                notes.append(note)
    return found, tuple(notes)


def _placeholder_scale(found: Made, dtype: object) -> str:
    """A loss scale of -1 throughout, or of 1 outside of fp16, is no scaler's."""
    scale = found.get("loss_scale")
    if scale is None or not len(scale) or dtype == "fp16":
        return ""
    value = float(scale.values[0])
    if value not in PLACEHOLDER_SCALES or not (scale.values == value).all():
        return ""
    del found["loss_scale"]
    return f"loss_scale is {value:g} throughout, which is written where no scaler is in use: taken as not logged."


def _placeholder_norm(found: Made, _dtype: object) -> str:
    """A grad_norm of exactly 0 throughout, under a loss that moves, was never measured.

    With a reward the loss moves without a gradient as well, and the 0 is what tells of it.
    """
    norm, loss = found.get("grad_norm"), found.get("loss")
    if norm is None or loss is None or len(norm) < 2 or (norm.values != 0).any() or RL_SIGNS & found.keys():
        return ""
    values = loss.values[np.isfinite(loss.values)]
    part = max(1, len(values) // 10)
    if len(values) < LEAST_ROWS or abs(_median(values[:part]) - _median(values[-part:])) <= MOVED * abs(
        _median(values[:part])
    ):
        return ""
    del found["grad_norm"]
    return "grad_norm is 0 throughout although the loss moves, so it was not measured: taken as not logged."


def _median(values: Floats) -> float:
    return median(values)


def _masked_nan(found: Made, _dtype: object) -> str:
    """Hugging Face's filter writes 0.0 (or the mean so far, again and again) for a loss that is NaN.

    Taken for one where each row to the end has a grad_norm of NaN; or of 0, if the loss was above 0 before. With a
    reward in the log a loss of 0 is what the method gives.
    """
    loss, norm = found.get("loss"), found.get("grad_norm")
    if loss is None or norm is None or not len(loss) or "reward" in found:
        return ""
    if loss.values[-1] != 0 and (len(loss) < MASKED_ROWS or loss.values[-1] != loss.values[-2]):
        return ""
    at = np.searchsorted(norm.steps, loss.steps)
    inside = at < len(norm)
    same = np.zeros(len(loss), dtype=np.bool_)
    same[inside] = norm.steps[at[inside]] == loss.steps[inside]
    beside = np.full(len(loss), np.inf)
    beside[same] = norm.values[at[same]]
    zero = loss.values == 0
    repeated = np.append([False], loss.values[1:] == loss.values[:-1])
    dead = true_at_end((zero | repeated) & np.isnan(beside))
    still = true_at_end(zero & (np.isnan(beside) | (beside == 0)))
    start = max(dead, still if still >= MASKED_ROWS and (loss.values[: len(loss) - still] > 0).any() else 0)
    if not start:
        return ""
    values = loss.values.copy()
    values[len(loss) - start :] = np.nan
    values.flags.writeable = False
    first = int(loss.steps[len(loss) - start])
    shown = float(loss.values[-1])
    found["loss"] = replace(loss, values=values)
    return (
        f"From step {first:,} on the loss is written as {shown:g} while grad_norm is NaN or 0, as trainers do that "
        "filter NaN out of their logs (logging_nan_inf_filter): read as NaN."
    )


def _scaled_norm(found: Made, _dtype: object) -> str:
    """A grad_norm that was logged before unscaling goes up and down with the loss scale: divided by it.

    On a skipped step the old norm is written once more; those rows are left out.
    """
    norm, scale = found.get("grad_norm"), found.get("loss_scale")
    if norm is None or scale is None or len(norm) < LEAST_ROWS or not len(scale):
        return ""
    if float(scale.values.max()) < LEAST_RANGE * float(scale.values.min()):
        return ""
    at = np.searchsorted(scale.steps, norm.steps, side="right") - 1
    usable = (at >= 0) & np.isfinite(norm.values) & (norm.values > 0)
    by = np.where(at >= 0, scale.values[np.maximum(at, 0)], np.nan)
    usable &= np.isfinite(by) & (by > 0)
    stale = np.append([False], (np.diff(norm.values) == 0) & (np.diff(by) != 0))
    x, y = np.log(by[usable & ~stale]), np.log(norm.values[usable & ~stale])
    if len(x) < LEAST_ROWS or np.exp(np.ptp(x)) < LEAST_RANGE:
        return ""
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())
    rest = float(np.var(y - x))
    if not SLOPE[0] < slope < SLOPE[1] or rest > (1 - EXPLAINED) * float(np.var(y)):
        return ""
    keep = ~stale
    values = np.where(np.isfinite(by) & (by > 0), norm.values / np.where(by > 0, by, 1.0), norm.values)[keep]
    values.flags.writeable = False
    found["grad_norm"] = replace(norm, steps=norm.steps[keep], values=values, divided_by="loss_scale")
    left_out = (
        f"; {int(stale.sum()):,} rows of skipped steps repeat the old norm and are left out" if stale.any() else ""
    )
    return (
        f"grad_norm goes with the loss scale (slope {slope:.2f} in logarithms), so it was logged before unscaling: "
        f"divided by the scale{left_out}."
    )
