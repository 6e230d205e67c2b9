"""What causes are weighed by: how the trouble began, what moved with it, and what the rest of the file says.

An observation is a value like any other; where it depends on when the trouble began, it asks for the `event`.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from stabtree.common.answer import NO, YES
from stabtree.common.endings import NAN_STOP, ending_of
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import rows_before, rows_upto
from stabtree.common.shared import FACTOR_SMALL, ROWS_LONG, ROWS_SHORT, SHARE_HALF, SHARE_MOST
from stabtree.common.stats import median
from stabtree.measures.nonfinite import terms_at
from stabtree.measures.registry import finite, measure
from stabtree.measures.traces import largest_leap, peak_rate, rate_by, usual_rates
from stabtree.profile import profile_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.common.lazy import Floats, Ints
    from stabtree.context.model import Context
    from stabtree.measures.movers import Break, Movers
    from stabtree.measures.progress import Rate
    from stabtree.run import Run, Series

EARLY_ROWS = 3  # no limit: trouble within so few rows was there from the start
SOARS = 30.0  # no limit: the first rate of a cycle is a 25th of its peak
STEADY = 1.15  # no limit: by which the levels of a norm differ though no weight moves
TINY = 1e-12  # no limit: below it a level is 0
_BROKEN = re.compile(r"(?P<gradient>\bgrad)|\b(?:input|batch|data|image|sample|label|target)", re.IGNORECASE)
NOT_TRAINING = ("val", "eval", "test", "dev", "grad", "accum")


class Moment(NamedTuple):
    """The trouble whose causes are weighed.

    Attributes:
        onset_step: the first bad step; None where it has none.
        last_good_step: the last logged step before it.
        metric: the series that shows it.
        unit: what the steps count: `step`, `epoch` or `row`.
    """

    onset_step: int | None
    last_good_step: int | None
    metric: str = "loss"
    unit: str = "step"


class Seen(Struct, frozen=True):
    """What was observed.

    Attributes:
        value: a number or a word, which conditions are compared with.
        text: a sentence for a person, with its numbers.
        metric: the series that it was seen in.
        steps: where, a handful of steps at most.
        of_task: whether it only says what the run is for; no one needs to be told that it rules a cause out.
    """

    value: float | str
    text: str
    metric: str = ""
    steps: tuple[int, ...] = ()
    of_task: bool = False


def _yes(met: bool) -> str:
    return YES if met else NO


def _columns(run: Run) -> Iterator[tuple[str, Series]]:
    """Yield every series, those that no metric names too, with the lower-case name of its column."""
    for name, series in (*run.series.items(), *run.others.items()):
        yield (series.origin or name).lower(), series


def _ends(values: Floats) -> tuple[float, float]:
    """Return the first level and the last one of at least two values."""
    size = max(1, min(ROWS_SHORT, len(values) // 2))
    return median(values[:size]), median(values[-size:])


def _shown(event: Moment, run: Run) -> tuple[Ints, Floats] | None:
    """Return the finite rows of the series that shows the trouble; None for fewer than four."""
    series = run.get(event.metric) or run.get("loss")
    if series is None:
        return None
    steps, values = finite(series)
    return (steps, values) if len(values) > ROWS_SHORT else None


def _risen(event: Moment, run: Run) -> tuple[Floats, Floats] | None:
    """Return its level before the onset, in 20 rows at most, and all from it on; None of a reward or a quality."""
    shown = _shown(event, run)
    if event.metric in ("reward", "eval_quality") or event.onset_step is None or shown is None:
        return None
    steps, values = shown
    at = rows_before(steps, event.onset_step)
    return values[max(at - ROWS_LONG, 0) : at], values[at:]


def _named(run: Run, metric: str, pattern: str, rows: int = 0) -> Series | None:
    """Return a metric of so many rows, else the first series of as many whose column matches a pattern."""
    named = [run.get(metric), *(series for name, series in _columns(run) if re.search(pattern, name))]
    return next((series for series in named if series is not None and len(finite(series)[1]) >= rows), None)


def _commonest(values: Floats) -> tuple[float, float]:
    """Return the commonest of some values, to the last digit, and its share of the rows."""
    kinds, counts = np.unique(values, return_counts=True)
    return float(kinds[counts.argmax()]), float(counts.max() / len(values))


def _around(event: Moment, series: Series) -> tuple[Floats, Floats]:
    """Return the finite values before the onset, and those from it on."""
    steps, values = finite(series)
    at = rows_before(steps, event.onset_step) if event.onset_step is not None else 0
    return values[:at], values[at:]


@measure()
def trainer_names(run: Run) -> Seen | None:
    """Return what the trainer's last words say was not finite: `gradient`, `input` or `loss`."""
    for line in run.lines:
        if line.at_end and ending_of(line.text, last=True) == NAN_STOP:
            found = _BROKEN.search(line.text)
            word = "loss" if found is None else "gradient" if found["gradient"] else "input"
            return Seen(word, f"the trainer stopped with: {line.text}")
    return None


# -------------------------------------------------- the learning rate


