"""How far the loss gets: does it break early, stop too soon, climb, or end where it began?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import NO, YES, Answer, Evidence, inapplicable, measured, unknown
from stabtree.common.figures import against, as_factor, figure
from stabtree.common.lazy import np
from stabtree.common.shared import FACTOR, FACTOR_LARGE, FACTOR_SMALL, NOISE_TIMES, ROWS_SHORT
from stabtree.common.stats import (
    NORMAL_MAD,
    block_rows,
    highest_rows,
    interval,
    median,
    neighbours,
    row_medians,
    scatter,
    windows,
)
from stabtree.common.strength import FARTHEST, TINY, above, below, beyond, weakest, whether
from stabtree.facts.curve.rise import Rise
from stabtree.facts.curve.turn import turn_of
from stabtree.facts.registry import finite, highest_row, lowest, middle
from stabtree.facts.spike import Spike
from stabtree.predicates.registry import Count, predicate
from stabtree.profile.onset import risen_by_factors

TOP = 200  # no limit: rows that are looked at for the highest level

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.context.model import Context
    from stabtree.facts.curve.levels import Levels
    from stabtree.facts.registry import Absent, Unknown
    from stabtree.run import Run, Series


@predicate(source="precision P17", min_points=3)
def diverges_early(run: Run, loss: Series, *, first_steps: int, factor: float = shared.FACTOR_SMALL) -> Answer:
    """Did the run break down in its first few hundred steps?

    Yes when the loss stops being finite, or rises above `factor` times its first level and stays there, within
    `first_steps` steps (of which a twentieth may be missing), in the run and in a rerun with another learning rate;
    a rerun that stays stable for so many steps rules it out.
    One run alone can't tell it from a rate that is too high: of 75 labelled faulted runs a dozen break so early, none
    for its initialisation.
    """
    broke = _breaks_early(loss, first_steps, factor)
    if broke is None:
        text = f"the loss does not break in its first {first_steps:,} steps, or the log begins later"
        return Answer(NO, (Evidence(text, "loss", (), 0.0, factor),))
    text = f"the loss broke down at step {broke:,}, within the first {first_steps:,}"
    found = [Evidence(text, "loss", (broke,), float(broke), float(first_steps))]
    other = run.rerun.get("loss") if run.rerun else None
    rates = [_rate(item) for item in (run, run.rerun) if item]
    if other is not None and len(set(rates)) == 2 and None not in rates:
        again = _breaks_early(other, first_steps, factor)
        instead = f"with a learning rate of {rates[1]:g} instead of {rates[0]:g}"
        if again is not None:
            found.append(Evidence(f"and so did the rerun at step {again:,}, {instead}", "loss", (again,)))
            return Answer(YES, tuple(found))
        if len(other) and _has_beginning(other, first_steps) and int(other.steps[-1]) >= first_steps:
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


def _has_beginning(loss: Series, first_steps: int) -> bool:
    return int(loss.steps[0]) <= max(shared.SHARE_SOME * first_steps, interval(loss.steps))


def _breaks_early(loss: Series, first_steps: int, factor: float) -> int | None:
    if not len(loss) or not _has_beginning(loss, first_steps):
        return None
    inside = loss.steps <= first_steps
    steps, values = loss.steps[inside], loss.values[inside]
    if not len(steps):  # it logs more rarely than that
        return None
    usable = values[np.isfinite(values)]
    if not len(usable):
        return int(steps[0])
    level = median(usable[:3])
    bad = ~np.isfinite(values) | ((values > factor * level) if level > 0 else np.zeros(len(values), dtype=bool))
    held = np.flatnonzero(~bad)
    at = int(held[-1]) + 1 if len(held) else 0
    # What comes back within these steps was a spike.
    return int(steps[at]) if at < len(steps) - 1 else None


@predicate(source="axolotl, Training Stability & Debugging, loss plateau", min_points=2 * shared.ROWS_SHORT)
def stops_early(
    context: Context,
    loss: Series,
    eval_loss: Series | None = None,
    *,
    level: float,
    early_share: float = shared.SHARE_HALF,
    gain_share: float = shared.SHARE_SOME,
) -> Answer:
    """Does the loss stop falling early, well above where fine-tuning usually ends?

    Yes where it ends above `level` nats and what it wins after the first `early_share` of its rows is less than
    `gain_share` of all that it wins. `level` is the upper end of the guide's range for chat fine-tuning. The loss of a
    run that learns from a reward has no such level, one that has won next to nothing never fell, and an eval loss that
    still falls shows that the run still learns.
    """
    if context.restless:
        return Answer(NO, (Evidence(f"{context.restless} need not fall", "loss"),))
    if eval_loss is not None and _gets_better(eval_loss):
        return Answer(NO, (Evidence("the eval loss is at its best at the end", "eval_loss"),))
    at, values = finite(loss)
    part = max(shared.ROWS_SHORT, len(values) // 20)
    early = max(part, int(early_share * len(values)))
    first, middle, end = (median(piece) for piece in (values[:part], values[early : early + part], values[-part:]))
    won, late = first - end, middle - end
    text = f"the loss ends at {figure(end, 4)} (at most {level:g} is usual), after {figure(first, 4)} at the beginning "
    text += f"and {figure(middle, 4)} at step {int(at[early]):,}"
    found = Evidence(text, "loss", (int(at[early]), int(at[-1])), end, level)
    strength = weakest(
        whether(end > level), below(late, gain_share * max(won, 0.0)), above(won, gain_share * abs(first))
    )
    return measured(strength, (found,), onset_step=int(at[early]))


def _gets_better(eval_loss: Series) -> bool:
    """Return whether an eval loss ends at its best level, below where it began."""
    turn = turn_of(eval_loss)
    return turn is not None and turn.after == 0 and turn.last < float(finite(eval_loss)[1][0])


@predicate(source="measured: runs with a learning rate a thousand times too high", min_points=1)
def overshoots(context: Context, loss: Series, *, factor: float, rows: Count = ROWS_SHORT) -> Answer:
    """Does the loss climb far above where it began, even if it comes back?

    Yes where the median of `rows` neighbouring rows exceeds `factor` times the first loss with the scatter of the rows
    on top: a single row may have begun low by luck. Not asked of a loss that moves by nature, one with a reward or with
    values below 0, nor of one that begins below a tenth of its median: there a multiple of the beginning says little.
    """
    steps, values = finite(loss)
    first = float(values[0])
    if context.restless or lowest(loss) < 0:
        return inapplicable(context.restless or "the loss goes below 0, where multiples mean nothing")
    if len(values) <= rows or FACTOR_LARGE * first <= middle(loss) or first <= 0:
        return inapplicable(f"the loss begins at {figure(first)}, too small for multiples to mean much")
    before, after = (np.log(np.maximum(some, TINY)) for some in neighbours(values))
    first *= math.exp(NOISE_TIMES * scatter(after - before))
    peak = highest_row(loss)
    text = f"the loss begins at {figure(float(values[0]), 4)} and peaks at {figure(float(values[peak]), 4)} at step "
    text += f"{int(steps[peak]):,}"
    where = (int(steps[0]), int(steps[peak]))
    if values[peak] <= factor * first:
        small = Evidence(
            f"{text}, {as_factor(float(values[peak]) / first)} its start (limit {factor:g}×)",
            "loss",
            where,
            values[peak] / first,
            factor,
        )
        return Answer(NO, (small,), strength=min(above(_highest_level(values, rows)[0] / first, factor), -TINY))
    level, at = _highest_level(values, rows)
    text += (
        f"; the median of {rows} rows reaches {against(level / first, factor)}× its start (limit {factor:g}×), from "
    )
    text += f"step {int(steps[at]):,} on"
    climbed = (Evidence(text, "loss", (*where, int(steps[at])), level / first, factor),)
    past = int(np.argmax(values > factor * first))
    strength, good = beyond(level / first, factor), int(steps[max(past - 1, 0)])
    return measured(strength, climbed, onset_step=int(steps[past]), last_good_step=good)


def _highest_level(values: Floats, rows: int) -> tuple[float, int]:
    """Return the highest median of `rows` neighbours, and its first row; a lower bound of it in a long series."""
    # Where it is high, more than half of the rows are: only these are looked at closely.
    high = highest_rows(values, TOP)
    starts = np.sort(np.clip(high[:, None] - np.arange(rows), 0, len(values) - rows), axis=None)
    levels = row_medians(windows(values, rows)[starts])
    highest = int(np.argmax(levels))
    return float(levels[highest]), int(starts[highest])


@predicate(source="measured: losses of public and of framework runs", min_points=3)
def loses_progress(
    context: Context,
    loss: Series,
    spike: Spike | Absent | Unknown,
    rise: Rise | Absent | Unknown,
    levels: Levels,
    *,
    share: float,
    factor: float = FACTOR_SMALL,
    noise_factor: float = FACTOR,
) -> Answer:
    """Has the loss lost most of what it had gained, counted in factors?

    Yes where all levels (block medians) in the last quarter of the log lie above the lowest by more than `share` of
    the way down to it, by `factor` and by `noise_factor` times the scatter between neighbours. Factors, since a loss
    that fell from 1e9 to 1 and ends at 1e8 has lost nearly all of it. A rise that goes on and a spike since the low
    have their own findings.
    """
    steps, values = finite(loss)
    count = levels.count(len(values))
    if context.restless or lowest(loss) <= 0:
        return inapplicable(context.restless or "the loss reaches 0, where factors mean nothing")
    some, starts = block_rows(values, count)
    course = row_medians(np.log(some))
    low, last = int(np.argmin(course)), count - max(2, count // 4)
    spiked = isinstance(spike, Spike) and (spike.top.recovered_step is None or spike.top.step >= steps[starts[low]])
    if isinstance(rise, Rise) or spiked:
        event = "the rise up to the end" if isinstance(rise, Rise) else "the spike since its lowest level"
        return Answer(NO, (Evidence(f"{event} is reported separately", "loss"),))
    gained, lost = (float(part) - float(course[low]) for part in (course[:last].max(), course[last:].min()))
    noise = NORMAL_MAD * median(np.abs(np.diff(course)))
    ended = max(0.0, lost) / gained if gained > 0 else 0.0
    high, best, end = (float(np.exp(course[low] + up)) for up in (gained, 0.0, lost))
    times = min(lost / noise, 1e6) if noise > 0 else 0.0
    text = (
        f"the loss ends {figure(end / best)}× above its best: {figure(high, 4)} first, {figure(best, 4)} around step "
    )
    text += f"{int(steps[starts[low]]):,}, {figure(end, 4)} at the end"
    text += f"; {against(ended, share, '.0%')} of the gain is lost (limit {share:.0%})" if ended > 0 else ""
    if ended >= share and times < noise_factor:
        text += ", within its scatter"
    found = (Evidence(text, "loss", (int(steps[starts[low]]), int(steps[starts[last]])), ended, share),)
    strength = weakest(beyond(ended, share), beyond(lost, noise_factor * noise), beyond(lost, math.log(factor)))
    if low >= last or strength < 0:
        return Answer(NO, found, strength=-FARTHEST if low >= last else strength)
    half = float(course[low]) + lost / 2
    up = low + 2 + int(np.flatnonzero(course[low:last] < half)[-1])
    past = int(np.flatnonzero(values[: starts[up]] < np.exp(half))[-1]) + 1
    onset = risen_by_factors(steps, values, best, end, int(steps[past]))
    return Answer(YES, found, onset_step=onset, last_good_step=int(steps[starts[low]]), strength=strength)
