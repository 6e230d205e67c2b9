"""Whether a series of the bad run ends worse than those of the good runs, and from which row on it stays so.

What is measured is the difference on matched rows, in the direction of worse. The last rise of it that lasts to the end
begins at a change point; where the run was better before, it is worse only once it has crossed the good one. How far it
ends off must be more than noise of as many rows, more than the differences wandered before, and a part that matters.
A run that was never alike has no before: it must be off by far more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.lazy import np
from stabtree.common.stats import change_noise, median
from stabtree.profile.change import change_point
from stabtree.tools.compare.noise import FEW_ROWS, Difference, apart, block_means, difference, middle

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats
    from stabtree.tools.compare.noise import Apart, Rows

ERRORS = 6.0  # of the level at the end that it must be off
WANDERED = 6.0  # times what levels of as many rows wandered before that it must be off
MATTERS = 0.02  # share of the good value, or of its range where it may be 0: less is no worse, however sure
NEVER_ALIKE = 0.3  # the same of a run that was off from its first rows on, as other seeds may be
HISTORY, HISTORY_ROWS = 4, 20  # levels, and rows, that show how much they wander
END = 4  # which part of the stretch is its end, and how many such parts before it are compared with that
MIN_END, MAX_END = 3, 256  # rows of it
END_ROWS = 16  # rows that show the noise at the end
MEDIAN_ERROR = 1.25  # of a median, in errors of the mean
MAX_LOG = 5.0  # a hundredfold rise is one, however high it goes
LOST = 0.5  # share of rows up to the end that are not finite where a series is lost


def ending(rows: Rows, direction: int, side: str, lost_step: int | None = None, equal: int = 0) -> Difference | None:
    """Return the last stretch in which the bad run is worse, up to the end; None if it ends no worse.

    Args:
        rows: the series.
        direction: 1 where higher is worse, -1 where lower is.
        side: what to call it: `worse`; of the other direction, `better`.
        lost_step: the step from which on the series is missing in the bad run, if it is.
        equal: how many of the first rows are equal, of runs of one seed.
    """
    usable = np.flatnonzero(np.isfinite(rows.good).all(axis=0))
    lost = _lost(~np.isfinite(rows.bad[usable]))
    lost_row = None if lost is None else int(usable[lost])
    if lost_row is not None:
        lost_step = int(rows.steps[lost_row])
    off = apart(rows, lost_row)
    found = None
    if len(off.rows) >= FEW_ROWS:
        same = int(np.searchsorted(off.rows, equal))
        found = _last_stretch(off, direction, min(same, len(off.rows) - 1))
    if found is None and lost_step is None:
        return None
    row, before, size = found or (-1, "level" if len(off.rows) else "", 0)
    step = lost_step if found is None else int(rows.steps[off.rows[row]])
    end = Difference(rows.metric, step or 0, side, before=before, lost_step=lost_step)
    alike = rows.steps[rows.steps < end.step]
    if len(alike):
        end = replace(end, last_alike=int(alike[-1]))
    if found:
        last = off.rows[-size:]
        levels = median(middle(rows.good[:, last])), median(rows.bad[last])
        end = replace(end, good=levels[0], bad=levels[1])
        if min(levels) > 0:
            end = replace(end, times_at_end=levels[1] / levels[0])
    return end


def _lost(flags: Bools) -> int | None:
    """Return the first row from which on most rows are not finite, up to the last one."""
    if not len(flags) or not flags[-1]:
        return None
    share = np.cumsum(flags[::-1])[::-1] / np.arange(len(flags), 0, -1)
    mostly = np.flatnonzero(~(share > LOST))
    after = int(mostly[-1]) + 1 if len(mostly) else 0
    return after + int(flags[after:].argmax())


def _last_stretch(off: Apart, direction: int, same: int) -> tuple[int, str, int] | None:
    """Return the first row of the last worse stretch of finite rows, what it was before, and the rows of its end."""
    apart, count = direction * off.apart, len(off.apart)
    # A straight climb is straight as a ratio, and bent in logarithms.
    ratios = np.expm1(np.minimum(apart, MAX_LOG)) if direction > 0 and off.unit == 1.0 else apart
    rise = change_point(np.arange(count), ratios)
    for row in (max(rise.first_bad_step, same), same) if rise else (same,):
        size = min(max((count - row) // END, MIN_END), MAX_END, count - row)
        level, past = median(apart[-size:]), apart[:row]
        wander, enough = _wander(off.others, past, size), MATTERS * off.unit
        if wander is None:
            wander, enough, past = 0.0, NEVER_ALIKE * off.unit, past[:0]
        before = median(past[-END * size :]) if len(past) else 0.0
        error = ERRORS * MEDIAN_ERROR * off.noise(max(2 * size, END_ROWS))
        if level - max(before, 0.0) > max(error / size**0.5, WANDERED * wander, enough):
            break
    else:
        return None
    if not row:
        return 0, "", size
    whole, error = median(apart[:row]), ERRORS * MEDIAN_ERROR * off.noise() / row**0.5
    how = "better" if whole < -error else "worse" if whole > max(error, enough) else "level"
    if before < -error * max(row / (END * size), 1) ** 0.5 / 2 and apart[row] < 0:
        row += int(np.cumsum(apart[row:]).argmin()) + 1
    return min(row, count - 1), how, size


def at_first(rows: Rows, direction: int) -> Difference | None:
    """Return up to where an outcome is worse or better from its first rows on; None where it is not."""
    turned = rows._replace(good=rows.good[:, ::-1], bad=rows.bad[::-1])
    for side, sign in (("worse", direction), ("better", -direction)):
        off = apart(turned)
        found = _last_stretch(off, sign, 0) if len(off.rows) >= FEW_ROWS else None
        if found and found[0] > 0:
            until = int(rows.steps[rows.size - 1 - off.rows[found[0]]])
            return replace(difference(rows, 0, "at first"), side=side, until=until, noises=None)
    return None


def _wander(others: Floats, past: Floats, size: int) -> float | None:
    """Return the standard deviation of levels of so many rows before; None where nothing shows it."""
    if len(others) > 1:
        return float(np.mean([block_means(values, size) ** 2 for values in others]) ** 0.5)
    if len(past) < HISTORY_ROWS:
        return None
    return change_noise(block_means(past, min(size, len(past) // HISTORY)))
