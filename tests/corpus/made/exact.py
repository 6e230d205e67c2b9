"""The thresholds of the checks that need no statistics, from both sides: rates of 0, exact zeros, repeated values."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stabtree.run import Resume
from tests.conftest import make_run
from tests.corpus.made.convergence import ROWS, noise
from tests.corpus.made.hold import Hold
from tests.corpus.made.phase19 import learned, ordered

if TYPE_CHECKING:
    from stabtree.run import Run
    from tests.corpus.made.phase19 import Floats

AT = np.arange(ROWS) / ROWS
WARM = np.minimum(1, 20 * AT)


def rated(lr: Floats) -> Run:
    """A loss that falls beside a rate."""
    return make_run({"loss": learned(ROWS), "lr": lr})


def rate_gone(share: float, to: float = 0.0, before: float = 0.5) -> Run:
    """A rate that falls to one share of its peak, and in one row to another for a share of the rows, at the end."""
    lr = np.interp(AT, [0, 0.05, 1 - share], [0.1, 1.0, before])
    lr[1 - share <= AT] = to
    return rated(1.23e-3 * lr)


def rate_printed(digits: float) -> Run:
    """A rate printed so that its last digit is a share of its peak, and is 0 for half of the rows."""
    lr = np.linspace(1, 0.3, ROWS)
    lr[ROWS // 2 :] = 0
    return rated(np.round(lr / digits) * 1e-5)


def rate_back(factor: float, at: float = 0.7) -> Run:
    """A rate that decays and comes back to so many times its peak, at a share of the steps."""
    decayed = WARM * np.exp(-3 * AT)
    return rated(1e-3 * np.where(at > AT, decayed / decayed.max(), factor))


def rate_steps(levels: float) -> Run:
    """A rate that goes up in so many steps, and never down."""
    return rated(1e-4 * 2.0 ** np.floor(AT * levels))


def rate_again(first: float, later: float) -> Run:
    """A run whose rate is a share of the last one before a resume, and warms up to another."""
    lr = np.full(ROWS, 1e-3)
    lr[200:] = 1e-3 * np.linspace(first, later, 200)
    return replace(rated(lr), resumes=(Resume(240, 200, 40),))


def zeros(share: float, lowest: float = 0.5) -> Run:
    """A loss that is 0 for the last share of its rows, after having come down to a share of its median."""
    loss = 2 + noise(ROWS)
    loss[100] = 2 * lowest
    loss[1 - share <= AT] = 0
    return make_run({"loss": loss})


def single_zero(near: float, place: int = 1) -> Run:
    """A loss with one row of 0 and, so many rows after it, one at a share of its level."""
    loss = 2 + noise(ROWS)
    loss[200], loss[200 + place] = 0, 2 * near
    return make_run({"loss": loss})


def margins(low: float, place: int = 50) -> Run:
    """A loss with one row of 0 and, so many rows after it, one that comes down to a share of its level."""
    loss = 2 + noise(1500)
    loss[200], loss[200 + place] = 0, 2 * low
    return make_run({"loss": loss})


def scattered_zeros(share: float) -> Run:
    """A loss of which a share of the rows is 0, evenly among the others."""
    loss = 2 + noise(ROWS)
    loss[np.diff(np.floor(AT * ROWS * share), prepend=0) > 0] = 0
    return make_run({"loss": loss})


def printed(level: float) -> Run:
    """A loss of so many times its last digit, with one row of 0."""
    loss = 1e-3 * np.resize([level, level + 1, level - 1], ROWS)
    loss[ROWS // 2] = 0
    return make_run({"loss": loss})


def stuck(rows: float, level: float = 2345) -> Run:
    """A loss printed to so many times its last digit that stands at that value for so many rows."""
    loss = level + np.arange(ROWS) % 7 + 1
    loss[100 : 100 + int(rows)] = level
    return make_run({"loss": 1e-3 * loss})


def cycled(count: float, level: float = 2345, last: float = 1e-3) -> Run:
    """A loss of so many values, each so many times its last digit or more."""
    return make_run({"loss": last * np.resize(level + np.arange(int(count)), ROWS)})


def few_values(rows: float) -> Run:
    """A loss of two values in so many rows."""
    return make_run({"loss": 1e-3 * np.resize([2345, 2346], int(rows))})


def thrown(times: float, rows: int = 20, begin: float = 4.0) -> Run:
    """A loss that climbs to so many times its beginning for some rows, and falls below it."""
    loss = np.full(ROWS, 3.0)
    loss[0], loss[2 : 2 + rows] = begin, times * begin
    return make_run({"loss": loss + 0.01 * noise(ROWS)})


def lost(share: float, scatter: float = 0.0, since: float = 0.6, peak: float = 6.0) -> Run:
    """A loss that swings between 1 and ten to some power, with a scatter by tens of rows, and ends at a share of it."""
    points = [0, 0.03, 0.25, 0.28, 0.4, 0.43, since, since + 0.03, 1]
    power = np.interp(AT, points, [peak, 0, 0, peak, peak, 0, 0, peak * share, peak * share])
    swing = np.where(np.arange(ROWS) // 10 % 2, scatter, -scatter)
    return make_run({"loss": 10**power * np.exp(swing + 0.02 * noise(ROWS))})


def overflows(count: float, rows: int = ROWS, *, last: bool = False) -> Run:
    """A gradient in fp32 that is infinite in so many rows: the last ones, or others evenly."""
    norm = np.ones(rows)
    norm[np.arange(rows - int(count), rows) if last else np.linspace(5, rows - 5, int(count)).astype(int)] = np.inf
    return make_run({"loss": learned(rows), "grad_norm": norm}, dtype="fp32")


def at_chance(off: float, *, first: float = 1.0, rows: int = 200, skip: float = 0.0, **config: Any) -> Run:
    """A loss that stands a share above ln(10), after a first row and a share of the rows that are higher by factors."""
    loss = np.full(rows, (1 + off) * math.log(10))
    loss[: 1 + int(skip * rows)] *= first
    return make_run({"loss": loss}, **config)


def peaks_late(share: float) -> Run:
    """A loss at chance under a rate that stays at a share of its peak until the last rows."""
    lr = np.where(np.arange(200) < 0.85 * 200, share, 1.0) * 1e-3
    return make_run({"loss": np.full(200, math.log(10)), "lr": lr})


def drifts(score: float) -> Run:
    """A loss that comes down to chance after a twentieth of its rows, from where its levels fall with so many z."""
    levels = math.log(10) * (1 - 0.005 * np.repeat(ordered(20, score), 20))
    return make_run({"loss": np.append(np.full(len(levels) // 19, 5.0), levels)})


def hardly(share: float = 0.05, first: float = 5.0, rate: float = 0.1, rows: int = 250) -> Run:
    """A loss that begins at so many nats and loses a share of it, by when the rate is down to a share of its peak."""
    way = np.clip((np.arange(rows) / rows - 0.1) / 0.5, 0, 1)
    lr = np.interp(np.arange(rows), [0, 10, rows - 1], [0.0, 1e-3, rate * 1e-3])
    return make_run({"loss": first * (1 - share * way) + 1e-3 * np.sin(np.arange(rows)), "lr": lr})


def hardly_thrown(times: float) -> Run:
    """A loss that ends a little above its first row, with rows so many times as high after that."""
    run = hardly(-0.04)
    loss = run.series["loss"].values.copy()
    loss[1:12] = times * loss[0]
    return make_run({"loss": loss, "lr": run.series["lr"].values})


HOLDS = (
    Hold("O1.chance.near", at_chance, {0.009: "at-chance", 0.011: "no at-chance"}),
    Hold("O1.chance.above", partial(at_chance, first=5.0), {0.09: "at-chance", 0.11: "no at-chance"}),
    Hold(
        "O1.chance.thrown",
        lambda first: at_chance(0.05, first=first / 1.05),
        {1.45: "no at-chance", 1.55: "at-chance"},
    ),
    Hold(
        "O1.chance.skip",
        lambda skip: at_chance(0.0, first=1.2, skip=skip, rows=2000),
        {0.06: "at-chance", 0.08: "no at-chance"},
    ),
    Hold(
        "O1.chance.levels",
        lambda level: at_chance(0.0, first=1.2, skip=0.05 + 0.95 * level / 20, rows=2000),
        {0.45: "at-chance", 0.55: "no at-chance"},
    ),
    Hold("O1.chance.trend_z", drifts, {2.2: "at-chance", 2.45: "no at-chance"}),
    Hold("O1.chance.min_steps", lambda rows: at_chance(0.0, rows=int(rows)), {99: "no at-chance", 110: "at-chance"}),
    Hold(
        "O1.chance.min_progress",
        lambda done: at_chance(0.0, max_steps=round(199 / done)),
        {0.23: "no at-chance", 0.27: "at-chance"},
    ),
    Hold("O1.chance.warm_share", peaks_late, {0.85: "no at-chance", 0.95: "at-chance"}),
    Hold("O1.end.min_share", hardly, {0.09: "ends-at-start", 0.11: "no ends-at-start"}),
    Hold("O1.end.rise_share", lambda rise: hardly(-rise), {0.045: "ends-at-start", 0.055: "no ends-at-start"}),
    Hold("O1.end.nats", partial(hardly, 0.08), {3.9: "no ends-at-start", 4.1: "ends-at-start"}),
    Hold("O1.end.max_nats", partial(hardly, 0.08), {13.9: "ends-at-start", 14.1: "no ends-at-start"}),
    Hold("O1.end.done_share", partial(hardly, 0.08, 5.0), {0.28: "ends-at-start", 0.32: "no ends-at-start"}),
    Hold(
        "O1.end.min_steps",
        lambda rows: hardly(0.08, rows=int(rows)),
        {199: "no ends-at-start", 210: "ends-at-start"},
    ),
    Hold("O1.end.thrown", hardly_thrown, {1.25: "no ends-at-start", 1.35: "ends-at-start"}),
    Hold("O4.fp32.rows", overflows, {2: "no grad-nonfinite-fp32", 3: "grad-nonfinite-fp32"}),
    Hold(
        "O4.fp32.share",
        lambda share: overflows(2000 * share, 2000),
        {0.0045: "no grad-nonfinite-fp32", 0.0055: "grad-nonfinite-fp32"},
    ),
    Hold(
        "O4.last.rows", partial(overflows, last=True, rows=300), {19: "no grad-never-finite", 20: "grad-never-finite"}
    ),
    Hold(
        "O4.last.share",
        lambda share: overflows(2000 * share, 2000, last=True),
        {0.045: "no grad-never-finite", 0.055: "grad-never-finite"},
    ),
    Hold("O23.zero.min_share", rate_gone, {0.23: "no lr-zero", 0.27: "lr-zero"}),
    Hold("O23.zero.zero_share", partial(rate_gone, 0.4), {0.9e-3: "lr-zero", 1.1e-3: "no lr-zero"}),
    Hold("O23.zero.sudden", partial(rate_gone, 0.4, 0.9e-3), {0.09: "no lr-zero", 0.11: "lr-zero"}),
    Hold("O23.zero.digits", rate_printed, {0.04: "lr-zero", 0.06: "no lr-zero"}),
    Hold("O23.late.factor", rate_back, {2.8: "no lr-rises-late", 3.2: "lr-rises-late"}),
    Hold("O23.late.first_share", partial(rate_back, 5.0), {0.31: "no lr-rises-late", 0.36: "lr-rises-late"}),
    Hold("O23.late.warm_levels", rate_steps, {4: "lr-rises-late", 9: "no lr-rises-late"}),
    Hold("O23.resume.low_share", lambda low: rate_again(low, 1), {0.18: "lr-restarts", 0.22: "no lr-restarts"}),
    Hold("O23.resume.back_share", partial(rate_again, 0.1), {0.45: "no lr-restarts", 0.55: "lr-restarts"}),
    Hold("O14.zero.share", zeros, {0.23: "no loss-zero", 0.27: "loss-zero"}),
    Hold("O14.zero.gap_share", partial(zeros, 0.4), {0.045: "no loss-zero", 0.055: "loss-zero"}),
    Hold("O14.rows.share", scattered_zeros, {0.23: "loss-zero-rows", 0.27: "no loss-zero-rows"}),
    Hold("O14.rows.near_share", single_zero, {0.27: "no loss-zero-rows", 0.33: "loss-zero-rows"}),
    Hold(
        "O14.rows.near_rows",
        lambda place: single_zero(0.1, int(place)),
        {4: "no loss-zero-rows", 5: "loss-zero-rows"},
    ),
    Hold("O14.rows.small_share", margins, {0.045: "no loss-zero-rows", 0.055: "loss-zero-rows"}),
    Hold(
        "O14.rows.wide_rows",
        lambda place: margins(0.01, int(place)),
        {1000: "no loss-zero-rows", 1001: "loss-zero-rows"},
    ),
    Hold("O14.rows.digits", printed, {95: "no loss-zero-rows", 105: "loss-zero-rows"}),
    Hold("O14.repeat.rows", stuck, {190: "no loss-repeats", 210: "loss-repeats"}),
    Hold("O14.repeat.digits", partial(stuck, 250), {95: "no loss-repeats", 105: "loss-repeats"}),
    Hold("O14.repeat.values_most", cycled, {3: "loss-repeats", 4: "no loss-repeats"}),
    Hold("O14.repeat.few_rows", few_values, {19: "no loss-repeats", 20: "loss-repeats"}),
    Hold("O14.repeat.plain", lambda level: cycled(1, 1, level), {0.4: "no loss-repeats", 0.6: "loss-repeats"}),
    Hold("O22.lost.share", lost, {0.45: "no progress-lost", 0.55: "progress-lost"}),
    Hold(
        "O22.lost.noise_factor",
        lambda scatter: lost(0.7, scatter, peak=4.0),
        {0.65: "progress-lost", 0.78: "no progress-lost"},
    ),
    Hold(
        "O22.lost.end_share",
        lambda since: lost(0.7, since=since),
        {0.72: "progress-lost", 0.76: "no progress-lost"},
    ),
    Hold("O22.peak.factor", thrown, {2.8: "no climbs-far", 3.2: "climbs-far"}),
    Hold("O22.peak.rows", lambda rows: thrown(5.0, int(rows)), {2: "no climbs-far", 3: "climbs-far"}),
    Hold("O22.peak.near_zero", lambda begin: thrown(20.0, 20, begin), {0.27: "no climbs-far", 0.33: "climbs-far"}),
)
