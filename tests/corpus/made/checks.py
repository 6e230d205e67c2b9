"""The thresholds of the checks of the convergence tree, from both sides."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tests.conftest import make_run
from tests.corpus.made.convergence import ROWS, noise
from tests.corpus.made.hold import Hold
from tests.corpus.made.phase19 import LEVEL, learned
from tests.leaves.make import with_rerun

if TYPE_CHECKING:
    from stabtree.run import Run


def padded(correlation: float, first: float | None = None, rows: int = 1000) -> Run:
    """A loss whose changes follow the share of padding with about that correlation, downwards."""
    pad, own = noise(rows, 0.1, 1), noise(rows, 0.1, 2)
    loss = learned(rows, LEVEL) - correlation * pad + math.sqrt(1 - correlation**2) * own
    if first is not None:
        loss[0] = first
    return make_run({"loss": loss, "pad_share": 0.5 + pad}, vocab_size=50257)


def begins_at(share: float, step: float = 0) -> Run:
    """A loss that begins at a share of ln(50257), at a step."""
    loss = share * math.log(50257) * np.exp(-np.arange(ROWS) / 200)
    return make_run({"loss": loss}, int(step) + np.arange(ROWS), vocab_size=50257)


def accumulated(factor: float, rows: float = ROWS) -> Run:
    """A grad_norm that is so many times that of a second run, for its first rows."""
    norm = np.where(np.arange(ROWS) < rows, factor, 1.0)
    return with_rerun(*(make_run({"loss": learned(ROWS), "grad_norm": values}) for values in (norm, np.ones(ROWS))))


def apart(low: float, high: float) -> Run:
    """Two groups with their update ratios."""
    ratios = {"update_ratio/embed": np.full(ROWS, high), "update_ratio/trunk": np.full(ROWS, low)}
    return make_run({"loss": learned(ROWS), **ratios})


def scale_halved(times: int, late: int) -> Run:
    """A loss scale that is halved so many times, the last of them in the second half."""
    falls = np.concatenate([np.linspace(60, 180, times - late), np.linspace(250, 380, late)]).astype(int)
    scale = 65536 / 2.0 ** np.searchsorted(falls, np.arange(ROWS), side="right")
    return make_run({"loss": learned(ROWS), "loss_scale": scale}, dtype="fp16")


HOLDS = (
    Hold("O1.start.first_step", partial(begins_at, 2.0), {9: "starts-above-chance", 11: "no starts-above-chance"}),
    Hold(
        "O9.rows",
        lambda half: accumulated(8.0, half / 2),
        {18: "no accumulation-not-divided", 22: "accumulation-not-divided"},
    ),
    Hold(
        "O9.whole",
        lambda off: accumulated(2 * (1 + off)),
        {0.135: "accumulation-not-divided", 0.165: "no accumulation-not-divided"},
    ),
    Hold("O9.most", accumulated, {920: "accumulation-not-divided", 1130: "no accumulation-not-divided"}),
    Hold("O15.correlation", padded, {0.42: "no loss-follows-padding", 0.58: "loss-follows-padding"}),
    Hold(
        "O15.min_rows",
        lambda changes: padded(0.9, rows=int(changes) + 1),
        {27: "no loss-follows-padding", 33: "loss-follows-padding"},
    ),
    Hold(
        "O15.padding.correlation",
        partial(padded, first=0.03),
        {0.42: "no starts-near-zero O15.padding", 0.58: "starts-near-zero O15.padding"},
    ),
    Hold("O16.share", begins_at, {0.0045: "starts-near-zero", 0.0055: "no starts-near-zero"}),
    Hold("O22.factor", lambda times: apart(0.5e-4, times * 0.5e-4), {90: "no groups-apart", 110: "groups-apart"}),
    Hold("O24.octaves", partial(scale_halved, late=4), {5: "no scale-drifts-down", 6: "scale-drifts-down"}),
    Hold("O24.late_halvings", partial(scale_halved, 8), {2: "no scale-drifts-down", 3: "scale-drifts-down"}),
)
