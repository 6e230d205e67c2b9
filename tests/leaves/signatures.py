"""Signatures: for each with a test a run that it is told of, and one that only looks like it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from stabtree.run import ColumnUse, FileUse, Series
from tests.conftest import falling, make_run
from tests.leaves.make import logged, nan_from, noisy

if TYPE_CHECKING:
    from stabtree.run import Run
    from tests.leaves.make import Floats, Maker

PURE: dict[str, Any] = {"dtype": "fp16", "mixed": False, "optimizer": "adam"}
GTX: dict[str, Any] = {"dtype": "fp16", "device": "GeForce GTX 1660"}
ROWS = 200
AT = np.arange(ROWS)
ONES = np.ones(ROWS)
NAN = ONES * np.nan
LOSS = falling(ROWS)
GRAD = noisy(1.0, ROWS, 0.2)
LR = 1e-4 * (1 - AT / ROWS)
USUAL = float(np.median(LOSS[129:149]))


def dead(share: float = 0.99, lr: Any = LR, **config: Any) -> Run:
    """grad_norm is NaN throughout, and a share of the losses is printed as 0."""
    loss = np.where(round(100 * share) > (AT * 37) % 100, 0.0, 1.5)
    return make_run({"loss": loss, "grad_norm": NAN, "lr": lr}, **config)


def fine(**config: Any) -> Run:
    """A run in which nothing is wrong."""
    return make_run({"loss": LOSS, "grad_norm": GRAD, "lr": LR}, **config)


def begins(first: float) -> Run:
    """A loss that begins at a level and is 0 from the second row on, with gradients of NaN."""
    return make_run({"loss": np.where(AT < 1, first, 0.0), "grad_norm": NAN})


def climbing(factor: float = 100.0, **columns: Any) -> Run:
    """A loss whose last finite rows before the NaN stand so many times above its usual value."""
    loss = nan_from(150, np.where(AT >= 145, factor * USUAL, LOSS))
    return make_run({"loss": loss, **columns})


def early(rows: int, **config: Any) -> Run:
    """A loss that is NaN from one of its first rows on."""
    return make_run({"loss": nan_from(rows, LOSS)}, **config)


def single(rows: int, metric: str, **config: Any) -> Run:
    """A metric that is NaN so many rows in a row, and comes back."""
    columns = {"loss": LOSS, "grad_norm": GRAD}
    columns[metric] = np.where((AT >= 90) & (90 + rows > AT), np.nan, columns[metric])
    return make_run(columns, **config)


def vanishing(loss: Any, norm: Any) -> Run:
    """An fp16 run whose loss scale is halved at every row from 100 on, down to 0."""
    scale = np.where(AT < 250, 2.0 ** (16 - np.clip(AT - 99, 0, 150.0)), 0.0)
    return make_run({"loss": loss, "loss_scale": scale, "grad_norm": norm}, dtype="fp16")


def tiny_scale(loss: Floats) -> Run:
    """A loss scale that is halved at every step from 100 on, down to 2^-6."""
    return make_run({"loss": loss, "loss_scale": 2.0 ** (10 - np.clip(AT - 99, 0, 16))}, dtype="fp16")


def still(**columns: Any) -> Run:
    """A loss that does not fall, in a run of 600 steps."""
    loss = 8 + np.random.default_rng(0).normal(0, 0.01, 600)
    return make_run({"loss": loss, **{name: value * np.ones(600) for name, value in columns.items()}})


def jumped(**columns: Any) -> Run:
    """A loss that jumps for good at step 140."""
    return make_run({"loss": LOSS + np.where(AT >= 140, 3.0, 0), "grad_norm": GRAD, **columns})


def unlearned(**columns: Any) -> Run:
    """A loss that rises over its second half, beside a metric that says what kind of run it is."""
    rise = np.clip((AT - 80) / 120, 0, None)
    return make_run({"loss": LOSS + 3 * rise, **columns})


def floored(lowest: float) -> Run:
    """A loss that falls on under a scale that goes down to a floor, and overflows there to the end."""
    norm = np.where(AT >= 188, np.nan, GRAD)
    scale = np.maximum(2.0 ** (10 - np.clip(AT - 99, 0, 16)), lowest)
    return make_run({"loss": LOSS, "loss_scale": scale, "grad_norm": norm}, dtype="fp16")


def speech(run: Run) -> Run:
    """The run, from a log that has a column of a CTC loss."""
    return replace(run, sources=(FileUse("train.csv", "csv", ROWS, (ColumnUse("loss_ctc", None),)),))


def summed(last: float) -> Run:
    """A run that ends in NaN, whose first five gradients rise to so many times the first, and go on rising."""
    norms = nan_from(150, np.append(np.linspace(1, last, 5), last + 0.1 * AT[5:] * GRAD[5:]))
    return make_run({"loss": nan_from(150, LOSS), "grad_norm": norms})


def often(rows: int) -> Run:
    """A run in fp16 whose gradient overflows again and again, so many rows in a row."""
    return make_run({"loss": LOSS, "grad_norm": np.where(rows > AT % 10, np.nan, GRAD)}, dtype="fp16")


def with_config(run: Run, **config: Any) -> Run:
    """The run with a configuration."""
    return replace(run, config=fine(**config).config)


def decayed(share: float) -> Run:
    """A flat loss under a rate that is down to nothing in such a share of the rows."""
    return still(lr=np.where(np.arange(600) < 600 * (1 - share), 1e-3, 0.5e-6))


def skipping(share: float) -> Run:
    """A flat loss beside a counter by which such a share of the updates was skipped."""
    return still(skipped_steps=np.floor(share * (1 + np.arange(600))))


def huge(level: float) -> Run:
    """A flat loss at a level."""
    return make_run({"loss": still().series["loss"].values * level / 8})


def collecting(begun: int) -> Run:
    """A reward that collapses from step 100 on, and a loss that is logged from a step on."""
    run = make_run({"loss": noisy(1.0, ROWS, 0.1), "reward": noisy(np.where(AT < 100, 0.8, 0.1), ROWS, 0.01)})
    loss = run.series["loss"]
    return replace(run, series={**run.series, "loss": Series("loss", loss.steps[begun:], loss.values[begun:])})


TOLD: dict[str, Maker] = {
    "T30": lambda: with_config(jumped(), lr=0.0112, optimizer="adamw"),
    "T30: another optimizer": lambda: with_config(jumped(), lr=1.12, optimizer="sgd"),
    "T50": partial(skipping, 0.94),
    "T51": partial(huge, 1.9e7),
    "T37": lambda: with_config(still(grad_norm=11.2), grad_clip=1.0),
    "T38": partial(summed, 3.36),
    "T45": partial(decayed, 0.56),
    "T58": lambda: logged("ValueError: num_samples should be a positive integer value, but got num_samples=0"),
    "T46": lambda: logged("ValueError: Expected parameter logits of distribution, but found invalid values:"),
    "T1": partial(dead, 0.56, overlap_comm=True),
    "T2": partial(dead, 0.56, dtype="bf16"),
    "T3": partial(dead, 0.98, vocab_size=32_000),
    "T4": partial(dead, 0.56, ONES * 1e-4, dtype="fp16"),
    "T5": partial(begins, 42.0),
    "T11": lambda: replace(jumped(), config=fine(grad_clip=0).config),
    "T13": partial(single, 2, "loss", vocab_size=32_000),
    "T15": partial(early, 0),
    "T17": lambda: tiny_scale(LOSS),
    "T18": lambda: vanishing(LOSS, nan_from(100, GRAD)),
    "T28": lambda: unlearned(reward=LOSS),
    "T29": partial(early, 150, dtype="fp8"),
    "S20.samples": lambda: jumped(token_accuracy=GRAD),
    "S20.lr": lambda: make_run({"loss": noisy(1.0, ROWS, 0.02), "token_accuracy": GRAD}),
    "T17: lowest scale": partial(floored, 0.88),
}


NOT_TOLD: dict[str, Maker] = {
    "T30": lambda: with_config(jumped(), lr=2.64e-4, optimizer="adamw"),
    "T30: another optimizer": lambda: with_config(jumped(), lr=0.0264, optimizer="sgd"),
    "T50": partial(skipping, 0.86),
    "T51": partial(huge, 1.5e7),
    "T37": lambda: with_config(still(grad_norm=8.8), grad_clip=1.0),
    "T38": partial(summed, 2.64),
    "T45": partial(decayed, 0.44),
    "T58": lambda: logged("ValueError: num_samples should be a positive integer value, but got num_samples=-8"),
    "T46": lambda: logged("ValueError: too many values to unpack"),
    "T4: share of the rows": partial(dead, 0.44, ONES * 1e-4, dtype="fp16"),
    "T17: lowest scale": partial(floored, 1.12),
    "T1": partial(dead, 0.44, overlap_comm=True),
    "T2": partial(dead, 0.44, dtype="bf16"),
    "T3": partial(dead, 0.84, vocab_size=32_000),
    "T4": partial(dead, dtype="fp16"),
    "T5": partial(begins, 33.0),
    "T11": lambda: with_config(jumped(), grad_clip=1.0),
    "T13": partial(early, 150, vocab_size=32_000),
    "T15": partial(early, 1),
    "T17": lambda: tiny_scale(np.where(AT < 100, LOSS, LOSS[100] + 0.01 * GRAD)),
    "T18": lambda: vanishing(LOSS, np.where(AT % 2, nan_from(100, GRAD), GRAD)),
    "T28": unlearned,
    "T29": partial(early, 150, dtype="fp32"),
    "S20.samples": jumped,
    "S20.lr": lambda: make_run({"loss": noisy(1.0 + np.exp(-AT / 15), ROWS, 0.005)}),
}
