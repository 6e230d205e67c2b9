"""Whether updates were made at all, and whether the numbers that they work on are ones a model can learn from.

Traces of causes, as those of `traces`: they raise no alarm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import LIKELY, NO, YES, Answer, Evidence
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import rows_before
from stabtree.common.stats import is_counter, median
from stabtree.facts.registry import finite
from stabtree.predicates.registry import predicate

if TYPE_CHECKING:
    from stabtree.run import Run, Series

RESOLVED = 2.0**24  # no limit: from here on float32 has no whole numbers: a change by 1 is lost


@predicate(source="DeepSpeed: skipped beside step", min_points=2)
def all_skipped(run: Run, skipped_steps: Series, loss: Series, *, share: float = shared.SHARE_MOST) -> Answer:
    """Was nearly every update skipped?

    Yes where a counter that never falls reaches `share` of the steps of the log, or of the rows of the loss where rows
    are all that is counted; or where as many rows say that they were skipped.
    """
    steps, values = finite(skipped_steps)
    last = int(steps[-1])
    done = int((loss.steps <= last).sum())
    if not run.by_row:
        done = max(done, last - int(min(steps[0], loss.steps[0])) + 1)
    skipped = float(values[-1]) if is_counter(values) else float((values > 0).mean()) * done
    part = min(skipped / max(done, 1), 1e6)
    text = f"{min(skipped, 1e100):,.0f} of {done:,} updates were skipped by step {last:,} (limit {share:.0%})"
    found = (Evidence(text, "skipped_steps", (last,), part, share),)
    return Answer(YES if share <= part <= 2 - share else NO, found)


@predicate(source="IEEE 754 binary32", labels=(LIKELY, NO), min_points=1)
def beyond_resolution(loss: Series) -> Answer:
    """Is the loss so large that float32 can't hold a change of it?

    Likely where its median is above 2^24, from where on a float32 has no whole numbers.
    """
    usual = float(median(np.abs(finite(loss)[1])))
    text = f"the loss is at {figure(usual)}; above {figure(RESOLVED, 2)} a float32 can't hold a change by 1"
    return Answer(LIKELY if usual > RESOLVED else NO, (Evidence(text, "loss", (), usual, RESOLVED),))


@predicate(source="stable-baselines3: learning_starts", labels=(LIKELY, NO), min_points=8)
def best_untrained(reward: Series, loss: Series) -> Answer:
    """Was the reward best before the first update?

    An agent that first collects experience logs a reward without a loss. Likely where its median before the first row
    of the loss is above that of the rows after it: the best policy is then the initial one.
    """
    steps, values = finite(reward)
    begun = int(loss.steps[0])
    before, after = values[: rows_before(steps, begun)], values[rows_before(steps, begun) :]
    if len(before) < 2 or len(after) < 2:
        return Answer(NO, (Evidence(f"the reward is logged from the first update, step {begun:,}, on", "reward"),))
    text = f"updates begin at step {begun:,}; the reward is {figure(median(before), 4)} before and "
    text += f"{figure(median(after), 4)} after"
    found = (Evidence(text, "reward", (begun,), median(after), median(before)),)
    return Answer(LIKELY if median(before) > median(after) else NO, found)
