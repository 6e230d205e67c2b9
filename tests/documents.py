"""Made runs and made lines, one for each check of the trees beside Phase-19."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.conftest import falling, make_run, series

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from stabtree.run import Run

ROWS = 600


def noisy(level: float, rows: int = ROWS, sigma: float = 0.1, seed: int = 1) -> NDArray[np.float64]:
    """A positive series about a level."""
    return np.asarray(level * np.exp(np.random.default_rng(seed).normal(0, sigma, rows)))


def healthy(**more: Any) -> dict[str, Any]:
    """The columns of a run in which nothing is wrong, with others added or put in their place."""
    return {"loss": falling(ROWS), "grad_norm": noisy(1.0), "lr": np.full(ROWS, 1e-3), **more}


def with_rerun(run: Run, rerun: Run) -> Run:
    """A run and another one of the same training."""
    return replace(run, rerun=rerun)


def broken(step: int, batch: int | None = None, **config: Any) -> Run:
    """A run whose loss is NaN from a step on."""
    loss = falling(ROWS)
    loss[step:] = np.nan
    columns = healthy(loss=loss)
    if batch is not None:
        columns["batch_id"] = np.where(np.arange(ROWS) == step, batch, 10_000 + np.arange(ROWS))
    return make_run(columns, **config)


def scaled() -> Run:
    """grad_norm is multiplied by a scale that doubles twice."""
    scale = np.repeat([16384.0, 32768.0, 65536.0], ROWS // 3)
    return make_run(healthy(grad_norm=noisy(1.0) * scale, loss_scale=scale), dtype="fp16")


def underflowing() -> Run:
    """A fifth of the gradients of an fp16 run are 0, and nothing scales the loss."""
    return make_run(healthy(grad_norm=np.where(np.arange(ROWS) % 5 == 0, 0.0, noisy(1e-4))), dtype="fp16")


def leading() -> Run:
    """grad_norm rises for 8 rows before the loss spikes and comes back."""
    norm, loss = noisy(1.0), falling(ROWS)
    norm[392:402] *= 6
    loss[400:404] += 8
    return make_run(healthy(grad_norm=norm, loss=loss))


def sinking_scale() -> Run:
    """The loss scale is halved every 40 steps."""
    return make_run(healthy(loss_scale=2.0 ** (16 - np.arange(ROWS) // 40)), dtype="fp16")


def never_held(lr: float) -> Run:
    """A run that blows up at step 40 and stays up."""
    loss = falling(ROWS)
    loss[40:] += 9
    return make_run(healthy(loss=loss), lr=lr)


def padded() -> Run:
    """The loss of a batch is multiplied by its share of real tokens."""
    share = np.random.default_rng(3).uniform(0, 0.6, ROWS)
    return make_run(healthy(loss=falling(ROWS) * (1 - share), pad_share=share))


def skipping() -> Run:
    """A counter of skipped steps that climbs in the second half."""
    count = np.concatenate([np.arange(300) // 150, 1 + np.arange(300) // 5])
    return make_run(healthy(skipped_steps=count))


def growing(begin: float, end: float) -> NDArray[np.float64]:
    """A series that grows geometrically."""
    return np.asarray(np.geomspace(begin, end, ROWS))


RUNS: dict[str, Callable[[], Run]] = {
    "nan-from-data": lambda: with_rerun(broken(300, 7), broken(300, 7)),
    "nan-from-numerics": lambda: with_rerun(broken(300), broken(420)),
    "nan-not-repeated": lambda: with_rerun(broken(300), make_run(healthy())),
    "clip-before-unscale": scaled,
    "fp16-underflow": underflowing,
    "always-clipped": lambda: make_run(healthy(grad_norm=noisy(20.0)), grad_clip=1.0),
    "skips-rise": skipping,
    "logits-drift": lambda: make_run(healthy(logsumexp=growing(8, 90))),
    "attention-logits-grow": lambda: make_run(healthy(**{"attention_logits_max/block3": growing(5, 900)})),
    "gradients-vanish": lambda: make_run(healthy(loss=2.3 - 1e-4 * np.arange(ROWS), grad_norm=growing(1, 1e-6))),
    "starts-above-chance": lambda: make_run(healthy(loss=falling(ROWS) * 2), n_classes=10),
    "accumulation-not-divided": lambda: with_rerun(make_run(healthy(grad_norm=noisy(8.0))), make_run(healthy())),
    "loss-follows-padding": padded,
    "starts-near-zero": lambda: make_run(healthy(loss=falling(ROWS) * 0.01), vocab_size=50257),
    "groups-apart": lambda: make_run(healthy(**{"update_ratio/embed": noisy(0.05), "update_ratio/trunk": noisy(1e-4)})),
    "scale-drifts-down": sinking_scale,
}

LINES: dict[str, str] = {
    "E.exit-9": "ERROR: failed (exitcode: -9) local_rank: 3 (pid: 4711)",
    "E.exit-7": "worker failed with exitcode: -7",
    "E.oom": "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB.",
    "E.nccl": "RuntimeError: NCCL communicator was aborted on rank 5.",
    "E.hang": "[rank2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=90)",
    "E.pad-token": "ValueError: Asking to pad but the tokenizer does not have a padding token.",
    "E.dummy-optim": "AttributeError: 'DummyOptim' object has no attribute 'step'",
    "E.strategy": "WARNING unable to load strategy my_rewards.score",
    "E.generation-batch": "ValueError: generation_batch_size (6) must be divisible by num_generations (4)",
    "E.weight-2d": "RuntimeError: 'weight' must be 2-D",
    "E.checkpoint": "torch.utils.checkpoint.CheckpointError: A different number of tensors was saved",
    "E.bf16-numpy": "TypeError: Got unsupported ScalarType BFloat16",
    "E.chat-template": "ERROR Content end boundary is before start boundary: 12 < 40",
    "E.cas": "RuntimeError: Data processing error: CAS service error : timed out",
    "E.device-assert": "RuntimeError: CUDA error: device-side assert triggered",
    "E.nan-abort": "Loss is nan, stopping training",
    "E.min-scale": "FloatingPointError: Minimum loss scale reached (0.0001).",
    "E.preempted": "slurmstepd: error: *** JOB 17 ON node3 CANCELLED AT 12:00 DUE TO PREEMPTION ***",
    "E.time-limit": "slurmstepd: error: *** JOB 17 ON node3 CANCELLED AT 12:00 DUE TO TIME LIMIT ***",
    "E.sigterm": "Received signal: 15, Signal 15 (SIGTERM)",
    "E.interrupt": "KeyboardInterrupt: signal by hand",
    "E.disk-full": "OSError: [Errno 28] No space left on device",
    "E.file-limit": "OSError: [Errno 24] Too many open files",
    "E.connection": "RuntimeError: Connection reset by peer",
    "E.cuda-version": "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    "E.gpu-fault": "RuntimeError: CUDA error: an illegal memory access was encountered",
    "E.segfault": "Segmentation fault (core dumped)",
    "E.dataloader": "RuntimeError: DataLoader worker (pid 99) exited unexpectedly",
    "E.no-grad": "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
    "E.size-mismatch": "RuntimeError: size mismatch for head.weight: copying a param with shape [10, 64]",
    "E.target-form": "RuntimeError: 0D or 1D target tensor expected, multi-target not supported",
    "E.exception": "ValueError: something else",
    "E.scheduler-order": "UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`.",
    "E.overflow-skips": "WARNING Gradient overflow. A step is left out.",
    "E.amp-deprecated": "FutureWarning: `torch.cuda.amp.GradScaler(args...)` is deprecated.",
}

__all__ = ["LINES", "RUNS", "healthy", "leading", "never_held", "series", "with_rerun"]
