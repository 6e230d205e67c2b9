"""Questions about a metric beside a reward: does it explode, or has it done so and come back?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common import shared
from stabtree.common.answer import NO, Answer, Evidence, measured, unknown
from stabtree.common.figures import as_factor, figure
from stabtree.common.lazy import np
from stabtree.common.stats import median, quantiles, running_medians
from stabtree.common.strength import above
from stabtree.facts.registry import finite
from stabtree.metrics.role import VALUE, describe_name
from stabtree.predicates.registry import predicate
from stabtree.profile.onset import risen_by_factors

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.context.model import Context
    from stabtree.run import Run, Series


class Grown(NamedTuple):
    """How a metric grew up to some row, by medians of a twentieth of its rows.

    Attributes:
        begin: its level in the first rows.
        level: its level there.
        row: that row.
        calm_row: the last row before it that is at or below the beginning.
    """

    begin: float
    level: float
    row: int
    calm_row: int


class Beside(NamedTuple):
    """What a reward did while a metric grew.

    Attributes:
        text: that in words.
        rose: whether it gained more than half of its range meanwhile.
        scale: by how much its size has grown since the beginning, 1 at least.
    """

    text: str
    rose: bool
    scale: float


@predicate(source="stable-baselines3, RL tips; public RL logs")
def outgrows(
    run: Run, context: Context, *, metric: str = "value_loss", factor: float = shared.FACTOR_HUGE, beside: str
) -> Answer:
    """Does a metric grow by a large factor while another one does not rise?

    Yes where its last level is more than `factor` times its first. Where `beside` has risen by more than half of its
    range meanwhile, or is not logged, ten times as much is needed, and more than the square of the growth of `beside`
    explains: the error of a return is measured in squares. Strengths are those of the orders of magnitude. A value
    loss is also one that only its name shows to be one.
    """
    return _outgrows(run, _series_of(run, context, metric), metric, factor, beside, at_end=True)


@predicate(source="public RL logs")
def outgrew(
    run: Run, context: Context, *, metric: str = "value_loss", factor: float = shared.FACTOR_HUGE, beside: str
) -> Answer:
    """Had a metric grown by a large factor while another one did not rise, and come back?

    As `outgrows`, of its highest level.
    """
    return _outgrows(run, _series_of(run, context, metric), metric, factor, beside, at_end=False)


def _series_of(run: Run, context: Context, metric: str) -> Series | None:
    return value_loss_of(run, context) if metric == "value_loss" else run.get(metric)


def _outgrows(run: Run, series: Series | None, metric: str, factor: float, beside: str, *, at_end: bool) -> Answer:
    if series is None:
        return Answer(NO, (Evidence("no value function's loss is logged", "loss"),))
    at, values = finite(series)
    grown = _growth(values, at_end=at_end)
    if grown is None:
        return unknown(f"{metric} has too few finite rows above 0", metric)
    since, until = int(at[grown.calm_row]), int(at[grown.row])
    reward = _beside(run, beside, since, until)
    limit = factor * shared.FACTOR_LARGE if reward.rose else factor
    times = grown.level / grown.begin / reward.scale**2
    metric = series.metric
    text = f"{metric} goes from {figure(grown.begin)} to {figure(grown.level)} by step {until:,}, "
    text += f"{as_factor(grown.level / grown.begin)} (limit {as_factor(limit * reward.scale**2)}); {reward.text}"
    brief = f"its loss went from {figure(grown.begin)} to {figure(grown.level)}"
    found = Evidence(text, metric, (since, until), min(times, 1e300), limit, brief=brief)
    past = grown.calm_row + int(np.argmax(values[grown.calm_row :] > factor * grown.begin))
    return measured(
        above(math.log10(max(times, 1.0)), math.log10(limit)),
        (found,),
        onset_step=risen_by_factors(at, values, grown.begin, grown.level, int(at[past])),
        last_good_step=since,
    )


def value_loss_of(run: Run, context: Context) -> Series | None:
    """Return the loss of a value function: as it is known, as the run's only loss, or by the words of its name."""
    if (known := run.get("value_loss")) is not None:
        return known
    # The one loss of a DQN is that of its values.
    if run.setting("loss_kind") == VALUE or context.algorithm.value == "dqn":
        return run.get("loss")
    return next((one for name, one in run.others.items() if describe_name(name).kind == VALUE), None)


def _growth(values: Floats, *, at_end: bool) -> Grown | None:
    """Return how values grew up to their end or to their highest level; None where they don't begin above 0."""
    size = min(max(shared.ROWS_SHORT, len(values) // shared.LEVELS), len(values) // 2)
    if size < 1:
        return None
    levels = running_medians(values, size)
    begin = float(levels[0])
    if begin <= 0:
        return None
    top = len(levels) - 1 if at_end else int(np.argmax(levels))
    row = top + size - 1
    calm = np.flatnonzero(values[: row + 1] <= begin)
    return Grown(begin, float(levels[top]), row, int(calm[-1]))


def _beside(run: Run, metric: str, since: int, until: int) -> Beside:
    """Return what a reward did from one step to another; where it is not logged, it may have risen."""
    if run.get(metric) is None:
        return Beside(f"{metric} is not logged", rose=True, scale=1.0)
    at, values = finite(run.series[metric])
    size = min(max(shared.ROWS_SHORT, len(values) // shared.LEVELS), len(values) // 2)
    if size < 1:
        return Beside(f"{metric} has too few rows", rose=True, scale=1.0)
    rows = [max(int(np.searchsorted(at, step, side="right")), size) for step in (since, until)]
    before, after = (median(values[row - size : row]) for row in rows)
    low, high = quantiles(values, shared.SHARE_SOME, 1 - shared.SHARE_SOME)
    rose = after - before > shared.SHARE_HALF * (high - low)
    first = abs(median(values[:size]))
    scale = max(abs(after) / first, 1.0) if rose and first > 0 else 1.0
    return Beside(
        f"{metric} goes from {figure(before)} to {figure(after)} meanwhile", rose=rose, scale=min(scale, 1e50)
    )
