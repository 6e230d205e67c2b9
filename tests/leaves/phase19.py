"""Phase-19: each leaf has a fixture; here are the answers and the causes that no fixture shows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from stabtree.run import Gap
from tests.conftest import falling, make_run
from tests.leaves.make import AT, ONES, ROWS, healthy, nan_from, noisy

if TYPE_CHECKING:
    from stabtree.run import Run
    from tests.leaves.make import Floats, Made, Maker

NORM = nan_from(450, noisy(1.0))
DEAD: dict[str, Any] = {"loss": nan_from(450, falling(ROWS))}
RISING = np.concatenate((falling(300), 1 + np.linspace(0, 2, 300)))
JUMPED = falling(ROWS) + np.where(AT >= 400, 2.0, 0)
SWINGS = 1.5 * (1 - np.cos(np.pi * AT / 400))  # so slowly that a window does not see it
BEYOND, WITHIN = 73_000.0, 58_000.0  # of fp16's 65,504


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


def spiking(height: float, rows: int = 1, level: Any = None, **columns: Any) -> Run:
    """A loss, falling or about a level, that spikes at step 400 for so many rows."""
    loss = np.array(falling(ROWS) if level is None else level)
    loss[400 : 400 + rows] += height
    return make_run({"loss": loss, **columns})


def about(level: float, seed: int) -> Floats:
    """A loss that scatters about a level."""
    return np.asarray(level + np.random.default_rng(seed).normal(0, 0.3, ROWS))


def with_norm(height: float, times: float) -> Run:
    """A spike with a grad_norm so many times its mean."""
    norm = noisy(1.0, sigma=0.05)
    norm[400] = times * norm[300:400].mean()
    return spiking(height, grad_norm=norm)


def rare(height: float) -> Run:
    """A spike out of a scatter that may explain it, with a grad_norm that its own does not."""
    return spiking(height, level=about(3.0, 3), grad_norm=np.where(AT == 400, 8.0, noisy(1.0, sigma=0.05)))


def uniform(seed: int = 3) -> Floats:
    """A loss about 3 whose scatter has no tail."""
    return np.asarray(3 + np.random.default_rng(seed).uniform(-0.5, 0.5, ROWS))


def by_letter(sigmas: float) -> Made:
    """A row so many deviations above the 100 before it, judged by the document's letter."""
    loss = uniform()
    loss[400] = loss[300:400].mean() + sigmas * loss[300:400].std()
    return make_run({"loss": loss}), {"literal": True}


def half_back(sigmas: float) -> Run:
    """A spike after which the loss stays so many deviations above its mean before."""
    loss = uniform()
    mean, spread = loss[300:400].mean(), loss[300:400].std()
    loss[400:410] += 3
    loss[410:] = mean + sigmas * spread + 0.001 * np.sin(AT[410:])
    return make_run({"loss": loss})


def lasting(height: float) -> Run:
    """A loss that stays up a little from step 400 on."""
    return make_run({"loss": falling(ROWS, 0.03) + np.where(AT >= 400, height, 0)})


def late(height: float, rows: int) -> Run:
    """A loss that jumps so many rows before its end."""
    rest = np.random.default_rng(2).normal(0, 0.05, rows)
    return make_run({"loss": np.concatenate([falling(590 - rows), 1.0 + height + rest])})


def exploding(times: float) -> Run:
    """A grad_norm that goes up so many times in the ten rows before the loss breaks."""
    norm = noisy(1.0, sigma=0.02)
    norm[440:450] = np.geomspace(1, times, 10)
    return dies({"grad_norm": nan_from(450, norm)})


def sparsely(interval: int) -> Run:
    """A loss that is NaN after ordinary rows, logged every so many steps."""
    return make_run({**DEAD, "grad_norm": NORM}, steps=AT * interval)


def lowest(scale: float) -> Run:
    """A loss scale that is halved 16 times, down to a value, while the gradients overflow."""
    norm = np.where((AT >= 500) & (AT < 516), np.inf, noisy(1.0))
    scales = scale * 2.0 ** (16 - np.clip(AT - 499, 0, 16))
    return make_run({"loss": falling(ROWS), "grad_norm": norm, "loss_scale": scales}, dtype="fp16")


