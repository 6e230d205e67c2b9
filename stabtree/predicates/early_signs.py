"""What tells of trouble early, or at once: a loss that is gone, a gradient that climbs while the loss is calm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.answer import NO, YES, Answer, Evidence, unknown
from stabtree.facts.registry import finite
from stabtree.predicates.cross_entropy import may_be_zero
from stabtree.predicates.progress import first_level
from stabtree.predicates.registry import Count, predicate
from stabtree.stats import blocks, median, row_medians

if TYPE_CHECKING:
    from stabtree._lazy import Bools, Floats
    from stabtree.run import Run, Series


@predicate(source="measured: a batch that is drawn again and again", min_points=12)
def loss_collapses(
    run: Run,
    loss: Series,
    lr: Series | None = None,
    *,
    factor: float,
    rows: Count,
    within_rows: Count,
    settled_rows: Count,
    settled_share: float,
    above_first: float,
    lr_factor: float,
    thrown: float,
) -> Answer:
    """Does a loss that had settled fall to next to nothing within a few rows?

    Yes where `rows` neighbouring rows lie below a `factor`-th of the lowest of `settled_rows` rows that end at most
    `within_rows` rows before. These have settled where the medians of their halves differ by less than `settled_share`,
    none lies below half of their median, and that is at most `above_first` times the first level (for `thrown` see
    `first_level`): what comes down from a spike only comes back. A rate that changes by `lr_factor` in between may
    explain it. Not asked of exact zeros, nor of a loss that moves by nature or may be 0.
    """
    steps, values = finite(loss)
    why = run.moves_by_nature or may_be_zero(run, values)
    rows, within_rows, settled_rows = max(rows, 1), max(within_rows, 1), max(settled_rows, 2)
    if why or len(values) < settled_rows + rows:
        return unknown(why or f"the loss has {len(values):,} finite rows, {settled_rows + rows} are needed", "loss")
    windows = np.lib.stride_tricks.sliding_window_view
    before, after = windows(values, settled_rows)[:-rows], windows(values, rows).max(axis=1)[settled_rows:]
    low, calm = before.min(axis=1), _settled(before, settled_share)
    calm &= row_medians(before) <= above_first * first_level(values, thrown)
    # The lowest stretch within reach of each window; behind the end of the log there is none.
    reach = windows(np.append(after, np.full(within_rows - 1, np.inf)), within_rows)
    fall = np.where(calm & (reach.min(axis=1) > 0), low / np.maximum(reach.min(axis=1), 1e-300), 0.0)
    at = int(np.argmax(fall))
    end = at + settled_rows + int(np.argmin(reach[at]))
    most = min(float(fall[at]), 1e300)
    if not most:
        return Answer(NO, (Evidence(f"no {settled_rows} rows of the loss stand level and end above 0", "loss"),))
    text = f"{settled_rows} rows of the loss stand at {low[at]:.3g} or above up to step "
    text += f"{int(steps[at + settled_rows - 1]):,}, and {rows} rows from step {int(steps[end]):,} on at "
    text += f"{after[end - settled_rows]:.3g} or below: {most:.3g}× lower (takes {factor:g}×)"
    found = [Evidence(text, "loss", (int(steps[at + settled_rows]), int(steps[end])), most, factor)]
    rates = _rates(lr, int(steps[at]), int(steps[end]))
    if most <= factor or (len(rates) and rates.max() > lr_factor * max(float(rates.min()), 1e-300)):
        if most > factor:
            found.append(Evidence(f"lr goes from {rates[0]:.3g} to {rates[-1]:.3g} meanwhile", "lr"))
        return Answer(NO, tuple(found))
    onset = at + settled_rows
    while values[onset] > low[at] / 2:
        onset += 1
    return Answer(YES, tuple(found), onset_step=int(steps[onset]), last_good_step=int(steps[onset - 1]))


def _settled(windows: Floats, share: float) -> Bools:
    """Which windows (n, rows) of the loss stand level."""
    middle, half = row_medians(windows), windows.shape[1] // 2
    first, last = row_medians(windows[:, :half]), row_medians(windows[:, half:])
    level = np.abs(first - last) < share * np.minimum(first, last)
    return np.asarray(level & (windows.min(axis=1) > middle / 2))


def _rates(lr: Series | None, first: int, last: int) -> Floats:
    """The learning rates from one step to another."""
    if lr is None:
        return np.zeros(0)
    steps, values = finite(lr)
    return values[(steps >= first) & (steps <= last)]


EARLY = "early"


@predicate(source="measured: gradients before a divergence", labels=(YES, EARLY, NO), min_points=60)
def grad_norm_climbs(
    run: Run,
    loss: Series,
    grad_norm: Series,
    *,
    factor: float,
    early_factor: float,
    fit: float,
    levels: Count,
    least_levels: Count,
    calm: float,
) -> Answer:
    """Does grad_norm climb exponentially up to the end, under a calm loss?

    Yes where the logarithms of its last `least_levels` of `levels` block medians, or of more of them, lie on a rising
    line that explains more than `fit` of their scatter, and rise by more than `factor`; `early` by more than
    `early_factor`. The loss is calm where it ends at most `calm` times where that stretch began: a loss that rises as
    well is asked for elsewhere. Not asked of a loss that moves by nature.
    """
    values, steps = grad_norm.values, grad_norm.steps
    keep = np.isfinite(values) & (values > 0)
    steps, values, levels = steps[keep], values[keep], max(levels, 4)
    if run.moves_by_nature or len(values) < 3 * levels:
        return unknown(run.moves_by_nature or f"grad_norm has fewer than {3 * levels} positive values", "grad_norm")
    medians, starts = blocks(values, levels)
    logs = np.log(medians)
    climbs = [(_climb(logs[at:], fit), -at) for at in range(levels - max(least_levels, 3) + 1)]
    rise, at = max(climbs)
    begin, times = int(steps[starts[-at]]), float(np.exp(min(rise, 690.0)))
    text = f"grad_norm goes from {medians[-at]:.3g} at step {begin:,} to {medians[-1]:.3g} at the end on a line of its "
    text += f"logarithm, {times:.3g}× (takes {early_factor:g}×, for a warning {factor:g}×)"
    if not rise:
        text = "the logarithm of grad_norm does not end on a rising line"
    found = [Evidence(text, "grad_norm", (begin, int(steps[-1])), times, early_factor)]
    if times <= early_factor:
        return Answer(NO, tuple(found))
    at_loss, losses = finite(loss)
    place, part = min(int(np.searchsorted(at_loss, begin)), len(losses) - 1), max(3, len(losses) // levels)
    before, end = float(median(losses[place : place + part])), float(median(losses[-part:]))
    found.append(
        Evidence(f"the loss goes from {before:.4g} to {end:.4g} meanwhile", "loss", (begin,), end, calm * before)
    )
    if end > calm * before:
        return Answer(NO, tuple(found))
    return Answer(YES if times > factor else EARLY, tuple(found), onset_step=begin)


def _climb(logs: Floats, fit: float) -> float:
    """By how much values rise, end to end and along a line that explains more than `fit` of their scatter, else 0."""
    places = np.arange(len(logs)) - (len(logs) - 1) / 2
    slope = float(places @ logs) / float(places @ places)
    scatter = float(((logs - logs.mean()) ** 2).sum())
    explained = slope * slope * float(places @ places)
    rise = min(slope * (len(logs) - 1), float(logs[-1] - logs[0]))
    return rise if rise > 0 and explained > fit * scatter else 0.0
