"""The thresholds of what tells of trouble early or at once, and of the pace of a run, from both sides."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.conftest import make_run
from tests.corpus.made.hold import Hold

if TYPE_CHECKING:
    from stabtree.run import Run

ROWS = 400
AT = np.arange(ROWS)


def gone(
    factor: float = 40.0, rows: int = 300, way: int = 1, before: int = 100, rate: float = 1.0, **columns: Any
) -> Run:
    """A level loss that goes down by a factor, on its way for so many rows, and stays there for so many."""
    loss = np.full(ROWS, 2.0)
    loss[before : before + way] = 0.9
    loss[before + way : before + way + rows] = 2.0 / factor
    made = {"loss": loss, "lr": np.where(before > AT, 1e-3, rate * 1e-3), **columns}
    return make_run({name: values[: before + way + rows] for name, values in made.items()})


def leans(share: float) -> Run:
    """A loss whose first ten rows stand a share above the ten rows after them, and that then is gone."""
    loss = np.full(40, 2.0)
    loss[:10], loss[20:] = 2.0 * (1 + share), 0.01
    return make_run({"loss": loss})


def from_far(times: float) -> Run:
    """A loss that stands at so many times its beginning for a while, and then is gone."""
    loss = np.full(ROWS, 2.0 * times)
    loss[:10], loss[200:] = 2.0, 0.01
    return make_run({"loss": loss})


def evaluated(times: float = 5.0, falls: float = 0.0, first: int = 0, thrown: float = 1.0) -> Run:
    """Evaluations at so many times the first training loss, which halves; they lose a share of it."""
    loss = np.linspace(2.0, 1.0, ROWS)
    loss[:40] = 2.0
    loss[-40:], loss[1:40] = 1.0, 2.0 * thrown
    return make_run({"loss": loss, "eval_loss": 2.0 * times * (1 - falls * np.clip(AT / 350, 0, 1))}, AT + first)


def climbs(times: float = 30.0, levels: float = 10, loss: float = 1.0, scatter: float = 0.0, rows: int = ROWS) -> Run:
    """A grad_norm whose last levels of 20 grow by a factor on a line, scattered about it; the loss ends with a step."""
    at = np.arange(rows) * 20 // rows
    way = np.clip((at - (20 - levels)) / (levels - 1), 0, 1)
    norm = times**way * np.exp(scatter * (-1.0) ** at)
    norm[at < 20 - levels] = 3 + at[at < 20 - levels] % 2
    return make_run({"loss": 2 * np.where(at < 19, 1.0, loss), "grad_norm": norm})


def thrown(times: float) -> Run:
    """A loss that is so many times its first row in the next ones, then 1.35 times that, and then is gone."""
    loss = np.full(ROWS, 1.35)
    loss[:40], loss[200:] = times, 0.01
    loss[0] = 1.0
    return make_run({"loss": loss})


def paced(
    factor: float = 3.0,
    rows: int = 100,
    total: int = ROWS,
    quick: float = 0.0,
    seconds: float = 60.0,
    name: str = "wall_time",
) -> Run:
    """Steps that take so many times as long in the last rows, but for a share of these."""
    at = np.arange(total)
    late = at >= total - rows
    cost = np.where(late & (np.floor((at + 1) * quick) == np.floor(at * quick)), factor, 1.0) * seconds
    made = {"wall_time": np.cumsum(cost), "step_time": cost, "throughput": 1 / cost}[name]
    return make_run({"loss": 1 + 3 * np.exp(-at / (total / 5)), name: made})


def paused(hours: float = 3.0, other: float = 0.1, usual: float = 10.0) -> Run:
    """A clock that goes on by so many hours once, by others once, and else by so many seconds."""
    cost = np.full(ROWS, usual)
    cost[[100, 200]] = 3600 * np.array([hours, other])
    return make_run({"loss": 1 + 3 * np.exp(-AT / 80), "wall_time": np.cumsum(cost)})


def dropped(ranges: float = 2.0, rows: int = 4, least: float = 0.9) -> Run:
    """A reward between two levels whose last rows lie so many times their range below, a share below its median."""
    low = 1 - least / (0.5 + ranges) / 2 if least < 0.9 else 0.0
    reward = np.linspace(low, 2 - low, 100)
    fallen = np.full(rows, low - ranges * (2 - 2 * low)) if least >= 0.9 else np.full(rows, 1 - least)
    return make_run({"loss": np.zeros(100 + rows), "reward": np.append(reward, fallen)})


def swings(before: float) -> Run:
    """A reward that goes from one level to another and back in so many rows, and then lies far below for four."""
    reward = np.append(np.resize([0.0, 2.0], int(before)), np.full(4, -4.0))
    return make_run({"loss": np.zeros(len(reward)), "reward": reward})


HOLDS = (
    Hold("G2.floor.factor", dropped, {0.95: "no reward-falls-through", 1.05: "reward-falls-through"}),
    Hold(
        "G2.floor.rows", lambda rows: dropped(rows=int(rows)), {2: "no reward-falls-through", 3: "reward-falls-through"}
    ),
    Hold("G2.floor.before_rows", swings, {19: "no reward-falls-through", 20: "reward-falls-through"}),
    Hold(
        "G2.floor.min_share",
        lambda least: dropped(least=least),
        {0.48: "no reward-falls-through", 0.52: "reward-falls-through"},
    ),
    Hold("C.pace.factor", paced, {1.9: "no throughput-collapses", 2.1: "throughput-collapses"}),
    Hold(
        "C.pace.factor",
        partial(paced, name="step_time"),
        {1.85: "no throughput-collapses", 2.15: "throughput-collapses"},
    ),
    Hold(
        "C.pace.factor",
        partial(paced, name="throughput"),
        {1.8: "no throughput-collapses", 2.2: "throughput-collapses"},
    ),
    Hold(
        "C.pace.rows",
        lambda rows: paced(rows=int(rows), total=60, seconds=600.0),
        {8: "no throughput-collapses", 11: "throughput-collapses"},
    ),
    Hold(
        "C.pace.share",
        lambda share: paced(rows=round(ROWS * share)),
        {0.08: "no throughput-collapses", 0.11: "throughput-collapses"},
    ),
    Hold(
        "C.pace.quick_share",
        lambda quick: paced(quick=quick),
        {0.08: "throughput-collapses", 0.15: "no throughput-collapses"},
    ),
    Hold(
        "C.pace.hours",
        lambda hours: paced(seconds=hours * 36 / 2),
        {0.24: "no throughput-collapses", 0.26: "throughput-collapses"},
    ),
    Hold("C.stall.hours", paused, {0.98: "no stalled", 1.02: "stalled"}),
    Hold("C.stall.factor", lambda factor: paused(other=3 / factor), {9.5: "no stalled", 10.5: "stalled"}),
    Hold(
        "C.stall.usual_factor",
        lambda factor: paused(usual=3 * 3600 / factor),
        {95: "no stalled", 105: "stalled"},
    ),
    Hold("O5.eval.factor", evaluated, {1.9: "no eval-far-above-raised", 2.1: "eval-far-above-raised"}),
    Hold("O5.eval.far_factor", evaluated, {3.8: "no eval-far-above", 4.2: "eval-far-above"}),
    Hold(
        "O5.eval.falls_share",
        lambda falls: evaluated(6.0, falls),
        {0.23: "eval-far-above", 0.27: "eval-far-above-scale"},
    ),
    Hold(
        "O5.eval.late_start_steps",
        lambda first: evaluated(first=int(first)),
        {10: "eval-far-above", 11: "no eval-far-above"},
    ),
    Hold(
        "O5.eval.thrown",
        lambda thrown: evaluated(2.2, thrown=thrown),
        {1.25: "no eval-far-above-raised", 1.35: "eval-far-above-raised"},
    ),
    Hold("O4.climb.factor", climbs, {19: "grad-norm-climbs-early", 21: "grad-norm-climbs"}),
    Hold("O4.climb.early_factor", climbs, {4.8: "no grad-norm-climbs-early", 5.2: "grad-norm-climbs-early"}),
    Hold(
        "O4.climb.min_levels",
        lambda levels: climbs(levels=levels),
        {6: "no grad-norm-climbs", 7: "grad-norm-climbs"},
    ),
    Hold("O4.climb.calm", lambda loss: climbs(loss=loss), {1.08: "grad-norm-climbs", 1.12: "no grad-norm-climbs"}),
    Hold(
        "O4.climb.fit",
        lambda scatter: climbs(scatter=scatter),
        {0.3: "grad-norm-climbs", 0.45: "no grad-norm-climbs"},
    ),
    Hold("O14.batch.factor", gone, {19: "no loss-collapses", 21: "loss-collapses"}),
    Hold("O14.batch.rows", lambda rows: gone(rows=int(rows)), {9: "no loss-collapses", 10: "loss-collapses"}),
    Hold(
        "O14.batch.within_rows",
        lambda way: gone(way=int(way), before=20),
        {19: "loss-collapses", 20: "no loss-collapses"},
    ),
    Hold(
        "O14.batch.settled_rows",
        lambda before: gone(before=int(before), way=0),
        {19: "no loss-collapses", 20: "loss-collapses"},
    ),
    Hold("O14.batch.settled_share", leans, {0.23: "loss-collapses", 0.27: "no loss-collapses"}),
    Hold("O14.batch.above_first", from_far, {1.15: "loss-collapses", 1.25: "no loss-collapses"}),
    Hold("O14.batch.thrown", thrown, {1.25: "loss-collapses", 1.35: "no loss-collapses"}),
    Hold("O14.batch.lr_factor", lambda rate: gone(rate=rate), {1.8: "loss-collapses", 2.2: "no loss-collapses"}),
)
