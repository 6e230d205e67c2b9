"""The reverse of a spike: a loss that is gone at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.answer import NO, YES, Answer, Evidence, inapplicable, unknown
from stabtree.common.figures import against, figure
from stabtree.common.lazy import np
from stabtree.common.passes import PART
from stabtree.common.stats import NEARLY_ZERO, row_medians, windows
from stabtree.facts.registry import finite
from stabtree.predicates.course.cross_entropy import may_be_zero
from stabtree.predicates.course.start import first_level
from stabtree.predicates.registry import Count, predicate

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Floats, Ints
    from stabtree.context.model import Context
    from stabtree.run import Run, Series


class Stretches(NamedTuple):
    """The stretches of a loss that are compared: entry i is about the settled one that begins with row i.

    Attributes:
        values: the loss, float64 (n,).
        settled: how many rows are level before a fall.
        within: how many rows after them the low ones begin at the latest.
        low: how many rows are low after it.
    """

    values: Floats
    settled: int
    within: int
    low: int

    @property
    def entries(self) -> int:
        """The number of entries."""
        return len(self.values) - self.settled - self.low + 1

    def falls(self, begin: int, end: int) -> Floats:
        """Return how many times less than in the settled rows the loss is after them, of entries `begin` to `end`."""
        reached = _lowest(self.after(begin, end + self.within - 1), self.within)
        before = _lowest(self.values[begin : end + self.settled - 1], self.settled)
        found: Floats = np.where(reached > 0, before / np.maximum(reached, NEARLY_ZERO), 0.0)
        return found

    def after(self, begin: int, end: int) -> Floats:
        """Return the highest of the low rows right after each settled stretch; infinity behind the end of the log."""
        highest = -_lowest(-self.values[self.settled + begin : self.settled + end + self.low - 1], self.low)
        return np.append(highest, np.full(end - begin - len(highest), np.inf))

    def steepest(self, factor: float) -> tuple[int, Ints, Floats]:
        """Return the entry of the steepest fall, and the entries, (m,), and falls, (m,), of all beyond a factor."""
        tops: list[tuple[float, int]] = []
        far: list[Ints] = []
        falls: list[Floats] = []
        for begin in range(0, self.entries, PART):
            fall = self.falls(begin, min(begin + PART, self.entries))
            top, beyond = int(np.argmax(fall)), np.flatnonzero(fall > factor)
            tops.append((float(fall[top]), -begin - top))
            far.append(begin + beyond)
            falls.append(fall[beyond])
        return -max(tops)[1], np.concatenate(far), np.concatenate(falls)


@predicate(source="measured: a batch that is drawn again and again", min_points=12)
def loss_collapses(
    run: Run,
    loss: Series,
    context: Context,
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
    """Does a loss that had settled fall to almost 0 within a few rows?

    Yes where `rows` neighbouring rows lie below a `factor`-th of the lowest of `settled_rows` rows that end at most
    `within_rows` rows before. These have settled where the medians of their halves differ by less than `settled_share`,
    none lies below half of their median, and that is at most `above_first` times the first level (for `thrown` see
    `first_level`): what comes down from a spike only comes back. A rate that changes by `lr_factor` in between may
    explain it. Not asked of exact zeros, nor of a loss that moves by nature or may be 0.
    """
    steps, values = finite(loss)
    why = context.restless or may_be_zero(run, context, loss)
    rows, within_rows, settled_rows = max(rows, 1), max(within_rows, 1), max(settled_rows, 2)
    if why:
        return inapplicable(why)
    if len(values) < settled_rows + rows:
        return unknown(f"the loss has {len(values):,} finite rows, {settled_rows + rows} are needed")
    stretches = Stretches(values, settled_rows, within_rows, rows)
    at, far, falls = stretches.steepest(factor)
    before = windows(values, settled_rows)[far]
    calm = _settled(before, settled_share)
    calm &= row_medians(before) <= above_first * first_level(values, thrown)
    if len(far) and not calm.any():
        text = f"the loss falls {factor:g}× and more within {within_rows} rows, but not from {settled_rows} level ones"
        return Answer(NO, (Evidence(text, "loss", (int(steps[far[0]]),)),))
    if len(far):
        at = int(far[calm][np.argmax(falls[calm])])
    after, low = stretches.after(at, at + within_rows), float(values[at : at + settled_rows].min())
    first = int(np.argmin(after))
    end, most = at + settled_rows + first, min(float(stretches.falls(at, at + 1)[0]), 1e300)
    text = f"the loss falls {against(most, factor)}× at once (limit {factor:g}×): {figure(low)} or above up to step "
    text += f"{int(steps[at + settled_rows - 1]):,}, {figure(after[first])} or below from step "
    text += f"{int(steps[end]):,} on"
    found = [Evidence(text, "loss", (int(steps[at + settled_rows]), int(steps[end])), most, factor)]
    rates = _rates(lr, int(steps[at]), int(steps[end]))
    if most <= factor or (len(rates) and rates.max() > lr_factor * max(float(rates.min()), 1e-300)):
        if most > factor:
            found.append(Evidence(f"lr goes from {figure(rates[0])} to {figure(rates[-1])} meanwhile", "lr"))
        return Answer(NO, tuple(found))
    onset = at + settled_rows
    while onset < len(values) - 1 and values[onset] > low / 2:
        onset += 1
    return Answer(YES, tuple(found), onset_step=int(steps[onset]), last_good_step=int(steps[onset - 1]))


def _lowest(values: Floats, rows: int) -> Floats:
    """Return the lowest of each `rows` neighbours: (n,) -> (n - rows + 1,)."""
    count, width = len(values) - rows + 1, 1
    while 2 * width <= rows:
        values, width = np.minimum(values[:-width], values[width:]), 2 * width
    return np.minimum(values[:count], values[rows - width :][:count])


def _settled(windows: Floats, share: float) -> Bools:
    """Return the mask of flat windows (n, rows) of the loss, shape (n,)."""
    middle, half = row_medians(windows), windows.shape[1] // 2
    first, last = row_medians(windows[:, :half]), row_medians(windows[:, half:])
    level = np.abs(first - last) < share * np.minimum(first, last)
    return np.asarray(level & (windows.min(axis=1) > middle / 2))


def _rates(lr: Series | None, first: int, last: int) -> Floats:
    """Return the learning rates from one step to another."""
    if lr is None:
        return np.zeros(0)
    steps, values = finite(lr)
    return values[np.searchsorted(steps, first) : np.searchsorted(steps, last, side="right")]