@measure()
def rate_times_usual(run: Run, context: Context, lr: Series | None = None) -> Seen | None:
    """Return how many times the highest usual rate it is: 1 for a usual one, below 1 a part of the lowest."""
    rate = peak_rate(run, None) or peak_rate(run, lr)  # as configured, else as logged
    usual = usual_rates(run, context)
    if rate is None or usual is None:
        return None
    times = rate / usual.high if rate > usual.high else min(rate / usual.low, 1.0)
    level = "usual" if times == 1 else f"{figure(times)} times the highest usual {figure(usual.high)}"
    if times < 1:
        level = f"{figure(1 / times)} times below the lowest usual {figure(usual.low)}"
    return Seen(times, f"the learning rate {figure(rate)} is {level} for {usual.of}", "lr")


@measure()
def rate_judged(context: Context, rate: Rate) -> Seen | None:
    """Return whether the rate is too high for its optimizer: `likely`, `possible` or `no`."""
    if context.learns_from_rewards or not rate.evidence:
        return None
    return Seen(rate.too_high, rate.evidence[0].text, "lr")


@measure()
def rate_at_onset(event: Moment, run: Run, lr: Series) -> Seen | None:
    """Return what the rate does where the trouble begins: `leaps`, `soars`, `rises`, `falls` or `rests`.

    It soars where it has risen far beyond the configured one, farther than a schedule goes from its first rate.
    """
    steps, values = finite(lr)
    if event.onset_step is None or len(values) < ROWS_SHORT or values.max() <= 0:
        return None
    at = min(max(rows_upto(steps, event.onset_step), 1), len(values))
    window = values[max(at - max(ROWS_LONG, at // 5), 0) : at]
    before, now = float(window[0]), float(window[-1])
    step = int(steps[at - 1])
    leap = largest_leap(lr, event.onset_step)  # that of a warm-up is none
    word = "rests"
    if leap is not None and leap[2] > FACTOR_SMALL * leap[1]:
        step, before, now = leap
        word = "leaps"
    elif (planned := peak_rate(run, None)) and (rate_by(run, event.onset_step) or 0.0) > SOARS * planned:
        before, word = planned, "soars"
    elif now > before * 1.05:
        word = "rises"
    elif now < before * 0.95:
        word = "falls"
    return Seen(word, f"lr {word} around {event.unit} {step:,}: {figure(before)} → {figure(now)}", "lr", (step,))


@measure()
def rate_left(event: Moment, run: Run, lr: Series) -> Seen | None:
    """Return which share of its peak the rate has at the worst row of a rise."""
    steps, values = finite(lr)
    shown, onset = _shown(event, run), event.onset_step
    if not len(values) or values.max() <= 0 or shown is None or onset is None or onset <= shown[0][EARLY_ROWS]:
        return None
    at = max(rows_upto(steps, max(int(shown[0][int(np.argmax(shown[1]))]), onset)) - 1, 0)
    share = float(values[at] / values.max())
    return Seen(share, f"lr is at {share:.0%} of its peak at {event.unit} {int(steps[at]):,}", "lr", (int(steps[at]),))


@measure(min_points=ROWS_SHORT)
def rate_is_constant(lr: Series) -> Seen:
    """Return whether the rate is the same in all rows."""
    values = finite(lr)[1]
    same = not np.ptp(values)
    return Seen(_yes(same), f"lr is {figure(values[0])} in every row" if same else "lr changes", "lr")


# -------------------------------------------------- how the trouble began


@measure()
def onset_share(event: Moment, run: Run) -> Seen | None:
    """Return which share of the rows comes before the trouble."""
    shown = _shown(event, run)
    if event.onset_step is None or shown is None:
        return None
    before = rows_before(shown[0], event.onset_step)
    share = before / len(shown[0])
    return Seen(share, f"it begins after {before:,} of {len(shown[0]):,} rows", event.metric, (event.onset_step,))


@measure()
def rise_form(event: Moment, run: Run) -> Seen | None:
    """Return whether it left its level in one row (`jump`) or over many (`climb`)."""
    risen, onset = _risen(event, run), event.onset_step
    if onset is None or risen is None or len(risen[0]) < 2 or not len(risen[1]):
        return None
    before, after = risen
    level, top = median(before), float(after.max())
    reach = top - level
    if reach <= 0:
        return None
    row = int(np.argmax(after >= level + SHARE_HALF * reach)) + 1
    word = "jump" if row <= 2 else "climb"
    text = f"{event.metric} goes from {figure(level)} to {figure(top)}, half of the way in {row:,} row{'s' * (row > 1)}"
    return Seen(word, text, event.metric, (onset,))


@measure()
def rise_times(event: Moment, run: Run) -> Seen | None:
    """Return how many times its level before the onset the series reaches after it."""
    before, after = _risen(event, run) or (np.zeros(0), np.zeros(0))
    level = median(np.abs(before)) if len(before) else 0.0
    if level <= TINY or not len(after):
        return None
    times = float(np.abs(after).max() / level)
    return Seen(times, f"{event.metric} reaches {figure(times)} times its level before", event.metric)


@measure()
def came_back(event: Moment, run: Run) -> Seen | None:
    """Return whether the series ends near the level from before the onset."""
    before, after = _risen(event, run) or (np.zeros(0), np.zeros(0))
    if not len(before) or len(after) < ROWS_SHORT:
        return None
    level, last, top = median(before), median(after[-ROWS_SHORT:]), float(after.max())
    back = last <= level + 0.25 * (top - level)
    text = f"{event.metric} ends at {figure(last)}, {'back from' if back else 'after'} {figure(top)}"
    return Seen(_yes(back), text, event.metric)


@measure()
def gradient_first(event: Moment, movers: Movers) -> Seen | None:
    """Return whether a gradient norm left its course before the loss did."""
    if event.onset_step is None:
        return None
    moves = [(move.step, move.metric) for move in movers.around(event.onset_step)]
    norms = [move for move in moves if move[1].startswith(("grad_norm", "update_ratio", "weight_norm"))]
    losses = [move for move in moves if move[1] == "loss"]
    if not norms:
        return None
    step, name = min(norms)
    led = step < min([event.onset_step, *(move[0] for move in losses)])
    text = f"{name} leaves its course at {event.unit} {step:,}, {'before' if led else 'not before'} the loss"
    return Seen(_yes(led), text, name, (step,))


@measure()
def spikes_counted(run: Run) -> Seen | None:
    """Count how often the training loss spiked."""
    loss = run.get("loss")
    if loss is None or len(loss) < 2 * ROWS_LONG:
        return None
    found = profile_of(loss).spikes
    return Seen(float(found.count), f"the loss spikes {found.count:,} times", "loss")


@measure()
def rows_up(event: Moment, run: Run) -> Seen | None:
    """Return for how many rows the series stays above half of its rise; a single bad sample is over at once."""
    before, after = _risen(event, run) or (np.zeros(0), np.zeros(0))
    if len(before) < 2 or not len(after) or after.max() <= median(before):
        return None
    bar = (median(before) + float(after.max())) / 2
    first = int(np.argmax(after >= bar))
    low = np.flatnonzero(after[first:] < bar)
    count = int(low[0]) if len(low) else len(after) - first
    return Seen(float(count), f"{event.metric} stays up for {count:,} row{'s' * (count != 1)}", event.metric)


@measure()
def passes(event: Moment, run: Run) -> Seen | None:
    """Return how many times the data had been passed when the trouble began, or in all."""
    step = event.onset_step
    if run.by_epoch:
        count = float(step if step is not None else run.last_step or 0)
    else:
        series = next((found for name, found in _columns(run) if name.rpartition("/")[2] in ("epoch", "epochs")), None)
        if series is None or not len(series):
            return None
        at = rows_upto(series.steps, step) if step is not None else len(series)
        count = float(series.values[max(at - 1, 0)])
    if not math.isfinite(count):
        return None
    return Seen(count, f"it begins in pass {count:,.3g} over the data", "epoch")


@measure()
def resumed_before(event: Moment, run: Run, loss: Series) -> Seen | None:
    """Return whether the run was resumed within 20 rows before the onset."""
    if event.onset_step is None:
        return None
    row = rows_before(loss.steps, event.onset_step)
    since = int(loss.steps[max(row - ROWS_LONG, 0)]) if len(loss) else 0
    found = [item.to_step for item in run.resumes if since <= item.to_step <= event.onset_step]
    text = f"the run was resumed at step {found[-1]:,}, right before" if found else "no resume comes right before"
    return Seen(_yes(bool(found)), text, "loss", tuple(found[-1:]))


# -------------------------------------------------- gradients


def _norm(run: Run) -> Series | None:
    """Return the norm of the gradient, under any name."""
    return _named(run, "grad_norm", "grad.*norm|norm.*grad", ROWS_SHORT + 1)


@measure()
def norm_level(event: Moment, run: Run) -> Seen | None:
    """Return the usual norm of the gradient before the trouble, or in the whole log."""
    series = _norm(run)
    if series is None:
        return None
    before, after = _around(event, series)
    values = before if len(before) >= ROWS_SHORT else np.concatenate([before, after])
    if not len(values):
        return None
    level = median(values)
    return Seen(level, f"the gradient norm is usually {figure(level)}", series.metric)


@measure()
def norm_times(event: Moment, run: Run) -> Seen | None:
    """Return how many times its usual value the gradient norm reaches, from just before the onset on."""
    series = _norm(run)
    if series is None or event.onset_step is None:
        return None
    steps, values = finite(series)
    at = rows_before(steps, event.last_good_step or event.onset_step)
    if at < ROWS_SHORT or at >= len(values):
        return None
    level = median(values[max(at - 5 * ROWS_LONG, 0) : at])
    if level <= TINY:
        return None
    times = float(values[at:].max() / level)
    return Seen(times, f"the gradient norm reaches {figure(times)} times its usual {figure(level)}", series.metric)


@measure()
def norm_fades(run: Run) -> Seen | None:
    """Return which share of its first level the gradient norm ends at."""
    series = _norm(run)
    values = finite(series)[1] if series is not None else np.zeros(0)
    if series is None or len(values) < 2 * ROWS_SHORT:
        return None
    first, last = _ends(values)
    if first <= TINY:
        return None
    return Seen(last / first, f"{series.metric} goes from {figure(first)} to {figure(last)}", series.metric)


@measure()
def norm_steady(run: Run) -> Seen | None:
    """Return whether the gradient norm keeps its level all along, as it does while no weight moves."""
    series = _norm(run)
    values = finite(series)[1] if series is not None else np.zeros(0)
    if series is None or len(values) < 2 * ROWS_LONG or not values.any():
        return None
    levels = [median(part) for part in np.array_split(values, 4)]
    steady = max(levels) <= STEADY * min(levels)
    text = f"the gradient norm is {figure(levels[0])} at first, and {figure(levels[-1])} at the end"
    return Seen(_yes(steady), text, series.metric)


@measure()
def lone_infinite_norms(event: Moment, grad_norm: Series) -> Seen:
    """Count the single infinite gradient norms between ordinary ones before the trouble: steps that overflowed."""
    end = len(grad_norm) if event.onset_step is None else rows_before(grad_norm.steps, event.onset_step)
    broken = ~np.isfinite(grad_norm.values[:end])
    lone = int((broken[1:-1] & ~broken[:-2] & ~broken[2:]).sum()) if end > 2 else 0
    return Seen(float(lone), f"{lone:,} single gradient norms before it are not finite", "grad_norm")


# -------------------------------------------------- levels


@measure()
def loss_trend(loss: Series) -> Seen | None:
    """Return how sure it is that the loss rises, in standard deviations; below 0 it falls."""
    found = profile_of(loss)
    if found.rows < ROWS_LONG or not math.isfinite(found.trend):
        return None
    way = "falls" if found.trend < 0 else "rises"
    return Seen(found.trend, f"the loss {way} by {figure(abs(found.trend))} standard deviations of chance", "loss")


@measure()
def start_over_chance(context: Context, loss: Series) -> Seen | None:
    """Return the first loss as a multiple of what an uninformed guess costs."""
    values, chance = finite(loss)[1], context.chance.value
    if not len(values) or not chance or chance <= 0 or context.outcome.value not in ("loss", "eval_loss"):
        return None
    times = float(values[0] / chance)
    return Seen(times, f"the first loss is {figure(values[0])}, a guess costs {figure(chance)}", "loss")


@measure()
def rows_logged(loss: Series) -> Seen:
    """Count the rows of the loss."""
    return Seen(float(len(loss)), f"the log has {len(loss):,} rows of the loss", "loss")


@measure(min_points=1)
def loss_size(loss: Series) -> Seen:
    """Return the level of the first losses."""
    values = finite(loss)[1]
    first = median(values[:ROWS_SHORT])
    return Seen(abs(first), f"the loss begins at {figure(first)}", "loss")


@measure(min_points=1)
def loss_below_zero(loss: Series) -> Seen:
    """Return whether the loss goes below 0, which most losses can't."""
    values = finite(loss)[1]
    low = float(values.min())
    return Seen(_yes(low < 0), f"the loss goes down to {figure(low)}", "loss")


@measure(min_points=ROWS_SHORT)
def loss_gain(loss: Series) -> Seen | None:
    """Return which share of its first level the training loss has lost at its best."""
    first, best = median(finite(loss)[1][:ROWS_SHORT]), profile_of(loss).best
    if abs(first) <= TINY or not math.isfinite(best):
        return None
    gain = (first - best) / abs(first)
    return Seen(gain, f"the training loss goes from {figure(first)} down to {figure(best)}", "loss")


@measure()
def loss_scatter(loss: Series) -> Seen | None:
    """Return by which share of its level the loss scatters from row to row."""
    found = profile_of(loss)
    level = abs(found.last)
    if not math.isfinite(level) or level <= TINY or found.rows < 2 * ROWS_SHORT:
        return None
    share = found.level_noise / level
    return Seen(share, f"the loss scatters by {share:.2%} of its level", "loss")


@measure(min_points=ROWS_SHORT)
def same_digits(loss: Series) -> Seen:
    """Return the share of rows with the commonest value of the loss, to the last digit."""
    values = finite(loss)[1]
    value, share = _commonest(values)
    text = f"the loss is {figure(value, 6)} in {share:.0%} of the rows"
    return Seen(share, text, "loss")


@measure(min_points=1)
def loss_zero_share(loss: Series) -> Seen:
    """Return the share of rows in which the loss is exactly 0."""
    values = finite(loss)[1]
    share = float(np.mean(values == 0))
    return Seen(share, f"the loss is exactly 0 in {share:.0%} of the rows", "loss")


@measure()
def finite_after(loss: Series, loss_break: Break) -> Seen:
    """Return which share of the rows after the first NaN is finite."""
    after = np.isfinite(loss.values[loss_break.row + 1 :])
    share = float(after.mean()) if len(after) else 0.0
    text = f"{int(after.sum()):,} of the {len(after):,} rows after it are finite"
    return Seen(share, text, "loss", (loss_break.step,))


@measure()
def nan_from_start(run: Run, loss: Series) -> Seen | None:
    """Return whether a loss that becomes NaN or infinite is so from the first row on; an excerpt does not show it."""
    broken = not np.isfinite(loss.values[0])
    if (broken and run.excerpt_from is not None) or np.isfinite(loss.values).all():
        return None
    what = "NaN or infinite" if broken else "finite"
    return Seen(_yes(broken), f"the very first loss is {what}", "loss", (int(loss.steps[0]),))


@measure()
def rise_before_nan(loss: Series, loss_break: Break, grad_norm: Series | None = None) -> Seen | None:
    """Return how many times its usual value the loss or the gradient reaches in the rows before the NaN."""
    series = (loss,) if grad_norm is None else (loss, grad_norm)
    rises = [(found[0], item.metric) for item in series if (found := loss_break.rise_before(item))]
    values = loss.values[: loss_break.row]
    if not rises and len(values) > 1 and values[0] > 0 and np.isfinite(values).all():
        rises = [(float(values[-1] / values[0]), "loss")]
    if not rises:
        return None
    times, metric = max(rises)
    return Seen(times, f"{metric} had risen to {times:,.3g} times its usual value right before", metric)


@measure()
def sound_terms(run: Run, loss_break: Break) -> Seen | None:
    """Return how many terms of the loss are finite where another is NaN; None where no term is NaN."""
    broken, sound = terms_at(run, loss_break.step)
    if not broken:
        return None
    names = ", ".join(item.origin or item.metric for item in broken[:2])
    text = f"{names} is not finite, {len(sound)} other terms are"
    return Seen(float(len(sound)), text, "loss", (loss_break.step,))


@measure()
def weights_sound(run: Run, loss_break: Break) -> Seen | None:
    """Return whether what is measured on held-out data stays finite after the loss is NaN."""
    for metric in ("eval_loss", "eval_quality"):
        series = run.get(metric)
        after = series.values[rows_before(series.steps, loss_break.step) + 1 :] if series else np.zeros(0)
        if series is not None and len(after) >= 2:
            sound = bool(np.isfinite(after).all())
            text = f"{series.origin or metric} {'stays finite' if sound else 'is not finite either'}"
            return Seen(_yes(sound), text, metric, (loss_break.step,))
    return None


@measure()
def trains_on(loss: Series, eval_loss: Series | None = None) -> Seen | None:
    """Return whether the training loss stays finite after a held-out loss that is not; no where it ends unsound."""
    if len(loss) and not math.isfinite(loss.values[-1]):
        return Seen(NO, "the training loss itself is NaN or infinite at the end", "loss")
    if eval_loss is None or np.isfinite(eval_loss.values).all():
        return None
    broken = ~np.isfinite(eval_loss.values)
    step = int(eval_loss.steps[int(np.argmax(broken))])
    after = loss.values[rows_upto(loss.steps, step) :]
    sound = len(after) > 0 and bool(np.isfinite(after).all())
    return Seen(_yes(sound), f"the training loss is finite in the {len(after):,} rows after it", "loss", (step,))


@measure()
def steps_skipped(run: Run, skipped_steps: Series) -> Seen | None:
    """Return which share of the steps the optimizer skipped."""
    values, last = finite(skipped_steps)[1], run.last_step
    if not len(values) or not last:
        return None
    share = min(float(values.max()) / max(last, 1), 1.0)
    return Seen(share, f"{values.max():,.0f} of {last:,} steps were skipped", "skipped_steps")


@measure()
def loss_alone(loss_break: Break, grad_norm: Series) -> Seen | None:
    """Return whether the gradient stays finite while the loss is NaN."""
    norms = grad_norm.values[rows_before(grad_norm.steps, loss_break.step) :]
    if len(norms) < ROWS_SHORT:
        return None
    sound = int((np.isfinite(norms) & (norms > 0)).sum())
    text = f"{sound:,} of {len(norms):,} gradient norms from there on are finite"
    return Seen(_yes(sound == len(norms)), text, "grad_norm", (loss_break.step,))


# -------------------------------------------------- terms of the loss


@measure()
def terms_rising(event: Moment, run: Run) -> Seen | None:
    """Return which share of the other training losses rises with the leading one: 0 where it rises alone."""
    if event.onset_step is None:
        return None
    up, all_ = [], 0
    for name, series in _columns(run):
        if "loss" not in name or any(word in name for word in NOT_TRAINING) or series.metric == event.metric:
            continue
        before, after = _around(event, series)
        if len(before) < ROWS_SHORT or len(after) < ROWS_SHORT:
            continue
        all_ += 1
        if median(after[-ROWS_SHORT:]) > median(before[-ROWS_SHORT:]):
            up.append(name)
    if not all_:
        return None
    return Seen(len(up) / all_, f"{len(up)} of {all_} other terms of the loss rise too", "loss")


@measure()
def largest_term(run: Run, loss: Series) -> Seen | None:
    """Return which share of the loss its largest term is at the end."""
    total = abs(profile_of(loss).last)
    parts = {
        name: abs(profile_of(series).last)
        for name, series in _columns(run)
        if "loss" in name and series is not loss and not any(word in name for word in NOT_TRAINING) and len(series)
    }
    parts = {name: size for name, size in parts.items() if math.isfinite(size)}
    if len(parts) < 2 or not total > TINY:
        return None
    name = max(parts, key=lambda item: parts[item])
    share = parts[name] / max(sum(parts.values()), TINY)
    return Seen(share, f"{name} makes {share:.0%} of the logged terms", "loss")


@measure()
def others_learn(event: Moment, run: Run, loss: Series) -> Seen | None:
    """Return whether an error or another loss falls by half, from the onset on, while the loss does not."""
    for name, series in _columns(run):
        if series is loss or not any(word in name for word in ("loss", "error", "mse", "mae", "rmse", "perplexity")):
            continue
        values = _around(event, series)[1]
        if len(values) < 2 * ROWS_SHORT:
            continue
        first, last = _ends(values)
        if first > 0 and last < SHARE_HALF * first:
            text = f"{series.origin or name} falls from {figure(first)} to {figure(last)}"
            return Seen(YES, text, series.metric)
    return Seen(NO, "no other loss or error falls", "")


# -------------------------------------------------- held-out data


@measure()
def evaluations(eval_loss: Series) -> Seen:
    """Count the evaluations."""
    count = len(finite(eval_loss)[1])
    return Seen(float(count), f"{count:,} evaluations", "eval_loss")


@measure()
def eval_jumps(eval_loss: Series) -> Seen | None:
    """Return how far the held-out loss moves from one evaluation to the next, as a share of its level."""
    values = finite(eval_loss)[1]
    if len(values) < 2 * ROWS_SHORT or median(np.abs(values)) <= TINY:
        return None
    share = median(np.abs(np.diff(values))) / median(np.abs(values))
    return Seen(share, f"the held-out loss moves by {share:.0%} from one evaluation to the next", "eval_loss")


@measure(min_points=2)
def eval_repeats(eval_loss: Series) -> Seen:
    """Return whether the held-out loss is the same to its last digit in every evaluation: no weight moves."""
    values = finite(eval_loss)[1]
    same = not np.ptp(values) and profile_of(eval_loss).quantum < SHARE_HALF * abs(float(values[0])) / 100
    text = f"the held-out loss is {figure(float(values[0]), 6)} in all {len(values):,} evaluations"
    return Seen(_yes(same), text if same else "the held-out loss changes", "eval_loss")


@measure(min_points=ROWS_SHORT)
def best_evaluation(eval_loss: Series) -> Seen:
    """Return which share of the evaluations comes before the best one."""
    steps, values = finite(eval_loss)
    best = int(np.argmin(values))
    text = f"the held-out loss is best in evaluation {best + 1:,} of {len(values):,}: {figure(float(values[best]), 4)}"
    return Seen(best / (len(values) - 1), text, "eval_loss", (int(steps[best]),))


@measure(min_points=2)
def train_since_best(loss: Series, eval_loss: Series) -> Seen | None:
    """Return the last training loss over that at the best evaluation: below 1 it went on falling."""
    eval_steps, held = finite(eval_loss)
    steps, values = finite(loss)
    best = int(eval_steps[int(np.argmin(held))])
    near = np.argsort(np.abs(steps - best), kind="stable")[:ROWS_SHORT]
    then, now = median(values[near]), median(values[-ROWS_SHORT:])
    if then <= TINY:
        return None
    text = f"the training loss goes from {figure(then)} to {figure(now)} after the best evaluation, at step {best:,}"
    return Seen(now / then, text, "loss", (best,))


@measure()
def closest_gap(loss: Series, eval_loss: Series) -> Seen | None:
    """Return how near the held-out loss came to the training loss of its time, as a multiple of it."""
    steps, values = finite(loss)
    eval_steps, held = finite(eval_loss)
    if len(held) < 2 or len(values) < ROWS_SHORT:
        return None
    ends = np.maximum(np.searchsorted(steps, eval_steps, side="right"), 1)
    train = np.array([median(values[max(end - ROWS_SHORT, 0) : end]) for end in ends])
    known = train > TINY
    if not known.any():
        return None
    near = int(np.argmin(np.where(known, held / np.where(known, train, 1.0), math.inf)))
    share, step = float(held[near] / train[near]), int(eval_steps[near])
    text = f"the held-out loss is never below {figure(share)} times the training loss, at {step:,}"
    return Seen(share, text, "eval_loss", (step,))


@measure()
def gap_at_end(loss: Series, eval_loss: Series) -> Seen | None:
    """Return the held-out loss over the training loss at the end."""
    train, held = profile_of(loss).last, profile_of(eval_loss).last
    if not (math.isfinite(train) and math.isfinite(held)) or train <= TINY:
        return None
    return Seen(held / train, f"the held-out loss ends at {figure(held / train)} times the training loss", "eval_loss")


def _quality(run: Run) -> Series | None:
    return _named(run, "eval_quality", "acc|f1|auc|dice|iou|map", ROWS_SHORT)


@measure()
def quality_after_best(run: Run, eval_loss: Series) -> Seen | None:
    """Return whether the quality on held-out data is better after the best held-out loss than up to it."""
    quality, (steps, held) = run.get("eval_quality"), finite(eval_loss)
    if quality is None or len(held) < ROWS_SHORT:
        return None
    at, values = finite(quality)
    cut = rows_upto(at, int(steps[int(np.argmin(held))]))
    if not 0 < cut < len(values):
        return None
    lower = profile_of(quality).better == "lower"
    before, after = (float((-part if lower else part).max()) for part in (values[:cut], values[cut:]))
    name = quality.origin or "the quality"
    text = f"{name} is {figure(abs(before), 4)} up to the best held-out loss, {figure(abs(after), 4)} after"
    return Seen(_yes(after > before), text, "eval_quality")


@measure()
def quality_gain(run: Run) -> Seen | None:
    """Return which share of what is possible the quality gains; near 0 where nothing is learned."""
    if (series := _quality(run)) is None:
        return None
    values = finite(series)[1]
    first, best = float(values[0]), float(values.max())
    text = f"{series.origin or series.metric} goes from {figure(first)} to {figure(best)}"
    return Seen((best - first) / (100.0 if best > 1 else 1.0), text, series.metric)


@measure()
def quality_repeats(run: Run) -> Seen | None:
    """Return the share of evaluations with the commonest quality, to the last digit: a constant prediction repeats."""
    if (series := _quality(run)) is None:
        return None
    value, share = _commonest(finite(series)[1])
    text = f"{series.origin or series.metric} is {figure(value, 4)} in {share:.0%} of its rows"
    return Seen(share, text, series.metric)


@measure()
def train_accuracy(run: Run) -> Seen | None:
    """Return the last accuracy on the training data, as a share."""
    for name, series in _columns(run):
        values = finite(series)[1]
        if "acc" not in name or any(word in name for word in NOT_TRAINING) or not len(values):
            continue
        share = float(values[-1]) / (100 if values.max() > 1 else 1)
        return Seen(share, f"{name} ends at {figure(float(values[-1]), 4)}", name)
    return None


# -------------------------------------------------- reinforcement learning


@measure()
def from_rewards(run: Run, context: Context) -> Seen | None:
    """Return whether the run learns from rewards."""
    found = context.learns_from_rewards
    if not found and (context.task.value is None or run.has("reward")):
        return None
    return Seen(_yes(found), f"the task is {context.task.value}", of_task=True)


@measure()
def entropy_left(run: Run) -> Seen | None:
    """Return which share of its first level the entropy of the policy ends at."""
    series = _named(run, "entropy", "^(?!.*coef).*entropy", ROWS_SHORT)
    if series is None:
        return None
    first, last = _ends(np.abs(finite(series)[1]))
    if first <= TINY:
        return Seen(0.0, f"{series.origin or 'entropy'} is 0 from the start", series.metric)
    text = f"{series.origin or 'entropy'} goes from {figure(first)} to {figure(last)}"
    return Seen(last / first, text, series.metric)


@measure()
def update_kl(event: Moment, run: Run) -> Seen | None:
    """Return how far an update moves the policy, before the trouble or in the whole log."""
    series = _named(run, "approx_kl", "^(?!.*loss).*kl")
    if series is None:
        return None
    before, after = _around(event, series)
    values = np.abs(before if len(before) else after)
    if not len(values):
        return None
    size = float(np.quantile(values, 0.75))
    return Seen(size, f"an update moves the policy by a KL of {figure(size)}; 0.01 to 0.03 is usual", series.metric)


@measure()
def clipped_share(run: Run) -> Seen | None:
    """Return which share of the samples an update of PPO clips."""
    series = _named(run, "clip_ratio", "clip.*frac|frac.*clip", 1)
    if series is None:
        return None
    share = median(finite(series)[1])
    return Seen(share, f"{share:.0%} of the samples are clipped in an update", series.metric)


@measure()
def value_times(run: Run) -> Seen | None:
    """Return how many times its first level the loss of the critic reaches."""
    series = _named(run, "value_loss", "value_loss|critic_loss|qf1?_loss|vf_loss|v_loss|td_loss", 2 * ROWS_SHORT)
    if series is None:
        return None
    values = np.abs(finite(series)[1])
    first, top = median(values[: max(ROWS_SHORT, len(values) // 10)]), float(np.quantile(values, 0.98))
    if first <= TINY:
        return None
    text = f"{series.origin or series.metric} reaches {figure(top)}, from {figure(first)}"
    return Seen(top / first, text, series.metric)


@measure()
def return_size(event: Moment, reward: Series) -> Seen | None:
    """Return the size of an episode's return before the trouble."""
    before, after = _around(event, reward)
    values = before if len(before) else after
    if not len(values):
        return None
    size = abs(median(values))
    return Seen(size, f"an episode earns {figure(median(values))}; 1 to 10 is easy to learn", "reward")


@measure(min_points=2 * ROWS_SHORT)
def reward_gain(reward: Series) -> Seen:
    """Return what the reward gained from its first level to its last, as a share of its range."""
    values = finite(reward)[1]
    first, last = _ends(values)
    spread = float(np.ptp(values))
    gain = (last - first) / spread if spread else 0.0
    return Seen(gain, f"the reward goes from {figure(first)} to {figure(last)}", "reward")


@measure(min_points=ROWS_SHORT)
def reward_is_constant(reward: Series) -> Seen:
    """Return whether the reward is the same in nearly every row."""
    values = finite(reward)[1]
    _, share = _commonest(values)
    return Seen(_yes(share >= SHARE_MOST), f"the reward is the same in {share:.0%} of the rows", "reward")


@measure(min_points=ROWS_LONG)
def reward_lost_at_once(reward: Series) -> Seen:
    """Return whether the reward is exactly 0 from one row on, after it had been far from 0."""
    steps, values = finite(reward)
    other = np.flatnonzero(values != 0)
    since = int(other[-1]) + 1 if len(other) else 0
    lasts = 0 < since <= len(values) - ROWS_SHORT
    if lasts and abs(values[since - 1]) >= SHARE_HALF * median(np.abs(values[:since])):
        return Seen(YES, f"the reward is exactly 0 from step {int(steps[since]):,} on", "reward")
    return Seen(NO, "the reward does not drop to 0 at once", "reward")


@measure()
def episode_changes(event: Moment, run: Run) -> Seen | None:
    """Return how many times the length of an episode or an answer changes with the trouble."""
    series = _named(run, "", "ep_len|episode_len|eplen|completion_length|response_length|length_mean")
    if series is None or event.onset_step is None:
        return None
    before, after = _around(event, series)
    if len(before) < ROWS_SHORT or len(after) < ROWS_SHORT or median(before) <= 0:
        return None
    times = median(after) / median(before[-ROWS_LONG:])
    return Seen(times, f"{series.origin or series.metric} is {figure(times)} times as long after it", series.metric)


@measure(min_points=1)
def cut_share(clipped_ratio: Series) -> Seen:
    """Return which share of the answers is cut off at the end of the log."""
    values = finite(clipped_ratio)[1][-ROWS_SHORT:]
    share = median(values)
    return Seen(share, f"{share:.0%} of the answers are cut off at the longest length", "clipped_ratio")


@measure()
def broken_observations(event: Moment, run: Run) -> Seen | None:
    """Return whether a series of the observations is not finite by the onset."""
    for name, series in run.others.items():
        if "obs" not in name.lower() or not len(series):
            continue
        broken = np.flatnonzero(~np.isfinite(series.values))
        if len(broken) and (event.onset_step is None or series.steps[broken[0]] <= event.onset_step):
            step = int(series.steps[broken[0]])
            return Seen(YES, f"{name} is not finite from {event.unit} {step:,} on", name, (step,))
    return None


# -------------------------------------------------- two players, and the process


@measure()
def critic_loss_level(run: Run) -> Seen | None:
    """Return the last loss of the discriminator as a share of ln 2, which a coin costs it."""
    series = _named(run, "", "d_loss|loss_d|disc_loss|discriminator_loss|errd|loss_disc")
    if series is None or len(series) < ROWS_SHORT:
        return None
    share = abs(profile_of(series).last) / math.log(2)
    return Seen(share, f"{series.origin or series.metric} ends at {figure(share * math.log(2))}", series.metric)


@measure()
def no_batches(run: Run) -> Seen | None:
    """Return whether nothing is processed: a throughput of 0, or epochs that take no time."""
    for name, series in _columns(run):
        fast = any(word in name for word in ("per_sec", "throughput", "tok/s", "tokens/s", "it/s", "samples/s"))
        times = any(word in name for word in ("time", "seconds", "duration"))
        if (fast or times) and len(series) >= ROWS_SHORT:
            empty = not finite(series)[1].any()
            return Seen(_yes(empty), f"{name} is {'0 in every row' if empty else 'above 0'}", name)
    return None


_SAYS = {
    "step_before_optimizer": re.compile(r"lr_scheduler\.step\(\). before .optimizer\.step"),
    "no_grad": re.compile(r"does not require grad|requires_grad=True gradients will be None|unused parameters"),
    "not_loaded": re.compile(r"newly initialized|missing keys|unexpected keys|not initialized from", re.IGNORECASE),
    "skipping": re.compile(r"skipping (?:step|batch|update)|overflow.{0,40}skip", re.IGNORECASE),
    "nan_input": re.compile(r"(?:input|feature|observation|batch)\w* (?:contains?|has|is) (?:nan|inf)", re.IGNORECASE),
}


@measure()
def printed(run: Run) -> Seen | None:
    """Return which warning that names a cause the log prints, as one of the words in `_SAYS`."""
    for line in run.lines:
        for word, pattern in _SAYS.items():
            if pattern.search(line.text):
                return Seen(word, f"the log prints {line.text.strip()[:80]!r}", "")
    return None
