"""A loss that has settled and then is all but gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree._lazy import np
from stabtree.answer import NO, YES, Answer, Evidence, unknown
from stabtree.facts.registry import finite
from stabtree.predicates.cross_entropy import may_be_zero
from stabtree.predicates.progress import first_level
from stabtree.predicates.registry import Count, predicate
from stabtree.stats import row_medians

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
