"""Clues from what happens to a run: spikes, values that are not finite, printed lines, rewards and preferences."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import row_of, rows_before, rows_upto
from stabtree.common.shared import FACTOR, ROWS_LONG, ROWS_SHORT
from stabtree.common.stats import LARGEST, interval, median
from stabtree.context import model
from stabtree.measures.clues import Seen, clue
from stabtree.measures.lines import own_frame
from stabtree.measures.nonfinite import rose, terms_at, which_terms
from stabtree.measures.registry import finite

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.context.model import Context
    from stabtree.measures.clues import Moment
    from stabtree.measures.movers import Break
    from stabtree.measures.spike import Spike
    from stabtree.run import Run, Series


OF_TEXT = ("completion_length", "clipped_ratio", "frac_reward_zero_std", "token_accuracy", "logp_diff")
TEXT_TRAINERS = ("trl", "verl", "openrlhf", "axolotl", "llamafactory", "huggingface")
GAME_TRAINERS = ("sb3", "baselines", "cleanrl", "tianshou", "rllib")
OF_EPISODES = ("ep_len", "episode", "ep_rew", "ep_ret", "eprew", "success_rate", "return")


def text_or_not(run: Run, context: Context) -> bool | None:
    """Return whether a policy writes text (else it acts in an environment); None where the log doesn't show it."""
    task, trainer = context.task.value, context.framework.value
    if task in (model.GRPO, model.PREFERENCE, model.LANGUAGE) or trainer in TEXT_TRAINERS or any(map(run.has, OF_TEXT)):
        return True
    names = [one.origin.lower() for one in run.series.values()] + [name.lower() for name in run.others]
    episodes = any(word in name for name in names for word in OF_EPISODES)
    if episodes or trainer in GAME_TRAINERS or task in (model.ON_POLICY, model.OFF_POLICY):
        return False
    return None


@clue
def policy_writes(_moment: Moment, run: Run, context: Context) -> Seen | None:
    """Return whether the policy writes `text` or makes `moves` in an environment."""
    text = text_or_not(run, context)
    if text is None:
        return None
    return Seen("text", "the policy writes text") if text else Seen("moves", "the policy acts in an environment")


@clue
def return_size(moment: Moment, run: Run, context: Context, reward: Series) -> Seen | None:
    """Return the size of an episode's return before the trouble, and how this trainer scales it."""
    values = _before(reward, moment)
    if not len(values) or text_or_not(run, context) is not False:
        return None
    size = abs(median(values))
    how = "VecNormalize(norm_reward=True)"
    if context.framework.value != "sb3":
        how = f"divide them by {figure(_round(size))}"
    return Seen(size, f"an episode earns {figure(median(values))}; 1 to 10 is easy to learn", how, "reward")


