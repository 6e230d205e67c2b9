"""Clues from rewards and from preferences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import rows_before
from stabtree.common.stats import median
from stabtree.context import model
from stabtree.facts.registry import finite
from stabtree.predicates.clues.registry import Seen, clue

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.context.model import Context
    from stabtree.predicates.clues.registry import Moment
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
