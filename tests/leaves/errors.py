"""Text logs, one line for each message, at the end of the log and in its middle."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.files import FileUse, LogLine
from tests.conftest import falling, make_run
from tests.leaves.make import logged

if TYPE_CHECKING:
    from tests.leaves.make import Maker

# By leaf, a line as the tool that writes it prints it.
LINES: dict[str, str] = {
    "host-memory": "ERROR: failed (exitcode: -9) local_rank: 3 (pid: 4711)",
    "exit-sigbus": "worker failed with exitcode: -7",
    "cuda-oom": "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB.",
    "nccl-aborted": "RuntimeError: NCCL communicator was aborted on rank 5.",
    "collective-timeout": "[rank2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=90)",
    "no-pad-token": "ValueError: Asking to pad but the tokenizer does not have a padding token.",
    "deepspeed-one-gpu": "AttributeError: 'DummyOptim' object has no attribute 'step'",
    "strategy-not-loaded": "WARNING unable to load strategy my_rewards.score",
    "generation-batch": "ValueError: generation_batch_size (6) must be divisible by num_generations (4)",
    "fsdp1-flat": "RuntimeError: 'weight' must be 2-D",
    "checkpoint-recompute": "torch.utils.checkpoint.CheckpointError: A different number of tensors was saved",
    "bf16-numpy": "TypeError: Got unsupported ScalarType BFloat16",
    "chat-template": "ERROR Content end boundary is before start boundary: 12 < 40",
    "hub-cas": "RuntimeError: Data processing error: CAS service error : timed out",
    "device-assert": "RuntimeError: CUDA error: device-side assert triggered",
    "nan-abort": "Loss is nan, stopping training",
    "minimum-loss-scale": "FloatingPointError: Minimum loss scale reached (0.0001).",
    "preempted": "slurmstepd: error: *** JOB 17 ON node3 CANCELLED AT 12:00 DUE TO PREEMPTION ***",
    "time-limit": "slurmstepd: error: *** JOB 17 ON node3 CANCELLED AT 12:00 DUE TO TIME LIMIT ***",
    "node-failed": "slurmstepd: error: *** STEP 17.0 ON node3 CANCELLED AT 12:00 DUE TO NODE FAILURE ***",
    "cancelled": "slurmstepd: error: *** JOB 17 ON node3 CANCELLED AT 12:00 ***",
    "hangup": "Hangup",
    "terminated": "Received signal: 15, Signal 15 (SIGTERM)",
    "interrupted": "KeyboardInterrupt: signal by hand",
    "disk-full": "OSError: [Errno 28] No space left on device",
    "file-limit": "OSError: [Errno 24] Too many open files",
    "connection-lost": "RuntimeError: Connection reset by peer",
    "cuda-mismatch": "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    "gpu-fault": "RuntimeError: CUDA error: an illegal memory access was encountered",
    "segfault": "Segmentation fault (core dumped)",
    "dataloader-worker": "RuntimeError: DataLoader worker (pid 99) exited unexpectedly",
    "loss-not-attached": "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
    "size-mismatch": "RuntimeError: size mismatch for head.weight: copying a param with shape [10, 64]",
    "target-form": "RuntimeError: 0D or 1D target tensor expected, multi-target not supported",
    "nan-operation": "RuntimeError: Function 'LogBackward0' returned nan values in its 0th output.",
    "adapter-not-found": "ValueError: Target modules {'q_proj'} not found in the base model.",
    "exception": "ValueError: something else",
    "final-loss-nonfinite": "{'train_runtime': 9.1, 'train_loss': nan, 'epoch': 3.0}",
    "exit-status": "make: *** [train] Error 1",
    "scheduler-order": "UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`.",
    "overflow-lines": "WARNING Gradient overflow. A step is left out.",
    "amp-deprecated": "FutureWarning: `torch.cuda.amp.GradScaler(args...)` is deprecated.",
}
# A warning that never ends a run: one leaf, wherever the line stands.
WARNINGS = ("scheduler-order", "overflow-lines", "amp-deprecated")

RUNS: dict[str, Maker] = {
    **{leaf: partial(logged, line) for leaf, line in LINES.items()},
    **{f"{leaf}-survived": partial(logged, line, after=30) for leaf, line in LINES.items() if leaf not in WARNINGS},
    "exit-status-recorded": lambda: replace(
        make_run({"loss": falling(40)}), lines=(LogLine(0, "exit code: 1 (W&B)", at_end=True),)
    ),
    "stops-short": partial(make_run, {"loss": falling(40)}, max_steps=900),
    "stops-short-saved": lambda: replace(
        make_run({"loss": falling(40)}, max_steps=900), sources=(FileUse("trainer_state.json", "trainer_state", 40),)
    ),
    "errors-ok": partial(logged, "WARNING: worker 3 is slow", rows=200),
}