@clue
def reward_gain(_moment: Moment, reward: Series) -> Seen | None:
    """Return what the reward gained from its first level to its last, as a share of its range."""
    values = finite(reward)[1]
    size = min(max(shared.ROWS_SHORT, len(values) // shared.LEVELS), len(values) // 2)
    if not size:
        return None
    first, last = median(values[:size]), median(values[-size:])
    spread = float(values.max() - values.min())
    gain = (last - first) / spread if spread else 0.0
    first_, last_ = figure(first), figure(last)
    return Seen(gain, f"the reward goes from {first_} to {last_}", f"{first_} → {last_}", "reward")


@clue
def reward_end(_moment: Moment, reward: Series) -> Seen | None:
    """Return how the reward ends: at the `top` in row after row, never above 0 (`zero`), lost `at once`, or `open`."""
    steps, values = finite(reward)
    if len(values) < shared.ROWS_SHORT:
        return None
    last, top = float(values[-1]), float(values.max())
    other = np.flatnonzero(values != last)
    since = int(other[-1]) + 1 if len(other) else 0
    step = int(steps[since])
    if last == 0 and not len(other):
        return Seen("zero", "no answer earns anything", "", "reward")
    if since and len(values) - since >= shared.ROWS_SHORT:
        if last == top:
            text = f"every answer has earned {figure(top)}, the most in this log, since step {step:,}"
            return Seen("top", text, "", "reward", (step,))
        if last == 0 and abs(values[since - 1]) >= shared.SHARE_HALF * median(np.abs(values[:since])):
            return Seen("at once", f"the reward is exactly 0 from step {step:,} on", "", "reward", (step,))
    return Seen("open", f"the reward ends at {figure(last)}", "", "reward")


@clue
def cut_share(_moment: Moment, clipped_ratio: Series) -> Seen | None:
    """Return which share of the answers is cut off at the end of the log."""
    values = finite(clipped_ratio)[1][-shared.ROWS_SHORT :]
    if not len(values):
        return None
    share = median(values)
    return Seen(share, f"{share:.0%} of the answers are cut off at the longest length", f"{share:.0%}", "clipped_ratio")


@clue
def broken_observations(moment: Moment, run: Run) -> Seen | None:
    """Return the first step by the onset from which a series of the observations is not finite."""
    for name, series in run.others.items():
        if "obs" not in name.lower() or not len(series):
            continue
        broken = np.flatnonzero(~np.isfinite(series.values))
        if not len(broken):
            continue
        step = int(series.steps[broken[0]])
        if moment.onset_step is None or step <= moment.onset_step:
            text = f"{name} is not finite from {moment.unit} {step:,} on"
            return Seen("yes", text, f"{name}, {moment.unit} {step:,}", name, (step,))
    return None


@clue
def update_kl(moment: Moment, approx_kl: Series) -> Seen | None:
    """Return how far an update moves the policy, before the trouble or in the whole log."""
    values = _before(approx_kl, moment)
    if not len(values):
        return None
    size = median(values)
    return Seen(
        size, f"an update moves the policy by a KL of {size:.2g}, 0.01 to 0.03 is usual", f"{size:.2g}", "approx_kl"
    )


def _before(series: Series, moment: Moment) -> Floats:
    """Return the finite values before the onset; all of them where there are none."""
    steps, values = finite(series)
    if moment.onset_step is None:
        return values
    before = values[: rows_before(steps, moment.onset_step)]
    return before if len(before) else values


def _round(value: float) -> float:
    """Return a number with one digit, as a person would name it."""
    if value <= 0 or not math.isfinite(value):
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return round(value / unit) * unit


GUESS = 0.5  # no limit: the accuracy of a guess between two answers
FAR_FROM_A_GUESS = 0.1  # no limit: a guess over 100 pairs is within that of one half, two times in a hundred it is not


@clue
def pair_sets(_moment: Moment, preference_accuracy: Series, eval_preference_accuracy: Series) -> Seen | None:
    """Compare what training pairs and held-out pairs teach: `opposite`, `both wrong`, or `alike`."""
    ends = [finite(one)[1][-shared.ROWS_LONG :] for one in (preference_accuracy, eval_preference_accuracy)]
    if min(map(len, ends)) < 2:
        return None
    trained, held_out = map(median, ends)
    text = f"the accuracy on training pairs ends at {trained:.2f}, on held-out pairs at {held_out:.2f}; a guess has .50"
    low, high = GUESS - FAR_FROM_A_GUESS, GUESS + FAR_FROM_A_GUESS
    word = "alike"
    if max(trained, held_out) < low:
        word = "both wrong"
    elif min(trained, held_out) < low and max(trained, held_out) > high:
        word = "opposite"
    return Seen(word, text, f"{trained:.2f} and {held_out:.2f}", "eval_preference_accuracy")


@clue
def chosen_times(_moment: Moment, run: Run) -> Seen | None:
    """Return how many times further below 0 the log-probability of the chosen answers ends than it began."""
    chosen = (one for name, one in run.others.items() if name.endswith("logps/chosen") and not name.startswith("eval"))
    series = next(chosen, None)
    if series is None:
        return None
    values = finite(series)[1]
    size = min(shared.ROWS_SHORT, len(values) // 2)
    if not size or (first := median(values[:1])) >= 0:
        return None
    last = median(values[-size:])
    text = f"{series.origin or series.metric} goes from {first:.3g} to {last:.3g}: the chosen answers become unlikelier"
    if last >= first:
        text = f"{series.origin or series.metric} does not fall: {first:.3g} → {last:.3g}"
    return Seen(last / first, text, f"{first:.3g} → {last:.3g}", series.metric)


@clue
def spikes_now_and_before(_moment: Moment, loss: Series, spike: Spike) -> Seen:
    """Return how many times more spikes the second half of the log has than the first."""
    steps, _ = finite(loss)
    middle = int(steps[len(steps) // 2])
    found = [item.step for item in spike.search.spikes]
    late = sum(step >= middle for step in found)
    early = len(found) - late
    short = f"{late:,} in the last {int(steps[-1]) - middle + 1:,} steps, {early:,} before"
    return Seen(late / max(early, 1), f"spikes: {short}", short, "loss", tuple(found[-4:]))


@clue
def spikes_in_all(_moment: Moment, spike: Spike) -> Seen:
    """Count the spikes of the whole log."""
    found = [item.step for item in spike.search.spikes]
    short = f"{len(found):,} spikes"
    return Seen(float(len(found)), f"the loss spikes {len(found):,} times", short, "loss", tuple(found[:4]))


@clue
def peak_over_start(_moment: Moment, loss: Series, spike: Spike) -> Seen | None:
    """Return how many times the loss of the first rows the spike reaches: a model that knows nothing is at 1."""
    start = median(finite(loss)[1][:ROWS_SHORT])
    if start <= 0:
        return None
    times = spike.top.peak / start
    return Seen(
        times, f"the loss reaches {times:.3g} times its first level", f"{times:.3g}", "loss", (spike.top.peak_step,)
    )


@clue
def gradient_rows_up(_moment: Moment, grad_norm: Series, spike: Spike) -> Seen | None:
    """Return for how many rows in a row, from the spike on, grad_norm is three times its usual value or not finite."""
    top = spike.top
    before = grad_norm.values[(grad_norm.steps < top.step) & np.isfinite(grad_norm.values)][-ROWS_LONG:]
    after = grad_norm.values[rows_before(grad_norm.steps, top.step) :]
    usual = median(before) if len(before) >= ROWS_SHORT else 0.0
    if usual <= 0 or not len(after):
        return None
    up = ~(after <= FACTOR * usual)
    rows = int(np.argmin(up)) if not up.all() else len(up)
    text = f"grad_norm is above {FACTOR:g} times its usual value for {rows:,} row{'s' if rows != 1 else ''}"
    return Seen(rows, text, f"{rows:,}", "grad_norm", (top.step,))


@clue
def same_batch(moment: Moment, batch_id: Series) -> Seen | None:
    """Return for how many rows in a row before the trouble the batch was one and the same."""
    if moment.onset_step is None:
        return None
    steps, ids = finite(batch_id)
    end = int(np.searchsorted(steps, moment.onset_step))
    new = np.flatnonzero(np.diff(ids[:end]))
    best, where = 0, 0
    starts = np.concatenate(([0], new + 1))
    for start, stop in zip(starts, [*starts[1:], end], strict=True):
        if int(stop) - int(start) >= best:
            best, where = int(stop) - int(start), int(start)
    if not end or not best:
        return None
    name = batch_id.labels.get(float(ids[where])) or f"{ids[where]:.0f}"
    first, last = int(steps[where]), int(steps[where + best - 1])
    text = f"batch {name[:16]} comes {best:,} times in a row, steps {first:,} to {last:,}"
    return Seen(best, text, f"steps {first:,} to {last:,}", "batch_id", (first, last))


@clue
def first_bad_value(_moment: Moment, loss_break: Break) -> Seen:
    """Return what the loss became first: `nan` or `inf`."""
    word = "inf" if np.isinf(loss_break.value) else "nan"
    name = "infinite" if word == "inf" else "NaN"
    return Seen(word, f"the loss is {name} at step {loss_break.step:,}", name, "loss", (loss_break.step,))


@clue
def finite_terms(_moment: Moment, run: Run, loss_break: Break) -> Seen | None:
    """Return how many terms of the loss are finite where others break: a NaN in the inputs would reach them all."""
    broken, sound = terms_at(run, loss_break.step)
    if not broken:
        return None
    text = which_terms(run, loss_break.step) or "no term of the loss is finite there"
    return Seen(float(len(sound)), text, f"{len(sound)}", "loss", (loss_break.step,))


@clue
def broken_from_start(_moment: Moment, run: Run, loss: Series) -> Seen | None:
    """Return whether the very first loss is NaN or infinite: `yes` or `no`; an excerpt does not show it."""
    broken = not np.isfinite(loss.values[0])
    if broken and run.excerpt_from is not None:
        return None
    what = "NaN or infinite" if broken else "finite"
    return Seen("yes" if broken else "no", f"the very first loss is {what}", "", "loss", (int(loss.steps[0]),))


@clue
def rise_before_break(
    _moment: Moment, run: Run, loss: Series, loss_break: Break, grad_norm: Series | None = None
) -> Seen | None:
    """Return how many times its usual value the loss or the gradient reaches in the last rows before the break.

    Of a log with fewer than four rows before it, how many times its first value the loss reaches. A term of the loss
    that is finite in the row of the break shows it there.
    """
    series = (loss,) if grad_norm is None else (loss, grad_norm)
    rises = [(found[0], item.metric) for item in series if (found := loss_break.rise_before(item))]
    values = loss.values[: loss_break.row]
    if not rises and len(values) > 1 and values[0] > 0 and np.isfinite(values).all():
        rises = [(min(float(values[-1] / values[0]), LARGEST), "loss")]
    for term in terms_at(run, loss_break.step)[1]:
        before = term.values[: rows_before(term.steps, loss_break.step)]
        before = np.abs(before[np.isfinite(before)])
        if len(before) and median(before) > 0:
            there = abs(float(term.values[row_of(term.steps, loss_break.step)][0]))
            rises.append((min(there / median(before), LARGEST), term.metric))
    if not rises:
        return None
    times, metric = max(rises)
    text = f"{metric} had risen to {times:,.3g} times its usual value right before"
    return Seen(times, text, f"{times:,.3g}", metric)


@clue
def trains_on(_moment: Moment, loss: Series, eval_loss: Series) -> Seen | None:
    """Return how many rows of the loss are finite after the eval loss first is not; None where one of them is not.

    Weights that hold a NaN or an infinity give no finite training loss.
    """
    broken = ~np.isfinite(eval_loss.values)
    first = int(eval_loss.steps[np.argmax(broken)])
    after = loss.values[rows_upto(loss.steps, first) :]
    if not broken.any() or not len(after) or not np.isfinite(after).all():
        return None
    text = (
        f"the training loss stays finite in the {len(after):,} rows after it ({figure(after[0])} → {figure(after[-1])})"
    )
    return Seen(float(len(after)), text, f"{len(after):,} rows", "loss", (first,))


@clue
def left_lowest(_moment: Moment, loss: Series, loss_break: Break) -> Seen | None:
    """Return by which share the loss had left its lowest value for good before it broke; None where it had not."""
    found = rose(loss, loss_break.step)
    if found is None:
        return None
    seen = found.evidence[0]
    return Seen(seen.observed or 0.0, seen.text, f"{seen.observed:.0%}", "loss", seen.steps)


@clue
def jump_orders(_moment: Moment, loss: Series, loss_break: Break) -> Seen | None:
    """Return how many orders of magnitude the loss jumps within one step from a level, before it breaks."""
    values = loss.values[: loss_break.row]
    if len(values) < 4 or interval(loss.steps) > 1 or not (np.isfinite(values) & (values > 0)).all():
        return None
    jumps = np.diff(np.log10(values))
    at = 2 + int(np.argmax(jumps[2:]))
    if values[: at + 1].max() > FACTOR * values[: at + 1].min():
        return None
    step, text = int(loss.steps[at + 1]), f"the loss jumps from {figure(values[at], 4)} to {figure(values[at + 1], 4)}"
    return Seen(float(jumps[at]), f"{text} in one step, {step:,}", f"{jumps[at]:.0f} orders", "loss", (step,))


@clue
def sound_rows_after(_moment: Moment, loss: Series, loss_break: Break) -> Seen:
    """Return which share of the rows after the first bad one is finite: 0 where the weights are lost."""
    after = np.isfinite(loss.values[loss_break.row + 1 :])
    share = float(after.mean()) if len(after) else 0.0
    text = f"{int(after.sum()):,} of the {len(after):,} rows after it are finite"
    return Seen(share, text, f"{share:.0%}", "loss", (loss_break.step,))


@clue
def loss_alone(_moment: Moment, loss: Series, loss_break: Break, grad_norm: Series) -> Seen | None:
    """Return whether only the loss breaks: the gradient is finite from there on, and so are later losses.

    Weights that hold a NaN give neither. None where fewer than three gradients were logged from the break on.
    """
    norms = grad_norm.values[rows_before(grad_norm.steps, loss_break.step) :]
    if len(norms) < ROWS_SHORT:
        return None
    back = int(np.isfinite(loss.values[loss_break.row + 1 :]).sum())
    sound = int((np.isfinite(norms) & (norms > 0)).sum())
    alone = back >= ROWS_SHORT and sound == len(norms)
    text = f"from step {loss_break.step:,} on {sound:,} of {len(norms):,} gradient norms are finite and above 0, and "
    text += f"the loss comes back in {back:,} rows"
    return Seen("yes" if alone else "no", text, "", "loss", (loss_break.step,))


_RANK = re.compile(r"\brank ?[1-9]|local_rank", re.IGNORECASE)


@clue
def failing_line(_moment: Moment, run: Run) -> Seen | None:
    """Return the last line of the user's own code in the traceback that ended the run."""
    frame = own_frame(run)
    return Seen("yes", f"the error was raised at {frame}", frame) if frame else None


@clue
def several_ranks(_moment: Moment, run: Run) -> Seen:
    """Return whether the log is of several ranks."""
    if run.ranks or any(_RANK.search(line.text) for line in run.lines):
        return Seen("yes", "the log names several ranks")
    return Seen("no", "the log names one process only")


YES, NO = "yes", "no"
ROWS_AFTER = 20  # no limit: rows after a resume in which what was not restored shows


@clue
def resumed_before(moment: Moment, run: Run, loss: Series) -> Seen | None:
    """Return whether the run was resumed within 20 rows before the onset; None without an onset."""
    if moment.onset_step is None:
        return None
    row = int(np.searchsorted(loss.steps, moment.onset_step))
    since = int(loss.steps[max(row - ROWS_AFTER, 0)]) if len(loss) else 0
    found = [item.to_step for item in run.resumes if since <= item.to_step <= moment.onset_step]
    if not found:
        return Seen(NO, "the log shows no resume in the 20 rows before", "", "loss")
    text = f"the run was resumed at step {found[-1]:,}, right before"
    return Seen(YES, text, f"step {found[-1]:,}", "loss", (found[-1],))


@clue
def quality_back(moment: Moment, eval_loss: Series) -> Seen | None:
    """Return the best held-out loss after the onset over the best before it: 1 where the model is as good again."""
    if moment.onset_step is None:
        return None
    steps, values = finite(eval_loss)
    before, after = values[: rows_before(steps, moment.onset_step)], values[rows_before(steps, moment.onset_step) :]
    if not len(before) or not len(after) or before.min() <= 0:
        return None
    share = float(after.min() / before.min())
    text = f"eval_loss was {figure(before.min())} at its best before, and {figure(after.min())} after"
    return Seen(share, text, f"{figure(before.min())} → {figure(after.min())}", "eval_loss")
