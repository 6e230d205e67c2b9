"""Phase-19: each leaf has a fixture; here are the answers and the causes that no fixture shows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.conftest import falling, make_run
from tests.leaves.make import AT, ONES, ROWS, healthy, nan_from, noisy

if TYPE_CHECKING:
    from stabtree.run import Run
    from tests.leaves.make import Floats, Maker

NORM = nan_from(450, noisy(1.0))
DEAD: dict[str, Any] = {"loss": nan_from(450, falling(ROWS))}
RISING = np.concatenate((falling(300), 1 + np.linspace(0, 2, 300)))
JUMPED = falling(ROWS) + np.where(AT >= 400, 2.0, 0)
STUCK = np.where((AT >= 340) & (AT < 399), 340, AT)  # batches of which one comes again and again before step 400
BEYOND, WITHIN = 73_000.0, 58_000.0  # of fp16's 65,504


def peaking(peak: float) -> dict[str, Floats]:
    """The largest activation of a layer, which has grown to its peak by step 440."""
    return {"activation_max/block3": np.geomspace(300.0, peak, 440)[np.minimum(AT, 439)]}


def rising(columns: dict[str, Any]) -> Run:
    """A loss that rises over the second half of the run, under a constant rate."""
    return make_run({"loss": RISING, "lr": 1e-3 * ONES, **columns})


def spike_at_end() -> Run:
    """A loss that jumps ten rows before the end of the log."""
    loss = falling(400)
    loss[-10:] += 5
    return make_run({"loss": loss})


def climb() -> Run:
    """A loss, logged every 50 steps, that takes several rows for its way up."""
    loss = falling(400)
    loss[150:] += np.clip((np.arange(250) - 10) / 6, 0, 20)
    return make_run({"loss": loss}, steps=np.arange(400) * 50)


def dies(columns: dict[str, Any], **config: Any) -> Run:
    """A loss that is NaN from step 450 on, after ordinary rows, beside other columns."""
    return make_run({**DEAD, **columns}, **config)


def overflowing(peak: float) -> Run:
    """An fp16 run whose gradients break before its loss, with an activation that goes up to a peak."""
    scale = 2.0 ** (14 - np.clip(AT - 443, 0, 6))
    return dies({"grad_norm": np.where(AT >= 444, np.inf, NORM), "loss_scale": scale, **peaking(peak)}, dtype="fp16")


def collapsing(peak: float) -> Run:
    """An fp16 run whose loss scale is halved at every step from 500 on, with an activation that goes up to a peak."""
    norm = np.where((AT >= 500) & (AT < 520), np.inf, noisy(1.0))
    scale = 2.0 ** (16 - np.clip(AT - 499, 0, 20))
    return make_run({"loss": falling(ROWS), "loss_scale": scale, "grad_norm": norm, **peaking(peak)}, dtype="fp16")


EDGE: dict[str, Maker] = {}

NEAR: dict[str, Maker] = {}

MORE: dict[str, Maker] = {
    "weights that collapse": lambda: rising(
        {"weight_norm/a": np.concatenate((np.ones(400), np.geomspace(1, 0.2, 200)))}
    ),
    "a spike at the end": spike_at_end,
    "a climb": climb,
    "a rise alone": lambda: rising({"weight_norm": ONES, "grad_norm": ONES}),
    "sound in bf16": lambda: make_run(healthy(), dtype="bf16"),
    "dead in fp8 with its gradients": partial(dies, {"grad_norm": NORM}, dtype="fp8"),
    "dead in bf16": partial(dies, {"grad_norm": NORM}, dtype="bf16"),
    "dead in fp16 without a scaler": partial(dies, {}, dtype="fp16"),
    "dead in fp16 under a scale that had risen": partial(
        dies, {"grad_norm": NORM, "loss_scale": np.where(AT < 100, 1024.0, 2048.0)}, dtype="fp16"
    ),
}

TOLD: dict[str, Maker] = {
    "Q4.2.warmup": lambda: make_run({"loss": RISING, "lr": np.linspace(1e-5, 1e-3, ROWS)}, warmup_steps=400),
    "Q1.4.fp8": partial(dies, {}, dtype="fp8"),
    "Q1.4.activation": partial(dies, {"grad_norm": NORM, **peaking(BEYOND)}),
    "Q1.4.embedding": partial(dies, {"grad_norm/embed": np.where(AT >= 449, np.inf, NORM)}),
    "Q3.4.activation": partial(overflowing, BEYOND),
    "Q3.2.activations": partial(collapsing, BEYOND),
    "Q2.4.lr": lambda: make_run(healthy(loss=JUMPED, lr=np.where(AT >= 398, 1.7e-3, 1e-3))),
    "Q2.4.batch": lambda: make_run(healthy(loss=JUMPED, batch_id=STUCK)),
}

NOT_TOLD: dict[str, Maker] = {
    "Q1.4.activation": partial(dies, {"grad_norm": NORM, **peaking(WITHIN)}),
    "Q1.4.embedding": partial(dies, {"grad_norm/embed": NORM}),
    "Q3.4.activation": partial(overflowing, WITHIN),
    "Q3.2.activations": partial(collapsing, WITHIN),
    "Q2.4.batch": lambda: make_run(healthy(loss=JUMPED, batch_id=AT)),
}
