"""How far the loss gets: does it break early, stop too soon, climb, or end where it began?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common.answer import NO, YES, Answer, Evidence, inapplicable, unknown
from stabtree.common.lazy import np
from stabtree.common.stats import NORMAL_MAD, blocks, kendall_z, median, row_medians
from stabtree.common.text import against
from stabtree.facts.registry import finite
from stabtree.facts.rise import Rise
from stabtree.facts.spike import Spike
from stabtree.predicates.course.start import TooEarlyLimits, first_level, too_early
from stabtree.predicates.cross_entropy import ROUND, guess
from stabtree.predicates.registry import Count, predicate

TREND_LEVELS = 6
"""Fewer that fall all along have a Kendall score of -2.2 at most, above every limit of a trend (-2.33)."""

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.context.model import Context
    from stabtree.facts.levels import Levels
    from stabtree.facts.registry import Absent, Unknown
    from stabtree.run import Run, Series


@predicate(source="precision P17", min_points=3)
def diverges_early(run: Run, loss: Series, *, first_steps: int, factor: float, begin_share: float) -> Answer:
    """Did the run break down in its first few hundred steps?

    Yes when the loss stops being finite, or rises above `factor` times its first level and stays there, within
    `first_steps` steps (of which `begin_share` may be missing), in the run and in a rerun with another learning rate;
    a rerun that stays stable for so many steps rules it out.
    One run alone can't tell it from a rate that is too high: of 75 labelled faulted runs a dozen break so early, none
    for its initialisation.
    """
    broke = _breaks_early(loss, first_steps, factor, begin_share)
    if broke is None:
        text = f"the loss does not break in its first {first_steps:,} steps, or the log begins later"
        return Answer(NO, (Evidence(text, "loss", (), 0.0, factor),))
    text = f"the loss broke down at step {broke:,}, within the first {first_steps:,}"
    found = [Evidence(text, "loss", (broke,), float(broke), float(first_steps))]
    other = run.rerun.get("loss") if run.rerun else None
    rates = [_rate(item) for item in (run, run.rerun) if item]
    if other is not None and len(set(rates)) == 2 and None not in rates:
        again = _breaks_early(other, first_steps, factor, begin_share)
        instead = f"with a learning rate of {rates[1]:g} instead of {rates[0]:g}"
        if again is not None:
            found.append(Evidence(f"and so did the rerun at step {again:,}, {instead}", "loss", (again,)))
            return Answer(YES, tuple(found))
        if len(other) and int(other.steps[0]) <= begin_share * first_steps and int(other.steps[-1]) >= first_steps:
            found.append(Evidence(f"the rerun holds through its first {first_steps:,} steps, {instead}", "loss"))
            return Answer(NO, tuple(found), contrary=True)
    return unknown(f"{text}; give a rerun with another learning rate (--rerun) to decide", "rerun")


def _rate(run: Run) -> float | None:
    """Return the configured learning rate, else the peak of the logged one."""
    lr, configured = run.get("lr"), run.setting("lr")
    if isinstance(configured, int | float):
        return float(configured)
    values = finite(lr)[1] if lr is not None else np.zeros(0)
    return float(values.max()) if len(values) else None


def _breaks_early(loss: Series, first_steps: int, factor: float, begin_share: float) -> int | None:
    if not len(loss) or int(loss.steps[0]) > begin_share * first_steps:
        return None
    inside = loss.steps <= first_steps
    steps, values = loss.steps[inside], loss.values[inside]
    usable = values[np.isfinite(values)]
    if not len(usable):
        return int(steps[0])
    level = median(usable[:3])
    bad = ~np.isfinite(values) | ((values > factor * level) if level > 0 else np.zeros(len(values), dtype=bool))
    held = np.flatnonzero(~bad)
    at = int(held[-1]) + 1 if len(held) else 0
    # What comes back within these steps was a spike.
    return int(steps[at]) if at < len(steps) - 1 else None


@predicate(source="axolotl, Training Stability & Debugging, loss plateau", min_points=3)
def stops_early(
    context: Context, loss: Series, *, level: float, early_share: float, gain_share: float, min_rows: int
) -> Answer:
    """Does the loss stop falling early, well above where fine-tuning usually ends?

    Yes where it ends above `level` nats and what it wins after the first `early_share` of its rows is less than
    `gain_share` of all that it wins. `level` is the upper end of the guide's range for chat fine-tuning. The loss of a
    run that learns from a reward has no such level.
    """
    if context.restless:
        return Answer(NO, (Evidence(f"{context.restless} need not fall", "loss"),))
    at, values = finite(loss)
    if len(values) < min_rows:
        return unknown(f"loss has {len(values)} finite points, at least {min_rows} are needed", "loss")
    part = max(5, len(values) // 20)
    early = max(part, int(early_share * len(values)))
    first, middle, end = (median(piece) for piece in (values[:part], values[early : early + part], values[-part:]))
    won, late = first - end, middle - end
    text = f"loss goes from {first:.3g} to {middle:.3g} at step {int(at[early]):,} and ends at {end:.3g}, medians of "
    text += f"{part} rows (usual: at most {level:g})"
    found = Evidence(text, "loss", (int(at[early]), int(at[-1])), end, level)
    stopped = end > level and late < gain_share * max(won, 0.0) + 1e-12
    return Answer(YES if stopped else NO, (found,), onset_step=int(at[early]) if stopped else None)


@predicate(source="measured: runs with a learning rate a thousand times too high", min_points=8)
def overshoots(context: Context, loss: Series, *, factor: float, rows: Count, near_zero: float) -> Answer:
    """Does the loss climb far above where it began, even if it comes back?

    Yes where the median of `rows` neighbouring rows exceeds `factor` times the first level. Not asked of a loss that
    moves by nature, one with a reward or with values below 0, nor of one that begins below `near_zero` of its median:
    there a multiple of the beginning says little.
    """
    steps, values = finite(loss)
    first = float(values[0])
    if context.restless or bool((values < 0).any()):
        return inapplicable(context.restless or "the loss goes below 0, where multiples mean nothing")
    if len(values) < 2 * rows or first <= near_zero * median(values) or first <= 0:
        return inapplicable(f"the loss begins at {first:.3g}, too small for multiples to mean much")
    peak = int(np.argmax(values))
    text = f"the loss begins at {first:.4g} and is highest at {float(values[peak]):.4g} (step {int(steps[peak]):,}), "
    text += f"{float(values[peak]) / first:.3g}× that"
    where = (int(steps[0]), int(steps[peak]))
    past = np.flatnonzero(values > factor * first)
    if not len(past):
        return Answer(NO, (Evidence(f"{text} (limit {factor:g}×)", "loss", where, values[peak] / first, factor),))
    level, at = _highest_level(values, past, rows)
    text += f"; the median of {rows} rows is at most {level:.4g} (from step {int(steps[at]):,} on), "
    text += f"{against(level / first, factor)}× that (limit {factor:g}×); it ends at {float(values[-1]):.4g}"
    found = (Evidence(text, "loss", (*where, int(steps[at])), level / first, factor),)
    if level <= factor * first:
        return Answer(NO, found)
    return Answer(YES, found, onset_step=int(steps[past[0]]), last_good_step=int(steps[past[0] - 1]))


def _highest_level(values: Floats, among: Ints, rows: int) -> tuple[float, int]:
    """Return the highest median of `rows` neighbours that include one of the rows `among` them, and its first row."""
    near = np.zeros(len(values), dtype=np.bool_)
    for back in range(rows):
        near[np.maximum(among - back, 0)] = True
    starts = np.flatnonzero(near[: len(values) - rows + 1])
    levels = row_medians(np.lib.stride_tricks.sliding_window_view(values, rows)[starts])
    highest = int(np.argmax(levels))
    return float(levels[highest]), int(starts[highest])


@predicate(source="measured: losses of public and of framework runs", min_points=24)
def loses_progress(
    context: Context,
    loss: Series,
    spike: Spike | Absent | Unknown,
    rise: Rise | Absent | Unknown,
    levels: Levels,
    *,
    share: float,
    factor: float,
    noise_factor: float,
    end_share: float,
) -> Answer:
    """Has the loss lost most of what it had gained, counted in factors?

    Yes where all levels (block medians) in the last `end_share` of the log lie above the lowest by more than `share` of
    the way down to it, by `factor` and by `noise_factor` times the scatter between neighbours. Factors, since a loss
    that fell from 1e9 to 1 and ends at 1e8 has lost nearly all of it. A rise that goes on and a spike since the low
    have their own findings.
    """
    steps, values = finite(loss)
    count = levels.count(len(values))
    if context.restless or count < levels.min_levels or values.min() <= 0:
        few = "the loss reaches 0, or has too few rows for levels"
        return inapplicable(context.restless) if context.restless else unknown(few)
    course, starts = blocks(np.log(values), count)
    low, last = int(np.argmin(course)), count - max(2, int(count * end_share))
    spiked = isinstance(spike, Spike) and (spike.top.recovered_step is None or spike.top.step >= steps[starts[low]])
    if isinstance(rise, Rise) or spiked:
        event = "the rise up to the end" if isinstance(rise, Rise) else "the spike since its lowest level"
        return Answer(NO, (Evidence(f"{event} is reported separately", "loss"),))
    gained, lost = (float(part) - float(course[low]) for part in (course[:last].max(), course[last:].min()))
    noise = NORMAL_MAD * median(np.abs(np.diff(course)))
    ended = max(0.0, lost) / gained if gained > 0 else 0.0
    high, best, end = (float(np.exp(course[low] + up)) for up in (gained, 0.0, lost))
    times = min(lost / noise, 1e6) if noise > 0 else 0.0
    text = f"the loss falls from {high:.4g} to {best:.4g} (levels of {len(values) // count:,} rows, around step "
    text += f"{int(steps[starts[low]]):,}); its last {count - last} levels are at least {end:.4g}, "
    text += f"{end / best:.3g}× as high: "
    text += f"{against(ended, share, '.0%')} of the gain (in logarithms) is lost (limit {share:.0%}), "
    text += f"{against(times, noise_factor, '.2g')}× the scatter (limit {noise_factor:g})"
    found = (Evidence(text, "loss", (int(steps[starts[low]]), int(steps[starts[last]])), ended, share),)
    if low >= last or ended <= share or lost <= max(noise_factor * noise, math.log(factor)):
        return Answer(NO, found)
    half = float(course[low]) + lost / 2
    up = low + 2 + int(np.flatnonzero(course[low:last] < half)[-1])
    onset = int(np.flatnonzero(values[: starts[up]] < np.exp(half))[-1]) + 1
    return Answer(YES, found, onset_step=int(steps[onset]), last_good_step=int(steps[starts[low]]))


@predicate(source="convergence O1; a guess among C classes costs ln(C)", min_points=12)
def stands_at_chance(
    run: Run,
    loss: Series,
    context: Context,
    lr: Series | None = None,
    *,
    near: float,
    thrown: float,
    above: float,
    skip: float,
    levels: Count,
    trend_z: float,
    min_steps: int,
    min_progress: float,
    warm_share: float,
    late_start_steps: int,
    late_start_rows: int,
) -> Answer:
    """Is the loss at the level of a random guess among the classes, from its first rows on?

    Yes where every level after the first `skip` of the rows lies within `near` of ln(C), without a falling trend of
    `trend_z`; where the loss began more than `thrown` times as high, up to `above` higher: logits that were thrown far
    leave it there. C is configured, or one of 2, 10, 100 and 1000. Not asked of a loss that moves by nature, nor before
    there are `TREND_LEVELS` levels: fewer say "no trend" of a loss that falls all along.
    """
    steps, values = finite(loss)
    limits = TooEarlyLimits(0, min_steps, min_progress, warm_share, late_start_steps, late_start_rows)
    early = too_early(run, context, loss, lr, limits)
    if early:
        return inapplicable(early) if context.restless else unknown(early)
    later = values[max(1, int(skip * len(values))) :]
    parts = min(max(levels, TREND_LEVELS), len(later) // 3)
    if parts < TREND_LEVELS:
        return unknown(f"loss has {len(values):,} finite rows, too few to see whether it falls", "loss")
    medians, _ = blocks(later, parts)
    known = context.classes.value
    chances = [(count, math.log(count)) for count in ((known,) if known else ROUND)]
    count, chance = min(chances, key=lambda item: abs(median(medians) - item[1]))
    high = above if values[0] > thrown * chance else near
    low, top, trend = float(medians.min()), float(medians.max()), kendall_z(medians)
    text = f"after its first rows the levels of the loss (medians of {len(later) // len(medians):,} rows) lie between "
    text += f"{low:.4g} and {top:.4g}; a guess among {count:,} classes "
    text += f"costs ln({count:,}) = {chance:.4g} (limit {near:.1%} below to {high:.1%} above it, and no falling trend)"
    brief = guess(median(medians), count)
    found = (Evidence(text, "loss", (int(steps[0]), int(steps[-1])), top / chance, 1 + high, brief),)
    at_chance = low >= (1 - near) * chance and top <= (1 + high) * chance and trend > -trend_z
    return Answer(YES if at_chance else NO, found, onset_step=int(steps[0]) if at_chance else None)


@predicate(source="measured: runs of which most is frozen or left out of the optimizer", min_points=30)
def ends_at_start(
    context: Context,
    loss: Series,
    lr: Series,
    *,
    nats: float,
    max_nats: float,
    min_share: float,
    done_share: float,
    min_steps: int,
    rise_share: float,
    thrown: float,
) -> Answer:
    """Is the schedule over, and the loss still near where an untrained model begins?

    Yes where lr has come down to `done_share` of its peak, and the loss, which began between `nats` and `max_nats`,
    has lost less than `min_share` of that and not risen by `rise_share`. No trained model begins there, so it is no
    fine-tune that knew its task.
    """
    steps, values = finite(loss)
    _, rates = finite(lr)
    first, part = first_level(values, thrown), max(5, len(values) // 10)
    if context.restless:
        return inapplicable(context.restless)
    if int(steps[-1]) - int(steps[0]) < min_steps:
        return unknown(f"the log covers fewer than {min_steps:,} steps")
    if not nats <= first <= max_nats:
        text = f"the loss begins at {first:.3g}, not between {nats:g} and {max_nats:g} as an untrained model's does"
        return Answer(NO, (Evidence(text, "loss", (int(steps[0]),), first, nats),))
    peak, end = float(rates.max()), median(values[-part:])
    share = (first - end) / first
    text = f"lr is down to {rates[-1]:.3g} from {peak:.3g}, and the loss went from {first:.4g} to a median of "
    text += f"{end:.4g} in "
    text += f"its last {part:,} rows: {against(share, min_share, '.1%')} lower (limit {min_share:.0%} by then)"
    found = (Evidence(text, "loss", (int(steps[0]), int(steps[-1])), share, min_share),)
    over = peak > 0 and float(rates[-1]) <= done_share * peak
    at_start = over and -rise_share < share < min_share
    return Answer(YES if at_start else NO, found, onset_step=int(steps[0]) if at_start else None)
