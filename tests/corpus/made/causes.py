"""The thresholds of causes and signatures: the log bears the cause out on one side and not on the other."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stabtree.common.stats import change_noise
from stabtree.run import LogLine, Setting
from tests.conftest import make_run, series
from tests.corpus.made.convergence import resumed
from tests.corpus.made.hold import Hold
from tests.corpus.made.phase19 import LEVEL, SIGMA, learned, steady
from tests.leaves.grpo import broken_off, unrewarded, useless
from tests.leaves.grpo import collapsed as collapsed_reward
from tests.leaves.signatures import speech

if TYPE_CHECKING:
    from stabtree.run import Run
    from tests.corpus.made.phase19 import Floats

PURE: dict[str, Any] = {"mixed": False, "optimizer": "adam"}
ROWS = 400
AT = np.arange(ROWS)


def gradients() -> Floats:
    """An ordinary grad_norm."""
    return np.exp(np.random.default_rng(3).normal(0, 0.1, ROWS))


def broken(last: float, value: float = np.nan, *, dtype: str = "fp32", **columns: Any) -> Run:
    """A loss that is not finite from row 300 on, so many times its usual value in the row before."""
    loss = steady(ROWS)
    loss[299] = last * LEVEL
    loss[300:] = value
    return make_run({"loss": loss, **columns}, dtype=dtype)


def unclipped(last: float) -> Run:
    """The same under a gradient that breaks first, in a run that clips nothing."""
    run = broken(last, grad_norm=overflowing())
    return replace(run, config={**run.config, "grad_clip": Setting(0, "test")})


def to_infinity(last: float) -> Run:
    """A loss that stood at so many times its usual value and became infinite, under an ordinary grad_norm."""
    return broken(last, np.inf, grad_norm=gradients())


def activation(largest: float, dtype: str = "fp8", **columns: Any) -> Run:
    """A loss that breaks with a largest activation."""
    columns["activation_max/block"] = np.where(AT < 300, 10.0, largest)
    return broken(1.0, dtype=dtype, **columns)


def overflowing() -> Floats:
    """A grad_norm that breaks five rows before the loss does."""
    return np.where(AT < 295, gradients(), np.inf)


def collapsed(largest: float) -> Run:
    """A loss scale that collapses, with a largest activation."""
    scale = 1024 / 2.0 ** np.maximum(0, (AT - 100) // 10)
    norm = np.where((AT > 100) & (AT % 10 == 0), np.inf, 1.0)
    columns = {"loss": learned(ROWS), "loss_scale": scale, "grad_norm": norm}
    return make_run({**columns, "activation_max/block": np.full(ROWS, largest)}, dtype="fp16")


def never_finite(lowest: float) -> Run:
    """A loss that learns on while no gradient is finite from step 100 on, and the scale is halved down to a lowest."""
    scale = np.maximum(1024 / 2.0 ** np.maximum(0, AT - 100), lowest)
    norm = np.where(AT > 100, np.nan, 1.0)
    return make_run({"loss": learned(ROWS), "loss_scale": scale, "grad_norm": norm}, dtype="fp16")


def never_held(factor: float, step: int, first: int, lr: float) -> Run:
    """A log that begins at a step, and a loss that jumps for good to a multiple of where it began."""
    at = np.arange(800)
    loss = 4 - at / 4000 + np.random.default_rng(0).normal(0, SIGMA, 800)
    return make_run({"loss": np.where(first + at < step, loss, factor * 4)}, first + at, lr=lr)


def twice(factor: float, step: int, first: int = 0) -> Run:
    """The same at two learning rates."""
    return replace(never_held(factor, step, first, 1e-3), rerun=never_held(factor, step, first, 1e-4))


def led(factor: float = 2.0, lead: float = 8, *, usual: int = 300, logged: int = 300) -> Run:
    """A grad_norm at a multiple of itself in the `lead` rows before a spike; `usual` rows before it, it came down.

    It is logged from `logged` rows before the spike on.
    """
    norm = 1 + np.random.default_rng(1).normal(0, SIGMA, ROWS)
    norm[: 300 - usual] *= 3
    norm[300 - int(lead) : 302] *= factor
    run = make_run({"loss": spiking()})
    return replace(
        run, series={**run.series, "grad_norm": series("grad_norm", norm[300 - logged :], AT[300 - logged :])}
    )


def climbing(level: float = 1.0, low: float = ROWS, rows: int = 300) -> Run:
    """A loss that breaks after so many rows, its last value 1.65; the `low` rows before are at 1, others at a level."""
    loss = steady(ROWS)
    loss[: max(rows - 1 - int(low), 0)] *= level
    loss[rows - 1], loss[rows:] = 1.65 * LEVEL, np.nan
    return make_run({"loss": loss}, dtype="fp16")


def spiking() -> Floats:
    """A loss with a high and long spike."""
    loss = learned(ROWS)
    loss[300:360] += 8
    return loss


def zero_loss(count: float, *, lr: bool = True, dtype: str = "bf16", good: float = 0, **config: Any) -> Run:
    """A grad_norm that is NaN in all but the first `good` of 100 rows, in so many of which the loss is 0.

    The rate moves or does not.
    """
    loss = learned(100)
    loss[int(good) : int(good + count)] = 0
    rate = np.full(100, 1e-3) - (1e-6 * np.arange(100) if lr else 0)
    norm = np.where(np.arange(100) < good, 1.0, np.nan)
    return make_run({"loss": loss, "grad_norm": norm, "lr": rate}, dtype=dtype, **config)


def first_loss(times: float) -> Run:
    """A loss that begins at so many times ln(10) and is 0 from the second row on, under gradients of NaN."""
    loss = np.zeros(ROWS)
    loss[0] = times * np.log(10)
    return make_run({"loss": loss, "grad_norm": np.full(ROWS, np.nan)}, n_classes=10)


def from_the_start(rows: float, every: float = 1, first: int = 0, **config: Any) -> Run:
    """A loss in fp16 that is finite in so many rows at the beginning, and never again."""
    loss = np.where(np.arange(60) < rows, 2.0, np.nan)
    return make_run({"loss": loss}, first + np.arange(60) * int(every), dtype="fp16", **config)


def isolated(metric: str, count: float) -> Run:
    """A metric that is not finite in so many rows in a row."""
    values = learned(ROWS) if metric == "loss" else gradients()
    values[200 : 200 + int(count)] = np.nan
    columns = {"loss": learned(ROWS), "grad_norm": gradients(), metric: values}
    return make_run(columns, dtype="bf16", vocab_size=32_000)


def often(share: float) -> Run:
    """A loss that is NaN in a share of the rows, never in more than two in a row, and comes back."""
    loss = learned(ROWS)
    bad = (AT >= 40) & (np.floor(AT * share * ROWS / 350) != np.floor((AT - 1) * share * ROWS / 350))
    loss[bad & (AT < 390)] = np.nan
    return make_run({"loss": loss}, dtype="bf16", vocab_size=32_000)


def summed(scale: float) -> Run:
    """A loss scale that collapses to a value, and a loss that falls while it stands there and not before."""
    loss = np.interp(AT, [0, 20, 200, 201, ROWS], [4.0, 1.0, 1.0, 3.0, 1.5])
    at_end = np.where(AT < 200, 1.5, scale)
    return make_run({"loss": loss, "loss_scale": np.where(AT < 100, 1024.0, at_end)}, dtype="fp16")


def after_resume(sigmas: float) -> Run:
    """A loss that stands so many deviations higher after a resume; the finding is another spike."""
    loss = steady(ROWS) + np.where(AT < 200, 0, sigmas * SIGMA)
    loss[:40] += 3 * np.exp(-AT[:40] / 10)
    loss[300:360] += 8
    return resumed(make_run({"loss": loss}), 200)


def early_jump(factor: float, rate: float = 1e-9, row: int = 5) -> Run:
    """A loss that jumps in one of its first rows at a tiny rate; the finding is another spike."""
    loss = spiking()
    loss[:40] = 4
    loss[row] = factor * 4
    return make_run({"loss": loss, "lr": np.where(AT < 40, rate, 1e-3)})


def large_norms(usual: float, scale: float = 0) -> Run:
    """A median grad_norm beside a loss that falls, and a fifth of the rows far above."""
    norm = np.where(AT % 5 == 0, 1000.0, usual)
    columns = {"loss": learned(ROWS), "grad_norm": norm, "token_accuracy": np.full(ROWS, 0.5)}
    return make_run({**columns, **({"loss_scale": np.full(ROWS, scale)} if scale else {})})


def flat(**columns: Any) -> Run:
    """A loss of 600 steps that does not fall, in a run that clips at 1."""
    return make_run({"loss": 8 + np.random.default_rng(0).normal(0, 0.01, 600), **columns}, grad_clip=1.0)


def clipped(share: float) -> Run:
    """A gradient that lies twenty times above the clip in a share of the rows, and below it in the others."""
    return flat(grad_norm=np.where(np.arange(600) % 100 < 100 * share, 20.0, 0.5))


def run_out(share: float) -> Run:
    """A rate that stands at a share of its peak in most rows."""
    return flat(lr=np.where(np.arange(600) < 100, 1e-3, share * 1e-3))


def thrown_up(share: float) -> Run:
    """A loss that is thrown up for one row after a share of the log, and jumps half-way for good."""
    loss = learned(ROWS) + np.where(AT >= ROWS // 2, 2.0, 0.0)
    loss[int(share * ROWS)] = 2.5 * loss[0]
    return make_run({"loss": loss}, lr=1e-4, optimizer="adamw")


def only_logged(rows: float) -> Run:
    """A loss that is NaN in its last rows, under a gradient that goes on."""
    return make_run({"loss": np.where(ROWS - rows > AT, learned(ROWS), np.nan), "grad_norm": gradients()})


def loosened(share: float) -> Run:
    """A reward that collapses beside an entropy that doubles, and lies above 1 in a share of the last rows."""
    wide = np.where(np.arange(400) % 5 < 5 * share, 1.2, 0.95)
    return collapsed_reward(entropy=np.where(np.arange(400) < 100, 0.5, wide))


def cut(count: float) -> Floats:
    """A share of answers that are cut off: all in the first row, and in so many of the last five."""
    return np.where((AT == 0) | (ROWS - count <= AT), 1.0, 0.2)


def thrown(row: float) -> Run:
    """A loss that jumps for good, and a gradient that is high in one row that many rows after it."""
    norm = gradients()
    norm[250 + int(row)] *= 15
    return make_run({"loss": steady(ROWS) + np.where(AT >= 250, 3.0, 0.0), "grad_norm": norm})


def said(number: float) -> Run:
    """A warning that never ends a run, in the middle of its log."""
    line = LogLine(7, WARNINGS[int(number)])
    return replace(make_run({"loss": learned(ROWS)}), lines=(line,))


def raised(planned: float) -> Run:
    """An exception at the end of a log of so many planned steps."""
    line = LogLine(7, "ValueError: something else", at_end=True)
    return replace(make_run({"loss": learned(ROWS)}, max_steps=int(planned)), lines=(line,))


WARNINGS = (
    "UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`.",
    "WARNING Gradient overflow. A step is left out.",
    "FutureWarning: `torch.cuda.amp.GradScaler(args...)` is deprecated.",
)


def warmed(times: float, late: float = 0) -> Run:
    """A loss that rises from step 150 to 350 while the rate warms up to so many times what it was, and decays then.

    With `late` the rate climbs only once the loss has made so much of its rise.
    """
    loss = np.interp(AT, [0, 100, 150, 350, ROWS], [4.0, 1.0, 1.0, 3.0, 3.0]) + 0.1 * (gradients() - 1)
    begins = 150 + 200 * late
    lr = np.interp(AT, [0, begins, begins + 1 if late else 350, 360, ROWS], [1e-3, 1e-3, times * 1e-3, 1e-4, 1e-5])
    return make_run({"loss": loss, "lr": lr})


def climbing_on(times: float) -> Run:
    """A loss that jumps for good at step 300, where the rate has climbed to so many times its configured value."""
    lr = 1e-3 * np.interp(AT, [0, 300, ROWS], [0.01, times, 2 * times])
    return make_run({"loss": spiking() + np.where(AT >= 300, 8.0, 0.0), "lr": lr}, lr=1e-3, warmup_steps=20)


def skipped(share: float) -> Run:
    """A flat loss beside a counter of skipped steps."""
    return make_run({"loss": 8 + 0.01 * gradients(), "skipped_steps": np.floor(share * (AT + 1))})


def held_out(gap: float = 2.0, rise: float = 0.5) -> Run:
    """Evaluations that scatter far above a training loss that falls by 1, and dip once.

    They begin `gap` above it and rise by so many times their scatter.
    """
    at = np.arange(30)
    evals = np.resize([0.0, 0.6, -0.2, 0.5, -0.6, 0.3, -0.4], 30)
    evals = evals - np.median(evals[:10]) + np.where(at >= 20, rise * change_noise(evals), 0.0)
    evals[12:15] -= 4
    run = make_run({"loss": np.linspace(2, 1, ROWS)})
    values = float(np.median(run.series["loss"].values[:118])) + gap + evals
    return replace(run, series={**run.series, "eval_loss": series("eval_loss", values, at * 13)})


def beside(leaf: str, cause: str, values: tuple[float, float]) -> dict[float, str]:
    """A cause that the first value bears out and the second does not."""
    return {values[0]: f"{leaf} {cause}", values[1]: f"no {leaf} {cause}"}


def rows_of(cause: str) -> dict[float, str]:
    """What is told of a loss that is finite in so many rows at the beginning."""
    told = f"fp16-suspected {cause}"
    return {0: f"no {told}", 1: told, 3: told, 4: f"no {told}"}


HOLDS = (
    Hold("E.exception.unless_done", raised, {ROWS: "exception-survived", ROWS + 1: "exception"}),
    Hold("E.scheduler-order.ends", said, {0: "scheduler-order"}),
    Hold("E.overflow-skips.ends", said, {1: "overflow-lines"}),
    Hold("E.amp-deprecated.ends", said, {2: "amp-deprecated"}),
    Hold("Q1.4.log0.exploding_factor", to_infinity, {9: "nan-forward Q1.4.log0", 11: "no nan-backward Q1.4.log0"}),
    Hold("Q1.4.activation.limit", activation, beside("nan-unlocated", "Q1.4.activation", (70000, 60000))),
    Hold(
        "Q3.4.activation.limit",
        lambda largest: activation(largest, grad_norm=overflowing(), dtype="fp16"),
        beside("fp16-overflow", "Q3.4.activation", (70000, 60000)),
    ),
    Hold("Q3.2.activations.limit", collapsed, beside("scale-collapse", "Q3.2.activations", (70000, 60000))),
    Hold("T18.min_scale", never_finite, beside("scale-collapse", "T18", (9e-7, 1.1e-6))),
    Hold(
        "P17.init.first_steps",
        lambda step: twice(1.8, int(step)),
        beside("spike-persistent", "P17.init", (450, 550)),
    ),
    Hold("P17.init.factor", partial(twice, step=200), beside("spike-persistent", "P17.init", (1.6, 1.4))),
    Hold(
        "P17.init.begin_share",
        lambda first: twice(1.8, 300, int(first)),
        beside("spike-persistent", "P17.init", (90, 110)),
    ),
    Hold("P12.lead.factor", led, beside("spike-unexplained", "P12.lead", (1.6, 1.4))),
    Hold("P12.lead.rows", lambda rows: led(usual=int(rows)), beside("spike-unexplained", "P12.lead", (44, 36))),
    Hold("P12.lead.lead_rows", partial(led, 2.0, logged=40), beside("spike-unexplained", "P12.lead", (27, 33))),
    Hold("P12.lead.min_rows", lambda rows: led(logged=int(rows)), beside("spike-unexplained", "P12.lead", (33, 27))),
    Hold("P12.lead.min_lead_rows", partial(led, 2.0), beside("spike-unexplained", "P12.lead", (3, 2))),
    Hold(
        "T1.share",
        partial(zero_loss, overlap_comm=True),
        beside("grad-nonfinite", "T1", (33, 27)),
    ),
    Hold("Q4.5.rate.factor", warmed, beside("slow-rise", "Q4.5.rate", (2.0, 1.4))),
    Hold("Q4.5.rate.share", partial(warmed, 3.0), beside("slow-rise", "Q4.5.rate", (0.7, 0.9))),
    Hold("Q4.2.schedule.factor", climbing_on, beside("spike-persistent", "Q4.2.schedule", (2.2, 1.8))),
    Hold("T50.share", skipped, beside("flat-from-start", "T50", (0.95, 0.85))),
    Hold("O27.eval.gap_factor", held_out, beside("overfitting", "O27.eval", (1.6, 1.4))),
    Hold("O27.eval.noise_factor", partial(held_out, 3.0), beside("overfitting", "O27.eval", (0.9, 1.2))),
    Hold("T2.share", zero_loss, beside("grad-nonfinite", "T2", (33, 27))),
    Hold("T3.share", partial(zero_loss, vocab_size=32_000), beside("grad-nonfinite", "T3", (96, 94))),
    Hold("T4.share", partial(zero_loss, lr=False, dtype="fp16"), beside("grad-nonfinite", "T4", (33, 27))),
    Hold(
        "T1.good_rows",
        lambda good: zero_loss(90, good=good, overlap_comm=True),
        beside("grad-nonfinite", "T1", (3, 4)),
    ),
    Hold("T2.good_rows", lambda good: zero_loss(90, good=good), beside("grad-nonfinite", "T2", (3, 4))),
    Hold(
        "T3.good_rows",
        lambda good: zero_loss(96, good=good, vocab_size=32_000),
        beside("grad-nonfinite", "T3", (3, 4)),
    ),
    Hold("T5.factor", first_loss, beside("grad-nonfinite", "T5", (3.3, 2.7))),
    Hold("T7.rows", partial(from_the_start, **PURE), rows_of("T7")),
    Hold("T7.steps", partial(from_the_start, 2, **PURE), beside("fp16-suspected", "T7", (45, 55))),
    Hold(
        "T8.steps",
        lambda first: from_the_start(0, first=int(first), device="GeForce GTX 1660"),
        beside("fp16-suspected", "T8", (45, 55)),
    ),
    Hold("T9.factor", partial(broken, dtype="fp16"), beside("fp16-suspected", "T9", (1.6, 1.4))),
    Hold("T9.rows", partial(climbing, 1.3), beside("fp16-suspected", "T9", (12, 8))),
    Hold("T9.min_rows", lambda rows: climbing(rows=int(rows)), beside("fp16-suspected", "T9", (7, 5))),
    Hold("T10.factor", broken, beside("nan-unlocated", "T10", (1.6, 1.4))),
    Hold("T12.factor", unclipped, beside("nan-backward", "T12", (1.4, 1.6))),
    Hold("G1.length.share", lambda n: unrewarded(clipped_ratio=cut(n)), beside("reward-zero", "G1.length", (5, 3))),
    Hold("G5.cut.share", lambda n: useless(clipped_ratio=cut(n)), beside("no-advantage", "G5.cut", (5, 3))),
    Hold("T32.rows", thrown, beside("spike-persistent", "T32", (6, 4))),
    Hold("T37.share", clipped, beside("flat-from-start", "T37", (0.97, 0.93))),
    Hold("T45.share", run_out, beside("flat-from-start", "T45", (0.009, 0.011))),
    Hold("rate.early_share", thrown_up, beside("spike-persistent", "T30", (0.09, 0.11))),
    Hold("Q1.3.outlive_rows", only_logged, {5: "nan-logged", 4: "no nan-logged"}),
    Hold(
        "G2.function.rows",
        lambda rows: broken_off(int(rows)),
        beside("reward-falls-through", "G2.floor.function", (5, 4)),
    ),
    Hold("G2.entropy.share", loosened, beside("reward-collapse", "G2.entropy", (0.6, 0.4))),
    Hold("T13.longest", partial(isolated, "loss"), beside("nan-skipped", "T13", (2, 3))),
    Hold("T13.max_share", often, beside("nan-unlocated", "T13", (0.45, 0.55))),
    Hold("T14.longest", lambda rows: speech(isolated("grad_norm", rows)), beside("grad-nonfinite", "T14", (2, 3))),
    Hold("T17.tiny", summed, {0.9: "scale-collapse T17"}),
    Hold("T23.factor", early_jump, beside("spike-unexplained", "T23", (2.2, 1.8))),
    Hold("T23.tiny", partial(early_jump, 3), beside("spike-unexplained", "T23", (0.9e-7, 1.1e-7))),
    Hold("T23.rows", lambda row: early_jump(3, row=int(row)), beside("spike-unexplained", "T23", (9, 10))),
    Hold("T25.level", large_norms, beside("sft-grad-norm-high", "T25", (110, 90))),
    Hold("T26.level", partial(large_norms, scale=1024), beside("sft-grad-norm-high", "T26", (110, 90))),
)
