"""The thresholds of what is seen early, or at once: a loss that is gone."""

from __future__ import annotations

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


HOLDS = (
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
    Hold("O14.batch.lr_factor", lambda rate: gone(rate=rate), {1.8: "loss-collapses", 2.2: "no loss-collapses"}),
)
