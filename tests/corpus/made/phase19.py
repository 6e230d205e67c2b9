"""The thresholds of Phase-19: a run a tenth below each and a run a tenth above."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stabtree.common.stats import kendall_z
from tests.conftest import make_run
from tests.corpus.made.hold import Hold
from tests.whole.variants import without

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


def ordered(rows: int, score: float) -> Floats:
    """Twenty levels of equal length between 0 and 1 whose Mann-Kendall score is about the given one."""
    for seed in range(10_000):
        levels = np.random.default_rng(seed).permutation(20) / 19
        if abs(kendall_z(levels) - score) < 0.05:
            return np.repeat(levels, rows // 20)
    raise ValueError(f"no order of 20 levels scores {score}")


# ------------------------------------------------------------------ section 1
def clipped(rows: float) -> Run:
    """A grad_norm that is the same in all of so many rows before the loss breaks."""
    loss = np.concatenate([learned(int(rows)), np.full(20, np.nan)])
    return make_run({"loss": loss, "grad_norm": np.where(np.isfinite(loss), 1.0, np.nan)}, dtype="fp32")


# ------------------------------------------------------------------ section 2
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


def stays_up(share: float) -> Run:
    """A loss that jumps for good by a share of what it covers."""
    loss = learned(500)
    loss[300:] += share * span(loss)
    return make_run({"loss": loss})


def open_at(share: float) -> Run:
    """A spike 30 steps before the end, by a share of what the loss covers."""
    loss = learned(330)
    loss[300:] += share * span(loss)
    return make_run({"loss": loss})


def open_of(sigmas: float) -> Run:
    """A loss that jumps by so many sigmas of its noise eight rows before the end."""
    loss = learned(360, LEVEL)
    loss[352:] = LEVEL + sigmas * SIGMA
    return make_run({"loss": loss})


def creeps(share: float) -> Run:
    """A loss with single high rows that shifts by 0.3, and in the ten rows before by so much of it."""
    random = np.random.default_rng(1)
    loss = learned(600) + 0.1 * (random.random(600) < 0.1) * random.exponential(1, 600)
    loss[285:315] = steady(30)
    loss[290:300] += 0.3 * share
    loss[300:] += 0.3
    return make_run({"loss": loss})


def half_way(rows: float) -> Run:
    """A loss, logged every 75 steps, that takes so many rows for the first half of its way up."""
    way = (np.arange(60) - 39) / rows
    return make_run({"loss": steady(60) + np.where(way < 1, 4 * np.maximum(way, 0), 10)}, 75 * np.arange(60))


def span(loss: Floats) -> float:
    """What a loss covers: its 2nd to 98th percentile."""
    low, high = np.quantile(loss, [0.02, 0.98])
    return float(high - low)


def lr_jump(factor: float) -> Run:
    """A learning rate that rises by a factor where the loss spikes."""
    loss = learned(400)
    loss[300:305] += 2
    return make_run(
        {"loss": loss, "lr": np.where(np.arange(400) < 300, 1e-3, factor * 1e-3), "grad_norm": np.ones(400)}
    )


def far(height: float, *, top: float = 4.0, took: int = 3, rows: int = 600, **columns: Any) -> Run:
    """A spike of a noisy loss that is back soon."""
    loss = learned(rows, top) + np.random.default_rng(0).normal(0, 0.1, rows)
    loss[300 : 300 + took] += height
    return make_run({"loss": loss, **columns})


def likely(factor: float) -> Run:
    """A rare spike with a grad_norm so many times above its mean."""
    norm = 1 + np.random.default_rng(1).normal(0, 0.01, 600)
    norm[300] = factor * norm[200:300].mean()
    return far(1.0, grad_norm=norm)


def small(share: float) -> Run:
    """A spike by a share of a wide range, which takes 60 steps to come back."""
    loss = np.maximum(11 - np.arange(700) / 30, 1.0) + np.random.default_rng(0).normal(0, SIGMA, 700)
    loss[500:560] += share * span(loss)
    return make_run({"loss": loss})


# ------------------------------------------------------------------ section 3
def fp16(rows: int, scale: Floats, bad: tuple[int, ...] = (), **columns: Any) -> Run:
    """A run in fp16 with a loss scale, and rows without a finite gradient."""
    norm = 1 + np.random.default_rng(2).normal(0, 0.05, rows)
    norm[list(bad)] = np.inf
    return make_run({"loss": learned(rows), "grad_norm": norm, "loss_scale": scale, **columns}, dtype="fp16")


def scale_at_end(end: float) -> Run:
    """A loss scale that falls from 1,024 to a value."""
    return fp16(400, np.concatenate([1024 * np.ones(200), 32 * np.ones(100), end * np.ones(100)]), (200, 300))


def scale_that_recovers(lowest: float) -> Run:
    """A loss scale that was low in the middle and ends high."""
    return fp16(400, np.repeat([1024.0, lowest, 1024.0, 1024.0], 100), (100,))


def halved(times: float) -> Run:
    """A loss scale that is halved so many times in the second half."""
    falls = np.minimum(np.maximum(np.arange(400) - 210, 0) // 30, int(times))
    return fp16(400, 65536 / 2.0**falls, tuple(np.flatnonzero(np.diff(falls)) + 1))


def in_row(count: float, *, scaled: bool = True) -> Run:
    """So many steps in a row without a finite gradient, in the second half."""
    scale = np.where(np.arange(400) < 300, 65536.0, 32768.0)
    run = fp16(400, scale, tuple(range(300, 300 + int(count))))
    return run if scaled else without(run, "loss_scale")


def floored(halvings: float, at_end: float) -> Run:
    """A loss scale that was halved so many times in all, and so many steps at the end without a finite gradient."""
    falls = np.clip(np.arange(400) // 50, 0, int(halvings))
    return fp16(400, 1024 / 2.0**falls, (*(np.flatnonzero(np.diff(falls)) + 1), *range(400 - int(at_end), 400)))


def singles(count: float, rows: int) -> Run:
    """So many single steps without a finite gradient in the second half, and no loss scale logged."""
    return without(fp16(rows, np.ones(rows), tuple(rows // 2 + rows // 25 * np.arange(int(count)))), "loss_scale")


# ------------------------------------------------------------------ section 4
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


def gradient_trend(score: float) -> Run:
    """A grad_norm whose levels have about that trend score while the loss rises over 400 steps."""
    norm = np.concatenate([np.ones(400), 1 + ordered(400, score)])
    return make_run({"loss": rising(800, 400), "lr": np.full(800, 1e-3), "grad_norm": norm})


def gradient_growth(factor: float) -> Run:
    """A grad_norm that grows steadily by a factor while the loss rises."""
    norm = np.concatenate([np.ones(400), np.linspace(1, factor, 400)])
    return make_run({"loss": rising(800, 400), "lr": np.full(800, 1e-3), "grad_norm": norm})


def adversary(factor: float, took: int) -> Run:
    """A generator's loss that goes to so many times its level within some rows, and stays there."""
    loss = np.interp(np.arange(500), [0, 300, 300 + took, 500], [1, 1, factor, factor])
    return make_run({"loss": loss + np.random.default_rng(0).normal(0, 0.05, 500)}, loss_kind="adversarial")


