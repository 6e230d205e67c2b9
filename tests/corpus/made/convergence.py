"""The thresholds of the questions of the convergence tree and of fine-tuning, from both sides."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stabtree.run import Resume, Run
from tests.conftest import make_run, series
from tests.corpus.made.hold import Hold
from tests.corpus.made.phase19 import SIGMA, learned, ordered, span, steady

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


def falls_from_far(nats: float) -> Run:
    """A loss with a constant added to it that falls steadily by so much."""
    return make_run({"loss": 14 - nats * np.minimum(np.arange(ROWS) / (0.85 * ROWS), 1) + noise(ROWS, 1e-3)})


def dips(sigmas: float) -> Run:
    """A loss with a constant added to it that goes down and comes back, by so many times its scatter."""
    at, scatter = np.arange(4000) / 4000, noise(4000, 1.0)
    scatter[:10] = 0
    return make_run({"loss": 100 - sigmas * np.interp(at, [0, 0.4, 0.6, 1], [0, 1, 1, 0]) + scatter})


def eval_rises(nats: float) -> Run:
    """An eval loss far above 0 that falls by 3 and rises by so much, while the training loss goes on falling."""
    evals = np.interp(np.arange(20), [0, 8, 11, 14, 19], [13.0, 10.0, 10.0, 10 + nats, 10 + nats])
    run = make_run({"loss": 10 + 3 * np.exp(-6 * np.arange(ROWS) / ROWS) + noise(ROWS, 1e-3)})
    return with_series(run, "eval_loss", evals, np.arange(20) * 20)


def rows_of(rows: float) -> Run:
    """A flat loss of so many rows, 20 steps apart."""
    return make_run({"loss": 2 + noise(int(rows))}, np.arange(int(rows)) * 20)


def logged_from(step: float, every: int = 1) -> Run:
    """A flat loss that is logged from a step on."""
    return make_run({"loss": 2 + noise(ROWS)}, int(step) + every * np.arange(ROWS))


def knows(share: float) -> Run:
    """A loss that falls by a few percent from a share of ln(10)."""
    return make_run({"loss": share * math.log(10) * np.linspace(1, 0.96, ROWS) + noise(ROWS, 1e-3)}, n_classes=10)


def late_peak(share: float) -> Run:
    """A flat loss under a rate that stays at a share of its peak until the last rows."""
    lr = np.where(np.arange(ROWS) < 0.85 * ROWS, share, 1.0) * 1e-3
    return make_run({"loss": 2 + noise(ROWS), "lr": lr})


def planned(progress: float) -> Run:
    """A flat loss of 400 steps, that share of the plan."""
    return flat(max_steps=round((ROWS - 1) / progress))


def ends_above(share: float) -> Run:
    """A loss that goes up by a share after its first rows and stays there."""
    return make_run({"loss": 2 * np.where(np.arange(ROWS) < 20, 1, 1 + share) + noise(ROWS, 1e-3)})


def updates(ratio: float) -> Run:
    """A flat loss with an update ratio."""
    return make_run({"loss": 2 + noise(ROWS), "update_ratio": np.full(ROWS, ratio)})


def zero_norms(share: float) -> Run:
    """A flat loss with a grad_norm that is 0 in a share of its rows."""
    return make_run({"loss": 2 + noise(ROWS), "grad_norm": np.arange(ROWS) >= share * ROWS})


def squashed(start: float, above: float, late: float = 0.0, lowest: float | None = None, rows: int = 4) -> Run:
    """A cross-entropy of ten probabilities.

    Args:
        start: where it begins, times ln(10).
        above: how far above its floor it ends.
        late: the share of its fall that it leaves for its last third.
        lowest: how far above its floor its lowest rows lie, as a share of the floor, in a log without n_classes.
        rows: how many of them there are.
    """
    floor, chance = math.log1p(9 / math.e), math.log(10)
    end = floor + above * (chance - floor)
    middle = end + late * (start * chance - end)
    loss = np.interp(np.arange(ROWS), [0, 100, 250, 350, ROWS], [start * chance, middle, middle, end, end])
    loss += np.resize([0, 1e-4], ROWS)
    if lowest is None:
        return make_run({"loss": loss}, n_classes=10)
    loss[-7:][:rows] = floor * (1 + lowest)
    return make_run({"loss": loss})


def rate_ends(share: float, left: float = 0.8, schedule: str = "constant") -> Run:
    """A rate that drops to a share of itself after a fifth of the plan, and is logged for so much of it from there."""
    rows = 80 + round(left * ROWS)
    lr = np.where(np.arange(rows) < 80, 1.0, share) * 1e-3
    return make_run({"loss": learned(rows), "lr": lr}, lr_schedule=schedule, max_steps=ROWS)


def overfitted(share: float) -> Run:
    """An eval loss that rises by a share of all that it had fallen, while the training loss goes on falling."""
    at = np.arange(ROWS) / ROWS
    evals = np.interp(np.arange(20), [0, 8, 11, 14, 19], [100.0, 1.0, 1.0, 1 + 99 * share, 1 + 99 * share])
    run = make_run({"loss": 100 * np.exp(-6 * at) + noise(ROWS)})
    return with_series(run, "eval_loss", evals, np.arange(20) * 20)


def trained_up(begin: float, end: float) -> Run:
    """A training loss that falls to one level and ends at another, while the eval loss falls to 1 and rises to 2."""
    at = np.arange(ROWS) / ROWS
    evals = np.interp(np.arange(20), [0, 8, 11, 14, 19], [3.0, 1.0, 1.0, 2.0, 2.0])
    run = make_run({"loss": np.interp(at, [0, 0.3, 0.6, 0.8, 1], [3, begin, begin, end, end])})
    return with_series(run, "eval_loss", evals, np.arange(20) * 20)


def evaluated(times: float) -> Run:
    """An eval loss that rises after its first two of so many evaluations, under a training loss that falls."""
    evals = np.where(np.arange(int(times)) < 2, 1.0, 3.0)
    run = make_run({"loss": 3 * np.exp(-3 * np.arange(ROWS) / ROWS)})
    return with_series(run, "eval_loss", evals, np.arange(int(times)) * (ROWS // int(times)))


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


def leaves_at_once(levels: Floats) -> Run:
    """A grad_norm that goes from 1 in its first three rows to 8 and so much."""
    norm, rows = 8 + levels, len(levels)
    norm[:3] = 1.0
    return make_run({"loss": learned(rows) * np.exp(noise(rows, 0.3)), "grad_norm": norm})


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


def tuned(end: float, *, fall_ends: float = 0.2, late: float = 0.0) -> Run:
    """A fine-tuning loss from 4 to `end`, all but a late share of it by that share of the rows."""
    at, middle = np.arange(ROWS) / ROWS, end + late * (4 - end)
    loss = np.interp(at, [0, 0.05, fall_ends, 0.6, 0.601, 1], [4, 4, middle, middle, end, end])
    return make_run({"loss": loss, "token_accuracy": np.full(ROWS, 0.5)})


HOLDS = (
    Hold("O0.min_share", falls_by, {0.055: "slow-learning", 0.065: "no slow-learning"}),
    Hold("O0.min_fall", falls_from_far, {0.27: "slow-learning", 0.33: "no slow-learning"}),
    Hold("O0.flat_noise", dips, {1.6: "flat-from-start", 2.4: "no flat-from-start"}),
    Hold("O0.min_steps", lambda steps: flat(int(steps) + 1), {290: "no flat-from-start", 310: "flat-from-start"}),
    Hold("O0.min_rows", rows_of, {27: "no flat-from-start", 33: "flat-from-start"}),
    Hold("O0.late_start_steps", logged_from, {9: "flat-from-start", 11: "no flat-from-start"}),
    Hold("O0.late_start_rows", partial(logged_from, every=10), {45: "flat-from-start", 55: "no flat-from-start"}),
    Hold("O0.at_chance", knows, {0.75: "no slow-learning", 0.85: "slow-learning"}),
    Hold("O0.warm_share", late_peak, {0.85: "no flat-from-start", 0.95: "flat-from-start"}),
    Hold("O0.min_progress", planned, {0.23: "no flat-from-start", 0.27: "flat-from-start"}),
    Hold("O0.worse_share", ends_above, {0.18: "no worse-than-start", 0.22: "worse-than-start"}),
    Hold("O2.zero_share", zero_norms, {0.45: "no no-gradient", 0.55: "no-gradient"}),
    Hold("O7.low_factor", updates, {0.9e-4: "lr-too-low", 1.1e-4: "no lr-too-low"}),
    Hold("O7.high_factor", updates, {0.9e-2: "no updates-too-large", 1.1e-2: "updates-too-large"}),
    Hold("O12.near_share", partial(squashed, 1.0), {0.18: "double-softmax", 0.22: "no double-softmax"}),
    Hold("O12.start_share", partial(squashed, above=0.1), {1.018: "double-softmax", 1.022: "no double-softmax"}),
    Hold(
        "O12.guess_share",
        lambda share: squashed(1.0, 0.1, lowest=share),
        {0.0027: "double-softmax", 0.0033: "no double-softmax"},
    ),
    Hold(
        "O12.floor_rows",
        lambda rows: squashed(1.0, 0.1, lowest=0.001, rows=int(rows)),
        {2: "no double-softmax", 3: "double-softmax"},
    ),
    Hold(
        "O12.apart",
        lambda apart: squashed(math.log10(10 + apart), 0.1, lowest=0.001),
        {0.09: "double-softmax", 0.11: "no double-softmax"},
    ),
    Hold(
        "O12.settled_share",
        lambda share: squashed(1.0, 0.1, late=share),
        {0.13: "double-softmax", 0.17: "no double-softmax"},
    ),
    Hold("O23.zero_share", rate_ends, {0.9e-3: "lr-ends-early", 1.1e-3: "no lr-ends-early"}),
    Hold("O23.left_share", lambda left: rate_ends(0.0, left), {0.09: "no lr-ends-early", 0.11: "lr-ends-early"}),
    Hold("O23.floor_share", partial(rate_ends, schedule="cosine"), {0.45: "lr-ends-early", 0.55: "no lr-ends-early"}),
    Hold("O27.half", partial(trained_up, 0.9), {0.95: "overfitting", 1.05: "no overfitting"}),
    Hold("O27.half", lambda rise: trained_up(0.1, 0.1 + rise), {0.45: "overfitting", 0.55: "no overfitting"}),
    Hold("O27.min_rise", eval_rises, {0.18: "no overfitting", 0.22: "overfitting"}),
    Hold("O27.min_rows", evaluated, {2: "no overfitting", 4: "overfitting"}),
    Hold("O27.range_share", overfitted, {0.045: "no overfitting", 0.055: "overfitting"}),
    Hold("O25.dead_share", partial(dead, 0.01), {0.45: "no dead-units", 0.55: "dead-units"}),
    Hold("O25.all_share", lambda share: dead(share, share), {0.985: "no dead-units", 1.0: "dead-units"}),
    Hold("O25.growth", lambda times: dead(0.9 / times, 0.9), {1.4: "no dead-units", 1.6: "dead-units"}),
    Hold("O4.growth", partial(adding_up, jitter=0.01), {4.5: "no gradients-add-up", 5.5: "gradients-add-up"}),
    Hold("O4.smooth", partial(adding_up, 8.0), {0.042: "gradients-add-up", 0.058: "no gradients-add-up"}),
    Hold(
        "O4.trend_z",
        lambda score: leaves_at_once(ordered(ROWS, score)),
        {2.1: "no gradients-add-up", 2.55: "gradients-add-up"},
    ),
    Hold(
        "O4.min_rows",
        lambda rows: leaves_at_once(np.linspace(0, 1, int(rows))),
        {36: "no gradients-add-up", 44: "gradients-add-up"},
    ),
    Hold("seam.sigma", seam, {4.5: "no resume-jump", 5.5: "resume-jump"}),
    Hold("seam.range_share", wide_seam, {0.09: "no resume-jump", 0.11: "resume-jump"}),
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
