"""Where the loss stopped being finite."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.answer import Evidence
from stabtree.common.lazy import np
from stabtree.common.passes import broken_rows, last_sound_row, rows_before
from stabtree.common.shared import FACTOR_LARGE, ROWS_LONG, ROWS_SHORT, SHARE_HALF
from stabtree.common.stats import median, stretches, true_at_end
from stabtree.common.strength import FARTHEST
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
        healed: whether the run got over them, or ends in no more than it had got over before.
        ends_finite: whether the last `recovered_rows` rows are all finite.
        recovered_rows: finite rows after which a run has come back; so many right before the break may already belong
            to the blow-up, not to the usual state.
    """

    row: int
    step: int
    value: float
    good_step: int | None
    rows: Ints
    healed: bool
    ends_finite: bool
    recovered_rows: int

    def rise_before(self, series: Series) -> tuple[float, float] | None:
        """Return how many times its usual state a series reaches in its last rows before the break, and that state.

        The usual state is the median of ten times `recovered_rows` that end as many before the break, or of the first
        half where there are fewer; a slow explosion would be its own baseline otherwise. None without four finite rows.
        """
        steps, values = finite(series)
        values = values[: rows_before(steps, self.step)]
        if len(values) < 4:
            return None
        recent = min(self.recovered_rows, len(values) - len(values) // 2)
        usual = median(values[:-recent][-int(FACTOR_LARGE) * self.recovered_rows :])
        if usual <= 0:
            return None
        # One row of the last few may be a lucky one, but a series that is back in order did not explode.
        last = values[-ROWS_SHORT:].max() if values[-1] > usual else values[-1]
        return min(float(last) / usual, 1e300), usual


@fact()
def loss_break(loss: Series, *, recovered_rows: Count = ROWS_LONG) -> Break | Absent:
    """Find the last storm of losses that are not finite; the parameters are those of `Break`.

    Trainers that skip NaN steps show single ones; none of the labelled runs that died was finite for as long as
    `recovered_rows` after its first NaN. No verdict hangs on the last rows alone: a run that has come back from as many
    bad rows in a row as it ends with has skipped these too.
    """
    rows = broken_rows(loss)
    if not len(rows):
        return Absent(
            (Evidence(f"all {len(loss):,} logged values of loss are finite", "loss", (), 0.0, 0.0),), -FARTHEST
        )
    bad, row = ~np.isfinite(loss.values), storm_start(rows, recovered_rows)
    return Break(
        row,
        int(loss.steps[row]),
        float(loss.values[row]),
        last_finite_before(loss, row),
        rows,
        _healed(bad, recovered_rows),
        not bad[-recovered_rows:].any(),
        recovered_rows,
    )


def _healed(bad: Bools, recovered_rows: int) -> bool:
    """Return whether a run got over its bad rows: the last ones are long ago, or like earlier ones that it got over."""
    if bad.mean() >= SHARE_HALF or bad[-2 * recovered_rows :].mean() >= SHARE_HALF:
        return False
    if not bad[-recovered_rows:].any():
        return True
    groups = [end - start for start, end in stretches(bad)]
    at_end = true_at_end(bad)
    earlier = groups[:-1] if at_end else groups
    return len(earlier) > 1 and max(earlier) >= at_end


def storm_start(rows: Ints, recovered_rows: int) -> int:
    """Return the row at which the last group of bad rows begins; NaN steps skipped long before do not count."""
    breaks = np.flatnonzero(np.diff(rows) > recovered_rows)
    return int(rows[breaks[-1] + 1]) if len(breaks) else int(rows[0])


def last_finite_before(series: Series, index: int) -> int | None:
    """Return the step of the last finite value before a row."""
    good = last_sound_row(series, index)
    return int(series.steps[good]) if good >= 0 else None
