"""Where the loss stopped being finite."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.answer import Evidence
from stabtree.common.lazy import np
from stabtree.common.stats import median
from stabtree.facts.registry import Absent, Count, fact, finite

if TYPE_CHECKING:
    from stabtree.common.lazy import Bools, Ints
    from stabtree.run import Series


class Break(NamedTuple):
    """Where the loss died: the first value of the last storm of values that are not finite.

    Attributes:
        row: its row, `step` its step, `value` the value there.
        good_step: the step of the last finite value before it, None where there is none.
        rows: all rows of the loss that are not finite (n,).
        healed: whether they are few and so far back that the run got over them.
        ends_finite: whether the last `recovered_rows` rows are all finite.
        recovered_rows: finite rows after which a run has come back.
        recent_rows: rows before the break that may already belong to the blow-up, not to the usual state.
        usual_rows: rows before those, over which the usual state is measured.
        last_rows: rows right before the break; one alone may be a lucky one.
    """

    row: int
    step: int
    value: float
    good_step: int | None
    rows: Ints
    healed: bool
    ends_finite: bool
    recovered_rows: int
    recent_rows: int
    usual_rows: int
    last_rows: int

    def rise_before(self, series: Series) -> tuple[float, float] | None:
        """Return how many times its usual state a series reaches in its last rows before the break, and that state.

        The usual state is the median of up to `usual_rows` rows that end `recent_rows` before the break, or of the
        first half where there are fewer; a slow explosion would be its own baseline otherwise. None without four
        finite rows.
        """
        steps, values = finite(series)
        values = values[steps < self.step]
        if len(values) < 4:
            return None
        recent = self.recent_rows
        enough = len(values) >= 2 * recent
        early = values[:-recent][-self.usual_rows :] if enough else values[: len(values) // 2]
        usual = median(early)
        if usual <= 0:
            return None
        # One row of the last few may be a lucky one, but a series that is back in order did not explode.
        last = values[-self.last_rows :].max() if values[-1] > usual else values[-1]
        return min(float(last) / usual, 1e300), usual


@fact()
def loss_break(
    loss: Series, *, recovered_rows: Count, recent_rows: Count, usual_rows: Count, last_rows: Count
) -> Break | Absent:
    """Find the last storm of losses that are not finite; the parameters are those of `Break`.

    Trainers that skip NaN steps show single ones; none of the labelled runs that died was finite for as long as
    `recovered_rows` after its first NaN.
    """
    bad = ~np.isfinite(loss.values)
    rows = np.flatnonzero(bad)
    if not len(rows):
        return Absent((Evidence(f"all {len(loss):,} logged values of loss are finite", "loss", (), 0.0, 0.0),))
    row = storm_start(bad, recovered_rows)
    return Break(
        row,
        int(loss.steps[row]),
        float(loss.values[row]),
        last_finite_before(loss, row),
        rows,
        len(bad) - 1 - int(rows[-1]) >= recovered_rows and len(rows) < len(bad) / 2,
        not bad[-recovered_rows:].any(),
        recovered_rows,
        recent_rows,
        usual_rows,
        last_rows,
    )


def storm_start(bad: Bools, recovered_rows: int) -> int:
    """Return the row at which the last group of bad rows begins; NaN steps skipped long before do not count."""
    rows = np.flatnonzero(bad)
    breaks = np.flatnonzero(np.diff(rows) > recovered_rows)
    return int(rows[breaks[-1] + 1]) if len(breaks) else int(rows[0])


def last_finite_before(series: Series, index: int) -> int | None:
    """Return the step of the last finite value before a row."""
    before = np.flatnonzero(np.isfinite(series.values[:index]))
    return int(series.steps[before[-1]]) if len(before) else None
