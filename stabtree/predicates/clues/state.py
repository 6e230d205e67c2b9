"""Whether weights and the optimizer's state were lost at a resume, and whether the model is as good as before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import rows_before
from stabtree.facts.registry import finite
from stabtree.predicates.clues.registry import Seen, clue

if TYPE_CHECKING:
    from stabtree.predicates.clues.registry import Moment
    from stabtree.run import Run, Series

YES, NO = "yes", "no"
ROWS_AFTER = 20  # no limit: rows after a resume in which what was not restored shows


@clue
def resumed_before(moment: Moment, run: Run, loss: Series) -> Seen | None:
    """Return whether the run was resumed within 20 rows before the onset; None without an onset."""
    if moment.onset_step is None:
        return None
    row = int(np.searchsorted(loss.steps, moment.onset_step))
    since = int(loss.steps[max(row - ROWS_AFTER, 0)]) if len(loss) else 0
    found = [item.to_step for item in run.resumes if since <= item.to_step <= moment.onset_step]
    if not found:
        return Seen(NO, "the log shows no resume in the 20 rows before", "", "loss")
    text = f"the run was resumed at step {found[-1]:,}, right before"
    return Seen(YES, text, f"step {found[-1]:,}", "loss", (found[-1],))


@clue
def quality_back(moment: Moment, eval_loss: Series) -> Seen | None:
    """Return the best held-out loss after the onset over the best before it: 1 where the model is as good again."""
    if moment.onset_step is None:
        return None
    steps, values = finite(eval_loss)
    before, after = values[: rows_before(steps, moment.onset_step)], values[rows_before(steps, moment.onset_step) :]
    if not len(before) or not len(after) or before.min() <= 0:
        return None
    share = float(after.min() / before.min())
    text = f"eval_loss was {figure(before.min())} at its best before, and {figure(after.min())} after"
    return Seen(share, text, f"{figure(before.min())} → {figure(after.min())}", "eval_loss")
