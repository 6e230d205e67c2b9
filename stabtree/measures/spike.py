"""The spike of a run that all questions speak of, and the search for it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common import shared
from stabtree.common.answer import Evidence
from stabtree.common.figures import deviations
from stabtree.common.lazy import np
from stabtree.common.passes import remembered, row_of, rows_before, rows_upto
from stabtree.common.shared import FACTOR, FACTOR_SMALL, FARTHEST, ROWS_SHORT, SHARE_HALF, TINY, above
from stabtree.common.stats import NORMAL_99, change_noise, interval, median, quantiles, running_medians, span
from stabtree.measures.registry import Absent, Count, Unknown, finite, measure
from stabtree.measures.scores import (
    NO_SPREAD,
    RELATIVE_RESOLUTION,
    TAIL_EXPONENT,
    SpikeSearchParams,
    Tail,
    height_for,
    many_spikes,
    scores,
    shifts,
    t_tail,
    upper_tail,
)

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.context.model import Context
    from stabtree.measures.batches import Batches
    from stabtree.measures.scores import Scores
    from stabtree.run import Run, Series


class Excursion(Struct, frozen=True):
    """One excursion of the loss."""

    step: int  # first step above the threshold
    peak_step: int  # step of its highest value; `peak` is that value
    peak: float
    height_sigma: float  # the first step's height over `mean` in units of `sigma`, or the peak's if higher
    mean: float  # mean of the window before it
    sigma: float  # standard deviation of the window before it
    expected: float  # how many steps this high chance allows over the whole run
    recovered_step: int | None  # first step at which it was back, None if it never was
    last_good_step: int  # the logged step before it
    shift_sigma: float = 0.0  # how far the median of the rows from it on is above `mean` where the level shifts; else 0


class Search(Struct, frozen=True):
    """All spikes of a run, with what the search looked at."""

    spikes: tuple[Excursion, ...]  # in order of step
    rows: int  # the window in rows; `widened` says that it spans more steps than asked for
    widened: bool
    judged: int  # how many steps had a full window before them
    highest: float  # the highest score of all and its step, for explaining a no
    highest_step: int
    bar: float  # the score from which a step counted
    expected: float = 1.0  # how many steps as high as the highest chance allows

    def before(self, params: SpikeSearchParams) -> str:
        """Return the stretch before a step that it was compared with, in words."""
        return f"the {self.rows} rows before" if self.widened else f"the {params.window_steps:,} steps before"


def excursion(
    steps: Ints, values: Floats, row: int, limits: tuple[float, int], *, mean: float, sigma: float
) -> tuple[Excursion, int]:
    """Return the excursion that begins at a row, and the row after its last one.

    It ends where so many rows as `limits` has second are back at the level that it has first, in their median. How high
    it is, is that of its peak, and how many as high chance allows is left open.
    """
    back = first_below(values, row + 1, *limits)
    end = back if back is not None else len(values)
    peak = row + int(np.argmax(values[row:end]))
    found = Excursion(
        step=int(steps[row]),
        peak_step=int(steps[peak]),
        peak=float(values[peak]),
        height_sigma=(float(values[peak]) - mean) / sigma,
        mean=mean,
        sigma=sigma,
        expected=math.inf,
        recovered_step=int(steps[back]) if back is not None else None,
        last_good_step=int(steps[row - 1]),
    )
    return found, end


def first_below(values: Floats, start: int, level: float, rows: int) -> int | None:
    """Return the first row from `start` on that is at or below a level, and so is the median of `rows` rows from it."""
    size = 16  # most spikes are back within a few rows; the look ahead doubles for those that are not
    while start < len(values):
        part = values[start : start + size + rows - 1]
        if len(part) < rows:
            return None
        levels = part if rows == 1 else running_medians(part, rows)
        below = np.flatnonzero((levels <= level) & (part[: len(levels)] <= level))
        if len(below):
            return start + int(below[0])
        start += len(levels)
        size *= 2
    return None


@remembered
def rarity(series: Series, step: int, params: SpikeSearchParams, apart: bool = True) -> float:
    """Return how many rows of the whole run the series' own noise puts as high as the highest around a step.

    Args:
        series: the series.
        step: the step.
        params: how spikes are searched for.
        apart: whether many spikes of the series are no noise of its own.
    """
    steps, values = finite(series)
    rows = params.rows(series)
    if len(values) < rows + 3:
        return float("inf")
    first = params.first(steps, rows)
    at = int(np.searchsorted(steps, step)) - first
    if not 0 <= at < len(values) - first:
        return float("inf")
    scored = scores(series, rows, first, True, apart)
    near = scored.heights[max(at - ROWS_SHORT, 0) : at + ROWS_SHORT]
    return _of_all(upper_tail(scored.noise, rows).expected(float(near.max())), series if apart else None)


def _of_all(expected: float, series: Series | None) -> float:
    """Return how often chance gives as many rows as high as a series has, where it gives one so often."""
    many = len(many_spikes(series)) if series is not None else 0
    return float(expected**many) if many >= FACTOR and expected < 1 else expected


@remembered
def rarest(loss: Series, top: Excursion, params: SpikeSearchParams) -> float:
    """Return how many rows as high as the spike's highest chance allows, however heavy the tail of the run's noise.

    Of a shift, how many stretches as high. The more pessimistic of two tails: the exponential one of `Tail`, and a
    power law through the highest hundredth of the rows outside of the spike (Hill 1975); where that is no more than two
    rows, through the normal 99th percentile with the exponent `TAIL_EXPONENT`, the median of the labelled healthy runs.
    """
    steps, _ = finite(loss)
    if params.short(loss) or top.expected == math.inf:
        return top.expected
    rows = params.rows(loss)
    begin = params.first(steps, rows)
    scored = scores(loss, rows, begin, True)
    heights = scored.heights
    first = int(np.searchsorted(steps, top.step)) - begin
    end = len(heights)
    if top.recovered_step is not None:
        end = max(int(np.searchsorted(steps, top.recovered_step)) - begin, first + 1)
    height = float(heights[first:end].max())
    many = len(scored.noise) < len(heights)
    others = scored.noise if many else np.delete(heights, slice(first, end))
    base, exponent = _power_law(others)
    tail = upper_tail(scored.noise, rows)

    def allowed(at: float) -> float:
        return max(tail.expected(at), float(len(others) / 100 * (max(at, base) / base) ** -exponent))

    single = _of_all(allowed(height), loss)
    if not top.shift_sigma:
        return single
    return min(single, in_a_row(allowed(top.shift_sigma), len(heights), params))


def _power_law(heights: Floats) -> tuple[float, float]:
    """Return the height that a hundredth of the rows exceeds, and the exponent of the power law beyond it."""
    count = len(heights) // 100
    if count < 3:
        own = quantiles(heights, 0.99)[0] if len(heights) else NORMAL_99
        return max(own, NORMAL_99), TAIL_EXPONENT
    highest = np.partition(heights, -count - 1)[-count - 1 :]
    # A loss that falls has no row far above the mean before it: below one sigma there is no tail to read.
    base = max(float(highest.min()), 1.0)
    spread = float(np.log(np.maximum(highest, base) / base).sum()) / count
    return base, 1 / max(spread, 1e-3)


def in_a_row(single: float, rows: int, params: SpikeSearchParams) -> float:
    """Return how often `single` high rows of all fill the greater half of `level_rows` in a row by chance."""
    half = (params.level_rows + 1) // 2
    share = min(single / rows, 1.0)
    return float(rows * math.comb(params.level_rows, half) * share**half)


def find_short(steps: Ints, values: Floats, params: SpikeSearchParams) -> Search:
    """Find the spikes of a log without windows; a single row that is back where it came from has healed."""
    level, scatter, height = heights(values)
    rows, top = len(values), int(np.argmax(height))

    def expected(at: float) -> float:
        """Return how many rows chance puts above a height: a power law from the 99th percentile of normal noise on.

        It is never thinner than Student's t, since few changes show their scatter badly: a median deviation is as good
        as a standard deviation of a third of the changes.
        """
        power = float((max(at, NORMAL_99) / NORMAL_99) ** -TAIL_EXPONENT) / 100
        return rows * max(power, t_tail(at, max((rows - 2) // 3, 1)))

    bar = max(height_for(expected, params.chance), params.sigma)
    found: list[Excursion] = []
    row = 2
    while row < rows:
        if height[row] <= bar:
            row += 1
            continue
        mean = float(level[row])
        back = (mean + params.back_sigma * scatter, 1)
        outside, end = excursion(steps, values, row, back, mean=mean, sigma=scatter)
        highest = float(height[row:end].max())
        found.append(replace(outside, height_sigma=highest, expected=expected(highest)))
        row = end
    highest = float(height[top])
    return Search(tuple(found), ROWS_SHORT, True, rows - 2, highest, int(steps[top]), bar, expected(highest))


def heights(values: Floats) -> tuple[Floats, float, Floats]:
    """Return how far rows are above the highest of the few before them, in units of the scatter of their changes.

    Both the level and the height are (n,), the height 0 for the first two. Of a loss that is positive throughout the
    height is that of its logarithm where that is smaller, since the scatter of such a loss shrinks with it; a scatter
    below what its digits resolve is none.
    """
    level, up, scatter = _above(values, RELATIVE_RESOLUTION * float(np.max(np.abs(values))))
    if float(values.min()) > 0:
        _, relative, _ = _above(np.log(values), RELATIVE_RESOLUTION)
        up = np.minimum(up, relative)
    return level, scatter, up


def _above(values: Floats, least: float) -> tuple[Floats, Floats, float]:
    level = values.copy()
    for row in range(2, len(values)):
        level[row] = values[max(row - ROWS_SHORT, 0) : row].max()
    scatter = max(change_noise(values), least, NO_SPREAD)
    height = (values - level) / scatter
    height[:2] = 0.0
    return level, height, scatter


def early(loss: Series, params: SpikeSearchParams) -> tuple[Excursion, ...]:
    """Return the spikes before the first row that has a window, one of several which a gap parts from the noise.

    They are measured against the rows around them, and how many as high chance allows is left open.
    """
    steps, _ = finite(loss)
    noise, found = change_noise(finite(loss)[1]), []
    first = steps[: params.first(steps, params.rows(loss))]
    for spike in many_spikes(loss):
        mean, row = spike.value - spike.height * noise, row_of(steps, spike.step).start
        if spike.step > first[-1] or spike.value < FACTOR * abs(mean) or not spike.rows or not row:
            continue
        back = int(steps[min(row + spike.rows, len(steps) - 1)])
        found.append(
            Excursion(
                step=spike.step,
                peak_step=spike.step,
                peak=spike.value,
                height_sigma=spike.height,
                mean=mean,
                sigma=noise,
                expected=math.inf,
                recovered_step=back,
                last_good_step=int(steps[row - 1]),
            )
        )
    return tuple(found)


def jump_at_end(loss: Series, other: Series | None) -> Excursion | None:
    """Return the last rows where they are twice as high as all before, and those of another series are so as well."""
    steps, values = finite(loss)
    if other is None:
        return None
    at, others = finite(other)
    for row in range(max(3, len(values) - ROWS_SHORT), len(values)):
        split = rows_before(at, steps[row])
        sides = ((values[:row], values[row:]), (others[:split], others[split:]))
        if all(len(old) and len(new) and new.min() > FACTOR_SMALL * old.max() > 0 for old, new in sides):
            mean = float(values[row - 1])
            sigma = max(change_noise(values[:row]), NO_SPREAD)
            found, _ = excursion(steps, values, row, (mean, 1), mean=mean, sigma=sigma)
            return replace(found, expected=0.0)
    return None


@remembered
def find(loss: Series, params: SpikeSearchParams, seams: tuple[int, ...] = ()) -> Search:
    """Search a loss series for spikes.

    A step is above when it is more than `sigma` standard deviations over the mean of the `window_steps`
    before it. With `chance` below 1 the deviation is that about the window's trend, and the step must be so
    high that the upper tail of the run's own scores makes fewer than `chance` such steps expected. Steps up to the
    recovery belong to one spike. Once found, the steps of a spike that healed are taken out of the windows
    after it, where they would hide the next one. A rise that runs straight into the NaN at which the run ends
    belongs to section 1 and is no spike, nor is one in the first rows after one of the `seams`, steps at which the
    run was resumed.
    """
    steps, values = finite(loss)
    if params.short(loss):
        return find_short(steps, values, params)
    rows = params.rows(loss)
    widened = rows != max(1, round(params.window_steps / interval(steps)))
    if len(values) < rows + 3:
        return Search((), rows, widened, 0, 0.0, 0, params.sigma)
    guarded = params.guarded
    first = params.first(steps, rows)
    scored = scores(loss, rows, first, guarded)
    # The tail is that of the first scan: with the spikes taken out, their own flanks would stand out in it.
    tail = upper_tail(scored.noise, rows)
    bar = min(max(params.sigma, tail.height(params.chance)), 1e300) if guarded else params.sigma
    many = many_spikes(loss) if guarded else ()
    apart = np.searchsorted(steps, [spike.step for spike in many]) - first
    apart = apart[apart >= 0]
    apart = apart[scored.heights[apart] > params.sigma]
    scan = _scan(steps, scored, tail, bar, params, apart)
    healed = [spike for spike in scan.spikes if spike.recovered_step is not None]
    if healed:
        # Each is replaced by the rows before it, so that the scatter is the run's own.
        level = scored.values.copy()
        for top in healed:
            start = rows_before(steps, top.step)
            end = rows_before(steps, top.step if top.recovered_step is None else top.recovered_step)
            level[start:end] = np.resize(level[start - rows : start], end - start)
        scan = _scan(steps, scored.against(level), tail, bar, params, apart)
    if not np.isfinite(loss.values[-1]):
        last = int(steps[-1]) - params.window_steps
        scan = replace(scan, spikes=tuple(s for s in scan.spikes if s.recovered_step is not None or s.step < last))
    resumed = [rows_before(steps, seam) for seam in seams]
    rows_of = {spike: rows_before(steps, spike.step) for spike in scan.spikes} if resumed else {}
    spikes = tuple(one for one in scan.spikes if not any(0 <= rows_of[one] - seam < ROWS_SHORT for seam in resumed))
    if guarded and not (resumed and resumed[0] < first):
        spikes = (*early(loss, params), *spikes)
    return replace(scan, widened=widened, spikes=spikes)


def _scan(steps: Ints, scored: Scores, tail: Tail, bar: float, params: SpikeSearchParams, apart: Ints) -> Search:
    """Find all excursions above `bar`, those `apart` from the noise and all shifts.

    Healed are those whose median of `ROWS_SHORT` rows is back.
    """
    values, first, heights = scored.values, scored.first, scored.heights
    top, back_rows = int(np.argmax(heights)), ROWS_SHORT if params.guarded else 1
    found: list[Excursion] = []
    shifted = shifts(scored, params)
    # Twice in it does no harm, and `np.union1d` imports masked arrays.
    hits = np.sort(np.concatenate((np.flatnonzero(heights > bar), apart, np.array([*shifted], dtype=np.int64))))
    mean, spread = scored.at(hits)
    at = 0
    while at < len(hits):
        hit = int(hits[at])
        m, s, shift = float(mean[at]), float(spread[at]), shifted.get(hit, 0.0)
        back = (m + params.back_sigma * s, back_rows)
        outside, end = excursion(steps, values, hit + first, back, mean=m, sigma=s)
        expected = tail.expected(shift or float(heights[hit]))
        expected = in_a_row(expected, len(heights), params) if shift else expected
        found.append(replace(outside, expected=expected, shift_sigma=shift))
        at = int(np.searchsorted(hits, end - first))
    highest = float(heights[top])
    judged, step = len(heights), int(steps[first + top])
    return Search(tuple(found), scored.windows.rows, False, judged, highest, step, bar, tail.expected(highest))


class Spike(NamedTuple):
    """The spike that decides."""

    top: Excursion  # the excursion itself
    search: Search  # all that were found with it
    params: SpikeSearchParams  # how spikes were searched for
    covered: float  # what the loss covers in the whole run, its 2nd to 98th percentile

    def share(self, level: float) -> float:
        """Return how far a level is above the mean before the spike, as a share of what the loss covers."""
        return float(np.clip((level - self.top.mean) / self.covered, -1e300, 1e300)) if self.covered > 0 else 1e300

    def took(self, loss: Series) -> int:
        """Return how many steps the loss took to come back, or took until the log ended."""
        back = self.top.recovered_step
        return (int(finite(loss)[0][-1]) if back is None else back) - self.top.step

    def quick(self, loss: Series) -> int:
        """Return within how many steps a quick recovery is over: a log that is sparse shows it in `ROWS_SHORT` rows."""
        return max(self.params.horizon(loss), round(ROWS_SHORT * interval(finite(loss)[0])))

    def onset(self, loss: Series) -> tuple[int, int]:
        """Return the step of the first spike that comes back and is half as high as this one, and the one before it.

        Of many they are measured apart from the noise; of one that does not come back its own.
        """
        top, many, steps = self.top, many_spikes(loss), finite(loss)[0]
        if top.recovered_step is None:
            return top.step, top.last_good_step
        height, worst = SHARE_HALF * (top.peak - top.mean), max((spike.height for spike in many), default=0.0)
        alike = [s.step for s in self.search.spikes if s.recovered_step and s.peak - s.mean > height]
        first = min([*alike, *(spike.step for spike in many if spike.height > SHARE_HALF * worst), top.step])
        return first, int(steps[max(rows_before(steps, first) - 1, 0)])

    @property
    def back_level(self) -> float:
        """The level to which the loss must come back."""
        return self.top.mean + self.params.back_sigma * self.top.sigma


@measure(min_points=3)
def spike(
    run: Run,
    loss: Series,
    context: Context,
    batches: Batches | Unknown,
    reward: Series | None = None,
    eval_loss: Series | None = None,
    *,
    window_steps: Count,
    sigma: float,
    chance: float,
    back_sigma: float,
    horizon_steps: Count,
    lasting_share: float,
    rare: float,
    level_rows: Count,
    shift_sigma: float,
    shift_share: float,
) -> Spike | Absent | Unknown:
    """Find the spike that decides: one after which the loss stayed up before any that healed, then the highest rise.

    The parameters are those of `SpikeSearchParams`. With `chance` below 1, a loss that bursts by nature has no spike
    where a reward is logged; without a reward, only one that stays a hundred times as high as the loss usually is,
    up to the end.
    """
    limits = (chance, back_sigma, horizon_steps, lasting_share, rare, level_rows, shift_sigma, shift_share)
    params = SpikeSearchParams(window_steps, sigma, *limits)
    seams = tuple(resume.to_step for resume in run.resumes)
    search = find(loss, params, seams)
    if params.guarded and not search.spikes and not isinstance(batches, Unknown):
        search = find(batches.fresh(loss), params, seams)  # a dip that a stuck loader memorised hides the way back
    if params.short(loss) and not search.spikes and (jumped := jump_at_end(loss, eval_loss)):
        search = replace(search, spikes=(jumped,), judged=max(search.judged, 1))
    if not search.judged:
        return Unknown(f"no step has {search.rows} rows before it", ("loss",))
    covered = span(finite(loss)[1]) if search.spikes else 0.0
    spikes = [Spike(excursion, search, params, covered) for excursion in search.spikes]
    if params.guarded and context.restless:
        spikes = [found for found in spikes if reward is None and _explodes(loss, found)]
        if not spikes:
            text = f"{context.restless} normally has bursts; here they reach {deviations(search.highest)} "
            return Absent((_highest(search, f"{text}at step {search.highest_step:,}"),), -FARTHEST)
    if not spikes:
        height, bar = deviations(search.highest, search.bar), deviations(search.bar, search.highest)
        where = f"{search.before(params)} it; the limit is {bar} in this run"
        highest = f"the highest step, {search.highest_step:,}, is {height} above"
        height = highest if search.highest > 0 else "no step rises above"
        strength = min(above(chance, search.expected), above(search.highest, search.bar), -TINY)
        return Absent((_highest(search, f"{height} {where}"),), strength)
    return max(spikes, key=lambda item: (_stays(loss, item), item.top.peak - item.top.mean))


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


def _explodes(loss: Series, found: Spike) -> bool:
    """Return whether a loss stays higher after a spike, to its end, than its bursts ever take it."""
    steps, values = finite(loss)
    usual = median(np.abs(values[: rows_before(steps, found.top.step)]))
    return _stays(loss, found) and end_level(found, loss) > shared.FACTOR_HUGE * usual > 0


def end_level(found: Spike, loss: Series) -> float:
    """Return where the loss ends: the median of the last quarter of the rows after the spike, at least `ROWS_SHORT`."""
    steps, values = finite(loss)
    after = values[rows_upto(steps, found.top.step) :]
    return median(after[-max(ROWS_SHORT, len(after) // 4) :])
