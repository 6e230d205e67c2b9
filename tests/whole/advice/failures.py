"""What goes wrong in a made run: each failure changes the columns of a healthy one as the fault would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.whole.advice.columns import ROWS, course, level

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.whole.advice.columns import Columns, Floats
    from tests.whole.advice.kinds import Kind

    Failure = Callable[[Columns, Kind, np.random.Generator], None]

TOO_HIGH = 1000.0  # times the usual rate
RATES = ("lr", "learning_rate", "lr0")  # the keys of a rate
ONSET = 180  # the row at which a failure begins, unless it is there from the start
AT = np.arange(ROWS)


def _worse(first: float, last: float) -> Floats:
    """Values that go from one level to another after the onset, and are the first level before it."""
    way = np.clip((AT - ONSET) / (ROWS - ONSET), 0, 1)
    return np.asarray(first + (last - first) * way)


def _break(columns: Columns, kind: Kind, row: int) -> None:
    for name in (*kind.losses, kind.norm, kind.held_out, *kind.outcome):
        if name in columns:
            columns[name][row:] = np.nan


def nan_at_once(columns: Columns, kind: Kind, _rng: np.random.Generator) -> None:
    """Nothing but the first row is finite."""
    _break(columns, kind, 1)


def nan_in_the_middle(columns: Columns, kind: Kind, _rng: np.random.Generator) -> None:
    """The loss is NaN from one row to the next, and the row before was sound."""
    _break(columns, kind, ONSET)


def nan_after_growth(columns: Columns, kind: Kind, _rng: np.random.Generator) -> None:
    """The gradient grows a thousandfold over ten rows, and the loss after it, then both are NaN."""
    columns[kind.norm][ONSET - 10 : ONSET] *= np.geomspace(2, 2000, 10)
    columns[kind.losses[0]][ONSET - 4 : ONSET] *= np.geomspace(1.5, 6, 4)
    _break(columns, kind, ONSET)


def spike_that_recovers(columns: Columns, kind: Kind, _rng: np.random.Generator) -> None:
    """One row of the loss and of the gradient is far off, the next one is back."""
    columns[kind.losses[0]][ONSET] = 2.5 * kind.start
    if kind.norm:
        columns[kind.norm][ONSET] *= 40


def spike_that_stays(columns: Columns, kind: Kind, rng: np.random.Generator) -> None:
    """The loss jumps back to that of an untrained model, and everything else with it."""
    for name in kind.losses:
        columns[name][ONSET:] = level(rng, 1.05 * columns[name][:3].mean(), 0.02)[ONSET:]
    if kind.norm:
        columns[kind.norm][ONSET : ONSET + 3] *= 50
    _unlearn(columns, kind, ONSET, rng)
    if kind.held_out:
        _put(columns, kind.held_out, 1.05 * kind.start, ONSET)


def _put(columns: Columns, name: str, values: Floats | float, begin: int = 0) -> None:
    """Set a column from a row on, in the rows in which it is logged."""
    kept = columns[name]
    columns[name] = np.where((begin <= AT) & ~np.isnan(kept), values, kept)


def _unlearn(columns: Columns, kind: Kind, row: int, rng: np.random.Generator) -> None:
    """Set what says how well the run does to the value of a model that has learned nothing."""
    for name, value in kind.outcome.items():
        scatter = 0.03 * float(np.nanmax(np.abs(columns[name])))
        _put(columns, name, value + rng.normal(0, scatter, ROWS), row)


def slow_divergence(columns: Columns, kind: Kind, _rng: np.random.Generator) -> None:
    """From the onset on the gradient grows twentyfold, and the loss rises to twice what it began with."""
    for name in kind.losses:
        base = abs(float(columns[name][ONSET - 20 : ONSET].mean()))
        columns[name] = columns[name] + (_worse(0, 1) ** 2) * (2 * kind.start - base)
    if kind.norm:
        columns[kind.norm] = columns[kind.norm] * np.exp(_worse(0, 3))
    if kind.held_out:
        columns[kind.held_out] = columns[kind.held_out] + (_worse(0, 1) ** 2) * 2 * kind.start


def never_learned(columns: Columns, kind: Kind, rng: np.random.Generator) -> None:
    """Loss and outcome stay where an untrained model is; gradients flow."""
    for name in kind.losses:
        first = float(columns[name][:3].mean())
        columns[name] = first + rng.normal(0, 0.01, ROWS) * abs(first)
    if kind.held_out:
        _put(columns, kind.held_out, kind.start + rng.normal(0, 0.002 * kind.start, ROWS))
    _unlearn(columns, kind, 0, rng)


def overfit(columns: Columns, kind: Kind, rng: np.random.Generator) -> None:
    """The held-out loss turns after a third of the run and rises by more than half, the training loss falls on."""
    falls = course(rng, columns[kind.losses[0]][0], 0.03 * kind.start, 0.03)
    columns[kind.losses[0]] = falls
    turn = ROWS // 3
    best = 0.62 * kind.start
    down = kind.start + (best - kind.start) * np.clip(AT / turn, 0, 1)
    up = best * (1 + 0.7 * np.clip((AT - turn) / (ROWS - turn), 0, 1))
    both = np.where(turn > AT, down, up) * np.exp(rng.normal(0, 0.005, ROWS))
    _put(columns, kind.held_out, both)


def rate_leaps(columns: Columns, kind: Kind, rng: np.random.Generator) -> None:
    """The rate is 30 times as high from one row to the next, and the loss goes back to that of an untrained model."""
    spike_that_stays(columns, kind, rng)
    columns[kind.lr] = np.where(AT >= ONSET, 30 * columns[kind.lr], columns[kind.lr])


def fp16_overflow(columns: Columns, kind: Kind, _rng: np.random.Generator) -> None:
    """The scaler halves its scale again and again, with infinite norms, and then the loss is NaN to the end."""
    scale = np.full(ROWS, 65536.0)
    begins = ONSET - 30
    falls = 2.0 ** -np.clip((AT - begins) // 2, 0, 24)
    columns["loss_scale"] = np.where(begins <= AT, scale * falls, scale)
    columns[kind.norm][begins:ONSET:2] = np.inf
    _break(columns, kind, ONSET)


def reward_collapses(columns: Columns, kind: Kind, rng: np.random.Generator) -> None:
    """The reward falls within ten rows to that of an untrained policy, and stays there."""
    _unlearn(columns, kind, ONSET, rng)


def critic_explodes(columns: Columns, kind: Kind, rng: np.random.Generator) -> None:
    """The loss of the critic grows by twelve orders of magnitude, and the reward never gets better."""
    grows = np.exp(np.clip((AT - 40) / (ROWS - 40), 0, 1) * np.log(1e12))
    for name in ("train/value_loss", "train/critic_loss", "train/loss", "train/actor_loss"):
        if name in columns:
            columns[name] = columns[name] * (grows if "loss" in name and "actor" not in name else np.sqrt(grows))
    if "train/ent_coef" in columns:
        columns["train/ent_coef"] = 0.9 * grows**0.4
    _unlearn(columns, kind, 110, rng)


def entropy_collapses(columns: Columns, kind: Kind, rng: np.random.Generator) -> None:
    """The entropy falls to almost nothing, and the reward with it."""
    for name, sign in (("entropy", 1), ("train/entropy_loss", -1)):
        if name in columns:
            columns[name] = np.where(AT >= ONSET - 20, sign * level(rng, 0.004, 0.1), columns[name])
    _unlearn(columns, kind, ONSET, rng)


def discriminator_wins(columns: Columns, _kind: Kind, rng: np.random.Generator) -> None:
    """The discriminator tells every sample; the generator learns nothing from it."""
    way = np.clip((AT - 100) / 60, 0, 1)
    columns["d_loss"] = columns["d_loss"] * 10 ** (-4 * way)
    columns["g_loss"] = columns["g_loss"] + 9 * way
    columns["d_real"] = np.clip(columns["d_real"] + 0.4 * way, 0, 1)
    columns["d_fake"] = np.clip(columns["d_fake"] * (1 - way), 0, 1)
    _put(columns, "fid", columns["fid"] + 250 * way + rng.normal(0, 5, ROWS))


def out_of_memory(_columns: Columns, _kind: Kind, _rng: np.random.Generator) -> None:
    """A healthy run, whose log ends with the line in LINES."""


def pairs_swapped(columns: Columns, kind: Kind, _rng: np.random.Generator) -> None:
    """The training pairs are learned, and the held-out ones are ever more wrong."""
    accuracy = next(name for name in columns if name.startswith("eval_") and "accura" in name)
    _put(columns, accuracy, np.clip(0.5 - 0.4 * AT / 60, 0.1, 1))
    _put(columns, kind.held_out, 0.7 + 1.0 * AT / ROWS)


def rate_too_high(columns: Columns, kind: Kind, rng: np.random.Generator) -> None:
    """A rate a thousand times what is usual: the loss is restless and above its start, the gradient large."""
    columns[kind.lr] = columns[kind.lr] * TOO_HIGH
    columns[kind.losses[0]] = level(rng, 1.6 * kind.start, 0.25)
    columns[kind.losses[0]][:3] = kind.start
    if kind.norm:
        columns[kind.norm] = columns[kind.norm] * level(rng, 20, 0.5)
    if kind.held_out:
        _put(columns, kind.held_out, level(rng, 1.5 * kind.start, 0.1))
    _unlearn(columns, kind, 0, rng)


def no_spread(columns: Columns, _kind: Kind, rng: np.random.Generator) -> None:
    """All answers to a prompt get the same reward, and nothing is learned."""
    columns["frac_reward_zero_std"] = np.where(AT >= 30, 1.0, columns["frac_reward_zero_std"])
    columns["reward_std"] = np.where(AT >= 30, 0.0, columns["reward_std"])
    for name in ("reward", "rewards/correct/mean"):
        columns[name] = np.where(AT >= 30, 0.12, columns[name])
    columns["grad_norm"] = np.where(AT >= 30, 0.0, columns["grad_norm"])
    columns["loss"] = np.where(AT >= 30, 0.0, rng.normal(0.01, 0.01, ROWS))


def length_hacked(columns: Columns, _kind: Kind, _rng: np.random.Generator) -> None:
    """The answers grow to the longest that is allowed, and the reward with them."""
    way = np.clip((AT - 60) / 120, 0, 1)
    columns["completions/mean_length"] = np.minimum(columns["completions/mean_length"] * (1 + 2 * way), 512)
    columns["completions/clipped_ratio"] = np.clip(0.03 + 0.95 * way, 0, 1)


def leaves_reference(columns: Columns, kind: Kind, rng: np.random.Generator) -> None:
    """The policy jumps away from its reference model, and the reward falls after it."""
    columns["kl"] = np.where(AT >= ONSET - 15, level(rng, 15, 0.2), columns["kl"])
    _unlearn(columns, kind, ONSET, rng)


def infinite_targets(columns: Columns, kind: Kind, rng: np.random.Generator) -> None:
    """Single batches hold a target that is longer than its input: their loss is infinite, the others go on."""
    rows = rng.choice(np.arange(30, ROWS - 10), 12, replace=False)
    columns[kind.losses[0]][rows] = np.inf
    columns[kind.norm][rows] = np.nan


def healthy(_columns: Columns, _kind: Kind, _rng: np.random.Generator) -> None:
    """Nothing is wrong."""


FAILURES: Mapping[str, Failure] = {
    func.__name__.replace("_", "-"): func
    for func in (
        *(nan_at_once, nan_in_the_middle, nan_after_growth, spike_that_recovers, spike_that_stays, slow_divergence),
        *(never_learned, overfit, rate_leaps, fp16_overflow, reward_collapses, critic_explodes, entropy_collapses),
        *(discriminator_wins, out_of_memory, pairs_swapped, rate_too_high, no_spread, length_hacked),
        *(leaves_reference, infinite_targets, healthy),
    )
}
LINES: Mapping[str, str] = {
    "out-of-memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total "
    "capacity of 23.69 GiB of which 512.00 MiB is free.",
}


def configured(config: Mapping[str, Any], failure: str) -> dict[str, Any]:
    """Return the settings of a run with a failure."""
    if failure == "fp16-overflow":
        return {**config, "dtype": "fp16", "bf16": False, "fp16": True}
    if failure == "rate-too-high":
        return {key: _raised(key, value) for key, value in config.items()}
    return dict(config)


def _raised(key: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {inner: _raised(inner, one) for inner, one in value.items()}
    return value * TOO_HIGH if key in RATES else value