def backing_off(in_row: int, *, scale: bool = True) -> Run:
    """Two bursts of overflows late in an fp16 run, after each of which the scale is doubled up again."""
    bad = ((AT >= 330) & (330 + in_row > AT)) | ((AT >= 500) & (500 + in_row > AT))
    rises = sum(np.clip((AT - start) // 20, 0, in_row) for start in (335, 505))
    scales = {"loss_scale": 4096.0 * 0.5 ** np.cumsum(bad) * 2.0**rises} if scale else {}
    norm = np.where(bad, np.inf, noisy(1.0))
    return make_run({"loss": falling(ROWS), "grad_norm": norm, **scales}, dtype="fp16")


def late_rise(**columns: Any) -> Run:
    """A loss that rises over its last 120 rows, beside a column that has a trough in the last 200."""
    rise = 1.02 + np.linspace(0, 1.5, 120) + np.random.default_rng(4).normal(0, 0.03, 120)
    return make_run({"loss": np.concatenate([falling(480, 0.03), rise]), **columns})


def trough(depth: float) -> Floats:
    """A series that stands low in the first tenth of the last 200 rows, and a factor higher before and after."""
    return np.interp(AT, [0, 380, 400, 423, 490, ROWS], [depth, depth, 1, 1, depth, depth])


def over(steps: int, times: float = 2.25) -> Run:
    """Weights that grow so many times within so many steps, under a loss that rises."""
    return rising({"weight_norm/a": times ** np.clip((AT - 310) / steps, 0, 1)})


def norm_to(times: float, scatter: float = 0.02) -> Run:
    """A grad_norm that goes up so many times while the loss rises, with a scatter of its own."""
    return rising({"grad_norm": noisy(np.interp(AT, [0, 300, ROWS], [1, 1, times]), sigma=scatter, seed=3)})


def creeping(height: float, noise: float, seed: int) -> Run:
    """A noisy loss that rises by so much over its last quarter."""
    return make_run({"loss": falling(ROWS, noise, seed) + np.clip((AT - 450) / 150, 0, 1) * height})


def outlived(alive: int) -> Run:
    """A run whose loss is NaN from step 450 on, beside so many gradients that are finite."""
    return dies({"grad_norm": nan_from(450 + alive, noisy(1.0))})


RUNS: dict[str, Maker] = {
    "nan-logged": partial(outlived, 150),
    "loss-unbounded": lambda: make_run({"loss": 1.5 - 0.1 * AT**2.0}),
}

EDGE: dict[str, Maker] = {
    "nan-logged: share of the rows": partial(outlived, 136),
    "nan-backward: explosion": partial(exploding, 11.2),
    "nan-forward: sparsely logged": partial(sparsely, 9),
    "spike-minor: chance": partial(spiking, 1.58, level=about(3.0, 1)),
    "spike-unexplained: deviations": partial(by_letter, 3.36),
    "spike-unexplained: slow to come back": partial(spiking, 0.7, 56),
    "spike-unexplained: against the beginning": partial(spiking, 2.2, level=SWINGS + 5 + uniform()),
    "spike-unexplained: against the range": partial(spiking, 2.2, level=about(4.2, 3)),
    "spike-persistent: half back": partial(half_back, 0.56),
    "spike-persistent: share of the range": partial(lasting, 0.48),
    "spike-open: end of the log": partial(late, 3.2, 45),
    "spike-open: share of the range": partial(late, 1.55, 10),
    "spike-lr-jump: factor": lambda: spiking(2.0, lr=np.where(AT >= 398, 1.68e-3, 1e-3)),
    "spike-bad-batch: likely": partial(with_norm, 0.6, 2.24),
    "spike-bad-batch: confirmed": partial(with_norm, 1.0, 33.6),
    "spike-bad-batch: share of the range": partial(with_norm, 0.5, 8.0),
    "spike-bad-batch: chance": partial(rare, 2.1),
    "scale-collapse: lowest scale": partial(lowest, 0.88),
    "normal-backoff: in a row": partial(backing_off, 3),
    "grad-skipped: in a row": partial(backing_off, 3, scale=False),
    "lr-rising: window": lambda: late_rise(lr=1e-3 * trough(1.06)),
    "weight-decay-low: window": partial(over, 178),
    "grad-norm-rising: window": lambda: late_rise(grad_norm=noisy(trough(1.34), sigma=0.01)),
    "grad-norm-rising: factor": partial(norm_to, 1.34),
    "grad-norm-rising: trend": partial(norm_to, 1.45, 1.0),
}

NEAR: dict[str, Maker] = {
    "nan-logged: share of the rows": partial(outlived, 134),
    "nan-backward: explosion": partial(exploding, 8.8),
    "nan-forward: sparsely logged": partial(sparsely, 11),
    "spike-minor: chance": partial(spiking, 1.48, level=about(3.0, 1)),
    "spike-unexplained: deviations": partial(by_letter, 2.64),
    "spike-unexplained: slow to come back": partial(spiking, 0.7, 44),
    "spike-unexplained: against the beginning": partial(spiking, 2.2, level=SWINGS + 9 + uniform()),
    "spike-unexplained: against the range": partial(spiking, 2.2, level=SWINGS + 9 + uniform()),
    "spike-persistent: half back": partial(half_back, 0.44),
    "spike-persistent: share of the range": partial(lasting, 0.37),
    "spike-open: end of the log": partial(late, 3.2, 57),
    "spike-open: share of the range": partial(late, 1.15, 10),
    "spike-lr-jump: factor": lambda: spiking(2.0, lr=np.where(AT >= 398, 1.32e-3, 1e-3)),
    "spike-bad-batch: likely": partial(with_norm, 0.6, 1.76),
    "spike-bad-batch: share of the range": partial(with_norm, 0.33, 8.0),
    "spike-bad-batch: chance": partial(rare, 2.05),
    "scale-collapse: lowest scale": partial(lowest, 1.12),
    "normal-backoff: in a row": partial(backing_off, 4),
    "grad-skipped: in a row": partial(backing_off, 4, scale=False),
    "lr-rising: window": lambda: late_rise(lr=1e-3 * trough(1.044)),
    "weight-decay-low: window": partial(over, 250),
    "grad-norm-rising: factor": partial(norm_to, 1.14),
    "grad-norm-rising: trend": partial(norm_to, 1.25, 1.0),
    "slow-rise: share of the range": partial(creeping, 0.3, 0.1, 1),
    "slow-rise: scatter": partial(creeping, 0.4, 0.3, 2),
}


def infinite(times: float) -> Run:
    """A loss that goes up so many times in the ten rows before it is infinite, without a word of the gradients."""
    loss = np.where(AT >= 450, np.inf, noisy(1.0, sigma=0.02))
    loss[440:450] *= np.geomspace(1, times, 10)
    return make_run({"loss": loss}, dtype="fp32", task="CAUSAL_LM")


def unlogged(times: float = 1.0) -> Run:
    """A loss that goes up so many times, and is not logged from step 450 on, while the gradient goes on as before."""
    loss = falling(450)
    loss[430:] *= np.geomspace(1, times, 20)
    series = {**make_run({"loss": loss}).series, **make_run({"grad_norm": noisy(1.0)}).series}
    return replace(make_run({}), series=series, gaps=(Gap("loss", 450, ROWS - 1, ROWS - 450, at_end=True),))


MORE: dict[str, Maker] = {
    "a loss that is no longer logged": unlogged,
    "a loss that exploded and is no longer logged": partial(unlogged, 1e6),
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


def moved(times: float, lr: float = 1e-3) -> Run:
    """A loss that jumps for good, beside a grad_norm that goes up so many times there, and a rate that may."""
    at = np.where(AT >= 400, 1.0, 0.0)
    columns = {"grad_norm": NORM * (1 + (times - 1) * at), "lr": 1e-3 + (lr - 1e-3) * np.clip((AT - 395) / 5, 0, 1)}
    return make_run(healthy(loss=JUMPED, **columns))
