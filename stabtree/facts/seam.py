"""The seam of a resume at which the loss does not go on where it had left off."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.answer import Evidence
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.shared import ROWS_LONG, ROWS_SHORT
from stabtree.common.stats import median, span
from stabtree.common.strength import above, weakest
from stabtree.facts.registry import Absent, fact, finite

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.run import Run, Series


class Seam(NamedTuple):
    """The seam of a run at which the loss changes most, for its scatter and its range.

    Attributes:
        step: where the run was resumed.
        change: how far the loss is above (below, where negative) the level that the rows before predict.
        level: the median of the loss before; `now` after.
        rows: how many rows after it that is the median of.
        bar: the change that counts, as a share of all that the loss covers.
        strength: how far the change is from that limit, and from that of the scatter.
        good_step: the last step before it, None where the log begins there.
    """

    step: int
    change: float
    level: float
    now: float
    rows: int
    bar: float
    strength: float
    good_step: int | None

    @property
    def evidence(self) -> Evidence:
        """The change at the seam, as evidence."""
        text = f"after the resume at step {self.step:,} the loss is {figure(self.now, 4)}, not {figure(self.level, 4)}"
        return Evidence(text, "loss", (self.step,), self.change, self.bar)


@fact(min_points=2)
def seam(run: Run, loss: Series, *, sigma: float, range_share: float) -> Seam | Absent:
    """Find the seam of a resume at which the loss changes most.

    Compared is the median of up to `ROWS_LONG` rows after each seam with what as many before predict: off by more
    than `sigma` times the scatter of the rows before and by more than `range_share` of all that the loss ever moved.
    """
    steps, values = finite(loss)
    covered = span(values)
    worst: Seam | None = None
    for resume in run.resumes:
        at = int(np.searchsorted(steps, resume.to_step))
        before, after = values[max(0, at - ROWS_LONG) : at], values[at : at + ROWS_LONG]
        if min(len(before), len(after)) < ROWS_SHORT:
            continue
        level, change = _expected(before, after)
        noise = median(np.abs(np.diff(before))) or float(np.std(before))
        strength = weakest(above(abs(change), sigma * noise), above(abs(change), range_share * covered))
        if worst is None or strength > worst.strength:
            now, good = median(after), int(steps[at - 1])
            worst = Seam(resume.to_step, change, level, now, len(after), range_share * covered, strength, good)
    if worst:
        return worst
    count = len(run.resumes)
    text = "the steps of the log never go back"
    if count:
        text = f"none of {count} resumes has {ROWS_SHORT} rows of the loss on either side"
    return Absent((Evidence(text, "loss", tuple(r.to_step for r in run.resumes[:5])),))


def _expected(before: Floats, after: Floats) -> tuple[float, float]:
    """Return the level to expect after a seam, and how far the loss is off it.

    A falling loss may go on falling or level off: anything between its last level and its trend drawn on is expected.
    """
    level, now = median(before), median(after)
    slope, start = np.polyfit(np.arange(len(before)), before, 1)
    ahead = float(start + slope * (len(before) + len(after) / 2))
    low, high = min(level, ahead), max(level, ahead)
    return level, now - high if now > high else min(now - low, 0.0)
