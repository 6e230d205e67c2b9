"""The thresholds of Q2.3, what stands in its panels at a spike, and of the batches that come back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tests.conftest import make_run, series
from tests.corpus.made.hold import Hold
from tests.corpus.made.phase19 import LEVEL, SIGMA, far, learned, steady

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stabtree.run import Run
    from tests.corpus.made.phase19 import Floats

    Bools = NDArray[np.bool_]

ROWS, SPIKE = 600, 300
AT = np.arange(ROWS)
COMMON, RARE = 0.5, 1.5  # heights of a spike that chance explains, and of one that it does not


# ------------------------------------------------------------------ batches
def fed(ids: Floats, height: float = COMMON) -> Run:
    """A spike in a run that was fed these batches."""
    return far(height, batch_id=ids)


def rows(first: float, end: float) -> Bools:
    """The rows from one up to, and without, another."""
    return np.isin(AT, np.arange(int(first), int(end)))


def looped(period: float, epoch: float = ROWS) -> Run:
    """A loader that feeds so many batches over and over before the spike, in the middle of an epoch of some length."""
    return fed(np.where(rows(SPIKE - 60, SPIKE + 5), SPIKE - 60 + (AT - SPIKE + 60) % int(period), AT) % int(epoch))


def scattered(period: float) -> Run:
    """Every second batch comes back after so many rows, between others that were never seen."""
    again = rows(SPIKE - 90, SPIKE + 5) & (AT % 2 == 0)
    return fed(np.where(again, SPIKE - 90 + (AT - SPIKE + 90) % int(period), AT))


def gone_back(count: float) -> Run:
    """So many batches are fed again in their order, 50 rows after they were."""
    return fed(np.where(rows(SPIKE - 2, SPIKE - 2 + count), AT - 50, AT), RARE)


def repeated_after(wait: float) -> Run:
    """A batch that comes back twice, first so many rows after the spike."""
    return fed(np.where(rows(SPIKE + wait, SPIKE + wait + 2), SPIKE - 1, AT), RARE)


def repeated(count: float) -> Run:
    """A batch that is fed again so many times right before the spike."""
    return fed(np.where(rows(SPIKE - count, SPIKE), SPIKE - count - 1, AT))


def seen_late(count: float) -> Run:
    """The same from the spike on, with batches that were logged from three rows before it on."""
    run, ids = far(COMMON), np.where(rows(SPIKE, SPIKE + count), SPIKE - 1, AT)
    batches = series("batch_id", ids[SPIKE - 3 :], AT[SPIKE - 3 :])
    return replace(run, series={**run.series, "batch_id": batches})


def memorised(count: float) -> Run:
    """A loss that is low for as many rows as one batch is fed again, and back at its level after."""
    stuck = rows(100, 100 + count)[:200]
    return make_run({"loss": np.where(stuck, 0.2, steady(200)), "batch_id": np.where(stuck, 99, AT[:200])})


# ------------------------------------------------------------------ Q2.3
def warm_up(times: float) -> Run:
    """A rate that grows by a tenth a row, and by so many times as much (as a logarithm) where the loss spikes."""
    loss = steady(60)
    loss[45:48] += 2
    lr = 1e-6 * 1.1 ** np.where(np.arange(60) < 45, np.arange(60), np.arange(60) + times - 1)
    return make_run({"loss": loss, "lr": lr, "grad_norm": np.ones(60)}, 10 * np.arange(60))


def back_up(factor: float) -> Run:
    """A rate that had been halved, and goes up to a multiple of where it began where the loss spikes."""
    loss = learned(400)
    loss[300:305] += 2
    lr = 1e-3 * np.repeat([1.0, 0.5, factor], [200, 100, 100])
    return make_run({"loss": loss, "lr": lr, "grad_norm": np.ones(400)})


def norm_height(sigmas: float) -> Run:
    """A rare spike with a grad_norm so many of its own deviations above its mean."""
    norm = 1 + np.resize([0.25, -0.25], ROWS)
    norm[SPIKE] = 1 + 0.25 * sigmas
    return far(1.0, grad_norm=norm)


def beyond_chance(sigmas: float) -> Run:
    """A short spike of so many deviations, below 1.5 times the loss of the beginning."""
    loss = steady(300)
    loss[0] = 1.2
    loss[200:203] = LEVEL + sigmas * SIGMA
    return make_run({"loss": loss})


def begins(low: float) -> Run:
    """A spike above 1.5 times the loss of so many first rows, and below that of the next ones."""
    loss = LEVEL + SIGMA * np.random.default_rng(2).standard_t(4, ROWS)
    loss[:10], loss[SPIKE : SPIKE + 3] = 0.8, LEVEL + 11 * SIGMA
    loss[: int(low)] = 0.7
    return make_run({"loss": loss})


def multiplied(times: float) -> Run:
    """A loss that falls from 11 to 0.1 and stands at so many times that for 60 rows."""
    loss = np.maximum(11 - np.arange(700) / 30, 0) + 0.1 + np.random.default_rng(0).normal(0, 0.002, 700)
    loss[500:560] = 0.1 * times
    return make_run({"loss": loss})


HOLDS = (
    Hold("batches.rewound_rows", gone_back, {9: "no spike-duplicate-batch", 10: "spike-duplicate-batch"}),
    Hold("batches.recent_steps", scattered, {18: "spike-duplicate-batch", 22: "no spike-duplicate-batch"}),
    Hold(
        "batches.others",
        lambda epoch: looped(18, epoch),
        {33: "no spike-duplicate-batch", 40: "spike-duplicate-batch"},
    ),
    Hold("batches.ahead_rows", repeated_after, {4: "spike-duplicate-batch", 5: "no spike-duplicate-batch"}),
    Hold("batches.stuck_share", repeated, {23: "spike-minor", 30: "spike-duplicate-batch"}),
    Hold("batches.stuck_rows", seen_late, {2: "spike-minor", 3: "spike-duplicate-batch"}),
    Hold("batches.skip_rows", memorised, {9: "slow-rise", 11: "no slow-rise"}),
    Hold("Q2.3.lr_usual_factor", warm_up, {4.5: "no spike-lr-jump", 5.5: "spike-lr-jump"}),
    Hold("Q2.3.lr_back_factor", back_up, {1.0: "no spike-lr-jump", 1.1: "spike-lr-jump"}),
    Hold("Q2.3.grad_norm_chance", norm_height, {4.7: "no spike-bad-batch", 5.1: "spike-bad-batch"}),
    Hold("Q2.3.start_rows", begins, {2: "spike-minor", 3: "spike-unexplained"}),
    Hold("Q2.3.far_factor", multiplied, {2.8: "spike-minor", 3.2: "spike-unexplained"}),
    Hold("Q2.3.no_chance", beyond_chance, {13: "spike-minor", 19: "spike-unexplained"}),
)
