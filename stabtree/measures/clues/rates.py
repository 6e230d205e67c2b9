"""Clues from learning rates: their schedule, and what runs of the kind usually take."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.figures import as_factor, as_share, figure
from stabtree.common.lazy import np
from stabtree.common.shared import FACTOR, ROWS_SHORT, SHARE_HALF
from stabtree.context import model
from stabtree.frameworks.load import spelling
from stabtree.measures.clues import Seen, clue
from stabtree.measures.clues.events import text_or_not
from stabtree.measures.registry import finite, highest

if TYPE_CHECKING:
    from stabtree.context.model import Context
    from stabtree.measures.clues import Moment
    from stabtree.measures.registry import Groups
    from stabtree.run import Run, Series


WANTED_RATIO = 1e-3  # no limit: Phase 18: the usual size of an update relative to its weights
FARTHEST_FACTOR = 10.0  # no limit: a rate is changed by no more than that in one trial
DECAY_STEPS = 200  # no limit: Phase 19, Q4.3: the stretch over which a weight norm is compared


def shown_change(name: str, now: float, wanted: float) -> str:
    """Return a setting with its value now and the advised one, as one would type them."""
    return f"{name} {now:.3g} → {wanted:.3g}".replace("e-0", "e-").replace("e+0", "e")


@clue
def decay_share(_moment: Moment, run: Run, lr: Series | None = None) -> Seen | None:
    """Return which share of a weight decoupled decay removes in 200 steps: lr × weight decay × 200."""
    decay, rate = run.setting("weight_decay"), peak_rate(run, lr)
    if not isinstance(decay, int | float) or rate is None:
        return None
    share = rate * decay * DECAY_STEPS
    text = f"lr {figure(rate)} × weight decay {decay:g} × {DECAY_STEPS} steps shrinks weights by {as_share(share)}"
    return Seen(share, text, f"{share:.2%}", "lr")


@clue
def rate_for_update(_moment: Moment, run: Run, update_ratio: Groups, lr: Series | None = None) -> Seen | None:
    """Return how many times larger updates should be, and the rate for that, at most ten times the present one."""
    rate = peak_rate(run, lr)
    values = np.concatenate([finite(series)[1] for series in update_ratio.values()])
    if not len(values) or np.median(values) <= 0:
        return None
    ratio = float(np.median(values))
    factor = WANTED_RATIO / ratio
    tried = min(max(factor, 1 / FARTHEST_FACTOR), FARTHEST_FACTOR)
    text = f"updates are {figure(ratio, 2)} of the weights; {WANTED_RATIO:g} is usual, {as_factor(factor)} as much"
    return Seen(factor, text, shown_change("lr", rate, rate * tried) if rate else "", "update_ratio")


@clue
def decay_over_run(moment: Moment, run: Run, lr: Series | None = None) -> Seen | None:
    """Return which share of a weight decoupled decay removes up to the trouble, or up to the end of the log."""
    seen = decay_share.func(moment, run, lr)
    steps = moment.onset_step or run.last_step
    if seen is None or not isinstance(seen.value, float) or not steps:
        return None
    share = -math.expm1(-seen.value / DECAY_STEPS * steps)
    decay = run.setting("weight_decay")
    text = f"weight decay {decay} alone shrinks each weight by up to {share:.0%} in {steps:,} steps"
    return Seen(share, text, f"{share:.0%} of each weight in {steps:,} steps", "lr")


def peak_rate(run: Run, lr: Series | None) -> float | None:
    """Return the highest logged rate, else the configured one; None where neither is known or above 0."""
    if lr is not None:
        values = finite(lr)[1]
        if len(values) and float(values.max()) > 0:
            return float(values.max())
    known = run.setting("lr")
    return float(known) if isinstance(known, int | float) and known > 0 else None


GONE = 1e-3  # no limit: of the peak: nothing is learned below it
MIN_STAIRS = 3  # no limit: a shorter flight is no pattern
ALIKE = 0.1  # no limit: by which stairs of equal length may differ


@clue
def rate_leap(moment: Moment, lr: Series) -> Seen | None:
    """Return how many times the rate from the onset on exceeds the highest before it."""
    steps, values = finite(lr)
    if moment.onset_step is None or len(values) < 2:
        return None
    at = int(np.searchsorted(steps, moment.onset_step))
    if not 0 < at < len(values) or values[:at].max() <= 0:
        return None
    before, top = float(values[:at].max()), int(np.argmax(values[at:])) + at
    times = float(values[top] / before)
    where = f"at step {int(steps[at]):,}"
    if top > at and values[top] > FACTOR * values[at]:
        where = f"from step {int(steps[at]):,} to {int(steps[top]):,}"
    leap = f"×{times:,.0f}" if times >= 10 else f"×{figure(times, 2)}"
    short = f"{figure(before)} → {figure(values[top])} ({leap}) {where}"
    return Seen(times, f"lr goes from {short}", short, "lr", (int(steps[at]), int(steps[top])))


@clue
def rate_over_configured(_moment: Moment, run: Run, lr: Series) -> Seen | None:
    """Return how many times the highest logged rate lies above the configured one."""
    known, values = run.setting("lr"), finite(lr)[1]
    if not isinstance(known, int | float) or known <= 0 or not len(values):
        return None
    times = float(values.max() / known)
    text = f"lr reaches {figure(values.max())}, and {known:g} is configured"
    return Seen(times, text, f"{known:g}", "lr")


@clue
def warmup_stairs(_moment: Moment, lr: Series) -> Seen | None:
    """Return the length of the stairs, in steps, in which the rate goes up; 0 where it does not."""
    steps, values = finite(lr)
    if len(values) < 2 * ROWS_SHORT:
        return None
    peak = int(np.argmax(values))
    rises = np.flatnonzero(np.diff(values[: peak + 1]) > 0)
    falls = (np.diff(values[: peak + 1]) < 0).any()
    lengths = np.diff(steps[rises + 1])
    if falls or len(rises) < MIN_STAIRS - 1 or len(rises) > peak / 2 or len(lengths) == 0:
        return Seen(0.0, "lr does not rise in stairs", "", "lr")
    length = float(np.median(lengths))
    if (np.abs(lengths - length) > ALIKE * length).any():
        return Seen(0.0, "lr does not rise in stairs of one length", "", "lr")
    text = f"lr rises in {len(rises)} stairs, one every {length:,.0f} steps: the warm-up counts epochs"
    return Seen(length, text, f"{length:,.0f}", "lr", tuple(int(step) for step in steps[rises + 1][:4]))


@clue
def steps_at_zero(_moment: Moment, lr: Series, loss: Series) -> Seen | None:
    """Return the share of the steps that ran at a rate of next to nothing, up to the end."""
    gone, own = _gone(lr), finite(loss)[0]
    if gone is None or not len(own):
        return None
    at, last = gone[0], int(max(lr.steps[-1], own[-1]))
    share = (last - at) / max(last - int(own[0]), 1)
    text = f"{last - at:,} steps, {share:.0%} of the run, were made at a rate of next to 0"
    return Seen(share, text, f"{last - at:,} steps ({share:.0%} of the run)", "lr", (at, last))


@clue
def rate_cut(_moment: Moment, lr: Series) -> Seen | None:
    """Return which share of its peak the rate had in the row before it was gone: a schedule decays, a reset cuts it."""
    gone = _gone(lr)
    if gone is None:
        return None
    step, before, after, peak = gone
    text = f"lr goes from {figure(before, 4)} to {figure(after)} in one row, at step {step:,}"
    return Seen(before / peak, text, f"step {step:,}", "lr", (step,))


@clue
def schedule_ended(_moment: Moment, run: Run, lr: Series, loss: Series) -> Seen | None:
    """Return how many times as long the run is as its schedule, planned steps where they are known.

    A rate that is cut off from half its peak or more was not ended by a schedule.
    """
    gone = _gone(lr)
    step, before, _, peak = gone or (0, 0.0, 0.0, 0.0)
    if step <= 0 or before > SHARE_HALF * peak:
        return None
    planned = run.setting("max_steps")
    whole = planned if isinstance(planned, int) and planned > step else int(finite(loss)[0][-1]) + 1
    times = whole / step
    text = f"the schedule ended at step {step:,}, the run has {whole:,} steps: {figure(times)} times as many"
    return Seen(times, text, f"{whole:,} (it got {step:,})", "lr", (step,))


def _gone(lr: Series) -> tuple[int, float, float, float] | None:
    """Return where a rate becomes next to nothing, up to the end: the step, the rates around it, and the peak."""
    steps, values = finite(lr)
    if not len(values) or values.max() <= 0:
        return None
    peak = float(values.max())
    at = int(np.flatnonzero(values > GONE * peak)[-1]) + 1
    if at >= len(values):
        return None
    return int(steps[at]), float(values[at - 1]), float(values[at]), peak


TOO_LOW_TO_FIT = 1e-4  # no limit: in 200 steps Adam moves each weight by less than 0.02
MIN_TRIAL_FACTOR = 2.0  # no limit: trials of nearer rates show no difference
STEP_DOWN = 3.0  # no limit: a rate within the usual range is lowered by so much, as a person would


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


@clue
def rate_times_usual(_moment: Moment, run: Run, context: Context, lr: Series | None = None) -> Seen | None:
    """Compare the rate with the usual ones: above 1 it is so many times the highest, below 1 a part of the lowest."""
    rate, usual = _rate(run, lr), usual_rates(run, context)
    if rate is None or usual is None:
        return None
    if rate > usual.high:
        times = rate / usual.high
        high = figure(usual.high)
        text = f"the learning rate {figure(rate)} is {figure(times)} times the {high} that is usual for {usual.of}"
    elif rate < usual.low:
        times = rate / usual.low
        low = figure(usual.low)
        text = f"the learning rate {figure(rate)} is {figure(1 / times)} times below the {low} usual for {usual.of}"
    else:
        times, text = 1.0, f"the learning rate {figure(rate)} is usual for {usual.of}"
    return Seen(times, text, figure(times), "lr")


@clue
def lower_rate(_moment: Moment, run: Run, context: Context, lr: Series | None = None) -> Seen | None:
    """Return a lower rate: the highest usual one, or a third of one that is usual; None for one that is too low."""
    rate, usual = _rate(run, lr), usual_rates(run, context)
    if rate is None or (usual is not None and rate < usual.low):
        return None
    wanted = rate / STEP_DOWN if usual is None or rate <= usual.high else min(rate / STEP_DOWN, usual.high)
    return _changed(run, context, rate, wanted)


@clue
def rate_below_usual(_moment: Moment, run: Run, context: Context, lr: Series | None = None) -> Seen | None:
    """Return how many times the highest rate lies below the lowest usual one, and the rate to try, tenfold at most."""
    rate, usual = peak_rate(run, lr), usual_rates(run, context)
    if rate is None or usual is None:
        return None
    text = f"lr is at most {figure(rate)}; {usual.of} usually takes {figure(usual.low)} to {figure(usual.high)}"
    wanted = min(max(usual.low, rate), rate * FARTHEST_FACTOR)
    return Seen(usual.low / rate, text, shown_change("lr", rate, wanted), "lr")


@clue
def rates_to_try(_moment: Moment, run: Run, context: Context, lr: Series | None = None) -> Seen | None:
    """Return the rates of two short trials, ten times up and down, but no farther than is usual."""
    rate, usual = peak_rate(run, lr), usual_rates(run, context)
    if rate is None or usual is None:
        return None
    up, down = min(rate * FARTHEST_FACTOR, usual.high), max(rate / FARTHEST_FACTOR, usual.low)
    apart = ((up, up / rate), (down, rate / down))
    wanted = [_rounded(trial) for trial, factor in apart if factor >= MIN_TRIAL_FACTOR]
    if not wanted or (apart[0][1] < MIN_TRIAL_FACTOR and rate <= usual.high):  # no run that hardly learns needs less
        return None
    return Seen(rate, f"lr is {rate:.3g}", " and ".join(wanted), "lr")


@clue
def fit_rate(_moment: Moment, run: Run, context: Context, lr: Series | None = None) -> Seen:
    """Return at which rate to fit one batch, where the run's own may be too low to do it in 200 steps.

    That is the highest usual one for a run of its kind, which ruins no model; the run's own where its kind is unknown.
    """
    rate, usual = peak_rate(run, lr), usual_rates(run, context)
    of_its_kind = context.phase.value or context.task.value == model.PREFERENCE or context.learns_from_rewards
    if rate is None or usual is None or not of_its_kind or not rate < min(usual.high, TOO_LOW_TO_FIT):
        return Seen(rate or 0.0, "", "", "lr")
    return Seen(rate, "", f", at a learning rate of {figure(usual.high)}", "lr")


def _rounded(rate: float) -> str:
    """Return a rate as one would try it: 3e-4, 0.02."""
    return f"{rate:.1g}" if rate >= 1e-3 else f"{rate:.0e}".replace("e-0", "e-")


@clue
def highest_rate(_moment: Moment, run: Run, lr: Series | None = None) -> Seen | None:
    """Return the highest logged learning rate, 0 too, else the configured one."""
    logged = lr is not None and len(finite(lr)[1])
    rate = highest(lr) if lr is not None and logged else peak_rate(run, lr)
    return None if rate is None else Seen(rate, f"lr is at most {rate:.3g}", f"lr {rate:.3g}", "lr")


def _rate(run: Run, lr: Series | None) -> float | None:
    """Return the configured rate, which is the one to change, else the highest logged one."""
    known = run.setting("lr")
    return float(known) if isinstance(known, int | float) and known > 0 else peak_rate(run, lr)


def _changed(run: Run, context: Context, rate: float, wanted: float) -> Seen:
    known = run.config.get("lr")
    name = (known.spelled if known else "") or spelling("lr", context.framework.value or "") or "learning rate"
    change = shown_change(name, rate, wanted)
    return Seen(wanted, change, change, "lr")
