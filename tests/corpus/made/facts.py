"""The thresholds of what is found in a run once: its spike, levels, rise, break, seam, checkpoints and movers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from stabtree.common.stats import NORMAL_MAD
from stabtree.facts.levels import MEDIAN_ERROR
from stabtree.run import FileUse
from tests.conftest import falling, make_run
from tests.corpus.made.convergence import resumed
from tests.corpus.made.hold import Hold
from tests.corpus.made.phase19 import LEVEL, SIGMA, learned, steady

if TYPE_CHECKING:
    from stabtree.run import Run
    from tests.corpus.made.phase19 import Floats


# ------------------------------------------------------------------ spike
def seen_for(rows: float) -> Run:
    """A loss, logged every 20 steps, that jumps for good so many rows before its last one."""
    loss = steady(40)
    loss[-1 - int(rows) :] += 5
    return make_run({"loss": loss}, 20 * np.arange(40))


def after_seam(rows: float) -> Run:
    """A spike so many rows after a resume."""
    loss, at = steady(300), 200 + int(rows)
    loss[at : at + 3] += LEVEL
    return resumed(make_run({"loss": loss}), 200)


# ------------------------------------------------------------------ levels and rise
def turns(rows: float) -> Run:
    """A loss that falls, and rises over its last rows."""
    at = np.arange(200) - (200 - int(rows))
    return make_run({"loss": 2 + np.where(at < 0, -0.01 * at, 0.03 * at)})


def fallen(times: float) -> Run:
    """A reward that loses most of what it had, by so many times the scatter of the medians of ten of its rows."""
    noise = 0.7 / (times * NORMAL_MAD * 2**0.5 * MEDIAN_ERROR / 10**0.5)
    reward = np.repeat([0.0, 1.0, 1.0, 0.3], 100) + np.resize([noise, -noise], 400)
    return make_run({"loss": learned(400), "reward": reward})


def close_up(end: Floats, times: float, *, top: float = 2.0) -> Run:
    """A loss that swings so widely that only its last 400 rows can show a rise, one of so many times their scatter.

    `top` is where the loss begins, and so what it covers in all.
    """
    at = np.arange(1100)
    swing = 1.5 + 0.15 * np.sin(at * (2 * np.pi / 100)) + np.maximum(0, (top - 2) * (1 - at / 700))
    noise = (end[-1] - end[0]) / (times * NORMAL_MAD * MEDIAN_ERROR / 10**0.5)
    return make_run({"loss": np.concatenate([swing, LEVEL + end + np.resize([noise, -noise], 400)])})


def steps_up(row: float) -> Run:
    """A rise in one step, the later the more of a trend: its score is 3.2 after 40 rows and 3.6 after 50."""
    return close_up(np.where(np.arange(400) < row, 0, 0.3), 8.0)


def climbs_by(times: float) -> Run:
    """A steady rise of so many times its scatter."""
    return close_up(np.linspace(0, 0.3, 400), times)


def climbs_far_below(times: float) -> Run:
    """The same, of a loss that covers thirty times as much."""
    return close_up(np.linspace(0, 0.3, 400), times, top=11)


def climbs_from(share: float) -> Run:
    """A plain rise by a share of the level it begins at, of a loss that covers far more."""
    run = close_up(np.linspace(0, 0.3, 400), 10.0, top=11)
    return make_run({"loss": run.series["loss"].values - LEVEL + 0.3 / share})


# ------------------------------------------------------------------ the break of the loss
def finite_for(rows: float) -> Run:
    """A loss with one NaN, finite for so many rows after it."""
    loss = learned(400)
    loss[-1 - int(rows)] = np.nan
    return make_run({"loss": loss}, dtype="fp32")


def dies(norm: Floats, **columns: Floats) -> Run:
    """A loss that is NaN from where a grad_norm ends."""
    rows = len(norm)
    loss = np.concatenate([learned(rows), np.full(20, np.nan)])
    padded = {name: np.concatenate([part, np.full(20, part[-1])]) for name, part in columns.items()}
    dtype = "fp16" if columns else "fp32"
    return make_run({"loss": loss, "grad_norm": np.concatenate([norm, np.full(20, np.nan)]), **padded}, dtype=dtype)


def explodes_twice(rows: float) -> Run:
    """A grad_norm that goes up to five times its value so many rows before the break, and to 15 times in the last."""
    before = 600 - np.arange(600)
    return dies(np.select([before > rows, before > 15], [1.0, 5.0], 15.0))


def one_high_row(before: float) -> Run:
    """A grad_norm with one row far above the others, so many before the break."""
    norm = 1 + np.resize([0.05, -0.05], 300)
    norm[-1] = 1.1
    norm[-int(before)] = 12
    return dies(norm)


# ------------------------------------------------------------------ seam, reading, checkpoints, movers
def after_resume(rows: float) -> Run:
    """A loss that is higher after a resume, so many rows before the end of the log."""
    at = np.arange(200 + int(rows))
    return resumed(make_run({"loss": steady(len(at)) + np.where(at < 200, 0, 20 * SIGMA)}), 200)


def half_read(share: float) -> Run:
    """A healthy run in a log of which a share of the lines could not be read."""
    use = FileUse("train.log", "text", rows=1000, skipped_count=round(1000 * share))
    return replace(make_run({"loss": falling(1000)}, dtype="fp32"), sources=(use,))


def saved(before: float) -> Run:
    """A checkpoint so many steps before the last finite loss of step 399, and one of step 200."""
    loss = np.where(np.arange(450) < 400, learned(450), np.nan)
    return make_run({"loss": loss}, dtype="fp32", checkpoints=(200, 399 - int(before)))


def warned(rows: float) -> Run:
    """A run that dies after so many rows, its grad_norm raised to five times its usual value in the last six."""
    return dies(np.where(np.arange(int(rows)) < rows - 6, 1.0, 5.0))


def raised_by(share: float) -> Run:
    """A run that dies, its even grad_norm raised by a share in the last 15 rows."""
    return dies(np.where(np.arange(400) < 385, 1.0, 1 + share))


def raised_for(rows: float) -> Run:
    """A run that dies a long time after its grad_norm was raised to five times its usual value."""
    return dies(np.where(np.arange(6000) < 6000 - rows, 1.0, 5.0))


def burst_before(times: float) -> Run:
    """A run that dies with a grad_norm so many times as far up as in a burst that it got over."""
    at = np.arange(600)
    return dies(np.exp(np.where((at >= 420) & (at < 424), 1.0, np.where(at < 590, 0.0, times))))


def lowered(times: float) -> Run:
    """An fp16 run that dies after its loss scale was halved so many times, every ten steps from step 250 on."""
    halvings = np.clip((np.arange(300) - 240) // 10, 0, int(times))
    return dies(np.ones(300), loss_scale=65536 / 2.0**halvings)


HOLDS = (
    Hold("spike.back_rows", seen_for, {4: "spike-open", 5: "spike-persistent"}),
    Hold("spike.seam_rows", after_seam, {2: "no spike-unexplained", 3: "spike-unexplained"}),
    Hold("levels.short_level_rows", turns, {13: "no slow-rise", 18: "slow-rise"}),
    Hold("levels.fall_noise", fallen, {4.5: "no reward-collapse", 5.5: "reward-collapse"}),
    Hold("rise.close_up_z", steps_up, {40: "no slow-rise", 50: "slow-rise"}),
    Hold("rise.close_up_noise", climbs_by, {3.6: "no slow-rise", 4.6: "slow-rise"}),
    Hold("rise.clear_noise", climbs_far_below, {5.4: "no slow-rise", 7.0: "slow-rise"}),
    Hold("rise.clear_rise", climbs_from, {0.046: "no slow-rise", 0.053: "slow-rise"}),
    Hold("loss_break.recovered_rows", finite_for, {18: "no nan-skipped", 22: "nan-skipped"}),
    Hold("loss_break.recent_rows", explodes_twice, {160: "nan-backward", 190: "nan-forward"}),
    Hold("loss_break.usual_rows", explodes_twice, {160: "nan-backward", 190: "nan-forward"}),
    Hold("loss_break.last_rows", one_high_row, {3: "nan-backward", 4: "nan-forward"}),
    Hold("seam.min_rows", after_resume, {2: "no resume-jump", 3: "resume-jump"}),
    Hold("reading.unread_share", half_read, {0.045: "ok", 0.055: "unknown"}),
    Hold("checkpoints.fresh_steps", saved, {9: "restart 200", 11: "restart 388"}),
    Hold("movers.min_blocks", warned, {34: "no precursor 28", 40: "precursor 34"}),
    Hold("movers.min_change", raised_by, {0.04: "no precursor 385", 0.055: "precursor 385"}),
    Hold("movers.max_rows", raised_for, {520: "no precursor 5480", 500: "precursor 5500"}),
    Hold("movers.beyond_factor", burst_before, {1.9: "no precursor 590", 2.1: "precursor 590"}),
    Hold("movers.scale_factor", lowered, {2: "no precursor 250", 3: "precursor 250"}),
)
