"""The learning rate: what its schedule leaves in a log, and which rates are usual."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from stabtree.common import shared
from stabtree.common.answer import LIKELY, NO, POSSIBLE, YES, Answer, Evidence, measured, unknown
from stabtree.common.figures import against, figure
from stabtree.common.lazy import np
from stabtree.common.passes import never_falls, rows_before, rows_upto
from stabtree.common.shared import FARTHEST, ROWS_LONG, TINY, TREND_Z, above, below, whether
from stabtree.common.stats import median, resolution, stretches
from stabtree.context import model
from stabtree.measures.registry import Count, finite, highest, highest_row, lowest, measure, number
from stabtree.profile import profile_of

if TYPE_CHECKING:
    from stabtree.common.lazy import Floats, Ints
    from stabtree.context.model import Context
    from stabtree.measures.movers import Movers
    from stabtree.measures.spike import Spike
    from stabtree.run import Run, Series


# What the model does itself, before a loss that other data would raise at once.
OURS = ("grad_norm", "weight_norm", "update_ratio")


@measure(source="convergence O4", labels=(LIKELY, NO))
def norm_sums_up(grad_norm: Series) -> Answer:
    """Does grad_norm grow like a sum over the very first steps?

    A gradient that is never zeroed is the sum of the batches so far: the norms of the first steps rise one after the
    other, to more than three times the first.
    """
    rows, growth = shared.ROWS_SHORT, shared.FACTOR
    first, steps = grad_norm.values[:rows], grad_norm.steps[:rows]
    if len(first) < rows or steps[0] > 1 or (np.diff(steps) != 1).any():
        return unknown(f"grad_norm is not logged at each of the first {rows} steps", "grad_norm")
    if not np.isfinite(first).all() or first[0] <= 0:
        return Answer(NO, (Evidence(f"grad_norm is 0 or not finite in its first {rows} rows", "grad_norm"),))
    times = float(np.clip(first[-1] / first[0], -1e300, 1e300))
    text = f"grad_norm goes from {figure(first[0])} to {figure(first[-1])} over its first {rows} steps"
    found = (Evidence(text, "grad_norm", (int(grad_norm.steps[rows - 1]),), times, growth),)
    return measured(min(above(times, growth), whether(bool((np.diff(first) > 0).all()))), found, LIKELY)


@measure(source="phase19 Q4.4", labels=(LIKELY, POSSIBLE, NO))
def data_changes(
    spike: Spike,
    movers: Movers,
    grad_norm: Series | None = None,
    lr: Series | None = None,
    *,
    factor: float = shared.FACTOR_LARGE,
    lr_factor: float = shared.FACTOR_SMALL,
    rows: Count = 5,
) -> Answer:
    """Does the level of the loss change for good while the gradient stays as before?

    Likely where the median of grad_norm in the `rows` rows from the onset on is below `factor` times its mean before:
    the weights were not thrown, so it is what they are shown. Possible where no grad_norm was logged. No where a
    gradient, a weight or an update left its course before the loss did, or where lr rises by more than `lr_factor`
    from the window before
    to these rows: then it may be the rate.
    """
    top = spike.top
    level = Evidence(f"the loss changes its level at step {top.step:,}", "loss", (top.step,))
    led = [move for move in movers.by(top.step) if move.step < top.step and move.metric.partition("/")[0] in OURS]
    if led:
        return Answer(NO, tuple(move.before(top.step) for move in led[:1]))
    if lr is not None:
        steps, rates = finite(lr)
        old = rates[rows_before(steps, top.step - spike.params.window_steps) : rows_before(steps, top.step)]
        new = rates[rows_before(steps, top.step) :][:rows]
        if len(old) and len(new) and float(new.max()) > lr_factor * float(old.min()):
            text = f"lr goes from {figure(float(old.min()))} to {figure(float(new.max()))} around step {top.step:,}"
            return Answer(NO, (Evidence(text, "lr", (top.step,)),))
    if grad_norm is None:
        return Answer(POSSIBLE, (level,))
    before = (grad_norm.steps >= top.step - spike.params.window_steps) & (grad_norm.steps < top.step)
    usual = grad_norm.values[before & np.isfinite(grad_norm.values)]
    after = grad_norm.values[rows_before(grad_norm.steps, top.step) :][:rows]
    if not len(usual) or not len(after) or float(usual.mean()) <= 0:
        return Answer(POSSIBLE, (level,))
    ratio = float(np.clip(median(np.nan_to_num(after, nan=np.inf)) / float(usual.mean()), -1e300, 1e300))
    text = f"grad_norm is {against(ratio, factor)}× its mean before, the median of the {len(after)} rows "
    text += f"from step {top.step:,} on"
    found = Evidence(f"{text} (limit {factor:g}×)", "grad_norm", (top.step,), ratio, factor)
    return Answer(LIKELY if ratio < factor else NO, (found,))


MOVES = ("cos", "linear", "poly", "exp", "inv", "sqrt", "cycl", "one", "warm_restart", "noam", "wsd")
STEPPED = ("step", "milestone", "piecewise")
FIXED = 1e-3  # of the peak: a rate printed with four digits has not moved by less, and nothing is learned below it
STEADY = 1.2  # a rate that had risen by more than this from the row before was warming up
EARLY_ROWS = 3  # in which a warm-up at least doubles the rate


@measure(source="convergence O8 and O23", labels=("frozen", "early", "follows"), min_points=2)
def schedule_followed(run: Run, lr: Series, *, min_fall: float, early_share: float = shared.SHARE_HALF) -> Answer:
    """Does the logged learning rate do what the configured schedule says?

    `frozen`: the schedule should by now have lowered the rate by `min_fall` (a cosine does so after a tenth of its
    way, a stepped one at its first milestone), and since the warm-up it has not moved by 0.1%. `early`: before
    `early_share` of the planned steps the rate goes below a thousandth of its peak for good, or, where the schedule
    moves to its end, to a floor below half of its peak, and stays for a twentieth of the plan at least: a
    scheduler that is stepped more often than planned. Needs `lr_schedule` and `max_steps` or `lr_milestones` from the
    configuration.
    """
    steps, values = finite(lr)
    schedule = str(run.setting("lr_schedule") or "").lower()
    planned, warmup = run.setting("max_steps"), run.setting("warmup_steps")
    milestones = run.setting("lr_milestones")
    if not schedule:
        return unknown("the configuration names no lr_schedule", "lr_schedule")
    begin = warmup if isinstance(warmup, int) else 0
    last, peak = int(steps[-1]), float(values.max())
    after = values[steps >= begin]
    if len(after) < 3 or peak <= 0:
        return unknown(f"lr has fewer than three rows after the warm-up of {begin:,} steps", "lr")
    by: int | None = None
    if any(word in schedule for word in STEPPED) and isinstance(milestones, tuple) and milestones:
        by = milestones[0]
    elif any(word in schedule for word in MOVES) and "constant" not in schedule and isinstance(planned, int):
        by = begin + math.ceil((planned - begin) * math.acos(max(-1.0, 1 - 2 * min_fall)) / math.pi)
    if by is not None and last > by and float(np.ptp(after)) <= FIXED * peak:
        text = f"lr stays at {figure(after[-1])} from step {int(steps[steps >= begin][0]):,} to {last:,}, although the "
        text += f"schedule is {schedule!r} and should have moved it by step {by:,}"
        onset = int(steps[steps >= by][0])
        found = (Evidence(text, "lr", (onset, last), float(np.ptp(after)) / peak, FIXED),)
        return Answer("frozen", found, onset_step=onset, last_good_step=onset, strength=FARTHEST)
    at = _ends(steps, values, schedule)
    if isinstance(planned, int) and at is not None:
        text = f"lr is down to {figure(values[-1], 2)}, from {figure(peak)}, at step {at:,} of {planned:,} planned, "
        found = (Evidence(f"{text}and stays there", "lr", (at, last), at / planned, early_share),)
        strength = min(below(at, early_share * planned), above(last - at, shared.SHARE_SOME * planned))
        verdict = "early" if strength >= 0 else "follows"
        return Answer(verdict, found, onset_step=at if strength >= 0 else None, strength=strength, near="early")
    text = f"lr goes from {figure(after[0])} to {figure(after[-1])} after the warm-up, the schedule is {schedule!r}"
    return Answer("follows", (Evidence(text, "lr", (int(steps[0]), last), float(np.ptp(after)) / peak, FIXED),))


def _ends(steps: Ints, values: Floats, schedule: str) -> int | None:
    """Return the step from which the rate is next to nothing, or at the floor of a schedule that should still move."""
    if any(word in schedule for word in (*STEPPED, "cycl", "restart")):
        return None  # may be this low early by design
    peak, floor = float(values.max()), float(values[-1])
    moves = any(word in schedule for word in MOVES) and "constant" not in schedule
    low = values < FIXED * peak
    if moves and floor < shared.SHARE_HALF * peak:
        low |= values <= floor + FIXED * peak
    high = np.flatnonzero(~low)
    return int(steps[high[-1] + 1]) if len(high) and high[-1] + 1 < len(steps) else None


ELSEWHERE = "elsewhere"


@measure(source="measured: runs whose schedule was built for fewer steps", labels=(YES, ELSEWHERE, NO), min_points=8)
def lr_at_zero(lr: Series, loss: Series | None = None, *, min_share: float) -> Answer:
    """Does the run go on with a learning rate of 0?

    Yes where the rate, once it has peaked, stays at a thousandth of its peak or below for `min_share` of the rows
    and of the steps while the loss is logged on. It must be exactly 0, or have got there within one row from 5% of
    the peak: a decay that goes on for decades gets there by plan. A rate printed with so few digits that the last
    one is more than 5% of its peak may only look like 0. A rate below 0 is never meant; one that is 0 in every row is
    the optimizer's own where the loss does not fall, and `elsewhere` the column is not its rate.
    """
    steps, values = finite(lr)
    peak, least = highest(lr), lowest(lr)
    if least < 0:
        at = int(steps[np.argmax(values < 0)])
        text = f"lr is below 0 from step {at:,} on, {figure(least)} at its lowest: such a step goes up the gradient"
        negative = Evidence(text, "lr", (at,), least, 0.0, f"below 0 from step {at:,} on")
        return Answer(YES, (negative,), onset_step=at, strength=FARTHEST)
    if peak <= 0:
        return _zero_throughout(lr, loss, min_share)
    top = highest_row(lr)
    after = values[top:]
    if after.min() > FIXED * peak:
        text = f"lr never falls to {FIXED:g} of its peak, {figure(peak)}"
        return Answer(NO, (Evidence(text, "lr", (int(steps[top]),), float(after.min()) / peak, FIXED),))
    begin, end = (top + row for row in max(stretches(after <= FIXED * peak), key=lambda part: part[1] - part[0]))
    rows = (end - begin) / len(values)
    at, last = int(steps[begin]), int(steps[end - 1])
    text = f"lr is {figure(values[begin], 2)} in {end - begin:,} of {len(values):,} rows (limit {min_share:.0%}), "
    text += f"from step {at:,} to {last:,}; its peak is {figure(peak)}"
    brief = f"0 from step {at:,} of {int(steps[-1]):,}"
    evidence = (Evidence(text, "lr", (at, last), rows, min_share, brief),)
    steps_share = (last - at) / max(int(steps[-1]) - int(steps[0]), 1)
    trained = loss is None or int(((loss.steps >= at) & (loss.steps <= last)).sum()) >= 2
    exact = whether(float(values[begin:end].max()) == 0)
    gone = max(exact, above(float(values[begin - 1]), shared.SHARE_SOME * peak))
    strength = min(above(rows, min_share), above(steps_share, min_share), whether(trained), gone)
    if resolution(values) > shared.SHARE_SOME * peak:
        strength = min(strength, -TINY)  # near, and no more
    return measured(strength, evidence, onset_step=at, last_good_step=int(steps[begin - 1]))


def _zero_throughout(lr: Series, loss: Series | None, min_share: float) -> Answer:
    """Answer for a rate that is 0 in every row, by whether the loss falls nevertheless."""
    if loss is None or len(finite(loss)[1]) < ROWS_LONG:
        return unknown("lr is 0 in every row: it may be printed with too few digits", "lr")
    steps, course = finite(lr)[0], profile_of(loss)
    falls = -course.trend >= TREND_Z or course.first - course.last > course.level_noise
    text = f"lr is 0 in each of its {len(steps):,} rows, and the loss {'falls' if falls else 'does not fall'}"
    brief = "0 in every row" + (", and the loss falls: that can't be the optimizer's rate" if falls else "")
    found = Evidence(text, "lr", (int(steps[0]), int(steps[-1])), 1.0, min_share, brief)
    return Answer(ELSEWHERE if falls else YES, (found,), onset_step=int(steps[0]), strength=FARTHEST)


@measure(source="measured: schedules whose rate comes back above where it was", min_points=8)
def lr_rises_late(
    run: Run, lr: Series, *, first_share: float, factor: float = shared.FACTOR, warm_levels: Count = shared.ROWS_SHORT
) -> Answer:
    """Does the learning rate rise far above its first peak, long after the start?

    Yes where it exceeds `factor` times the peak of the first `first_share` of the steps. One warm-up from the start is
    healthy however long it is: a rate that never falls and goes up in `warm_levels` levels at least.
    """
    schedule = str(run.setting("lr_schedule") or "").lower()
    steps, values = finite(lr)
    first_step = int(steps[0]) + first_share * (int(steps[-1]) - int(steps[0]))
    first = rows_upto(steps, first_step)
    peak, most, most_step = float(values[:first].max()), highest(lr), int(steps[highest_row(lr)])
    text = f"lr reaches {figure(most)} at step {most_step:,}; in its first "
    text += f"{first_share:.0%} of the steps it peaks at {figure(peak)} (limit {factor:g}×)"
    evidence = (Evidence(text, "lr", (most_step,), most / peak if peak > 0 else 0.0, factor),)
    if peak <= 0 or "cycl" in schedule:
        return Answer(NO, evidence)
    strength = above(most / peak - 1, factor - 1)
    top = int(np.argmax(values > min(factor * peak, most / 2)))
    before = values[: top + 1]
    if never_falls(before) and np.count_nonzero(before[1:] != before[:-1]) >= warm_levels - 1:
        return Answer(NO, evidence)
    if strength < 0:
        return measured(strength, evidence)
    start = int(np.argmax(before[:first]))
    at = top
    if top > start:
        at = start + 1 + int(np.flatnonzero(values[start:top] <= values[start:top].min())[-1])
    low = float(values[at - 1])
    brief = f"{figure(low)} → {figure(most)} from step {int(steps[at]):,}"
    evidence = (replace(evidence[0], brief=brief),)
    return measured(strength, evidence, onset_step=int(steps[at]), last_good_step=int(steps[at - 1]))


@measure(source="measured: resumed runs whose schedule began anew", min_points=8)
def lr_restarts(run: Run, lr: Series, *, low_share: float, back_share: float = shared.SHARE_HALF) -> Answer:
    """Does the learning rate warm up again where the run was resumed?

    Yes where the first rate after a resume is below `low_share` of the last one before it, and later rows reach
    `back_share` of that again.
    """
    if not run.resumes:
        text = "the steps of the log never go back: no resume is seen"
        return Answer(NO, (Evidence(text, "lr", (), 0.0, low_share),))
    steps, values = finite(lr)
    for resume in run.resumes:
        at = int(np.searchsorted(steps, resume.to_step))
        if not 0 < at < len(steps) or values[at - 1] <= 0:
            continue
        before, after, later = float(values[at - 1]), float(values[at]), float(values[at:].max())
        if after < low_share * before and later >= back_share * before:
            text = f"lr falls from {figure(before)} to {figure(after)} at the resume of step {int(steps[at]):,} "
            text += f"and climbs to {figure(later)} again"
            brief = f"{figure(before)} → {figure(after)}"
            found = Evidence(text, "lr", (int(steps[at - 1]), int(steps[at])), after / before, low_share, brief)
            return Answer(YES, (found,), onset_step=int(steps[at]), last_good_step=int(steps[at - 1]))
    text = f"lr continues at its level after {len(run.resumes):,} resumes"
    return Answer(NO, (Evidence(text, "lr", (), float(len(run.resumes)), low_share),))


def largest_leap(lr: Series, end_step: int) -> tuple[int, float, float] | None:
    """Return the step of the largest leap in the last `ROWS_LONG` rows up to a step, with the rates before and after.

    A rate that had risen in the row before as well was warming up, and the first rows of a log are of a warm-up.
    """
    steps, rates = finite(lr)
    end = int(np.searchsorted(steps, end_step, side="right"))
    rows = [
        row
        for row in range(max(EARLY_ROWS, end - ROWS_LONG), end)
        if rates[row - 1] > 0 and rates[row - 2] > 0 and rates[row - 1] <= STEADY * rates[row - 2]
    ]
    if not rows:
        return None
    row = max(rows, key=lambda item: float(rates[item] / rates[item - 1]))
    return int(steps[row]), float(rates[row - 1]), float(rates[row])


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


class Usual(NamedTuple):
    """The learning rates that are usual for an algorithm."""

    low: float  # the lowest
    high: float  # the highest
    of: str  # what it is usual for, as one says it


# The defaults of stable-baselines3 are the highest of each range.
_ALGORITHMS = {  # no limit: each tree states how far from these is too far
    "sac": Usual(1e-4, 3e-4, "SAC"),
    "td3": Usual(3e-4, 1e-3, "TD3"),
    "ddpg": Usual(1e-4, 1e-3, "DDPG"),
    "dqn": Usual(5e-5, 1e-4, "DQN"),
    "ppo": Usual(1e-4, 3e-4, "PPO"),
    "a2c": Usual(1e-4, 7e-4, "A2C"),
    "reward-model": Usual(5e-6, 1e-5, "a reward model"),
}
_GAMES = {  # no limit
    model.ON_POLICY: Usual(1e-4, 3e-4, "on-policy learning"),
    model.OFF_POLICY: Usual(1e-4, 3e-4, "off-policy learning"),
    model.REINFORCEMENT: Usual(1e-4, 1e-3, "reinforcement learning"),
}
# For all weights, and with LoRA. TRL's trainers: DPO 1e-6, GRPO 1e-6; published DPO runs 5e-7 to 5e-6.
_PAIRS = Usual(5e-7, 5e-6, "training on preferences")  # no limit
_PAIRS_LORA = Usual(5e-6, 5e-5, "preferences with LoRA")  # no limit
_TEXT = Usual(1e-6, 1e-5, "RL of a language model")  # no limit
_TEXT_LORA = Usual(1e-5, 1e-5, "RL of a language model with LoRA")  # no limit
# From the SFT and RL guide, published configurations and the defaults of trainers.
_LORA = Usual(5e-5, 5e-4, "LoRA")  # no limit
_TUNED = Usual(5e-6, 5e-5, "a full fine-tune")  # no limit
_PHASES = {model.LORA: _LORA, model.FINE_TUNE: _TUNED}
_DIFFUSION = Usual(1e-5, 5e-4, "diffusion")  # no limit
_ADAM = Usual(1e-4, 1e-3, "training from scratch with Adam")  # no limit
_ADAM_ANY = Usual(5e-6, 1e-3, "training with Adam")  # no limit
_SGD = Usual(1e-2, 0.5, "training with SGD")  # no limit
_LANGUAGE = Usual(5e-6, 1e-3, "a language model")  # no limit
_ANY = Usual(1e-5, 0.5, "training")  # no limit


def usual_rates(run: Run, context: Context) -> Usual | None:
    """Return the rates that are usual for a run, as narrow as what is known of it.

    None where it learns from rewards and nothing says whether what acts is a language model.
    """
    if context.task.value == model.PREFERENCE or context.learns_from_rewards:
        return _by_algorithm(run, context)
    phase, optimizer = context.phase.value, context.optimizer.value or ""
    if context.task.value == model.DIFFUSION:
        return _DIFFUSION
    if phase in _PHASES:
        return _PHASES[phase]
    if "sgd" in optimizer:
        return _SGD
    if "adam" in optimizer:
        return _ADAM if phase == model.FROM_SCRATCH else _ADAM_ANY
    return _LANGUAGE if context.task.value == model.LANGUAGE else _ANY


def _by_algorithm(run: Run, context: Context) -> Usual | None:
    """Return the rates of a run that learns from rewards or pairs; None where its algorithm is not known."""
    task, lora = context.task.value or "", context.phase.value == model.LORA
    known = _ALGORITHMS.get(context.algorithm.value or "")
    if task == model.PREFERENCE:
        return known or (_PAIRS_LORA if lora else _PAIRS)
    text = text_or_not(run, context)
    if text and task in model.FROM_REWARDS:
        return _TEXT_LORA if lora else _TEXT
    if text is None:
        return None
    return known or _GAMES.get(task)


def peak_rate(run: Run, lr: Series | None) -> float | None:
    """Return the highest logged rate, else the configured one; None where neither is known or above 0."""
    if lr is not None and highest(lr) > 0:
        return highest(lr)
    known = number(run, "lr")
    return known if known and known > 0 else None


def rate_by(run: Run, step: int | None) -> float | None:
    """Return the configured rate; where it rose far beyond that up to a step, the highest that was logged by then."""
    planned, lr = peak_rate(run, None), run.get("lr")
    if planned is None or lr is None or step is None:
        return planned
    steps, values = finite(lr)
    before = values[: rows_upto(steps, step)]
    begins_there = len(before) > 0 and before[0] <= 1.05 * planned  # else it is logged in another unit
    return float(max(before)) if begins_there and before.max() > shared.FACTOR_SMALL * planned else planned
