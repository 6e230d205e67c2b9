"""The thresholds of the convergence and fine-tuning trees, from both sides."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stabtree.run import Resume, Run
from tests.conftest import make_run, series
from tests.corpus.made.hold import Hold
from tests.corpus.made.phase19 import LEVEL, SIGMA, learned, span, steady

if TYPE_CHECKING:
    from tests.corpus.made.phase19 import Floats

ROWS = 400


def noise(rows: int, sigma: float = SIGMA, seed: int = 0) -> Floats:
    """Gaussian noise about 0."""
    return np.random.default_rng(seed).normal(0, sigma, rows)


def flat(rows: int = ROWS, **config: Any) -> Run:
    """A loss that stays where it began."""
    return make_run({"loss": 2 + noise(rows)}, **config)


def falls_by(share: float) -> Run:
    """A loss that falls steadily, in its last tenth by so much of where it began."""
    return make_run({"loss": 4 - 4 * share * np.minimum(np.arange(ROWS) / (0.85 * ROWS), 1) + noise(ROWS, 1e-3)})


def planned(progress: float) -> Run:
    """A flat loss of 400 steps, that share of the plan."""
    return flat(max_steps=round((ROWS - 1) / progress))


def ends_above(share: float) -> Run:
    """A loss that goes up by a share after its first rows and stays there."""
    return make_run({"loss": 2 * np.where(np.arange(ROWS) < 20, 1, 1 + share) + noise(ROWS, 1e-3)})


def updates(ratio: float) -> Run:
    """A flat loss with an update ratio."""
    return make_run({"loss": 2 + noise(ROWS), "update_ratio": np.full(ROWS, ratio)})


def squashed(start: float, above: float) -> Run:
    """A cross-entropy of ten probabilities: where it begins, times ln(10), and how far above its floor it ends."""
    floor, chance = math.log1p(9 / math.e), math.log(10)
    end = floor + above * (chance - floor)
    loss = np.interp(np.arange(ROWS), [0, 100, ROWS], [start * chance, end, end])
    return make_run({"loss": loss + np.resize([0, 1e-4], ROWS)}, n_classes=10)


def rate_ends(share: float) -> Run:
    """A rate that should be constant and drops to a share of itself after a fifth of the plan."""
    lr = np.where(np.arange(ROWS) < 80, 1.0, share) * 1e-3
    return make_run({"loss": learned(ROWS), "lr": lr}, lr_schedule="constant", max_steps=ROWS)


def overfitted(share: float) -> Run:
    """An eval loss that rises by a share of all that it had fallen, while the training loss goes on falling."""
    at = np.arange(ROWS) / ROWS
    evals = np.interp(np.arange(20), [0, 8, 11, 14, 19], [100.0, 1.0, 1.0, 1 + 99 * share, 1 + 99 * share])
    run = make_run({"loss": 100 * np.exp(-6 * at) + noise(ROWS)})
    return with_series(run, "eval_loss", evals, np.arange(20) * 20)


def with_series(run: Run, metric: str, values: Floats, steps: Any) -> Run:
    """A run with one more series on its own steps."""
    return replace(run, series={**run.series, metric: series(metric, values, steps)})


def dead(begin: float, end: float) -> Run:
    """A share of dead units that goes from one value to another."""
    share = np.interp(np.arange(ROWS), [0, 100, 200, ROWS], [begin, begin, end, end])
    return make_run({"loss": learned(ROWS), "dead_relu_frac": share})


def adding_up(growth: float, jitter: float) -> Run:
    """A grad_norm that grows by a factor, its neighbours apart by a share, under a loss far less steady."""
    norm = growth ** (np.arange(ROWS) / (0.93 * ROWS)) * np.exp(np.resize([0, jitter], ROWS))
    return make_run({"loss": learned(ROWS) * np.exp(noise(ROWS, 0.3)), "grad_norm": norm})


def resumed(run: Run, step: int) -> Run:
    """A run that was resumed at a step."""
    return replace(run, resumes=(Resume(step + 10, step, 10),))


def seam(sigmas: float) -> Run:
    """A loss that goes on higher after a resume, in units of the scatter of its neighbours."""
    return resumed(make_run({"loss": steady(ROWS) + np.where(np.arange(ROWS) < 200, 0, 2 * SIGMA * sigmas)}), 200)


def wide_seam(share: float) -> Run:
    """A loss that goes on higher after a resume by a share of its wide range."""
    loss = np.maximum(11 - np.arange(700) / 30, 1.0) + noise(700)
    return resumed(make_run({"loss": loss + np.where(np.arange(700) < 500, 0, share * span(loss))}), 500)


def padded(correlation: float, first: float | None = None) -> Run:
    """A loss whose changes follow the share of padding with about that correlation, downwards."""
    pad, own = noise(1000, 0.1, 1), noise(1000, 0.1, 2)
    loss = learned(1000, LEVEL) - correlation * pad + math.sqrt(1 - correlation**2) * own
    if first is not None:
        loss[0] = first
    return make_run({"loss": loss, "pad_share": 0.5 + pad}, vocab_size=50257)


def begins_at(share: float) -> Run:
    """A loss that begins at a share of ln(50257)."""
    return make_run({"loss": share * math.log(50257) * np.exp(-np.arange(ROWS) / 200)}, vocab_size=50257)


def apart(low: float, high: float) -> Run:
    """Two groups with their update ratios."""
    ratios = {"update_ratio/embed": np.full(ROWS, high), "update_ratio/trunk": np.full(ROWS, low)}
    return make_run({"loss": learned(ROWS), **ratios})


def scale_halved(times: int, late: int) -> Run:
    """A loss scale that is halved so many times, the last of them in the second half."""
    falls = np.concatenate([np.linspace(60, 180, times - late), np.linspace(250, 380, late)]).astype(int)
    scale = 65536 / 2.0 ** np.searchsorted(falls, np.arange(ROWS), side="right")
    return make_run({"loss": learned(ROWS), "loss_scale": scale}, dtype="fp16")


def tuned(end: float, *, fall_ends: float = 0.2, late: float = 0.0) -> Run:
    """A fine-tuning loss from 4 to `end`, all but a late share of it by that share of the rows."""
    at, middle = np.arange(ROWS) / ROWS, end + late * (4 - end)
    loss = np.interp(at, [0, 0.05, fall_ends, 0.6, 0.601, 1], [4, 4, middle, middle, end, end])
    return make_run({"loss": loss, "token_accuracy": np.full(ROWS, 0.5)})


HOLDS = (
    Hold("O0.least_share", falls_by, {0.055: "slow-learning", 0.065: "no slow-learning"}),
    Hold("O0.least_steps", lambda steps: flat(int(steps) + 1), {290: "no flat-from-start", 310: "flat-from-start"}),
    Hold("O0.least_progress", planned, {0.23: "no flat-from-start", 0.27: "flat-from-start"}),
    Hold("O0.worse_share", ends_above, {0.18: "no worse-than-start", 0.22: "worse-than-start"}),
    Hold("O7.low_factor", updates, {0.9e-4: "lr-too-low", 1.1e-4: "no lr-too-low"}),
    Hold("O7.high_factor", updates, {0.9e-2: "no updates-too-large", 1.1e-2: "updates-too-large"}),
    Hold("O12.near_share", partial(squashed, 1.0), {0.18: "double-softmax", 0.22: "no double-softmax"}),
    Hold("O12.start_share", partial(squashed, above=0.1), {1.018: "double-softmax", 1.022: "no double-softmax"}),
    Hold("O23.zero_share", rate_ends, {0.9e-3: "lr-ends-early", 1.1e-3: "no lr-ends-early"}),
    Hold("O27.range_share", overfitted, {0.045: "no overfitting", 0.055: "overfitting"}),
    Hold("O25.dead_share", partial(dead, 0.01), {0.45: "no dead-units", 0.55: "dead-units"}),
    Hold("O25.growth", lambda times: dead(0.9 / times, 0.9), {1.4: "no dead-units", 1.6: "dead-units"}),
    Hold("O4.growth", partial(adding_up, jitter=0.01), {4.5: "no gradients-add-up", 5.5: "gradients-add-up"}),
    Hold("O4.smooth", partial(adding_up, 8.0), {0.042: "gradients-add-up", 0.058: "no gradients-add-up"}),
    Hold("seam.sigma", seam, {4.5: "no resume-jump", 5.5: "resume-jump"}),
    Hold("seam.range_share", wide_seam, {0.09: "no resume-jump", 0.11: "resume-jump"}),
    Hold("O15.correlation", padded, {0.42: "no loss-follows-padding", 0.58: "loss-follows-padding"}),
    Hold(
        "O15.padding.correlation",
        partial(padded, first=0.5),
        {0.42: "no starts-near-zero O15.padding", 0.58: "starts-near-zero O15.padding"},
    ),
    Hold("O16.share", begins_at, {0.045: "starts-near-zero", 0.055: "no starts-near-zero"}),
    Hold("O22.factor", lambda times: apart(0.5e-4, times * 0.5e-4), {90: "no groups-apart", 110: "groups-apart"}),
    Hold("O22.off", partial(apart, 0.9e-4), {0.99e-2: "groups-apart"}),
    Hold("O24.octaves", partial(scale_halved, late=4), {5: "no scale-drifts-down", 6: "scale-drifts-down"}),
    Hold("O24.late_halvings", partial(scale_halved, 8), {2: "no scale-drifts-down", 3: "scale-drifts-down"}),
    Hold("S1.level", tuned, {1.8: "no sft-loss-plateau", 2.2: "sft-loss-plateau"}),
    Hold(
        "S1.early_share",
        lambda share: tuned(3.0, fall_ends=share),
        {0.22: "sft-loss-plateau", 0.4: "no sft-loss-plateau"},
    ),
    Hold(
        "S1.gain_share", lambda share: tuned(3.0, late=share), {0.09: "sft-loss-plateau", 0.11: "no sft-loss-plateau"}
    ),
)
