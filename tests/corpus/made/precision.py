"""The thresholds of the precision tree's checks, from both sides."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from stabtree.common.stats import kendall_z
from tests.conftest import make_run, series
from tests.corpus.made.hold import Hold
from tests.corpus.made.phase19 import learned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.run import Run
    from tests.corpus.made.phase19 import Floats

ROWS = 800


def scaled(ratio: float) -> Run:
    """A grad_norm that is a share of a constant loss scale."""
    columns = {"loss": learned(ROWS), "grad_norm": np.full(ROWS, ratio * 2.0**20), "loss_scale": np.full(ROWS, 2.0**20)}
    return make_run(columns, dtype="fp16", grad_clip=1.0)


def alike(level: float) -> Run:
    """A grad_norm and a loss scale that stand at one level."""
    return make_run(
        {"loss": learned(ROWS), "grad_norm": np.full(ROWS, level), "loss_scale": np.full(ROWS, level)}, grad_clip=1.0
    )


def following(slope: float, octaves: float, rows: int = ROWS) -> Run:
    """A loss scale that rises by so many octaves, and a grad_norm that follows it more or less, in the first rows."""
    way = np.arange(rows) / (rows - 1)
    columns = {"grad_norm": 2 ** (15 + slope * octaves * way), "loss_scale": 2 ** (15 + octaves * way)}
    return with_short(columns)


def with_short(columns: Mapping[str, Floats]) -> Run:
    """A run with metrics that were logged in its first rows only."""
    run = make_run({"loss": learned(ROWS)}, grad_clip=1.0)
    return replace(run, series={**run.series, **{name: series(name, values) for name, values in columns.items()}})


def zeros(count: float) -> Run:
    """So many rows of 800 in which the gradient of an fp16 run is exactly 0."""
    norm = np.where(spread(int(count), ROWS), 0.0, 1.0)
    return make_run({"loss": learned(ROWS), "grad_norm": norm}, dtype="fp16")


def spread(count: int, rows: int) -> Floats:
    """Which rows are among `count` that lie evenly among all: 1 or 0."""
    places = np.zeros(rows)
    places[np.linspace(0, rows - 1, count).astype(int)] = 1
    return places


def clipped(norm: float, rows: float) -> Run:
    """A grad_norm so high in so many of the last 400 rows, else below the clip of 1."""
    high = np.concatenate([np.ones(400), spread(int(rows), 400)])
    return make_run({"loss": learned(ROWS), "grad_norm": np.where(high, norm, 0.5)}, grad_clip=1.0)


def skipping(first: int, second: float, half: int = 400) -> Run:
    """So many skipped steps in either half."""
    skips = np.concatenate([spread(first, half), spread(int(second), half)])
    return make_run({"loss": learned(2 * half), "skipped_steps": skips})


def growing(metric: str, begin: float, end: float) -> Run:
    """A metric that grows from one level to another."""
    values = np.interp(np.arange(ROWS), [0, 200, 600, ROWS], [begin, begin, end, end])
    return make_run({"loss": learned(ROWS), metric: values + np.resize([0, 1e-9], ROWS)})


def growing_in(metric: str, rows: float) -> Run:
    """A metric that grows from 20 to 120 in so many rows."""
    return with_short({metric: np.linspace(20, 120, int(rows))})


def trending(metric: str, score: float) -> Run:
    """A metric that begins at 30 and ends at 90, its trend as clear as the score says."""
    return make_run({"loss": learned(ROWS), metric: 30 + 60 * ordered_between(score)})


def ordered_between(score: float) -> Floats:
    """Twenty levels between 0 and 1, low ones first and high ones last, whose Mann-Kendall score is about the given."""
    places = np.arange(20) / 19
    for seed in range(10_000):
        middle = np.random.default_rng(seed).permutation(places[3:17])
        levels = np.concatenate([places[:3], middle, places[17:]])
        if abs(kendall_z(levels) - score) < 0.05:
            return np.repeat(levels, ROWS // 20)
    raise ValueError(f"no order of 20 levels scores {score}")


def fading(score: float) -> Run:
    """A grad_norm that goes from 1 to 1e-4 under a high loss, its trend as clear as the score says."""
    return make_run({"loss": np.full(ROWS, 4.0), "grad_norm": 10 ** (-4 * ordered_between(score))})


def gone(share: float) -> Run:
    """A grad_norm that sinks slowly under a high loss and is next to nothing in a last share of the rows."""
    norm = np.where(np.arange(ROWS) < (1 - share) * ROWS, np.linspace(1, 0.5, ROWS), 1e-4)
    return make_run({"loss": np.full(ROWS, 4.0), "grad_norm": norm})


def vanishing(begin: float, end: float, loss_end: float = 3.9) -> Run:
    """A grad_norm that falls from one level to another while the loss goes from 4 to `loss_end`."""
    at = [0, 200, 600, ROWS]
    norm = np.exp(np.interp(np.arange(ROWS), at, np.log([begin, begin, end, end])))
    return make_run({"loss": np.interp(np.arange(ROWS), at, [4, 4, loss_end, loss_end]), "grad_norm": norm})


HOLDS = (
    Hold("P7.log.min_ratio", scaled, {0.9e-3: "no clip-before-unscale", 1.1e-3: "clip-before-unscale"}),
    Hold("P7.log.min_scale", alike, {115: "no clip-before-unscale", 141: "clip-before-unscale"}),
    Hold("P7.log.moved_octaves", partial(following, 0.0), {1.8: "clip-before-unscale", 2.2: "no clip-before-unscale"}),
    Hold(
        "P7.log.min_slope",
        partial(following, octaves=5),
        {0.54: "no clip-before-unscale", 0.66: "clip-before-unscale"},
    ),
    Hold(
        "P7.log.min_rows",
        lambda rows: following(1, 1, int(rows)),
        {18: "no clip-before-unscale", 22: "clip-before-unscale"},
    ),
    Hold("P10.log.placeholder_share", zeros, {744: "fp16-underflow", 776: "no fp16-underflow"}),
    Hold("P10.log.zero_share", zeros, {36: "no fp16-underflow", 44: "fp16-underflow"}),
    Hold("P13.log.share", partial(clipped, 20), {376: "no always-clipped", 384: "always-clipped"}),
    Hold("P13.log.depth", partial(clipped, rows=400), {9: "no always-clipped", 11: "always-clipped"}),
    Hold("P14.log.late_share", partial(skipping, 0), {18: "no skips-rise", 22: "skips-rise"}),
    Hold("P14.log.factor", partial(skipping, 10), {27: "no skips-rise", 33: "skips-rise"}),
    Hold("P14.log.least", partial(skipping, 0, half=100), {9: "no skips-rise", 11: "skips-rise"}),
    Hold("P15.log.growth", partial(growing, "logits_max", 15.0), {27: "no logits-drift", 33: "logits-drift"}),
    Hold("P15.log.least", partial(growing, "logits_max", 4.0), {18: "no logits-drift", 22: "logits-drift"}),
    Hold("P15.log.levels", partial(growing_in, "logits_max"), {18: "no logits-drift", 22: "logits-drift"}),
    Hold("P15.log.trend_z", partial(trending, "logits_max"), {1.9: "no logits-drift", 2.8: "logits-drift"}),
    Hold(
        "P16.log.levels",
        partial(growing_in, "attention_logits_max/b"),
        {18: "no attention-logits-grow", 22: "attention-logits-grow"},
    ),
    Hold(
        "P16.log.trend_z",
        partial(trending, "attention_logits_max/b"),
        {1.9: "no attention-logits-grow", 2.8: "attention-logits-grow"},
    ),
    Hold(
        "P16.log.growth",
        partial(growing, "attention_logits_max/b", 40.0),
        {72: "no attention-logits-grow", 88: "attention-logits-grow"},
    ),
    Hold(
        "P16.log.least",
        partial(growing, "attention_logits_max/b", 5.0),
        {45: "no attention-logits-grow", 55: "attention-logits-grow"},
    ),
    Hold("P18.log.trend_z", fading, {1.9: "no gradients-vanish", 2.8: "gradients-vanish"}),
    Hold("P18.log.levels", gone, {0.065: "no gradients-vanish", 0.085: "gradients-vanish"}),
    Hold("P18.log.share", partial(vanishing, 1.0), {0.9e-3: "gradients-vanish", 1.1e-3: "no gradients-vanish"}),
    Hold("P18.log.tiny", partial(vanishing, 1e-5), {0.9e-7: "gradients-vanish", 1.1e-7: "no gradients-vanish"}),
    Hold(
        "P18.log.loss_share",
        partial(vanishing, 1.0, 1e-4),
        {1.08: "no gradients-vanish", 1.32: "gradients-vanish"},
    ),
)
