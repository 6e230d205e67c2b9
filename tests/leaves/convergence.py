"""Convergence: what a person answers, the checks, and what no real training of the fixtures shows."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from stabtree.run import Resume, Series
from tests.conftest import falling, make_run
from tests.leaves.make import AT, ONES, ROWS, growing, healthy, noisy, with_rerun

if TYPE_CHECKING:
    from stabtree.common.lazy import Ints
    from stabtree.run import Run
    from tests.leaves.make import Floats, Made, Maker

# What a person is asked where the loop can't memorise one batch, and where it can.
BROKEN = {"O3": "loss-detached", "O5": "wrong-mode", "O14": "wrong-targets", "O4.order": "wrong-order"}
SOUND = {
    "O6": "decay-coupled",
    "O10": "eps-rounds-to-zero",
    "O11": "fused-optimizer",
    "O13": "sigmoid-bce",
    "O17": "frozen-in-optimizer",
    "O18": "batchnorm-drifts",
    "O19": "one-rate-for-all",
    "O20": "checkpoint-not-loaded",
    "O21": "adapter-not-wired",
    "O26": "distributions-collapse",
}


def flat(gain: float = 0.05, rows: int = 345, **columns: Any) -> Run:
    """A loss that wins a share of its first level within twenty rows, and then nothing."""
    begin = 2.3 * (1 - gain * np.clip((np.arange(rows) - 10) / 10, 0, 1))
    loss = begin + np.random.default_rng(0).normal(0, 0.01, rows)
    return make_run({"loss": loss, **{name: np.resize(values, rows) for name, values in columns.items()}}, n_classes=10)


def asked(memorises: str, *ids: str, word: str = "yes") -> Made:
    """A run that does not learn, with what a person answers to O1 and, in one word, to other questions."""
    return flat(), {"answers": {"O1": memorises, **dict.fromkeys(ids, word)}}


def moving(level: str, ratio: float, noise: float = 0.05, **columns: Any) -> Run:
    """A loss that does not learn, in one of three ways, under updates of one size."""
    scatter = np.random.default_rng(5).normal(0, noise, ROWS)
    loss = {"flat": 2.5 + scatter, "slow": 2.4 + 0.03 * falling(ROWS, 0.2), "worse": 4.0 + scatter}[level]
    loss[0] = 2.5
    return make_run({"loss": loss, "update_ratio": np.full(ROWS, ratio), **columns}, task="regression")


def begins(share: float, classes: int) -> Run:
    """The first loss is so many times that of a guess among the classes."""
    loss = falling(ROWS)
    loss *= share * math.log(classes) / loss[0]
    return make_run(healthy(loss=loss), n_classes=classes)


def padded(noise: float, factor: float = 1.0) -> Run:
    """The loss of a batch is multiplied by its share of real tokens, by noise and by a factor."""
    share = np.random.default_rng(3).uniform(0, 0.6, ROWS)
    loss = factor * falling(ROWS) * (1 - share) * noisy(1.0, sigma=noise, seed=4)
    return make_run(healthy(loss=loss, pad_share=share), vocab_size=50257)


def apart(low: float, high: float) -> Run:
    """The updates of two parameter groups."""
    return make_run(healthy(**{"update_ratio/embed": noisy(high, sigma=0.01), "update_ratio/trunk": ONES * low}))


def sinking(early: int, late: int) -> Run:
    """The loss scale is halved so many times in the first half of the run, and so many in the second."""
    first, second = np.linspace(0, early + 0.99, ROWS // 2), np.linspace(0, late + 0.99, ROWS // 2)
    halvings = np.floor(np.concatenate([first, early + second]))
    return make_run(healthy(loss_scale=2.0 ** (16 - halvings)), dtype="fp16")


def squashed(above: float, start: float) -> Run:
    """A loss over 12 classes that ends so far above the floor of a softmax taken twice, as a share of its way there."""
    chance, floor = math.log(12), math.log1p(11 / math.e)
    end = floor + above * (chance - floor)
    loss = end + (start * chance - end) * np.exp(-AT / 30) + 0.004 * np.sin(AT * 1.7) * (AT > 0)
    return make_run({"loss": loss}, n_classes=12)


def ended(share: float, done: float) -> Run:
    """A rate that is down to a share of its peak when so much of the planned steps is done."""
    lr = np.where(done * ROWS > AT, 1e-3, share * 1e-3)
    return make_run({"loss": falling(ROWS), "lr": lr}, lr_schedule="constant", max_steps=ROWS)


def overfitted(share: float) -> Run:
    """An eval loss that wins back a share of what it had fallen, from 8 to 0.5, while the training loss falls."""
    eval_loss = 0.5 + 7.5 * np.exp(-AT / 20) + 7.5 * share * np.clip((AT - 200) / 300, 0, 1)
    return make_run({"loss": noisy(8 * np.exp(-AT / 150), sigma=0.01), "eval_loss": eval_loss})


def past_its_best(share: float) -> Run:
    """An eval loss that rises by a share of its best from row 100 on, while the training loss goes to nothing."""
    evals = 0.5 * (1 + 3 * np.exp(-AT / 18) + share * np.clip((AT - 100) / 100, 0, 1))
    return make_run({"loss": noisy(2.2 * np.exp(-AT / 120)), "eval_loss": noisy(evals, sigma=0.001)})


def stopped(rows: int) -> Run:
    """Evaluations that get worse, and end after so many rows."""
    run = make_run({"loss": 3 / (1 + AT) ** 0.8})
    return replace(run, series={**run.series, **make_run({"eval_loss": 2.0 + AT[:rows]}).series})


def worsened(share: float) -> Run:
    """An eval loss that rises by a share of its first level, beside a training loss that does not fall."""
    return make_run({"loss": noisy(2.0, sigma=0.01), "eval_loss": 2 * (1 + share * np.clip((AT - 20) / 300, 0, 1))})


def overconfident(gain: float) -> Run:
    """An eval loss that rises to the end, beside an accuracy that rises by a share of itself."""
    evals = 0.5 + 7.5 * np.exp(-AT / 20) + np.clip((AT - 200) / 300, 0, 1)
    right = 0.5 * (1 + gain * np.clip((AT - 200) / 400, 0, 1)) + noisy(1.0, sigma=0.01, seed=5) - 1
    return make_run({"loss": noisy(8 * np.exp(-AT / 150), sigma=0.01), "eval_loss": evals, "eval_quality": right})


def worse_than_it_came(rise: float, fall: float = 0.0) -> Run:
    """An eval loss that rises by a share of itself from its first evaluations on, beside a loss that falls."""
    evals = noisy(2.0 * (1 + rise * np.clip((AT - 100) / 400, 0, 1)), sigma=0.001)
    return make_run({"loss": noisy(2.0 * (1 - fall * AT / ROWS), sigma=0.01, seed=1), "eval_loss": evals})


def less_right(share: float) -> Run:
    """An accuracy that loses a share of its best, beside losses that fall."""
    right = 0.8 * (1 - np.exp(-AT / 40)) * (1 - share * np.clip((AT - 300) / 100, 0, 1))
    return make_run(healthy(eval_quality=noisy(right, sigma=0.01)))


def unsided() -> Run:
    """A measure that is 0, under a name that does not say on which data it was measured."""
    dice = Series("mean_dice", AT, np.where(AT < 5, 0.001, 0.0), "mean_dice")
    return replace(make_run(healthy()), others={"mean_dice": dice})


def learned_by_heart(level: float) -> Run:
    """An eval loss that stays at a share of where it began, while the training loss goes to almost nothing."""
    evals = 3.0 * (level + (1 - level) * np.exp(-AT / 20))
    return make_run(healthy(loss=3 * np.exp(-AT / 50), eval_loss=noisy(evals, sigma=0.005)))


def dying(begin: float, end: float) -> Run:
    """The share of dead units goes from one to another."""
    return make_run(healthy(dead_relu_frac=growing(begin, end, sigma=0.001)))


def summed(growth: float, jitter: float) -> Floats:
    """A grad_norm that grows so many times over, its neighbouring rows a share apart."""
    return noisy(1 + (growth - 1) * np.clip(AT / 540, 0, 1), sigma=jitter, seed=2)


def with_norm(growth: float, jitter: float) -> Run:
    """The same beside a loss that falls, noisily."""
    return make_run({"loss": noisy(falling(ROWS), sigma=0.1), "grad_norm": summed(growth, jitter)})


def rate_ends_at(share: float) -> Run:
    """A rate that falls to 0 with a share of the run to go."""
    return make_run(healthy(lr=1.03e-3 * np.clip(1 - AT / (ROWS * (1 - share)), 0, 1)))


def rate_comes_back(factor: float) -> Run:
    """A rate that decays, and comes up to so many times its peak at the end."""
    return make_run(healthy(lr=1e-3 * np.interp(AT, [0, 400, ROWS - 1], [1, 0.1, factor])))


def rate_restarts() -> Run:
    """A run that was resumed with a scheduler that began anew."""
    lr = 1e-3 * np.where(AT < 300, np.minimum(1, AT / 50), np.minimum(1, (AT - 299) / 50))
    return replace(make_run(healthy(lr=lr)), resumes=(Resume(320, 300, 20),))


def zero_from(row: int) -> Run:
    """A loss of exactly 0 from a row on."""
    return make_run(healthy(loss=np.where(row > AT, 1 + falling(ROWS), 0.0)))


def zero_rows(count: int) -> Run:
    """A loss with so many rows of exactly 0."""
    return make_run(healthy(loss=np.where(np.isin(AT, np.linspace(100, 500, count).astype(int)), 0.0, falling(ROWS))))


def repeated(rows: int) -> Run:
    """A loss that is the same to the last digit in so many rows."""
    return make_run(healthy(loss=np.where((AT >= 300) & (300 + rows > AT), 1.2345678, falling(ROWS))))


def climbs(times: float) -> Run:
    """A loss whose first updates throw it to so many times its beginning, and that comes back."""
    return make_run(healthy(loss=np.where((AT > 2) & (AT < 40), 4 * times, falling(ROWS))))


def swings(share: float) -> Run:
    """A loss that swings between 1 and 1e6, and ends for good at a share of the way up, counted in factors."""
    points = [0, 0.03, 0.25, 0.28, 0.4, 0.43, 0.6, 0.63, 1]
    power = np.interp(AT / ROWS, points, [6, 0, 0, 6, 6, 0, 0, 6 * share, 6 * share])
    return make_run(healthy(loss=10**power * noisy(np.ones(ROWS), sigma=0.02)))


def unscaled(level: float) -> Run:
    """A classifier's loss that stays about a level."""
    return make_run(healthy(loss=noisy(level), eval_quality=noisy(0.33)), task="classification")


