"""How a run ends: it settles, stops early, loses what it had, or its gradient climbs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common import shared
from stabtree.common.answer import NO, YES, Answer, Evidence, inapplicable, measured, unknown
from stabtree.common.endings import FINISHED, ending_of
from stabtree.common.figures import against, as_factor, figure
from stabtree.common.lazy import np
from stabtree.common.passes import remembered, rows_before
from stabtree.common.shared import FARTHEST, ROWS_SHORT, above, below, beyond, whether
from stabtree.common.stats import (
    MEDIAN_ERROR,
    NORMAL_MAD,
    block_rows,
    change_noise,
    falls_by_turns,
    highest_rows,
    median,
    neighbours,
    row_medians,
    scatter,
    span,
    windows,
)
from stabtree.measures.curve import Rise, level_count, turn_of
from stabtree.measures.registry import (
    Absent,
    Count,
    Groups,
    Unknown,
    finite,
    highest,
    highest_row,
    last_level,
    lowest,
    measure,
    middle,
)
from stabtree.measures.spike import Spike
from stabtree.measures.start import NATS
from stabtree.metrics.role import ADVERSARIAL, describe_name
from stabtree.metrics.table import words
from stabtree.metrics.vocabulary import AGAINST
from stabtree.profile.build import lasts_from
from stabtree.profile.change import change_point, left_course

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.context.model import Context
    from stabtree.measures.batches import Batches
    from stabtree.run import Run, Series


NEVER_NEGATIVE = frozenset(("ce", "bce", "xent", "xentropy", "crossentropy", "mse", "rmse", "bpb", "bpc"))
TOP = 200  # no limit: rows that are looked at for the highest level


@measure(source="axolotl, Training Stability & Debugging, loss plateau", min_points=2 * shared.ROWS_SHORT)
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
    turn = turn_of(eval_loss) if eval_loss is not None else None
    if eval_loss is not None and turn and turn.after == 0 and turn.last < float(finite(eval_loss)[1][0]):
        return Answer(NO, (Evidence("the eval loss is at its best at the end", "eval_loss"),))
    at, values = finite(loss)
    part = max(shared.ROWS_SHORT, len(values) // 20)
    early = max(part, int(early_share * len(values)))
    first, middle, end = (median(piece) for piece in (values[:part], values[early : early + part], values[-part:]))
    won, late = first - end, middle - end
    text = f"the loss ends at {figure(end, 4)} (at most {level:g} is usual), after {figure(first, 4)} at the beginning "
    text += f"and {figure(middle, 4)} at step {int(at[early]):,}"
    found = Evidence(text, "loss", (int(at[early]), int(at[-1])), end, level)
    strength = min(whether(end > level), below(late, gain_share * max(won, 0)), above(won, gain_share * abs(first)))
    back = change_point(np.arange(len(values)), values[::-1])  # from the end on it rises to where it fell from
    return measured(strength, (found,), onset_step=int(at[-back.first_bad_step if back else early]))


@measure(source="measured: runs with a learning rate a thousand times too high", min_points=1)
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
    if len(values) <= rows or shared.FACTOR_LARGE * first <= middle(loss) or first <= 0:
        return inapplicable(f"the loss begins at {figure(first)}, too small for multiples to mean much")
    before, after = (np.log(np.maximum(some, shared.TINY)) for some in neighbours(values))
    first *= math.exp(shared.NOISE_TIMES * scatter(after - before))
    peak = highest_row(loss)
    # Where the highest level is, more than half of the rows are high: of a long series only these are looked at.
    high = highest_rows(values, TOP)
    starts = np.sort(np.clip(high[:, None] - np.arange(rows), 0, len(values) - rows), axis=None)
    medians = row_medians(windows(values, rows)[starts])
    level, at = float(medians.max()), int(starts[np.argmax(medians)])
    text = f"the loss begins at {figure(float(values[0]), 4)} and peaks at {figure(float(values[peak]), 4)} at step "
    text += f"{int(steps[peak]):,}"
    where = (int(steps[0]), int(steps[peak]))
    if values[peak] <= factor * first:
        text += f", {as_factor(float(values[peak]) / first)} its start (limit {factor:g}×)"
        small = Evidence(text, "loss", where, values[peak] / first, factor)
        return Answer(NO, (small,), strength=min(above(level / first, factor), -shared.TINY))
    text += f"; the median of {rows} rows reaches {against(level / first, factor)}× its start (limit {factor:g}×), "
    text += f"from step {int(steps[at]):,} on"
    climbed = (Evidence(text, "loss", (*where, int(steps[at])), level / first, factor),)
    past = int(np.argmax(values > factor * first))
    strength, good = beyond(level / first, factor), int(steps[max(past - 1, 0)])
    return measured(strength, climbed, onset_step=int(steps[past]), last_good_step=good)


@measure(source="measured: losses of public and of framework runs", min_points=3)
def loses_progress(
    context: Context,
    loss: Series,
    spike: Spike | Absent | Unknown,
    rise: Rise | Absent | Unknown,
    *,
    share: float,
    factor: float = shared.FACTOR_SMALL,
    noise_factor: float = shared.FACTOR,
) -> Answer:
    """Has the loss lost most of what it had gained, counted in factors?

    Yes where all levels (block medians) in the last quarter of the log lie above the lowest by more than `share` of
    the way down to it, by `factor` and by `noise_factor` times the scatter between neighbours. Factors, since a loss
    that fell from 1e9 to 1 and ends at 1e8 has lost nearly all of it. A rise that goes on and a spike since the low
    have their own findings.
    """
    steps, values = finite(loss)
    count = level_count(len(values))
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
    text = f"the loss ends {figure(end / best)}× above its best: {figure(high, 4)} first, {figure(best, 4)} around "
    text += f"step {int(steps[starts[low]]):,}, {figure(end, 4)} at the end"
    text += f"; {against(ended, share, '.0%')} of the gain is lost (limit {share:.0%})" if ended > 0 else ""
    if ended >= share and times < noise_factor:
        text += ", within its scatter"
    far = lost > gained + math.log(shared.FACTOR)
    brief = "risen far above where it began" if far else "risen back most of the way it fell"
    found = (Evidence(text, "loss", (int(steps[starts[low]]), int(steps[starts[last]])), ended, share, brief),)
    strength = min(beyond(ended, share), beyond(lost, noise_factor * noise), beyond(lost, math.log(factor)))
    if low >= last or strength < 0:
        return Answer(NO, found, strength=-FARTHEST if low >= last else strength)
    left = left_course(steps, np.log(values), best_step=int(steps[starts[low]]))
    return Answer(YES, found, onset_step=left.first_bad_step, last_good_step=left.last_good_step, strength=strength)


class Gain(NamedTuple):
    """How far a series falls, with the error of the difference of both levels."""

    first: float  # the level that it falls from
    last: float  # the level at its end
    error: float  # the standard error of their difference
    whole: float  # the range of the whole series
    later: float  # the range without its first rows, which fall farther than all that comes after them

    @property
    def fall(self) -> float:
        """How far it falls."""
        return self.first - self.last

    @property
    def covered(self) -> float:
        """What a fall is compared with, or a rise: one that is nothing beside the first fall takes nothing back."""
        return self.later if self.fall > 0 else self.whole

    @property
    def share(self) -> float:
        """The fall as a share of what the series covers."""
        return self.fall / self.covered if self.covered > 0 else 0.0

    @property
    def turned(self) -> Gain:
        """The same seen from the end."""
        return self._replace(first=self.last, last=self.first)

    @property
    def seen(self) -> float:
        """How strongly the fall exceeds its error."""
        return above(self.fall, shared.NOISE_TIMES * self.error)


@measure(
    source="phase19 Q4.1 and Q4.4, closing lines",
    labels=("rising", "flat", "finished", "falling", "noisy", "unbounded", "unmoved", "worse"),
    min_points=3,
)
def settled(
    run: Run,
    context: Context,
    loss: Series,
    rise: Rise | Absent,
    batches: Batches | Unknown,
    eval_loss: Series | None = None,
    reward: Series | None = None,
    lr: Series | None = None,
    weight_norm: Groups | None = None,
    grad_norm: Series | None = None,
    *,
    strict: bool,
    still_falling_share: float,
) -> Answer:
    """Is the loss still falling, flat, or on its way up?

    `rising` as in `loss_rising`. `unmoved` where neither the loss nor the eval loss ends below its beginning by more
    than its scatter explains, or a loss need not fall in this kind of run; `unbounded` where it falls below
    any log-likelihood. `falling`: the second half of the run lowers the loss, or the eval loss where logged, by more
    than `still_falling_share` of the range it covers after its first rows, and more than its scatter explains; `worse`:
    it raises one of them by that share of its whole range instead. `flat`: it does neither, and the scatter would show
    a fall by that share; `noisy` where it would not. `finished`: it is flat, and the run has come to its end by its
    learning rate, its planned steps or what the log says. Not asked of a run that learns from rewards, where a loss
    that has settled says nothing. With `strict`, the document's own rule, a run whose loss rises is at a plateau when
    neither lr, nor the weights, nor grad_norm moves; where one of them was not logged it rises. Any other is healthy.
    """
    if strict:
        if isinstance(rise, Absent):
            return Answer("falling", rise.evidence)
        missing = None in (lr, weight_norm, grad_norm)
        return Answer("rising" if missing else "flat", (rise.evidence,))
    if isinstance(rise, Rise) and rise.course:
        text = f"the loss ends {figure(rise.course.rise)} above its lowest level, that of step {rise.low_step:,}"
        times = Evidence(text, "loss", (rise.low_step,), rise.course.times, rise.limits.noise_factor)
        return Answer("rising", (times,), strength=rise.strength)
    if reward is not None or context.learns_from_rewards:
        return inapplicable("the reward is what shows whether the run still learns, not its loss")
    both = {"loss": loss if isinstance(batches, Unknown) else batches.fresh(loss), "eval_loss": eval_loss}
    judged = {name: one for name, one in both.items() if one is not None and len(finite(one)[1]) > 2}
    if not judged:
        return unknown("the loss has too few rows that were not repeated", "loss")
    late = {name: _late(series) for name, series in judged.items()}
    course = _course(tuple(late.values()), still_falling_share)
    deciding = sorted(late.items(), key=lambda item: item[1].share if course == "worse" else -item[1].share)
    notes = tuple(_late_evidence(name, gain, still_falling_share) for name, gain in deciding)
    if context.restless:
        return Answer("unmoved", (Evidence(f"{context.restless} need not fall as it learns", "loss"), *notes))
    if (fallen := _unbounded(loss)) is not None:
        return Answer("unbounded", (fallen, *notes))
    learned = {name: _learned(series) for name, series in judged.items()}
    if max(gain.seen for gain in learned.values()) < 0:
        return Answer("unmoved", (*(_learned_text(name, gain) for name, gain in learned.items()), *notes))
    ends = _ends(run, lr) if course == "flat" else ()
    return Answer("finished" if ends else course, (*notes, *ends))


def _ends(run: Run, lr: Series | None) -> tuple[Evidence, ...]:
    """Return evidence that a run has come to its end; none where it may be going on."""
    last = run.last_step or 0
    if last >= run.planned_step:
        return (Evidence(f"all planned steps are done, the last is {last:,}", "", (last,)),)
    if lr is not None and len(rates := finite(lr)[1]):
        peak, end = highest(lr), float(rates[-1])
        if end <= shared.SHARE_SOME * peak:
            text = f"the learning rate has come down from {figure(peak)} to {figure(end)}"
            return (Evidence(text, "lr", (last,), end, shared.SHARE_SOME * peak),)
    said = next((line for line in run.lines if ending_of(line.text) == FINISHED), None)
    return (Evidence(f"line {said.line:,}: {said.text}"),) if said else ()


def _course(late: tuple[Gain, ...], share: float) -> str:
    """Return what the second half of the run shows."""
    if any(gain.share > share and gain.seen >= 0 for gain in late):
        return "falling"
    if any(-gain.share > share and gain.turned.seen >= 0 for gain in late):
        return "worse"
    return "flat" if all(gain.error <= share * gain.whole for gain in late) else "noisy"


def _unbounded(loss: Series) -> Evidence | None:
    """Return evidence that the loss ends below 0 where its name rules that out, or below any likelihood."""
    steps, values = finite(loss)
    first, last, named = float(values[0]), float(values[-1]), set(words(loss.origin))
    positive = bool(named & NEVER_NEGATIVE) or {"cross", "entropy"} <= named
    if last > (-shared.SHARE_SOME if positive else -NATS * max(1.0, abs(first))):
        return None
    brief = f"{figure(first)} to {figure(last)}" + f", and no {loss.origin} can be below 0" * positive
    return Evidence(f"the loss falls from {brief}", "loss", (int(steps[0]), int(steps[-1])), last, brief=brief)


def _gain(before: Floats, after: Floats, series: Series) -> Gain:
    """Return the fall between the medians of two groups of rows of a series."""
    steps, values = finite(series)
    noise = change_noise(values)
    if falls_by_turns(values):
        noise = min(noise, scatter(values[2:] - values[:-2]))
    error = MEDIAN_ERROR * noise * (1 / len(before) + 1 / len(after)) ** 0.5
    later = values[rows_before(steps, steps[0] + shared.SHARE_SOME * (steps[-1] - steps[0])) :]
    return Gain(median(before), median(after), error, span(values), span(later))


@remembered
def _late(series: Series) -> Gain:
    """Return how far a series falls in the second half of the run."""
    _, values = finite(series)
    part, half = max(1, len(values) // 8), len(values) // 2
    return _gain(values[half - part // 2 : half + part], values[-part:], series)


@remembered
def _learned(series: Series) -> Gain:
    """Return how far a series falls from its first rows to its last; from so many as show it best."""
    _, values = finite(series)
    few, many = min(ROWS_SHORT, len(values) // 2), max(1, len(values) // 20)
    gains = [_gain(values[:rows], values[-max(few, many) :], series) for rows in (few, many)]
    return max(gains, key=lambda gain: gain.seen)


def _late_evidence(name: str, gain: Gain, limit: float) -> Evidence:
    """Describe how far a series moved in the second half; in a few words too where it got worse."""
    share, half = gain.share, "in the second half"
    text = f"{name} does not change {half} of the run"
    if share:
        text = f"{name} {'falls' if share > 0 else 'rises'} by {abs(share):.1%} of its range {half} of the run"
    if share and gain.covered > 0:
        text += f" (give or take {gain.error / gain.covered:.1%})"
    brief = f"{name} {'falls' if name == 'reward' else 'rises'} {half}" * (share < 0 and gain.turned.seen >= 0)
    return Evidence(text, name, (), share, limit, brief)


def _learned_text(name: str, gain: Gain) -> Evidence:
    """Describe that a series ends about where it began."""
    text = f"{name} goes from {figure(gain.first, 4)} to {figure(gain.last, 4)}, within its scatter of "
    text += figure(shared.NOISE_TIMES * gain.error, 2)
    brief = f"{figure(gain.first)} to {figure(gain.last)}"
    return Evidence(text, name, (), gain.fall, shared.NOISE_TIMES * gain.error, brief)


@measure(source="https://github.com/soumith/ganhacks, track failures early")
def discriminator_wins(run: Run, reward: Series | None = None, *, factor: float = shared.FACTOR_HUGE) -> Answer:
    """Does the loss of a discriminator end at almost 0?

    Yes where its last level is below a `factor`-th of ln 2, the loss of one that guesses: it is certain of nearly every
    sample, and its gradient shows the generator no way. Not asked of a loss that goes below 0, nor beside
    a reward, which a discriminator may give.
    """
    logged, levels = {**run.series, **run.others}, {}
    for name, series in logged.items() if run.setting("loss_kind") == ADVERSARIAL and reward is None else ():
        plays = describe_name(name).kind == ADVERSARIAL and AGAINST & set(words(name))
        if plays and len(finite(series)[1]) and lowest(series) >= 0:
            levels[name] = last_level(finite(series)[1])
    if not levels:
        return Answer(NO, (Evidence("no loss of a discriminator is logged"),), strength=-FARTHEST)
    name = min(levels, key=lambda key: levels[key])
    steps, values = finite(logged[name])
    limit, level = math.log(2) / factor, levels[name]
    text = f"{name} ends at a level of {figure(level)} (limit {figure(limit, 2)}); a guess costs 0.69"
    first = lasts_from(values <= limit) or 0
    brief = f"{name} ends at {figure(level, 2)}"
    found = Evidence(text, name, (int(steps[first]), int(steps[-1])), level, limit, brief)
    good = int(steps[first - 1]) if first else None
    return measured(below(level, limit), (found,), onset_step=int(steps[first]), last_good_step=good)
