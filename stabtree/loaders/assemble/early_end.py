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
    """A note where the log ends long before the planned steps are done, and neither an error nor a NaN says why."""
    loss, last, planned = run.get("loss"), run.last_step, run.planned_step
    if loss is None or last is None or len(loss) < ROWS or not math.isfinite(planned):
        return ()
    if not math.isfinite(float(loss.values[-1])):  # that says why
        return ()
    if last >= ENOUGH * planned or last + ROWS * interval(loss.steps) >= planned or any(x.at_end for x in run.lines):
        return ()
    unit = "epoch" if run.by_epoch else "step"
    text = f"The log ends at {unit} {last:,} of {planned + 1:,.0f} planned, without an error"
    return (f"{text}: the run was stopped or killed, hangs, or is still going on.",)
