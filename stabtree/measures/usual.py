"""The learning rates that are usual for a kind of run, and the rate of this one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stabtree.context import model
from stabtree.measures.registry import finite

if TYPE_CHECKING:
    from stabtree.context.model import Context
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
    if lr is not None:
        values = finite(lr)[1]
        if len(values) and float(values.max()) > 0:
            return float(values.max())
    known = run.setting("lr")
    return float(known) if isinstance(known, int | float) and known > 0 else None
