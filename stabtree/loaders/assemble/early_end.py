"""Whether the log ends long before the run was to end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common.stats import interval

if TYPE_CHECKING:
    from stabtree.run import Run

# No verdict rests on these: the last planned steps are often not logged, and a log is written every so many steps.
ENOUGH = 0.95
ROWS = 2


def early_end(run: Run) -> tuple[str, ...]:
    """Return a note if the log ends long before the planned steps are done, and neither an error nor a NaN says why."""
    loss, last, planned = run.get("loss"), run.last_step, run.planned_step
    if loss is None or last is None or len(loss) < ROWS or not math.isfinite(planned):
        return ()
    if last >= ENOUGH * planned or last + ROWS * interval(loss.steps) >= planned:
        return ()
    if _is_explained(run, float(loss.values[-1])):
        return ()
    unit = "epoch" if run.by_epoch else "step"
    text = f"The log ends at {unit} {last:,} of {planned + 1:,.0f} planned, without an error"
    return (f"{text}: the run was stopped or killed, hangs, or is still going on.",)


def _is_explained(run: Run, last_loss: float) -> bool:
    """Return whether the last loss, or a line at the end of the log, shows why the run ended."""
    return not math.isfinite(last_loss) or any(line.at_end for line in run.lines)
