"""What a reward proves: whether held-out answers follow it, what it pays for, and whether it still rises."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stabtree.common import shared
from stabtree.common.answer import NO, Answer, Evidence, inapplicable, measured
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.shared import above, below, whether
from stabtree.common.stats import MEDIAN_ERROR, blocks, change_noise, kendall_z, median, true_at_end
from stabtree.measures.registry import Groups, finite, measure
from stabtree.measures.traces import text_or_not
from stabtree.metrics.metric import Role
from stabtree.metrics.role import describe_name

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats
    from stabtree.context.model import Context
    from stabtree.run import Run, Series

HELD_OUT = re.compile(r"(?:eval|val|valid|validation|test)[\W_]", re.IGNORECASE)
RIGHT = re.compile(r"correct|accura|answer|solv|exact|equal|math|pass", re.IGNORECASE)


def _gain(values: Floats) -> tuple[float, float, float]:
    """Return the levels of the first and the last rows, and the standard error of their difference."""
    part = max(4, len(values) // shared.LEVELS)
    error = MEDIAN_ERROR * change_noise(values) * (2 / part) ** 0.5
    return median(values[:part]), median(values[-part:]), error


@measure(source="rldoctor; reward hacking in public logs", min_points=shared.ROWS_LONG)
def heldout_reward_flat(run: Run, context: Context, reward: Series, *, share: float, rows: int = 8) -> Answer:
    """Does the reward on held-out prompts stand still while that of training rises far?

    Yes where training gains half of its first level or more, by ten times its error, and none of the held-out rewards,
    of `rows` evaluations at least, gains a `share` of that gain or twice its own error. Asked of a policy that writes
    text: one that acts is often evaluated without its noise, in units of its own.
    """
    held_out = {
        name: found
        for name, series in run.others.items()
        if HELD_OUT.match(name) and describe_name(name).role is Role.REWARD
        if len(found := finite(series)[1]) >= rows
    }
    if not held_out:
        return Answer(NO, (Evidence("no reward on held-out prompts has enough rows", "reward"),))
    if not text_or_not(run, context):
        return inapplicable("the policy is not known to write text")
    at, values = finite(reward)
    first, last, error = _gain(values)
    gain = last - first
    text = f"reward goes from {figure(first)} to {figure(last)}"
    rises = min(above(gain, shared.FACTOR_LARGE * error), above(gain, shared.SHARE_HALF * abs(first)))
    conditions, told = [rises], [text]
    for name, found in held_out.items():
        begin, end, own = _gain(found)
        # What was gained before the first evaluations can't show in them.
        trained = values[np.maximum(np.searchsorted(at, finite(run.others[name])[0], side="right") - 1, 0)]
        before, after, _ = _gain(trained)
        meanwhile = after - before
        conditions.append(below(end - begin, max(share * meanwhile, shared.NOISE_TIMES * own)))
        conditions.append(above(meanwhile, shared.SHARE_HALF * gain) if gain > 0 else -1.0)
        told.append(f"{name} from {figure(begin)} to {figure(end)}")
    brief = f"{figure(first)} to {figure(last)} in training, {told[1].split(' from ')[1]} held out"
    evidence = Evidence(", ".join(told), "reward", (int(at[0]), int(at[-1])), gain, error, brief)
    left = np.flatnonzero(values <= first + shared.NOISE_TIMES * error)
    onset = int(at[min(int(left[-1]) + 1, len(at) - 1)]) if len(left) else int(at[0])
    return measured(min(conditions), (evidence,), onset_step=onset)


@measure(source="rldoctor; GRPO on prompts that are too hard", min_points=shared.ROWS_LONG)
def only_form_pays(reward: Series, reward_function: Groups, *, level: float) -> Answer:
    """Does the reward rise by other functions alone, while that for a right answer stays near 0?

    Yes where the functions whose names say that they check the answer stay below `level` in nine tenths of their rows
    and gain no more than their error explains, while the reward gains by three times its error.
    """
    right = {name: row for name, one in reward_function.items() if RIGHT.search(name) and len(row := finite(one)[1])}
    if not right or len(right) == len(reward_function):
        text = "no function that checks the answer is logged beside another one"
        return Answer(NO, (Evidence(text, "reward_function"),))
    at, values = finite(reward)
    first, last, error = _gain(values)
    conditions = [above(last - first, shared.FACTOR * error)]
    told = [f"reward goes from {figure(first)} to {figure(last)}"]
    for name, found in right.items():
        begin, end, own = _gain(found)
        low = min(whether(bool(found.min() >= 0)), below(float(np.quantile(found, shared.SHARE_MOST)), level))
        conditions += [low, below(end - begin, max(shared.FACTOR * own, 1e-9))]
        told.append(f"{name} from {figure(begin)} to {figure(end)}")
    evidence = Evidence(", ".join(told), "reward", (int(at[0]), int(at[-1])), last - first, error, told[1])
    return measured(min(conditions), (evidence,), onset_step=int(at[0]))


@measure(source="rldoctor; what a settled loss is told", min_points=2 * shared.ROWS_LONG)
def reward_settles(reward: Series, *, flat_share: float, factor: float = shared.FACTOR_LARGE) -> Answer:
    """Has the reward risen, and stood still since for most of the run?

    Yes where its levels stay within three times their scatter of the last one for `flat_share` of the run, without a
    trend, after a gain of `factor` times that scatter. A reward at the top that it ever reached in half of the rows
    since is earned in full.
    """
    at, values = finite(reward)
    levels, starts = blocks(values, min(2 * shared.LEVELS, len(values) // 2))
    flat = levels[-max(3, int(flat_share * len(levels))) :]
    end, scatter = median(flat), max(change_noise(flat), 1e-300)
    since = true_at_end(np.abs(levels - end) <= shared.FACTOR * scatter)
    row, gain = int(starts[-since]) if since else len(values) - 1, end - float(levels[0])
    text = f"reward goes from {figure(float(levels[0]))} to {figure(end)} by step {int(at[row]):,}, and stays there"
    full = float(np.mean(values[row:] >= values.max()))
    strength = min(
        above(since, flat_share * len(levels)),
        above(gain, factor * scatter),
        below(abs(kendall_z(levels[-since:])) if since else 0.0, shared.TREND_Z),
        whether(full < shared.SHARE_HALF),
    )
    found = Evidence(text, "reward", (int(at[row]), int(at[-1])), since / len(levels), flat_share)
    return measured(strength, (found,), onset_step=int(at[row]))
