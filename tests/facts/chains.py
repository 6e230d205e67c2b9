"""Made runs whose chain of events is known: what moved first, what followed, and where the loss broke."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tests.conftest import make_run, series

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator
    from numpy.typing import NDArray

    from stabtree.run import Run

    Floats = NDArray[np.float64]
    Columns = dict[str, Floats]

ROWS = 760
BREAKS = 700  # where the loss breaks, in most chains
LAYERS = 200


class Chain(NamedTuple):
    """A made run.

    Attributes:
        leader: the series that moves first; the loss where nothing moves before it.
        make: makes its columns from a generator, or a whole run of several rhythms.
    """

    leader: str
    make: Callable[[Generator], Columns | Run]


def healthy(random: Generator, rows: int = ROWS) -> Columns:
    """Columns of a run that learns: a noisy loss and gradient, weights that grow smoothly, a rate that decays."""
    at = np.arange(rows)
    return {
        "loss": (1.5 + 2.5 * np.exp(-at / 120)) * np.exp(random.normal(0, 0.03, rows)),
        "grad_norm": (0.6 + np.exp(-at / 80)) * np.exp(random.normal(0, 0.2, rows)),
        "weight_norm/embed": 30 * np.sqrt(1 + at / 900) * np.exp(random.normal(0, 0.001, rows)),
        "weight_norm/blocks": 14 * np.sqrt(1 + at / 500) * np.exp(random.normal(0, 0.001, rows)),
        "lr": 3e-4 * np.minimum(1, (at + 1) / 50) * (0.55 + 0.45 * np.cos(np.pi * at / rows / 1.1)),
    }


def layers(random: Generator, name: str, rows: int = ROWS) -> Columns:
    """A column for each of many layers, of three kinds of noise: none that lasts, some that does, a random walk."""
    made = {}
    for place in range(LAYERS):
        noise = random.normal(0, 0.1, rows)
        if place % 3 == 1:
            noise = 0.1 * np.cumsum(noise)
        elif place % 3 == 2:
            noise = np.convolve(noise, 0.9 ** np.arange(60))[:rows]
        made[f"{name}/layers.{place}"] = np.exp(random.normal(0, 1) + noise)
    return made


def _grow(values: Floats, start: int, each: float) -> None:
    values[start:] *= (1 + each) ** np.arange(1, len(values) - start + 1)


def _dead(columns: Columns, *names: str, start: int = BREAKS) -> Columns:
    for name in names or ("loss",):
        columns[name][start:] = np.nan
    return columns


def _jumped(columns: Columns, start: int = BREAKS, grad_too: bool = True) -> Columns:
    """The loss jumps for good, and its gradient with it."""
    columns["loss"][start:] += 3
    if grad_too:
        columns["grad_norm"][start:] *= 8
    return columns


# ------------------------------------------------------------------ weights, gradients and activations
def weights_blow_up(random: Generator) -> Columns:
    """Weights grow 18% a step, the gradient overflows 14 steps later and takes the loss scale along, then NaN."""
    made = healthy(random)
    _grow(made["weight_norm/blocks"], 632, 0.18)
    scale = np.full(ROWS, 65536.0)
    scale[646:] /= 2.0 ** np.clip(np.arange(1, ROWS - 645), 0, 10)
    return _dead(_dead({**made, "loss_scale": scale}, "grad_norm", start=646), "loss")


def weights_grow(random: Generator) -> Columns:
    made = healthy(random)
    _grow(made["weight_norm/embed"], 600, 0.03)
    made["grad_norm"][660:] *= 6
    return _jumped(made, grad_too=False)


def weights_creep(random: Generator) -> Columns:
    made = healthy(random)
    _grow(made["weight_norm/blocks"], 560, 0.006)
    return _jumped(made)


def gradient_raised(random: Generator) -> Columns:
    made = healthy(random)
    made["grad_norm"][BREAKS - 12 :] *= 5
    return _dead(made, "loss", "grad_norm")


def gradient_grows(random: Generator) -> Columns:
    made = healthy(random)
    _grow(made["grad_norm"], BREAKS - 40, 0.12)
    return _jumped(made, grad_too=False)


def gradient_before_spike(random: Generator) -> Columns:
    made = healthy(random)
    made["grad_norm"][BREAKS - 8 : BREAKS + 4] *= 7
    made["loss"][BREAKS : BREAKS + 4] += 4
    return made


def gradient_overflows(random: Generator) -> Columns:
    return _dead(_dead(healthy(random), "grad_norm", start=BREAKS - 6), "loss")


def activation_grows(random: Generator) -> Columns:
    made = healthy(random)
    for place in range(4):
        made[f"activation_max/block{place}"] = 8 * np.exp(random.normal(0, 0.08, ROWS))
    _grow(made["activation_max/block2"], BREAKS - 50, 0.1)
    made["activation_max/block3"][BREAKS - 20 :] *= 30
    return _dead(made, "loss", "grad_norm")


def activation_jumps(random: Generator) -> Columns:
    made = healthy(random) | {"activation_max/block0": 20 * np.exp(random.normal(0, 0.1, ROWS))}
    made["activation_max/block0"][BREAKS - 5 :] *= 40
    return _jumped(made)


def attention_grows(random: Generator) -> Columns:
    made = healthy(random) | {"attention_logits_max": 12 * np.exp(random.normal(0, 0.05, ROWS))}
    _grow(made["attention_logits_max"], BREAKS - 90, 0.04)
    return _jumped(made)


def units_die(random: Generator) -> Columns:
    made = healthy(random) | {"dead_relu_frac": 0.05 + random.uniform(0, 0.02, ROWS)}
    made["dead_relu_frac"][BREAKS - 60 :] += np.linspace(0.02, 0.8, 60 + ROWS - BREAKS)
    return _jumped(made)


# ------------------------------------------------------------------ the schedule, the scale, held-out data
def rate_jumps(random: Generator) -> Columns:
    made = healthy(random)
    made["lr"][BREAKS - 3 :] *= 20
    made["grad_norm"][BREAKS - 1 :] *= 6
    return _jumped(made, grad_too=False)


def rate_jumps_long_before(random: Generator) -> Columns:
    made = healthy(random)
    made["lr"][BREAKS - 60 :] *= 10
    _grow(made["weight_norm/blocks"], BREAKS - 50, 0.05)
    return _dead(made, "loss", "grad_norm")


def rate_turns(random: Generator) -> Columns:
    made = healthy(random)
    made["lr"][BREAKS - 150 :] *= np.linspace(1, 30, 150 + ROWS - BREAKS)
    return _jumped(made)


def scale_falls(random: Generator) -> Columns:
    made = healthy(random)
    scale = 65536 / 2.0 ** np.clip((np.arange(ROWS) - (BREAKS - 60)) // 10, 0, 9)
    return _dead({**made, "loss_scale": scale}, "loss", "grad_norm")


def scale_falls_before_a_jump(random: Generator) -> Columns:
    scale = 32768 / 2.0 ** np.clip((np.arange(ROWS) - (BREAKS - 20)) // 4, 0, 6)
    return _jumped({**healthy(random), "loss_scale": scale})


def eval_first(random: Generator) -> Run:
    """The loss on held-out data, measured every 10 steps, rises before the training loss does."""
    run = make_run(_jumped(healthy(random)))
    at = np.arange(0, ROWS, 10)
    values = (1.8 + 2.2 * np.exp(-at / 120)) * np.exp(random.normal(0, 0.01, len(at)))
    values[at >= BREAKS - 60] += np.linspace(0.4, 3, int((at >= BREAKS - 60).sum()))
    run.series["eval_loss"] = series("eval_loss", values, at)  # type: ignore[index]
    return run


def kl_first(random: Generator) -> Columns:
    """The policy leaves its reference, then the reward falls, and the loss is NaN."""
    made = healthy(random) | {"kl": 0.02 * np.exp(random.normal(0, 0.2, ROWS))}
    made["entropy"] = 2 - np.linspace(0, 0.6, ROWS) + random.normal(0, 0.02, ROWS)
    made["reward"] = np.linspace(0.1, 0.7, ROWS) + random.normal(0, 0.03, ROWS)
    _grow(made["kl"], BREAKS - 70, 0.1)
    made["reward"][BREAKS - 30 :] -= 0.8
    return _dead(made, "loss", "grad_norm")


# ------------------------------------------------------------------ one of many columns
def one_layer_blows_up(random: Generator) -> Columns:
    made = healthy(random) | layers(random, "weight_norm")
    _grow(made["weight_norm/layers.117"], BREAKS - 60, 0.18)
    for place in range(100, 140):
        _grow(made[f"weight_norm/layers.{place}"], BREAKS - 25, 0.3)
    return _dead(made, "loss", "grad_norm")


def one_update_jumps(random: Generator) -> Columns:
    made = healthy(random) | layers(random, "update_ratio")
    made["update_ratio/layers.30"][BREAKS - 15 :] *= 50
    return _jumped(made)


def one_activation_grows(random: Generator) -> Columns:
    made = healthy(random) | layers(random, "activation_max")
    _grow(made["activation_max/layers.62"], BREAKS - 80, 0.08)
    made["grad_norm"][BREAKS - 10 :] *= 8
    return _jumped(made, grad_too=False)


# ------------------------------------------------------------------ nothing moves before the loss
def bad_data(random: Generator) -> Columns:
    return _jumped(healthy(random))


def bad_data_then_weights(random: Generator) -> Columns:
    made = _jumped(healthy(random))
    _grow(made["weight_norm/blocks"], BREAKS + 10, 0.05)
    return made


def one_bad_batch(random: Generator) -> Columns:
    made = healthy(random)
    made["loss"][BREAKS] += 5
    made["grad_norm"][BREAKS] *= 20
    return made


def nan_from_nowhere(random: Generator) -> Columns:
    return _dead(healthy(random), "loss", "grad_norm")


def nan_among_layers(random: Generator) -> Columns:
    return _dead(healthy(random) | layers(random, "weight_norm"), "loss", "grad_norm")


def jump_among_layers(random: Generator) -> Columns:
    return _jumped(healthy(random) | layers(random, "update_ratio"))


CHAINS = {
    chain.make.__name__: chain
    for chain in (
        Chain("weight_norm/blocks", weights_blow_up),
        Chain("weight_norm/embed", weights_grow),
        Chain("weight_norm/blocks", weights_creep),
        Chain("grad_norm", gradient_raised),
        Chain("grad_norm", gradient_grows),
        Chain("grad_norm", gradient_before_spike),
        Chain("grad_norm", gradient_overflows),
        Chain("activation_max/block2", activation_grows),
        Chain("activation_max/block0", activation_jumps),
        Chain("attention_logits_max", attention_grows),
        Chain("dead_relu_frac", units_die),
        Chain("lr", rate_jumps),
        Chain("lr", rate_jumps_long_before),
        Chain("lr", rate_turns),
        Chain("loss_scale", scale_falls),
        Chain("loss_scale", scale_falls_before_a_jump),
        Chain("eval_loss", eval_first),
        Chain("kl", kl_first),
        Chain("weight_norm/layers.117", one_layer_blows_up),
        Chain("update_ratio/layers.30", one_update_jumps),
        Chain("activation_max/layers.62", one_activation_grows),
        Chain("loss", bad_data),
        Chain("loss", bad_data_then_weights),
        Chain("loss", one_bad_batch),
        Chain("loss", nan_from_nowhere),
        Chain("loss", nan_among_layers),
        Chain("loss", jump_among_layers),
    )
}


def made(name: str, seed: int) -> Run:
    """The run of a chain."""
    columns = CHAINS[name].make(np.random.default_rng(seed))
    return make_run(columns) if isinstance(columns, dict) else columns
