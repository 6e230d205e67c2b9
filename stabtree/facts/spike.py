"""The spike that decides: the one of a run's excursions that all of section 2 is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.common import shared
from stabtree.common.answer import Evidence
from stabtree.common.figures import deviations
from stabtree.common.lazy import np
from stabtree.common.passes import rows_before, rows_upto
from stabtree.common.shared import ROWS_SHORT
from stabtree.common.stats import interval, median, span
from stabtree.common.strength import FARTHEST, TINY, above
from stabtree.facts.registry import Absent, Count, Unknown, fact, finite
from stabtree.facts.spikes.params import SpikeSearchParams
from stabtree.facts.spikes.search import find

if TYPE_CHECKING:
    from stabtree.context.model import Context
    from stabtree.facts.batches import Batches
    from stabtree.facts.spikes.excursions import Excursion, Search
    from stabtree.run import Run, Series


class Spike(NamedTuple):
    """The spike that decides.

    Attributes:
        top: the excursion itself.
        search: all that were found with it.
        params: how spikes were searched for.
        covered: what the loss covers in the whole run, its 2nd to 98th percentile.
    """

    top: Excursion
    search: Search
    params: SpikeSearchParams
    covered: float

    def share(self, level: float) -> float:
        """Return how far a level is above the mean before the spike, as a share of what the loss covers."""
        return float(np.clip((level - self.top.mean) / self.covered, -1e300, 1e300)) if self.covered > 0 else 1e300

    @property
    def window(self) -> str:
        """The stretch before a step that it was compared with, in words."""
        return _window(self.search, self.params)

    def took(self, loss: Series) -> int:
        """Return how many steps the loss took to come back, or took until the log ended."""
        back = self.top.recovered_step
        return (int(finite(loss)[0][-1]) if back is None else back) - self.top.step

    def quick(self, loss: Series) -> int:
        """Return within how many steps a quick recovery is over: a log that is sparse shows it in `ROWS_SHORT` rows."""
        return max(self.params.horizon(loss), round(ROWS_SHORT * interval(finite(loss)[0])))

    @property
    def back_level(self) -> float:
        """The level to which the loss must come back."""
        return self.top.mean + self.params.back_sigma * self.top.sigma


@fact(min_points=3)
def spike(
    run: Run,
    loss: Series,
    context: Context,
    batches: Batches | Unknown,
    reward: Series | None = None,
    *,
    window_steps: Count,
    sigma: float,
    chance: float,
    back_sigma: float,
    horizon_steps: Count,
    lasting_share: float,
    rare: float,
    level_rows: Count,
    tail_exponent: float,
    log_share: float,
    shift_sigma: float,
    shift_share: float,
    burst_factor: float = shared.FACTOR_HUGE,
) -> Spike | Absent | Unknown:
    """Find the spike that decides: one after which the loss stayed up before any that healed, then the highest rise.

    The parameters are those of `SpikeSearchParams`. With `chance` below 1, a loss that bursts by nature has no spike
    where a reward is logged; without a reward, only one that stays `burst_factor` times as high as the loss usually is,
    up to the end.
    """
    params = SpikeSearchParams(
        window_steps,
        sigma,
        chance,
        back_sigma,
        horizon_steps,
        lasting_share,
        rare,
        level_rows,
        tail_exponent,
        log_share,
        shift_sigma,
        shift_share,
    )
    seams = tuple(resume.to_step for resume in run.resumes)
    search = find(loss, params, seams)
    if params.guarded and not search.spikes and not isinstance(batches, Unknown):
        search = find(batches.fresh(loss), params, seams)  # a dip that a stuck loader memorised hides the way back
    if not search.judged:
        return Unknown(f"no step has {search.rows} rows before it", ("loss",))
    covered = span(finite(loss)[1]) if search.spikes else 0.0
    spikes = [Spike(excursion, search, params, covered) for excursion in search.spikes]
    if params.guarded and context.restless:
        spikes = [found for found in spikes if reward is None and _explodes(loss, found, burst_factor)]
        if not spikes:
            text = f"{context.restless} normally has bursts; here they reach {deviations(search.highest)} "
            return Absent((_highest(search, f"{text}at step {search.highest_step:,}"),), -FARTHEST)
    if not spikes:
        height, bar = deviations(search.highest, search.bar), deviations(search.bar, search.highest)
        where = f"{_window(search, params)} it; the limit is {bar} in this run"
        highest = f"the highest step, {search.highest_step:,}, is {height} above"
        height = highest if search.highest > 0 else "no step rises above"
        strength = min(above(chance, search.expected), above(search.highest, search.bar), -TINY)
        return Absent((_highest(search, f"{height} {where}"),), strength)
    return max(spikes, key=lambda item: (_stays(loss, item), item.top.peak - item.top.mean))


def _window(search: Search, params: SpikeSearchParams) -> str:
    return f"the {search.rows} rows before" if search.widened else f"the {params.window_steps:,} steps before"


def _highest(search: Search, text: str) -> Evidence:
    return Evidence(text, "loss", (search.highest_step,), search.highest, search.bar)


def _stays(loss: Series, found: Spike) -> bool:
    """Return whether the loss is still up, by more than `lasting_share`, when a return could have been seen."""
    steps, values = finite(loss)
    top, params = found.top, found.params
    after = values[rows_upto(steps, top.step) :]
    too_early = len(after) < ROWS_SHORT or int(steps[-1]) - top.step < params.horizon(loss)
    if top.recovered_step is not None or too_early:
        return False
    return found.share(end_level(found, loss)) > params.lasting_share


def _explodes(loss: Series, found: Spike, factor: float) -> bool:
    """Return whether a loss stays higher after a spike, to its end, than its bursts ever take it."""
    steps, values = finite(loss)
    usual = median(np.abs(values[: rows_before(steps, found.top.step)]))
    return _stays(loss, found) and end_level(found, loss) > factor * usual > 0


def end_level(found: Spike, loss: Series) -> float:
    """Return where the loss ends: the median of the last quarter of the rows after the spike, at least `ROWS_SHORT`."""
    steps, values = finite(loss)
    after = values[rows_upto(steps, found.top.step) :]
    return median(after[-max(ROWS_SHORT, len(after) // 4) :])
