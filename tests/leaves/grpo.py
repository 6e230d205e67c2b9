"""Reinforcement learning: one sound run that logs everything, and for each check one in which a metric goes wrong."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from stabtree.run import Series
from tests.conftest import make_run
from tests.leaves.levels import Bar, Build, beyond, near, sparse

if TYPE_CHECKING:
    from stabtree.run import Run
    from tests.leaves.make import Floats, Maker

ROWS = 400
AT = np.arange(ROWS) / ROWS
ZERO = np.zeros(ROWS)


def noise(width: float, seed: int = 0) -> Floats:
    """Gaussian noise over the rows of a run."""
    return np.random.default_rng(seed).normal(0, width, ROWS)


HEALTHY: dict[str, Any] = {
    "loss": noise(0.02),
    "lr": 1e-6 * (1 - 0.9 * AT),
    "reward": 0.1 + 0.5 * AT + noise(0.06, 1),
    "reward_std": 0.3 + noise(0.03, 2),
    "frac_reward_zero_std": np.clip(0.3 + noise(0.15, 3), 0, 1),
    "grad_norm": np.where(np.arange(ROWS) % 17 == 3, 0.0, 0.2 * np.exp(noise(0.4, 4))),
    "entropy": 0.2 + 0.3 * np.exp(-4 * AT) + noise(0.02, 5),
    "kl": 0.1 * AT + np.abs(noise(0.01, 6)),
    "logp_diff": 0.02 + np.abs(noise(0.005, 7)),
    "importance_ratio_min": np.clip(0.3 + noise(0.08, 8), 0, 1),
    "clip_ratio": np.abs(0.02 + noise(0.01, 9)),
    "completion_length": 200 + 60 * AT + noise(12, 10),
    "completion_length_max": 480 + noise(15, 11),
    "clipped_ratio": np.clip(0.05 + noise(0.03, 12), 0, 1),
    "ebft_alignment": 0.3 + 0.3 * AT + noise(0.03, 13),
    "ebft_diversity": 0.05 + np.abs(noise(0.02, 14)),
    "cfm_loss": 8 - 5 * AT + noise(0.4, 15),
    "token_accuracy": 0.5 + 0.2 * AT,
    "approx_kl": 0.015 + np.abs(noise(0.005, 17)),
    "value_loss": 0.5 + 2.0 * AT + noise(0.1, 18),
    "preference_accuracy": np.clip(0.5 + 0.3 * AT + noise(0.05, 19), 0, 1),
    "preference_margin": 0.1 + 0.5 * AT + noise(0.03, 20),
    "entropy_loss": -0.6 + 0.3 * AT + noise(0.02, 21),
    "reward_function/answer": 0.1 + 0.5 * AT + noise(0.06, 23),
    "reward_function/format": 0.4 + 0.5 * AT + noise(0.06, 24),
    "policy_std": 1.0 - 0.4 * AT + noise(0.01, 22),
    "eval_loss": 1.5 - 0.5 * AT + noise(0.01, 16),
}


def learning(interval: int = 1, **changed: Any) -> Run:
    """The sound run with other columns, logged every so many steps; None takes a metric away."""
    columns = {name: values for name, values in {**HEALTHY, **changed}.items() if values is not None}
    rows = min(len(values) for values in columns.values())
    return make_run({name: values[-rows:] for name, values in columns.items()}, steps=np.arange(rows) * interval)


BARS = (
    Bar("reward-zero", "reward", 0.0, share=0.95, rows=5, steps=20, low=True),
    Bar("reward-no-spread", "reward_std", 0.0, share=0.9, rows=5, steps=0, low=True, without="frac_reward_zero_std"),
    Bar("no-advantage", "frac_reward_zero_std", 1.0, share=0.9, rows=5, steps=0, most=1.0),
    Bar("rl-grad-norm-high", "grad_norm", 10.0, share=0.2, rows=20, steps=0),
    Bar("entropy-collapse", "entropy", 0.01, share=0.9, rows=5, steps=0, low=True),
    Bar("entropy-high", "entropy", 1.0, share=0.9, rows=5, steps=0),
    Bar("kl-high", "kl", 2.0, share=0.9, rows=5, steps=0),
    Bar("sampler-diverged", "logp_diff", 1.0, share=0.9, rows=5, steps=0),
    Bar("importance-ratio-low", "importance_ratio_min", 0.01, share=0.9, rows=5, steps=0, low=True),
    Bar("answers-cut-off", "clipped_ratio", 0.3, share=0.9, rows=5, steps=0, most=1.0),
    Bar("little-advantage", "frac_reward_zero_std", 0.8, share=0.9, rows=5, steps=0, most=0.99),
    Bar("rl-grad-norm-raised", "grad_norm", 1.0, share=0.9, rows=20, steps=0),
    Bar("importance-ratio-below-usual", "importance_ratio_min", 0.1, share=0.9, rows=5, steps=0, low=True),
    Bar("ebft-alignment-low", "ebft_alignment", 0.3, share=0.9, rows=5, steps=100, low=True),
    Bar("ebft-mode-collapse", "ebft_diversity", 1.0, share=0.9, rows=5, steps=0),
    Bar("ebft-cfm-high", "cfm_loss", 10.0, share=0.9, rows=20, steps=0),
)

# Less grave where the reward rises all the same.
HARMFUL = (
    Bar("clipping-heavy", "clip_ratio", 0.3, share=0.9, rows=5, steps=0),
    Bar("update-too-far", "approx_kl", 0.2, share=0.9, rows=5, steps=0),
)


def still(metric: str, level: float, width: float, trend: float, rows: int, seed: int) -> Run:
    """A metric about one level, with a trend that its noise hides, or all but hides."""
    values = (level + trend * AT + noise(width, seed))[:rows]
    columns: dict[str, Any] = {metric: values}
    return learning(**columns)


# The seeds are of noise whose trend scores below 2.33 with the smaller slope, and above it with the larger one.
def reward_still(trend: float, rows: int = 112) -> Run:
    """A reward that does not rise."""
    return still("reward", 0.3, 0.06, trend, rows, seed=4)


def alignment_still(trend: float, rows: int = 112) -> Run:
    """An alignment that does not rise."""
    return still("ebft_alignment", 0.5, 0.03, trend, rows, seed=11)


def cfm_still(trend: float, rows: int = 112) -> Run:
    """A feature-matching loss that does not fall."""
    return still("cfm_loss", 8.0, 0.4, trend, rows, seed=5)


def capped(end: float, growth: float, pinned: int = 6) -> Run:
    """Answers that grow to a share of the longest length of 512 tokens, reached in so many rows."""
    length = 512 * end * (1 / growth + (1 - 1 / growth) * np.clip(AT / 0.8, 0, 1)) + noise(1, 10)
    longest = np.where(np.arange(ROWS) >= ROWS - pinned, 512.0, 505 - np.abs(noise(9, 11)))
    return learning(completion_length=length, completion_length_max=longest)


def collapsed(share: float = 0.56, **changed: Any) -> Run:
    """A reward that loses a share of what it had gained."""
    reward = 0.1 + 0.6 * np.minimum(AT / 0.6, 1) - 0.6 * share * np.clip((AT - 0.7) / 0.1, 0, 1) + noise(0.01)
    return learning(**{"reward": reward, **changed})


def functions(steps: int, interval: int = 1, **means: Floats | None) -> Run:
    """Reward functions with these means, without their sum, over so many steps."""
    columns: dict[str, Any] = {f"reward_function/{name}": values for name, values in means.items()}
    short = {"loss": HEALTHY["loss"][: steps // interval]}
    return learning(interval, **{**dict.fromkeys(HEALTHY), **columns, **short})


def with_functions(**means: Floats | None) -> Run:
    """The sound run with other means of its reward functions."""
    columns: dict[str, Any] = {f"reward_function/{name}": values for name, values in means.items()}
    return learning(**columns)


def thrown(to: float) -> Run:
    """A kl that jumps from 0.1 to a level and stays there."""
    return learning(kl=np.where(AT < 0.6, 0.11, to) + np.abs(noise(0.002, 6)))


def exploded(times: float, **changed: Any) -> Run:
    """A value loss that grows so many times over, beside a reward that falls a little."""
    value_loss = np.exp(np.log(times) * np.clip((AT - 0.2) / 0.6, 0, 1))
    return learning(**{"value_loss": value_loss, "reward": 0.3 - 0.05 * AT + noise(0.01, 1), **changed})


def exploded_once(times: float) -> Run:
    """A value loss that grows so many times over, comes back, and leaves the reward where it was."""
    value_loss = np.exp(np.log(times) * np.clip(1 - np.abs(AT - 0.5) / 0.2, 0, 1) ** 0.3)
    return learning(value_loss=value_loss, reward=0.3 + 0.1 * AT + noise(0.03, 1))


def dropped(ranges: float, rows: int = 4) -> Run:
    """A reward between 0 and 1 whose last rows lie so many times that range below it."""
    reward = np.clip(AT * 1.5, 0, 1)
    reward[-rows:] = -ranges
    return learning(reward=reward)


def useless(**changed: Any) -> Run:
    """A run without an advantage in any prompt: no reward, no spread, no gradient."""
    return learning(**{"reward": ZERO, "frac_reward_zero_std": ZERO + 1, "grad_norm": ZERO, **changed})


def swapped(**changed: Any) -> Run:
    """A run that comes to prefer what it should not."""
    return learning(**{"preference_accuracy": ZERO + 0.2, **changed})


def unrewarded(**changed: Any) -> Run:
    """A run without a reward."""
    return learning(**{"reward": ZERO, **changed})


def unrisen(**changed: Any) -> Run:
    """A run whose reward does not rise."""
    return learning(**{"reward": 0.3 + noise(0.06), **changed})


def without_gradient(tenths: int) -> Run:
    """A run whose gradient is exactly 0 in so many tenths of its rows, while rewards differ."""
    return learning(grad_norm=np.where(np.arange(ROWS) % 10 < tenths, 0.0, HEALTHY["grad_norm"]))


def held_out(gain: float) -> Run:
    """A reward that rises by 0.5 in training, and by a share of that on held-out prompts."""
    run = learning()
    tested = 0.2 + 0.5 * gain * AT + noise(0.01, 30)
    return replace(
        run, others={"eval_rewards/answer/mean": Series("eval_rewards/answer/mean", run.series["reward"].steps, tested)}
    )


def formed(right: float) -> Run:
    """A reward that rises by its form, while so many answers are right."""
    return learning(1, **{"reward_function/answer": right + noise(0.01, 31)})


def settled(from_share: float) -> Run:
    """A reward that rises up to a share of the run, and then stands still."""
    return learning(reward=0.1 + 0.5 * np.minimum(AT / from_share, 1) + noise(0.03, 1))


RUNS: dict[str, Maker] = {
    "held-out-reward-flat": partial(held_out, 0.04),
    "only-form-pays": partial(formed, 0.05),
    "reward-settled": partial(settled, 0.2),
    "rl-no-gradient": partial(without_gradient, 6),
    **{bar.leaf: beyond(bar, HEALTHY, learning) for bar in BARS},
    **{bar.leaf: beyond(bar, HEALTHY, unrisen) for bar in HARMFUL},
    **{f"{bar.leaf}-nevertheless": beyond(bar, HEALTHY, learning) for bar in HARMFUL},
    "reward-function-zero": lambda: functions(22, answer=ZERO, format=ZERO),
    "reward-function-zero-one": lambda: with_functions(format=ZERO),
    "reward-collapse": collapsed,
    "kl-jumps": partial(thrown, 1.35),
    "value-explodes": partial(exploded, 115.0),
    "preferences-swapped": swapped,
    "entropy-shrinks-away": partial(unrisen, entropy=0.3 * 0.04 ** np.minimum(2 * AT, 1)),
    "entropy-explodes": partial(unrisen, entropy=0.25 * 3.5 ** np.minimum(2 * AT, 1)),
    "value-exploded-once": partial(exploded_once, 140.0),
    "reward-falls-through": partial(dropped, 1.13),
    "reward-not-rising": partial(reward_still, 0.15),
    "ebft-alignment-flat": partial(alignment_still, 0.01),
    "ebft-cfm-flat": partial(cfm_still, 0.0),
    "length-hacking": partial(capped, 0.99, 1.7),
    "grpo-ok": learning,
}

EDGE: dict[str, Maker] = {
    "entropy-shrinks-away: the reward rose first": partial(
        learning,
        entropy=0.3 * 0.04 ** np.minimum(2.5 * AT, 1),
        reward=0.1 + 0.5 * np.minimum(2.5 * AT, 1) + noise(0.06, 1),
    ),
    "reward-collapse: below its start": lambda: learning(
        reward=0.3 - 1.5 * np.clip((AT - 0.6) / 0.2, 0, 1) + noise(0.06, 1),
    ),
    "reward-function-zero: sparsely logged": lambda: functions(60, 10, answer=ZERO),
    "reward-function-zero-one: the reward is logged": lambda: with_functions(answer=ZERO, format=None),
    **{
        f"{bar.leaf}: sparsely logged": sparse(bar, HEALTHY, build)
        for bars, build in ((BARS, learning), (HARMFUL, unrisen))
        for bar in bars
    },
}

NEAR: dict[str, Maker] = {
    "held-out-reward-flat: share": partial(held_out, 0.14),
    "only-form-pays: level": partial(formed, 0.12),
    "reward-settled: share": partial(settled, 0.4),
    **{name: maker for bar in BARS for name, maker in near(bar, HEALTHY, learning).items()},
    **{name: maker for bar in HARMFUL for name, maker in near(bar, HEALTHY, unrisen).items()},
    "rl-no-gradient: share of rows": partial(without_gradient, 4),
    "reward-function-zero: steps": lambda: functions(18, answer=ZERO, format=ZERO),
    "reward-function-zero: rows": lambda: functions(40, 10, answer=ZERO, format=ZERO),
    "reward-function-zero: share": lambda: functions(200, answer=np.where(np.arange(ROWS) % 10 == 7, 0.1, 0.0)),
    "entropy-collapse: no answers": partial(learning, entropy=ZERO, completion_length=None),
    "reward-collapse: share": partial(collapsed, 0.42),
    "kl-jumps: factor": partial(thrown, 0.9),
    "preferences-swapped: level": partial(swapped, preference_accuracy=ZERO + 0.47),
    "entropy-shrinks-away: the reward rises": partial(learning, entropy=0.3 * 0.04 ** np.minimum(2 * AT, 1)),
    "entropy-explodes: factor": partial(unrisen, entropy=0.25 * 2.6 ** np.minimum(2 * AT, 1)),
    "value-exploded-once: factor": partial(exploded_once, 85.0),
    "value-explodes: factor": partial(exploded, 85.0),
    "reward-falls-through: factor": partial(dropped, 0.88),
    "reward-falls-through: rows": partial(dropped, 1.13, 2),
    "value-explodes: the reward rises": partial(exploded, 115.0, reward=0.1 + 0.5 * AT),
    "reward-not-rising: trend": partial(reward_still, 0.4),
    "reward-not-rising: rows": partial(reward_still, 0.15, 88),
    "ebft-alignment-flat: trend": partial(alignment_still, 0.1575),
    "ebft-alignment-flat: rows": partial(alignment_still, 0.01, 88),
    "ebft-cfm-flat: trend": partial(cfm_still, -2.7),
    "ebft-cfm-flat: rows": partial(cfm_still, 0.0, 88),
    "length-hacking: cap": partial(capped, 0.88, 1.7),
    "length-hacking: growth": partial(capped, 0.99, 1.4),
    "length-hacking: longest answer": partial(capped, 0.99, 1.7, 4),
}


CUT: tuple[tuple[Bar, Build], ...] = (
    (Bar("G1.length", "clipped_ratio", 0.8, share=0.9, rows=5, steps=0, most=1.0), unrewarded),
    (Bar("G5.cut", "clipped_ratio", 0.8, share=0.9, rows=5, steps=0, most=1.0), useless),
)
CAUSES: tuple[tuple[Bar, Build], ...] = (
    (Bar("G2.kl", "kl", 2.0, share=0.9, rows=5, steps=0), collapsed),
    (Bar("G2.collapse", "entropy", 0.01, share=0.9, rows=5, steps=0, low=True), collapsed),
    (Bar("G2.stale", "logp_diff", 0.1, share=0.9, rows=5, steps=0), collapsed),
    (Bar("G3.spread", "frac_reward_zero_std", 0.8, share=0.9, rows=5, steps=0, most=1.0), unrisen),
    (Bar("G5.zero", "reward", 0.0, share=0.9, rows=5, steps=0, low=True), useless),
    (Bar("G7.advantage", "frac_reward_zero_std", 1.0, share=0.9, rows=5, steps=0, most=1.0), useless),
)
