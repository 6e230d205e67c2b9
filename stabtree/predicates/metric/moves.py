"""Questions about any one metric: does it shoot up, grow beyond measure, reach its cap?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import Answer, Evidence, measured, unknown
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.stats import median, row_medians, windows
from stabtree.common.strength import above, below, weakest
from stabtree.facts.registry import finite
from stabtree.predicates.metric.stays import GUIDE, not_asked
from stabtree.predicates.registry import Count, predicate

if TYPE_CHECKING:
    from stabtree.run import Run, Series


@predicate(source=f"{GUIDE}; key metrics for RL")
def shoots_up(
    run: Run,
    *,
    metric: str = "kl",
    factor: float = shared.FACTOR_LARGE,
    rows: Count = shared.ROWS_SHORT,
    min_level: float,
    before_rows: Count = shared.ROWS_LONG,
) -> Answer:
    """Does a metric shoot up within a few rows?

    Yes where the median of `rows` neighbouring rows exceeds `factor` times that of the `before_rows` before them, and
    `min_level`: a multiple of next to nothing is nothing.
    """
    refused = not_asked(run, metric, "")
    if refused:
        return refused
    at, values = finite(run.series[metric])
    before_rows = min(before_rows, len(values) - rows)
    if before_rows < rows:
        return unknown(f"{metric} has {len(values):,} finite rows, {2 * rows} are needed", metric)
    after, before = row_medians(windows(values, rows)[before_rows:]), row_medians(windows(values, before_rows)[:-rows])
    jumps = after / np.maximum(np.abs(before), min_level / factor)
    top = int(np.argmax(jumps))
    text = f"{metric} goes from {figure(before[top])} to {figure(after[top])} at step {int(at[before_rows + top]):,} "
    text += f"(limit {factor:g}× and {min_level:g})"
    jump = min(float(jumps[top]), 1e300)
    found = Evidence(text, metric, (int(at[before_rows + top]),), jump, factor)
    first = before_rows + int(np.argmax(jumps >= factor))
    return measured(above(jump, factor), (found,), onset_step=int(at[first]), last_good_step=int(at[first - 1]))


@predicate(source=GUIDE, min_points=6)
def climbs_to_cap(
    run: Run,
    completion_length: Series,
    completion_length_max: Series | None = None,
    *,
    cap_share: float = 1 - shared.SHARE_SOME,
    growth: float = shared.FACTOR_SMALL,
) -> Answer:
    """Do the answers grow until they reach the longest allowed length?

    Yes where the mean length ends within `cap_share` of the cap and more than `growth` times above its beginning
    (medians of a tenth of the rows). The cap is `max_completion_length` of the configuration, else the length of the
    longest answer, where several rows have the same.
    """
    at, values = finite(completion_length)
    cap = _cap(run, completion_length_max)
    if cap is None:
        return unknown(
            "the cap is not known: max_completion_length is not set, and the longest answer varies",
            "max_completion_length",
        )
    part = max(3, len(values) // 10)
    begin, end = median(values[:part]), median(values[-part:])
    text = f"completion_length goes from {figure(begin, 4)} to {figure(end, 4)} tokens; the cap is {figure(cap, 4)} "
    text += f"(counted as reached from {figure(cap_share * cap, 4)} on)"
    found = Evidence(text, "completion_length", (int(at[0]), int(at[-1])), end, cap_share * cap)
    past = at[values >= cap_share * cap]
    grown = math.log(end / begin) if begin > 0 and end > 0 else 0.0
    strength = weakest(below(1 - end / cap, 1 - cap_share), above(grown, math.log(growth)))
    return measured(strength, (found,), onset_step=int(past[0]) if len(past) else None)


def _cap(run: Run, longest: Series | None) -> float | None:
    known = run.setting("max_completion_length")
    if isinstance(known, int | float) and known > 0:
        return float(known)
    if longest is None:
        return None
    _, values = finite(longest)
    top = float(values.max()) if len(values) else 0.0
    return top if top > 0 and int((values == top).sum()) >= shared.ROWS_SHORT else None
