"""Number formats and stability: each check's run lies about an eighth beyond its bars, `NEAR` as far inside of one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stabtree.run import Gap
from tests.conftest import falling, make_run
from tests.leaves.make import AT, ROWS, broken, growing, healthy, nan_from, noisy, with_rerun

if TYPE_CHECKING:
    from stabtree.run import Run
    from tests.leaves.make import Maker


def with_columns(**columns: Any) -> Run:
    """A sound run with other columns."""
    return make_run(healthy(**columns))


def scaled(ratio: float, clip: float = 1.0) -> Run:
    """grad_norm is multiplied by a loss scale that doubles twice, beside a clip."""
    scale = np.repeat([131072.0, 262144.0, 524288.0], ROWS // 3)
    return make_run(healthy(grad_norm=noisy(ratio) * scale, loss_scale=scale), dtype="fp16", grad_clip=clip)


def underflowing(zeros: float) -> Run:
    """A share of the gradients of an fp16 run is 0, and nothing scales the loss."""
    every = np.floor(AT * zeros) != np.floor((AT - 1) * zeros)
    return make_run(healthy(grad_norm=np.where(every, 0.0, noisy(1e-4))), dtype="fp16")


def clipped(times: float, share: float = 1.0) -> Run:
    """A share of the rows lies above a clip of 1, so many times above it in the median."""
    above = 100 * share > AT % 100
    return make_run(healthy(grad_norm=np.where(above, noisy(times, sigma=0.05), 0.9)), grad_clip=1.0)


def skipping(first: int, second: int, rows: int = ROWS) -> Run:
    """A counter of skipped steps: so many in the first half, so many in the second."""
    half = rows // 2
    count = [np.floor(np.linspace(0, first, half)), first + np.floor(np.linspace(0, second, rows - half))]
    return make_run({"loss": falling(rows), "skipped_steps": np.concatenate(count)})


def vanishing(begin: float, end: float, loss_end: float) -> Run:
    """grad_norm goes down to next to nothing while the loss goes from 3 to a level."""
    return with_columns(loss=growing(3.0, loss_end), grad_norm=growing(begin, end))


def attention(begin: float, end: float) -> Run:
    """The attention logits of the third block grow, those of the first do not."""
    groups = {"attention_logits_max/block1": noisy(8.0), "attention_logits_max/block3": growing(begin, end)}
    return with_columns(**groups)


def drifting(begin: float, end: float) -> Run:
    """The softmax's normaliser grows."""
    return with_columns(logsumexp=growing(begin, end))


def sound() -> Run:
    """A run that logs what the checks read, and its rerun, both of them in order."""
    columns = {
        "attention_logits_max/block1": noisy(8.0),
        "logsumexp": noisy(10.0),
        "loss_scale": np.full(ROWS, 1024.0),
        "skipped_steps": np.floor(AT / 250),
        "update_ratio/embed": noisy(2e-3),
        "update_ratio/trunk": noisy(1e-3),
    }
    run = make_run(healthy(**columns), dtype="fp16", grad_clip=5.0)
    return with_rerun(run, make_run(healthy(loss=falling(ROWS, seed=3))))


RUNS: dict[str, Maker] = {
    "series-nonfinite": lambda: with_columns(entropy=nan_from(400, noisy(1.0))),
    "series-nonfinite-measured": lambda: with_columns(token_accuracy=nan_from(400, noisy(0.5))),
    "series-nonfinite-gone": lambda: make_run(healthy(), gaps=(Gap("grad_norm", 400, 499, 100, at_end=True),)),
    "nan-from-data": lambda: with_rerun(broken(300, 7), broken(300, 7)),
    "nan-from-numerics": lambda: with_rerun(broken(300), broken(420)),
    "nan-not-repeated": lambda: with_rerun(broken(300), make_run(healthy())),
    "clip-before-unscale": partial(scaled, 0.00112),
    "clip-before-unscale-measured": partial(scaled, 0.00112, 0.0),
    "fp16-underflow": partial(underflowing, 0.056),
    "always-clipped": partial(clipped, 11.2, 0.97),
    "skips-rise": partial(skipping, 5, 18),
    "logits-drift": partial(drifting, 7.0, 23.5),
    "attention-logits-grow": partial(attention, 16.0, 56.0),
    "gradients-vanish": partial(vanishing, 1.0, 0.00088, 1.7),
    "precision-ok": sound,
}

NEAR: dict[str, Maker] = {
    "clip-before-unscale: ratio": partial(scaled, 0.00088),
    "clip-before-unscale: a clip above the norm": partial(scaled, 0.00112, 400.0),
    "clip-before-unscale-measured: ratio": partial(scaled, 0.00088, 0.0),
    "fp16-underflow: share of zeros": partial(underflowing, 0.044),
    "always-clipped: depth": partial(clipped, 8.8),
    "always-clipped: share of rows": partial(clipped, 12.0, 0.83),
    "skips-rise: share of steps": partial(skipping, 0, 13),
    "skips-rise: against the first half": partial(skipping, 6, 17),
    "skips-rise: number": partial(skipping, 0, 4, 100),
    "logits-drift: growth": partial(drifting, 14.0, 38.0),
    "logits-drift: level": partial(drifting, 4.0, 17.6),
    "attention-logits-grow: growth": partial(attention, 33.0, 88.0),
    "attention-logits-grow: level": partial(attention, 12.0, 44.0),
    "gradients-vanish: share": partial(vanishing, 1.0, 0.00112, 1.7),
    "gradients-vanish: loss": partial(vanishing, 1.0, 0.0005, 1.3),
}


def leading(rows: int = 8, height: float = 1.7, scatter: float = 0.1) -> Run:
    """grad_norm stands at a height for some rows before the loss spikes and comes back."""
    norm, loss = noisy(1.0, sigma=scatter), falling(ROWS)
    norm[400 - rows : 402] = height * np.linspace(1, 1.2, rows + 2)
    loss[400:404] += 8
    return with_columns(grad_norm=norm, loss=loss)


def never_held(lr: float, step: int = 440, factor: float = 1.7) -> Run:
    """A run that blows up early and stays up."""
    loss = noisy(3.0, sigma=0.02)
    loss[step:] *= factor
    return make_run(healthy(loss=loss), lr=lr)


def twice(step: int, factor: float = 1.7) -> Run:
    """The same at two learning rates."""
    return with_rerun(never_held(1e-3, step, factor), never_held(1e-4, step, factor))
