"""`stabtree.Recorder`: the log of a training loop, one line a call, judged while it is written.

Making one and writing with it needs Python alone: torch comes with the model, numpy with the first finding.
"""

from __future__ import annotations

import hashlib
import math
import os
import weakref
from collections.abc import Mapping
from functools import partial
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

from stabtree.common.errors import StabtreeError
from stabtree.tools.live.writer import LogFile, Problems, RowWriter, Value, described, distributed, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from stabtree.tools.live.events import News
    from stabtree.tools.live.judge import LoopJudge
    from stabtree.tools.live.torch_stats import ModelStats

STATS_EVERY = 100


class Recorder:
    """Writes one JSON line a step, under the names that stabtree reads, and says what it finds there.

    A run that goes on appends to its log: steps that go back are read as a restart, the later rows count. Each line is
    one write, so that a killed process leaves whole lines, and several processes never mix theirs. What is wrong with
    the log never ends the training: it is reported once through `logging`, and the run goes on.

    It belongs to the process that made it. Of a fork, as a worker of a data loader is, the calls do nothing; it can't
    be pickled, and a copy is the same Recorder.

    Args:
        path: the log, as `run.jsonl`. Ranks above 0 write to `run.rank1.jsonl`, ..., which `diagnose` reads as one run.
        rank: which of several processes this is; where not given that of torch.distributed, if it is initialised.
        on_finding: what becomes of what is found while the log grows: `warn` logs it, `raise` raises
            `TrainingStoppedError` out of the `log` that shows it, a function is called with its `News`. None: nothing
            is judged. Rank 0 alone judges.
        fail_on: the level, or the levels, from which on a finding raises, is called with, and is `should_stop`.
        stats_every: steps between two looks at the model; 0 for none.
        resume: whether the last run of a file that is there goes on; False for another run in the same file, of which
            the last is read. Where not given it is another run if its first step is not after the first one of that
            run, or if it counts from 1 and that run from 0.

    Raises:
        StabtreeError: where the log can't be opened, or an argument is wrong.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        rank: int | None = None,
        on_finding: str | Callable[[News], object] | None = None,
        fail_on: str | Iterable[str] = "critical",
        stats_every: int = STATS_EVERY,
        resume: bool | None = None,
    ) -> None:
        _refuse(rank=rank, stats_every=stats_every)
        self.path = Path(path)
        self.rank = rank or 0
        if rank is None and (known := distributed()) is not None:
            self.rank = int(known.get_rank())
        if self.rank:
            self.path = self.path.with_name(f"{self.path.stem}.rank{self.rank}{self.path.suffix}")
        self.stats_every = stats_every
        self._process = os.getpid()
        self._problems = Problems(self.path)
        log = LogFile(self.path.absolute(), self._problems)  # the loop may change its working directory
        self._rows = RowWriter(log, self._problems, rank=self.rank, resume=resume)
        self._stats: ModelStats | None = None
        self._judge: LoopJudge | None = None
        if on_finding is not None and not rank:
            from stabtree.tools.live.judge import LoopJudge, ranks_here

            ranks = None
            if rank is None:
                ranks = ranks_here(Path(path))
            self._judge = LoopJudge(self.path, self._problems, on_finding, fail_on, ranks, judges=not self.rank)
        self._ended = weakref.finalize(self, _end, self._rows, self._process)

    @property
    def should_stop(self) -> News | None:
        """The first finding at or above `fail_on`; None while there is none, or where nothing is judged.

        Where several ranks log the run, it is None until the step that they stop at, and on all of them a finding then.
        """
        return self._judge.should_stop if self._judge else None

    @property
    def news(self) -> tuple[News, ...]:
        """The incidents that were reported so far, each as it was last found."""
        return self._judge.news if self._judge else ()

    def config(self, settings: Mapping[str, Any] | None = None, **named: Any) -> None:
        """Write what the run was started with: `dtype="bf16"`, `optimizer="AdamW"`, `lr=3e-4`, `warmup_steps=100`."""
        if self._usable():
            self._rows.config({**(settings or {}), **named})

    def log(self, step: int, metrics: Mapping[str, Value] | None = None, **named: Value) -> None:
        """Write the metrics of a step.

        Args:
            step: the optimizer step.
            metrics: those whose names are no words of Python, as `{"weight_norm/attn": 1.0}`.
            named: the others; `stabtree explain loss` describes a name. A number is whatever `float` takes, a
                tensor on a GPU is waited for; None is left out, NaN and infinities are written as such.

        Raises:
            TrainingStoppedError: with `on_finding="raise"`, where the log shows something at or above `fail_on`.
        """
        if not self._usable():
            return
        with self._rows.lock:
            at = self._rows.step(step)
            if at is None:
                return
            self._rows.put(at, {**(metrics or {}), **named})
            self._take_in()
            if self._judge is not None:
                self._judge.report(at)

    def model(self, step: int, model: Any, optimizer: Any = None, *, scaler: Any = None, clipped: bool = False) -> None:
        """Look at a torch model between `backward` and `optimizer.step`, every `stats_every` steps.

        Call it at every step, once all its micro-batches went backward; it looks only when it is time to. What it sees
        is kept for the row of the step, where what `log` is given goes first: `weight_norm/<group>`, the L2 norm of the
        weights that are trained, by module; `update_ratio/<group>`, ‖Δw‖/‖w‖ of the optimizer's step;
        `dead_relu_frac/<layer>`, the share of a ReLU's units that are 0 for the whole batch; ten times as often
        `grad_norm`, the L2 norm of all gradients; with a scaler, at every call, `loss_scale` and `skipped_steps`,
        cumulative. Of a sharded model the weights are those of this rank, and there is no grad_norm.

        Args:
            step: the optimizer step.
            model: the model.
            optimizer: what steps it; without it there is no update_ratio.
            scaler: the GradScaler of fp16: gradients that it did not unscale yet are measured unscaled.
            clipped: whether the gradients are clipped already, so that their norm is not that before clipping.
        """
        if not (self.stats_every or scaler is not None) or not self._usable():
            return
        if (at := self._rows.step(step)) is None:
            return
        try:
            if self._stats is None:
                from stabtree.tools.live.torch_stats import ModelStats, trainable_share

                late = partial(self._rows.keep, late=True)
                self._stats = ModelStats(self.stats_every, late, skipped=self._rows.skipped)
                if not self.rank and (share := trainable_share(model)) < 1:
                    self.config(trainable_share=share)
            found = self._stats.look(at, model, optimizer, scaler, clipped=clipped)
        except Exception as error:  # whatever torch says, the training goes on
            self._problems.report("model", f"the model could not be looked at: {described(error)}")
        else:
            self._rows.keep(at, found)

    def batch(self, step: int, batch: Any) -> None:
        """Keep a hash of a batch as `batch_id` of the row of the step; micro-batches of one step make one of all.

        Give it before it is moved to a GPU: what is hashed of a tensor there must be fetched.
        """
        if not self._usable() or (at := self._rows.step(step)) is None:
            return

        try:
            found = _batch_id(batch, self._rows.pending(at, "batch_id"))
        except Exception as error:  # as in `model`
            self._problems.report("batch", f"the batch could not be hashed: {described(error)}")
            return
        if found is None:
            what = type(batch).__name__
            self._problems.report("batch", f"a batch of {what} holds nothing to be known by: no batch_id")
        else:
            self._rows.keep(at, {"batch_id": found})

    def close(self) -> None:
        """Judge the log for the last time, and close it; what is found now is reported, and raises nothing."""
        if self._ended.alive and os.getpid() == self._process:
            self._rows.put_all()
            self._take_in()
            if self._judge is not None:
                self._judge.ended(self._rows.size)
        self._ended()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __copy__(self) -> Recorder:
        return self

    def __deepcopy__(self, _: object) -> Recorder:
        return self

    def __reduce__(self) -> NoReturn:
        hint = "make one in each process, with its rank"
        raise StabtreeError("a Recorder belongs to one process and can't be pickled", where=str(self.path), hint=hint)

    def _usable(self) -> bool:
        """Whether this is the process that it belongs to, and it is not closed."""
        if os.getpid() != self._process:
            self._problems.report("process", "another process logs to it, which is left out: make a Recorder there")
            return False
        if not self._ended.alive:
            self._problems.report("closed", "it is closed: what is logged now is left out")
            return False
        return True

    def _take_in(self) -> None:
        """Have the rows judged that were written since."""
        while self._rows.written:
            row = self._rows.written.popleft()
            self._rows.waits_rows -= 1
            if self._judge is not None and self._rows.waits_rows <= 0:
                self._judge.wrote(row, self._rows.size)


def _refuse(**counts: object) -> None:
    """Refuse what would be found wrong only when it is used.

    Raises:
        StabtreeError: for the first such argument.
    """
    for name, value in counts.items():
        if value is not None and not (isinstance(value, SupportsIndex) and index(value) >= 0):
            problem, where = f"{shown(value)} is not a whole number from 0 on", f"Recorder: {name}"
            raise StabtreeError(problem, where=where, hint="give a whole number from 0 on")


def _end(rows: RowWriter, process: int) -> None:
    """Write what is left; in a fork nothing."""
    if os.getpid() != process:
        rows.forget()
    rows.close()


SAMPLE = 1 << 12
"""So many values of each tensor are looked at, evenly spread: enough to tell any two batches apart."""
DEEPEST = 8
BITS = 48
"""15 digits: a whole number of so many is read by everyone as it was written."""


def _batch_id(batch: object, before: int | None = None) -> int | None:
    """Return a number that two batches share only where they hold the same, the same in every process.

    Args:
        batch: tensors, arrays, numbers, texts, or lists and mappings of them; of a tensor on a GPU the values that are
            looked at are fetched.
        before: the number of another batch of the same step, of which this one is a later part.

    Returns:
        The number; None where nothing was found that can be distinguished.
    """
    digest = hashlib.blake2b(str(before or "").encode(), digest_size=8)
    if not _add(digest, batch, 0):
        return None
    return int.from_bytes(digest.digest(), "big") >> (64 - BITS)


def _add(digest: Any, value: Any, depth: int) -> bool:
    """Add what a value holds to a hash; return whether there was anything."""
    if depth > DEEPEST:
        return False
    if isinstance(value, str | bytes | int | float):
        data = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
        digest.update(f"{type(value).__name__} {len(data)} ".encode() + data)
        return True
    if hasattr(value, "shape") and hasattr(value, "reshape"):
        # Values from all over it, by a stride that does not hit the same column of each row.
        shape = tuple(map(int, value.shape))
        size = math.prod(shape)
        stride = max(size // SAMPLE, 1)
        while math.gcd(stride, size) > 1:
            stride += 1
        digest.update(f"{shape} {value.dtype} ".encode())
        if hasattr(value, "detach"):
            import torch  # it is a tensor of it

            flat = value.detach().reshape(-1)[::stride].cpu().contiguous()
            digest.update(flat.view(torch.uint8).numpy().tobytes())  # numpy has no bfloat16
        else:
            flat = value.reshape(-1)[::stride]
            is_plain = hasattr(flat, "tobytes") and str(flat.dtype) != "object"
            digest.update(flat.tobytes() if is_plain else repr(flat.tolist()).encode("utf-8", "surrogatepass"))
        return True
    if isinstance(value, Mapping):
        items = [item for key in sorted(value, key=str) for item in (str(key), value[key])]
        digest.update(b"{")
        return sum([_add(digest, item, depth + 1) for item in items][1::2]) > 0
    if isinstance(value, list | tuple):
        digest.update(f"{len(value)}[".encode())
        return sum(_add(digest, item, depth + 1) for item in value) > 0
    own = getattr(value, "__dict__", None)
    return isinstance(own, dict) and _add(digest, own, depth + 1)
