"""What no batch gives: a loss of exactly 0, or of the same number again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import NO, Answer, Evidence, inapplicable, measured
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import changes, remembered, rows_at_end, stretches_of
from stabtree.common.stats import SOME, median, resolution
from stabtree.common.strength import FARTHEST, above, below, strongest, weakest, whether
from stabtree.facts.registry import finite, highest, lowest
from stabtree.predicates.course.cross_entropy import guess, may_be_zero
from stabtree.predicates.registry import Count, predicate
from stabtree.profile import scatter_of
from stabtree.profile.quantum import quanta

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.context.model import Context
    from stabtree.run import Run, Series


@predicate(source="masked labels: every label -100", min_points=5)
def loss_at_zero(
    run: Run,
    context: Context,
    loss: Series,
    *,
    share: float = shared.SHARE_MOST,
    fall: float = shared.FACTOR_HUGE,
) -> Answer:
    """Is the loss exactly 0 throughout, or from some row on?

    Yes where at least `share` of the rows from the first 0 on are exactly 0, the last one as well, and the loss did not
    come down to it: a smallest value above 0 that is a `fall`-th of the largest says that 0 is a small value rounded.
    """
    steps, values = finite(loss)
    why = may_be_zero(run, context, loss)
    if why:
        return inapplicable(why)
    zero = _zeros(loss)
    low, high = float(values.min(initial=np.inf, where=values > 0)) if len(zero) else lowest(loss), highest(loss)
    text = f"the loss is exactly 0 in {len(zero):,} of {len(values):,} rows"
    text += f"; its other values go from {figure(low)} to {figure(high)}" if high else ""
    at = int(zero[0]) if len(zero) else 0
    seen = len(zero) / (len(values) - at)
    fell = above(low * fall, high) if high else FARTHEST
    ends = whether(bool(values[-1] == 0) and len(zero) >= shared.ROWS_SHORT)
    strength = weakest(ends, below(1 - seen, 1 - share), fell)
    found = (Evidence(text, "loss", (int(steps[0]), int(steps[-1])), seen, share),)
    good = int(steps[at - 1]) if at else None
    return measured(strength, found, onset_step=int(steps[at]), last_good_step=good)


@remembered
def _zeros(loss: Series) -> Ints:
    """Return the rows at which a loss is exactly 0: int64 (n,)."""
    if lowest(loss) > 0:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(finite(loss)[1] == 0)


@predicate(source="batches without a label; NaN rows logged as 0 (logging_nan_inf_filter)", min_points=5)
def zero_rows(
    run: Run,
    context: Context,
    loss: Series,
    *,
    near_share: float,
    rows: Count = shared.ROWS_LONG,
    digits: float = shared.FACTOR_HUGE,
    share: float = shared.SHARE_HALF,
) -> Answer:
    """Are single rows of the loss exactly 0, between ordinary ones?

    A row counts where each of the `rows` rows other than 0 on either side is at least `near_share` of their median, and
    that median has `digits` steps of the numbers: then 0 is no small value rounded, nor one that the loss was on its
    way to. At most `share` of the rows may be 0, else it is the level; and as many of the zeros have to count, else
    they are the end of the scatter, as of a loss of margins.
    """
    steps, values = finite(loss)
    why = may_be_zero(run, context, loss)
    if why:
        return inapplicable(why)
    zero = _zeros(loss)
    # What follows the last ordinary row is the end of the loss.
    zero = zero[: len(zero) - rows_at_end(zero, len(values))]
    if not len(zero) or len(zero) > share * len(values):
        text = f"{len(zero):,} of {len(values):,} rows of the loss are exactly 0"
        return Answer(NO, (Evidence(text, "loss", (), len(zero) / len(values), share),), strength=-FARTHEST)
    others, step, strengths = np.flatnonzero(values != 0), scatter_of(loss).quantum, [-FARTHEST]
    for at in zero:
        index = int(np.searchsorted(others, at))
        near = values[others[max(0, index - rows) : index + rows]]
        level = median(near)
        strengths.append(weakest(above(float(near.min()), near_share * level), above(level, digits * step)))
    found = np.array(strengths[1:])
    alone = zero[found >= 0].tolist()
    text = f"the loss is exactly 0 in {len(zero):,} rows, {len(alone):,} of them among ordinary ones"
    text += f", the first at step {int(steps[alone[0]]):,}" if alone else ""
    shown = zero[: shared.ROWS_SHORT] if not alone else np.array(alone[: shared.ROWS_SHORT])
    evidence = (Evidence(text, "loss", tuple(steps[shown].tolist()), len(alone) / len(values), share),)
    most = above(len(alone) / len(zero), share)  # else the loss scatters as far down as 0
    onset = int(shown[0])
    good = int(steps[onset - 1]) if onset else None
    return measured(weakest(max(strengths), most), evidence, onset_step=int(steps[onset]), last_good_step=good)


@predicate(source="stuck loggers and loaders", min_points=5)
def loss_repeats(
    context: Context,
    loss: Series,
    *,
    rows: Count,
    values_most: Count,
    digits: float = shared.FACTOR_HUGE,
    plain: float = shared.SHARE_HALF,
) -> Answer:
    """Is the loss exactly the same number in many rows?

    Yes where one value other than 0 fills `rows` neighbouring rows or more, or the whole log holds at most
    `values_most` different values, one only where it is short. Each must have `digits` steps of the numbers, as they
    were printed or stored, so that rounding does not make different losses equal; a log of one single value needs no
    more than to be `plain` or above, since no loss that is trained stays within a rounding of so large a number.
    """
    steps, values = finite(loss)
    same = changes(values, np.equal)
    different = _different(values, values_most if len(values) >= shared.ROWS_LONG else 1)
    begin, end = _longest(same[values[same] != 0])
    if different and end - begin + 1 < rows:
        return _few_values(context, loss, different, digits, plain)
    count, value = end - begin + 1, float(values[begin - 1])
    text = f"the longest stretch of one value is {count:,} rows of {figure(value, 6)}, from step "
    text += f"{int(steps[begin - 1]):,} (limit {rows:,})"
    one = _one_value(value, count, context.classes.value)
    span = (int(steps[begin - 1]), int(steps[end - 1]))
    found = (Evidence(text, "loss", span, float(count), float(rows), one),)
    good = int(steps[begin - 2]) if begin > 1 else None
    strength = above(count, rows)
    if strength >= -1:  # the digits take a while in a long log
        strength = weakest(strength, above(abs(value), digits * _step_of(values)))
    return measured(strength, found, onset_step=span[0], last_good_step=good)


def _few_values(context: Context, loss: Series, different: list[float], digits: float, plain: float) -> Answer:
    steps, values = finite(loss)
    listed = ", ".join(f"{figure(value, 6)}" for value in different)
    text = f"all {len(values):,} rows of the loss hold {len(different)} different value"
    text += f"{'s' if len(different) > 1 else ''}: {listed}"
    single = len(different) == 1
    one = _one_value(different[0], len(values), context.classes.value) if single else ""
    span = (int(steps[0]), int(steps[-1]))
    step = _step_of(values)
    smallest = min(abs(value) for value in different)
    strength = above(smallest, digits * step) if 0 < step < 1 else -FARTHEST
    if single:
        strength = strongest(strength, above(smallest, plain))
    return measured(strength, (Evidence(text, "loss", span, float(len(different)), None, one),), onset_step=span[0])


def _step_of(values: Floats) -> float:
    """Return the last digit that was printed, or the step of the float that was stored; 0 where neither is seen."""
    return max(resolution(values), float(quanta(values[None])[0]))


def _one_value(value: float, rows: int, classes: int | None) -> str:
    return f"{guess(value, classes) or f'{figure(value, 6)}'} in {rows:,} rows"


def _longest(rows: Ints) -> tuple[int, int]:
    """Return the longest stretch of neighbouring rows as (first, one behind the last)."""
    if not len(rows):
        return 1, 1
    begins, lengths = stretches_of(rows)
    longest = int(np.argmax(lengths))
    return int(begins[longest]), int(begins[longest] + lengths[longest])


def _different(values: Floats, max_values: int) -> list[float]:
    """Return the different values of a log, none where there are more than `max_values`."""
    if len(set(values[:SOME].tolist())) > max_values:  # as in nearly every log
        return []
    found: list[float] = np.unique(values).tolist()
    return found if len(found) <= max_values else []
