"""The documents' own numbers: a run a tenth below each and a run a tenth above."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.conftest import make_run
from tests.corpus.made.hold import Hold

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stabtree.run import Run

    Floats = NDArray[np.float64]

LEVEL, SIGMA = 1.0, 0.01


def steady(rows: int) -> Floats:
    """A loss about 1 whose scatter is 0.01 in any even window: it alternates."""
    return LEVEL + SIGMA * np.resize([1.0, -1.0], rows)


def learned(rows: int, top: float = 4.0, seed: int = 0) -> Floats:
    """A loss that falls from `top` to 1 within 40 rows and stays there with Gaussian noise of 0.01."""
    at = np.arange(rows)
    return LEVEL + (top - LEVEL) * np.exp(-at / 10) + np.random.default_rng(seed).normal(0, SIGMA, rows)


def of_height(sigmas: float) -> Run:
    """One row so many sigmas above the mean."""
    loss = steady(300)
    loss[200] = LEVEL + sigmas * SIGMA
    return make_run({"loss": loss})


def back_to(sigmas: float) -> Run:
    """A spike after which the loss stays so many sigmas above the mean."""
    loss = steady(300)
    loss[200:] = LEVEL + sigmas * SIGMA
    loss[200:203] = LEVEL + 20 * SIGMA
    return make_run({"loss": loss})


def back_after(steps: float) -> Run:
    """A spike that takes so many steps to come back."""
    loss = steady(400)
    loss[200 : 200 + int(steps)] = LEVEL + 20 * SIGMA
    return make_run({"loss": loss})


def far(height: float, *, top: float = 4.0, took: int = 3, rows: int = 600, **columns: Any) -> Run:
    """A spike of a noisy loss that is back soon."""
    loss = learned(rows, top) + np.random.default_rng(0).normal(0, 0.1, rows)
    loss[300 : 300 + took] += height
    return make_run({"loss": loss, **columns})


def fp16(rows: int, scale: Floats, bad: tuple[int, ...] = (), **columns: Any) -> Run:
    """A run in fp16 with a loss scale, and rows without a finite gradient."""
    norm = 1 + np.random.default_rng(2).normal(0, 0.05, rows)
    norm[list(bad)] = np.inf
    return make_run({"loss": learned(rows), "grad_norm": norm, "loss_scale": scale, **columns}, dtype="fp16")


def scale_at_end(end: float) -> Run:
    """A loss scale that falls from 1,024 to a value."""
    return fp16(400, np.concatenate([1024 * np.ones(200), 32 * np.ones(100), end * np.ones(100)]), (200, 300))


def rising(rows: int, low: int, rate: float = 2e-3, fall: float = 1e-3) -> Floats:
    """A loss that falls up to a row and rises from there on, by so much a row."""
    at = np.arange(rows) - low
    return LEVEL + np.where(at < 0, -fall, rate) * at + np.random.default_rng(0).normal(0, SIGMA, rows)


def rises_at_the_end(rows: float) -> Run:
    """A loss that rises over the last rows of many."""
    return make_run({"loss": rising(8000, 8000 - int(rows))})


def lr_moves(before_end: float) -> Run:
    """A rate that goes up by a tenth so many steps before the end, and a loss that rises over the last 100."""
    lr = np.where(np.arange(640) < 640 - before_end, 1e-3, 1.1e-3)
    return make_run({"loss": rising(640, 540, 5e-3, 2e-3), "lr": lr})


def weights(growth: float) -> Run:
    """A loss that rises over 500 steps while a weight norm changes by a factor in every 200."""
    norm = growth ** (np.arange(800) / 200)
    return make_run({"loss": rising(800, 300), "lr": np.full(800, 1e-3), "weight_norm/block": norm})


def gradients(before_end: float) -> Run:
    """A grad_norm that doubles within 45 steps, which end so many before the end."""
    at = np.arange(640) - (640 - before_end - 45)
    return make_run(
        {"loss": rising(640, 540, 5e-3, 2e-3), "lr": np.full(640, 1e-3), "grad_norm": 1 + np.clip(at / 45, 0, 1)}
    )


HOLDS = (
    Hold("spike.sigma", of_height, {2.7: "healthy", 3.3: "spike-unexplained"}, literal=True),
    Hold("spike.back_sigma", back_to, {0.45: "spike-unexplained", 0.55: "spike-persistent"}, literal=True),
    Hold("spike.horizon_steps", back_after, {45: "spike-unexplained", 55: "spike-persistent"}, literal=True),
    Hold("spike.horizon_steps", lambda took: far(1.0, took=int(took)), {45: "spike-minor", 55: "spike-unexplained"}),
    Hold("Q3.2.collapse_below", scale_at_end, {0.9: "scale-collapse", 1.1: "no scale-collapse"}),
    Hold("rise.window_steps", rises_at_the_end, {300: "slow-rise"}),
    Hold("rise.window_steps", lr_moves, {180: "lr-rising", 220: "no lr-rising"}),
    Hold("Q4.3.factor", weights, {1.8: "no weight-decay-low", 2.2: "weight-decay-low"}),
    Hold("Q4.3.factor", weights, {0.56: "no weight-decay-high", 0.45: "weight-decay-high"}),
    Hold("rise.window_steps", gradients, {155: "grad-norm-rising", 205: "no grad-norm-rising"}),
)
