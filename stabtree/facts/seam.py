"""The seam of a resume at which the loss does not go on where it had left off."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.answer import Evidence
from stabtree.common.lazy import np
from stabtree.common.stats import median, span
from stabtree.facts.registry import Absent, Count, fact, finite

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.run import Run, Series


class Seam(NamedTuple):
    """The worst seam of a run.

    Attributes:
        step: where the run was resumed.
        change: how far the loss is above (below, where negative) the level that the rows before predict.
        level: the median of the loss before; `now` after.
        rows: how many rows after it that is the median of.
        bar: the change that counts, as a share of all that the loss covers.
        good_step: the last step before it, None where the log begins there.
    """

    step: int
    change: float
    level: float
    now: float
    rows: int
    bar: float
    good_step: int | None

    @property
    def evidence(self) -> Evidence:
        """The change at the seam, as evidence."""
        text = f"resumed at step {self.step:,}, the loss continues at a median of {self.now:.4g} ({self.rows:,} rows) "
        text += f"instead of {self.level:.4g}"
        return Evidence(text, "loss", (self.step,), self.change, self.bar)


@fact(min_points=2)
def seam(run: Run, loss: Series, *, sigma: float, range_share: float, rows: Count, min_rows: int) -> Seam | Absent:
    """Find the seam of a resume at which the loss changes most.

    Compared is the median of up to `rows` rows after each seam with what the `rows` before predict: off by more
    than `sigma` times the scatter of the rows before and by more than `range_share` of all that the loss ever moved.
    """
    steps, values = finite(loss)
    covered = span(values)
    worst: Seam | None = None
    for resume in run.resumes:
        at = int(np.searchsorted(steps, resume.to_step))
        before, after = values[max(0, at - rows) : at], values[at : at + rows]
        if min(len(before), len(after)) < max(min_rows, 2):
            continue
        level, change = _expected(before, after)
        noise = median(np.abs(np.diff(before))) or float(np.std(before))
        if abs(change) > max(sigma * noise, range_share * covered) and (not worst or abs(change) > abs(worst.change)):
            now, good = median(after), int(steps[at - 1])
            worst = Seam(resume.to_step, change, level, now, len(after), range_share * covered, good)
    if worst:
        return worst
    count = len(run.resumes)
    text = "the steps of the log never go back"
    if count:
        text = f"the loss continues at its level after each of {count} resumes"
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