def calmed(share: float) -> Run:
    """A loss of which this share of the changes are rises, and from row 400 on none while it falls fast."""
    noise = np.where(AT % round(1 / share) == 0, 1.05, 1.0)
    return make_run(healthy(loss=np.where(AT < 400, noise, np.exp((400 - AT) / 60)) * 2 * np.exp(-AT / 2000)))


def paused(hours: float) -> Run:
    """A clock that goes on by so many hours at one step."""
    return make_run(healthy(wall_time=np.cumsum(np.where(AT == 300, 3600 * hours, 10.0))))


def timed(slow: Ints | list[int], times: float, **columns: Any) -> Run:
    """Steps of a tenth of a second, some of which take so many times as long."""
    return make_run(healthy(step_time=noisy(0.1) * np.where(np.isin(AT, slow), times, 1.0), **columns))


def with_norms(rows: Ints | list[int], times: float, growth: float = 1.0) -> Run:
    """A gradient norm that is so many times as large in some rows, or grows by a factor from row to row to the end."""
    climb = growth ** np.maximum(AT - (ROWS - 40), 0)
    return make_run(healthy(grad_norm=noisy(1.0) * np.where(np.isin(AT, rows), times, 1.0) * climb))


def infinite(row: int) -> Run:
    """A gradient in fp32 that is infinite from a row on."""
    return make_run(healthy(grad_norm=np.where(row > AT, noisy(1.0), np.inf)), dtype="fp32")


