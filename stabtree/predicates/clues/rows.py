"""What the rows around an incident show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import rows_before
from stabtree.common.shared import LEVELS, ROWS_SHORT, SHARE_HALF, TREND_Z
from stabtree.common.stats import blocks, kendall_z, median
from stabtree.facts.registry import finite, lowest
from stabtree.predicates.clues.registry import Seen, clue

if TYPE_CHECKING:
    from stabtree.facts.spike import Spike
    from stabtree.predicates.clues.registry import Moment
    from stabtree.run import Series


@clue
def recovery_rows(_moment: Moment, loss: Series, spike: Spike) -> Seen:
    """Return how many rows the loss needed to come back from its spike, or had needed when the log ended."""
    top = spike.top
    steps, _ = finite(loss)
    back = top.recovered_step
    end = int(steps[-1]) + 1 if back is None else back
    rows = int(((steps >= top.step) & (steps < end)).sum())
    text = f"the loss needed {rows:,} rows to come back"
    if back is None:
        text = f"the loss was not back {rows:,} rows after the spike, when the log ends"
    return Seen(rows, text, f"{rows:,} rows", "loss", (top.step,))


@clue
def lone_infinite_norms(moment: Moment, grad_norm: Series, loss: Series) -> Seen:
    """Count the infinite gradient norms before the onset whose loss and whose next row are finite."""
    end = moment.onset_step if moment.onset_step is not None else int(grad_norm.steps[-1]) + 1
    before = grad_norm.steps < end
    steps, broken = grad_norm.steps[before], ~np.isfinite(grad_norm.values[before])
    lone = broken[:-1] & ~broken[1:] if len(broken) else broken
    found = [int(step) for step in steps[: len(lone)][lone] if _is_finite_at(loss, int(step))]
    text = f"grad_norm is not finite alone at {len(found):,} rows before, and the loss stays ordinary there"
    return Seen(len(found), text, f"{len(found):,}", "grad_norm", tuple(found[:4]))


@clue
def norm_grows_from_start(moment: Moment, grad_norm: Series) -> Seen | None:
    """Return how many times its first rows grad_norm reaches before the onset, where it rises all the way; else 1."""
    steps, values = finite(grad_norm)
    before = values if moment.onset_step is None else values[: rows_before(steps, moment.onset_step)]
    if lowest(grad_norm) <= 0:
        before = before[before > 0]
    if len(before) < 2 * ROWS_SHORT:
        return None
    first, last = median(before[:ROWS_SHORT]), median(before[-ROWS_SHORT:])
    halfway = median(before[: len(before) // 2])
    levels, _ = blocks(before, min(LEVELS, len(before) // 2))
    rises = kendall_z(levels) > TREND_Z and halfway > (1 + SHARE_HALF) * first
    short = f"{figure(first)} → {figure(last)}"
    text = f"grad_norm goes from {short}" if not rises else f"grad_norm grows from the first rows on: {short}"
    return Seen(last / first if rises else 1.0, text, short, "grad_norm", (int(steps[0]),))


@clue
def step_was_skipped(moment: Moment, grad_norm: Series) -> Seen | None:
    """Return whether grad_norm is exactly 0 at the onset, as where the optimizer's step was skipped: `yes` or `no`."""
    at = grad_norm.values[grad_norm.steps == moment.onset_step]
    if not len(at):
        return None
    return Seen("no" if at.any() else "yes", f"grad_norm is {figure(float(at[0]))} there", "", "grad_norm")


def _is_finite_at(series: Series, step: int) -> bool:
    index = int(np.searchsorted(series.steps, step))
    return index >= len(series) or int(series.steps[index]) != step or bool(np.isfinite(series.values[index]))
