"""The thresholds of overfitting, of losses too noisy to be flat and of models that start good, from both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stabtree.common.stats import change_noise, medians_of_three
from tests.conftest import make_run
from tests.corpus.made.convergence import ROWS, flat, noise, with_series
from tests.corpus.made.hold import Hold

if TYPE_CHECKING:
    from stabtree.run import Run
    from tests.corpus.made.phase19 import Floats


def few(times: float) -> Run:
    """An eval loss that rises over so many evaluations, under a training loss that falls to two thirds of it."""
    evals = np.linspace(2.0, 2.6, int(times))
    run = make_run({"loss": np.linspace(2.1, 1.7, ROWS)})
    return with_series(run, "eval_loss", evals, np.arange(int(times)) * (ROWS // int(times)))


def dips_first(times: float) -> Run:
    """So many evaluations of which the first one alone is low, under a training loss that falls far below."""
    evals = np.where(np.arange(int(times)) < 1, 2.0, 3.0) + np.resize([0.0, 0.01], int(times))
    evals[1] = 4.0
    run = make_run({"loss": 3 * np.exp(-3 * np.arange(ROWS) / ROWS)})
    return with_series(run, "eval_loss", evals, np.arange(int(times)) * (ROWS // int(times)))


def _evaluated(evals: Floats, begin: float = 3.0, end: float = 1.6) -> Run:
    """These evaluations, under a training loss that falls from one level to another."""
    run = make_run({"loss": np.linspace(begin, end, ROWS)})
    return with_series(run, "eval_loss", evals, np.arange(len(evals)) * (ROWS // len(evals)))


def rises_by(share: float) -> Run:
    """An eval loss that rises from 1 by so much."""
    return _evaluated(np.interp(np.arange(30), [0, 9, 11, 15, 29], [1.5, 1.0, 1.0, 1 + share, 1 + share]), 1.5, 0.9)


def scattered(times: float) -> Run:
    """An eval loss that scatters, and in its last third stands so many times that above its lowest level."""
    evals = 2 + np.append(noise(20, 0.3), np.zeros(10))
    low = medians_of_three(evals).min()
    for _ in range(20):  # where it stands is a change as well
        evals[20:] = low + times * change_noise(evals)
    return _evaluated(evals)


def falls_again(share: float) -> Run:
    """An eval loss that rises by 1, with one of the last evaluations at a share of that."""
    evals = np.interp(np.arange(30), [0, 9, 11, 15, 29], [3.0, 2.0, 2.0, 3.0, 3.0])
    evals[27] = 2.0 + share
    return _evaluated(evals)


def far_apart(times: float) -> Run:
    """Evaluations that end so many times as far above the training loss as all that this has fallen, but for one."""
    evals = np.interp(np.arange(30), [0, 9, 11, 15, 29], [3.0, 2.5, 2.5, 3.0, 3.0])
    evals[27] = 2.5
    return _evaluated(evals, 0.5 + 2.5 / times, 0.5)


def gains(times: float) -> Run:
    """An accuracy that rises by so many times its scatter, beside an eval loss that rises for good."""
    at = np.arange(30)
    run = _evaluated(np.interp(at, [0, 10, 29], [3.0, 2.0, 3.0]))
    scatter = np.where((abs(at - 10) < 2) | (at >= 20), 0.0, noise(30, 0.01))
    right = 0.6 + scatter + times * change_noise(scatter) * (at >= 15)
    return with_series(run, "eval_quality", right, at * (ROWS // 30))


def learns_on(share: float) -> Run:
    """A training loss that falls by so much of what the eval loss rises by meanwhile, which is 1."""
    at = np.arange(ROWS) / ROWS
    run = make_run({"loss": np.interp(at, [0, 0.25, 0.5, 0.9, 1], [4.0, 2.5, 2.5, 2.5 - share, 2.5 - share])})
    evals = np.interp(np.arange(30), [0, 9, 11, 15, 29], [3.0, 2.0, 2.0, 3.0, 3.0])
    return with_series(run, "eval_loss", evals, np.arange(30) * (ROWS // 30))


def falls_by(nats: float) -> Run:
    """An eval loss that falls by so much to 20 and rises by 1 for good."""
    return _evaluated(np.interp(np.arange(30), [0, 9, 11, 15, 29], [20 + nats, 20.0, 20.0, 21.0, 21.0]), 20.0, 12.0)


def swings(share: float) -> Run:
    """A flat loss whose rows scatter by a share of it."""
    scatter = np.resize([0.0, 1.0, 0.0, -1.0], ROWS + 1)
    return make_run({"loss": 2 * (1 + share * scatter / change_noise(scatter))})


def knows(share: float) -> Run:
    """A flat loss of a model that gets a share of its tokens right."""
    return with_series(flat(), "token_accuracy", np.full(ROWS, share), np.arange(ROWS))


def rises_again(share: float) -> Run:
    """A loss that rises by 1 in its middle and falls again, and at its end by a share of that."""
    at = [0, 60, 100, 160, 200, 220, 280, 350, 399]
    loss = np.interp(np.arange(ROWS), at, [6.0, 3.0, 3.0, 4.0, 4.0, 3.0, 2.9, 2.9 + share, 2.9 + share])
    return make_run({"loss": loss + noise(ROWS, 0.01)})


HOLDS = (
    Hold("O27.rise", rises_by, {0.09: "no overfitting", 0.11: "overfitting"}),
    Hold("O27.few_rows", few, {4: "no overfitting", 6: "overfitting"}),
    Hold("O27.single_rows", dips_first, {7: "overfitting", 9: "no overfitting"}),
    Hold("O27.noise_factor", scattered, {1.8: "no overfitting", 2.2: "overfitting"}),
    Hold("O27.rest_share", falls_again, {0.17: "no overfitting", 0.23: "overfitting"}),
    Hold("O27.gap_factor", far_apart, {1.4: "no overfitting", 1.6: "overfitting"}),
    Hold("O27.min_fall_share", learns_on, {0.09: "no overfitting", 0.11: "overfitting"}),
    Hold("O27.max_nats", falls_by, {11.5: "overfitting", 13.5: "no overfitting"}),
    Hold("O27.quality_noise", gains, {0.9: "overfitting", 1.1: "no overfitting"}),
    Hold("O0.noisy_share", swings, {0.45: "flat-from-start", 0.55: "no flat-from-start"}),
    Hold("O0.knows_share", knows, {0.19: "flat-from-start", 0.21: "no flat-from-start"}),
    Hold("rise.earlier_share", rises_again, {0.7: "no slow-rise", 0.8: "slow-rise"}),
)