def thrown_to_chance(above: float) -> Run:
    """A loss that begins far up, and at once comes to rest a share above that of a guess among ten classes."""
    loss = (1 + above) * math.log(10) + np.random.default_rng(2).normal(0, 0.01, ROWS)
    loss[:5] = [50.0, 20.0, 8.0, 4.0, 3.0]
    return make_run({"loss": loss}, n_classes=10)


def hardly_falls(share: float) -> Run:
    """A loss that loses a share of where it began by the end of its schedule."""
    loss = 4.9 * (1 - share * np.clip(AT / 400, 0, 1)) + np.random.default_rng(2).normal(0, 0.01, ROWS)
    return make_run({"loss": loss, "lr": 1e-3 * (0.55 + 0.45 * np.cos(np.pi * AT / ROWS))})


def sound() -> Run:
    """A run that logs all that the tree asks for, with nothing wrong in it."""
    lr = 1e-3 * (0.55 + 0.45 * np.cos(np.pi * AT / ROWS))
    columns = {
        "loss": noisy(1 + 1.3 * np.exp(-AT / 80), sigma=0.02),
        "lr": lr,
        "eval_loss": noisy(1.1 + 1.2 * np.exp(-AT / 80), sigma=0.005),
        "dead_relu_frac": growing(0.3, 0.45),
        "update_ratio": noisy(1e-3),
        "pad_share": np.random.default_rng(3).uniform(0, 0.3, ROWS),
        "loss_scale": 2.0 ** (16 - np.minimum(AT // 100, 2)),
    }
    made = make_run(healthy(**columns), dtype="fp16", n_classes=10, lr_schedule="cosine", max_steps=ROWS)
    return with_rerun(made, make_run(healthy()))


def won(level: float) -> Run:
    """A generator whose discriminator comes down to a level."""
    run = make_run({"loss": growing(1.0, 8.0)}, loss_kind="adversarial")
    return replace(run, others={"d_loss": Series("d_loss", AT, growing(1.3, level))})


RUNS: dict[str, Maker] = {
    "loop-broken": partial(asked, "no"),
    "learns-one-batch": partial(asked, "yes"),
    **{leaf: partial(asked, "no", id_) for id_, leaf in BROKEN.items()},
    **{leaf: partial(asked, "yes", id_) for id_, leaf in SOUND.items()},
    "starts-above-chance": partial(begins, 1.6, 10),
    "loss-follows-padding": partial(padded, 0.2),
    "starts-near-zero": partial(begins, 0.0045, 50257),
    "groups-apart": partial(apart, 1e-4, 0.0113),
    "scale-drifts-down": partial(sinking, 3, 3),
    "overconfident": partial(overconfident, 0.4),
    "eval-worse": partial(worse_than_it_came, 0.2),
    "eval-stopped": partial(stopped, 8),
    "eval-past-best": partial(past_its_best, 0.045),
    "quality-falls": partial(less_right, 0.2),
    "quality-collapsed": partial(less_right, 0.7),
    "quality-zero": lambda: make_run(healthy(eval_quality=np.where(AT < 5, 0.001, 0.0))),
    "quality-zero-note": unsided,
    "memorised": partial(learned_by_heart, 0.8),
    "memorised-alone": lambda: make_run(healthy(loss=8 * np.exp(-AT / 60)), vocab_size=50257),
    "lr-zero": partial(rate_ends_at, 0.3),
    "lr-zero-elsewhere": lambda: make_run(healthy(lr=0 * ONES)),
    "lr-rises-late": partial(rate_comes_back, 3.2),
    "lr-restarts": rate_restarts,
    "loss-zero": partial(zero_from, 0),
    "loss-zero-rows": partial(zero_rows, 5),
    "loss-repeats": partial(repeated, 220),
    "climbs-far": partial(climbs, 3.5),
    "discriminator-wins": partial(won, 0.005),
    "progress-lost": partial(swings, 0.6),
    "at-chance": partial(thrown_to_chance, 0.09),
    "loss-without-noise": partial(calmed, 1 / 3),
    "loss-out-of-scale": partial(unscaled, 60.0),
    "stalled": partial(paused, 1.13),
    "waits-for-data": partial(timed, [], 1.0, data_time=ONES * 0.056),
    "memory-grows": lambda: make_run(healthy(memory=8.0 + AT * 2.0 / ROWS)),
    "slow-steps": partial(timed, AT[200:240], 5.0),
    "grad-norm-leaves-level": partial(with_norms, [], 1.0, 1.15),
    "grad-norm-leaves-level-jumps": partial(with_norms, AT[300:], 28.0),
    "grad-norm-leaves-level-spikes": partial(with_norms, [200, 400], 24.0),
    "ends-at-start": partial(hardly_falls, 0.09),
    "grad-never-finite": partial(infinite, 570),
    "grad-nonfinite-fp32": partial(infinite, 595),
    **dict.fromkeys(
        ("learning-ok", "schedule-ok", "eval-ok", "quality-ok", "units-ok", "gradients-ok", "convergence-ok"), sound
    ),
}

EDGE: dict[str, Maker] = {
    "slow-steps: again and again": partial(timed, AT[60::60], 13.0),
    "slow-steps: by throughput": lambda: make_run(healthy(throughput=np.where((AT >= 200) & (AT < 240), 2.0, 10.0))),
    "lr-too-low: updates": partial(moving, "flat", 0.89e-4),
    "lr-too-low: a slow fall": partial(moving, "slow", 0.89e-4),
    "lr-too-low: noise": partial(moving, "flat", 0.89e-4, noise=1.0),
    "updates-too-large: flat": partial(moving, "flat", 1.12e-2),
    "updates-too-large: worse": partial(moving, "worse", 1.12e-2),
    "slow-learning: large updates": partial(moving, "slow", 1.12e-2),
    "worse-than-start: small updates": partial(moving, "worse", 0.89e-4),
    "no-gradient: under a rate": partial(flat, grad_norm=[0.0], lr=[1e-3]),
    "double-softmax: end": partial(squashed, 0.09, 1.0176),
    "lr-ends-early: share of the peak": partial(ended, 0.00088, 0.44),
    "eval-worse: rise": partial(worsened, 0.0225),
    "overfitting: rise": partial(overfitted, 0.008),
    "dead-units: growth": partial(dying, 0.6 / 1.68, 0.6),
    "dead-units: share": partial(dying, 0.2, 0.56),
    "gradients-add-up: growth": partial(with_norm, 5.7, 0.046),
}

NEAR: dict[str, Maker] = {
    "flat-from-start: gain": partial(flat, 0.068),
    "flat-from-start: progress": lambda: replace(flat(), config=make_run({}, max_steps=1560).config),
    "lr-too-low: updates": partial(moving, "flat", 1.12e-4),
    "lr-too-low: a slow fall": partial(moving, "slow", 1.12e-4),
    "lr-too-low: noise": partial(moving, "flat", 1.12e-4, noise=1.0),
    "updates-too-large: flat": partial(moving, "flat", 0.89e-2),
    "updates-too-large: worse": partial(moving, "worse", 0.89e-2),
    "double-softmax: end": partial(squashed, 0.23, 1.0),
    "double-softmax: beginning": partial(squashed, 0.17, 1.0224),
    "double-softmax: below the floor": partial(squashed, -0.08, 1.0),
    "lr-ends-early: share of the peak": partial(ended, 0.00112, 0.44),
    "lr-ends-early: share of the plan": partial(ended, 0.00088, 0.56),
    "eval-worse: rise": partial(worsened, 0.0175),
    "overfitting: rise": partial(overfitted, 0.003),
    "overconfident: no gain": partial(overconfident, 0.0),
    "eval-worse: share": partial(worse_than_it_came, 0.01),
    "eval-worse: training loss": partial(worse_than_it_came, 0.2, 0.5),
    "quality-falls: share": partial(less_right, 0.05),
    "memorised: eval loss that fell": partial(learned_by_heart, 0.3),
    "dead-units: growth": partial(dying, 0.6 / 1.32, 0.6),
    "dead-units: share": partial(dying, 0.2, 0.44),
    "gradients-add-up: growth": partial(with_norm, 4.4, 0.046),
    "gradients-add-up: smoothness": partial(with_norm, 5.7, 0.059),
    "starts-above-chance: first loss": partial(begins, 1.15, 10),
    "loss-follows-padding: correlation": partial(padded, 0.4),
    "starts-near-zero: first loss": partial(begins, 0.0056, 50257),
    "groups-apart: factor": partial(apart, 1e-4 * 0.9, 1e-4 * 79),
    "scale-drifts-down: octaves": partial(sinking, 2, 3),
    "scale-drifts-down: late halvings": partial(sinking, 5, 2),
    "lr-zero: share of the rows": partial(rate_ends_at, 0.22),
    "lr-rises-late: factor": partial(rate_comes_back, 2.8),
    "loss-repeats: rows": partial(repeated, 180),
    "grad-never-finite: share of the rows": partial(infinite, 572),
    "grad-nonfinite-fp32: rows": partial(infinite, 598),
    "at-chance: above": partial(thrown_to_chance, 0.12),
    "ends-at-start: share": partial(hardly_falls, 0.12),
    "climbs-far: factor": partial(climbs, 2.8),
    "discriminator-wins: factor": partial(won, 0.01),
    "progress-lost: share": partial(swings, 0.4),
    "loss-without-noise: rises": partial(calmed, 1 / 5),
    "loss-out-of-scale: level": partial(unscaled, 25.0),
    "stalled: hours": partial(paused, 0.88),
    "waits-for-data: share": partial(timed, [], 1.0, data_time=ONES * 0.044),
    "memory-grows: growth": lambda: make_run(healthy(memory=8.0 + AT * 1.5 / ROWS)),
    "memory-grows: a peak": lambda: make_run(healthy(memory=8.0 + 2.0 * (1 - np.exp(-AT / 60)))),
    "slow-steps: cost": partial(timed, AT[60::60], 8.0),
    "slow-steps: rows": partial(timed, AT[200:217], 9.0),
    "slow-steps: anywhere": partial(timed, [61, 70, 182, 211, 330, 371, 390, 444], 13.0),
    "grad-norm-leaves-level: growth": partial(with_norms, [], 1.0, 1.11),
    "grad-norm-leaves-level-jumps: factor": partial(with_norms, AT[300:], 17.0),
    "grad-norm-leaves-level-spikes: factor": partial(with_norms, [200, 400], 17.5),
    "grad-norm-leaves-level-spikes: one": partial(with_norms, [200], 40.0),
}

MORE: dict[str, Maker] = {
    "every answer for a broken loop is no": partial(asked, "no", *BROKEN, word="no"),
    "every answer for a sound loop is no": partial(asked, "yes", *SOUND, word="no"),
}


def held_out(gap: float) -> Run:
    """Evaluations that scatter and dip once, so far above a training loss that falls by 1."""
    evals = np.resize([0.0, 0.6, -0.2, 0.5, -0.6, 0.3, -0.4], 30)
    evals[12:15] -= 4
    run = make_run({"loss": np.linspace(2, 1, ROWS)})
    eval_loss = make_run({"eval_loss": 1.75 + gap + evals}, ROWS // 30 * np.arange(30)).series["eval_loss"]
    return replace(run, series={**run.series, "eval_loss": eval_loss})