HOLDS = (
    Hold("spike.burst_factor", partial(adversary, took=2), {900: "no spike-persistent", 1100: "spike-persistent"}),
    Hold("rise.burst_factor", partial(adversary, took=180), {900: "no slow-rise", 1100: "slow-rise"}),
    Hold("Q1.3.flat_rows", clipped, {9: "nan-forward", 11: "nan-unlocated"}),
    Hold("spike.sigma", of_height, {2.7: "healthy", 3.3: "spike-unexplained"}, literal=True),
    Hold("spike.back_sigma", back_to, {0.45: "spike-unexplained", 0.55: "spike-persistent"}, literal=True),
    Hold("spike.horizon_steps", back_after, {45: "spike-unexplained", 55: "spike-persistent"}, literal=True),
    Hold("spike.lasting_share", stays_up, {0.09: "no spike-persistent", 0.11: "spike-persistent"}),
    Hold("Q2.2.open_share", open_at, {0.45: "no spike-open", 0.55: "spike-open"}),
    Hold("Q2.2.open_chance", open_of, {11: "no spike-open", 12: "spike-open"}),
    Hold("spike.shift_jump", creeps, {0.5: "spike-persistent", 0.55: "no spike-persistent"}),
    Hold("Q2.2.climb_rows", half_way, {2: "spike-persistent", 3: "no spike-persistent"}),
    Hold("Q2.3.lr_factor", lr_jump, {1.4: "no spike-lr-jump", 1.6: "spike-lr-jump"}),
    Hold("Q2.3.grad_norm_likely_factor", likely, {1.8: "no spike-bad-batch", 2.2: "spike-bad-batch"}),
    Hold("Q2.3.far_share", small, {0.09: "spike-minor", 0.11: "spike-unexplained"}),
    Hold("spike.horizon_steps", lambda took: far(1.0, took=int(took)), {45: "spike-minor", 55: "spike-unexplained"}),
    Hold("Q3.2.collapse_below", scale_at_end, {0.9: "scale-collapse", 1.1: "no scale-collapse"}),
    Hold("Q3.2.net_halvings", halved, {2: "normal-backoff", 3: "no normal-backoff"}),
    Hold("Q3.2.max_in_row", in_row, {3: "normal-backoff", 4: "no normal-backoff"}),
    Hold("Q3.2.forgiving", scale_that_recovers, {0.5: "normal-backoff"}),
    Hold("Q3.2.max_in_row", partial(in_row, scaled=False), {3: "grad-skipped", 4: "grad-nonfinite"}),
    Hold("Q3.2.floored_rows", partial(floored, 4), {9: "no scale-collapse", 11: "scale-collapse"}),
    Hold("Q3.2.floored_halvings", partial(floored, at_end=15), {2: "no scale-collapse", 3: "scale-collapse"}),
    Hold("Q3.3.max_single", partial(singles, rows=100), {5: "grad-skipped", 6: "grad-nonfinite"}),
    Hold("Q3.3.single_share", partial(singles, rows=400), {9: "grad-skipped", 11: "grad-nonfinite"}),
    Hold("levels.window_steps", rises_at_the_end, {300: "slow-rise"}),
    Hold("levels.window_steps", lr_moves, {180: "lr-rising", 220: "no lr-rising"}),
    Hold("Q4.3.factor", weights, {1.8: "no weight-decay-low", 2.2: "weight-decay-low"}),
    Hold("Q4.3.factor", weights, {0.56: "no weight-decay-high", 0.45: "weight-decay-high"}),
    Hold("levels.window_steps", gradients, {155: "grad-norm-rising", 205: "no grad-norm-rising"}),
    Hold("rise.trend_z", gradient_trend, {1.6: "no grad-norm-rising", 2.6: "grad-norm-rising"}),
    Hold("Q4.4.min_factor", gradient_growth, {1.1: "no grad-norm-rising", 1.3: "grad-norm-rising"}),
)
