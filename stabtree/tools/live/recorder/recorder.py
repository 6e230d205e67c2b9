"""`stabtree.Recorder`: the log of a training loop, one line a call, judged while it is written.

Making one and writing with it needs Python alone: numpy comes with the first judgement, torch with the model.
"""

from __future__ import annotations

import logging
import math
import os
import re
import sys
import threading
import time
import weakref
from collections import deque
from contextlib import suppress
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, SupportsFloat, SupportsIndex

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.tools.live.monitor import NaNMonitor
from stabtree.tools.live.recorder.header import last_header, record, trainable_share
from stabtree.tools.live.recorder.logfile import LogFile
from stabtree.tools.live.recorder.row import PLAIN, fetched, line_of, plain, plain_settings, shown, spelled, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from stabtree.judging.judge import Judging
    from stabtree.tools.live.news import News
    from stabtree.tools.live.recorder.in_loop import LoopWatch
    from stabtree.tools.live.recorder.torch_stats import ModelStats

Value = SupportsFloat | str | None

STATS_EVERY = 100
BACK_ROWS = 3  # a resume that goes back has so many rows; fewer are out of order
BUDGET = 0.01
TAIL_BYTES = 1 << 16
_SKIPPED = re.compile(rb'"skipped_steps": (\d{1,15})[,}]')

_log = logging.getLogger(__name__)


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
        keep_seconds: for so long rows may be kept, to be fetched from a GPU, written and judged together, which takes
            a fraction of the time; a process that is killed loses them. What is not finite is written at once, unless
            it lies on a GPU, as is all while a finding waits for its rows; 0 writes each at once.
        budget: the share of the wall-clock time that judging may take; 1 for no limit.
        judging: how the log is judged; as the settings of the working directory say, where not given.
        hold_rows: how many rows a finding must last before it is reported; 0 reports it at once.
        monitor: counts the rows whose loss or gradient is not finite; one that says nothing, where not given.
        on_error: `raise` to end the training where the log can't be written.
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
        keep_seconds: float = 0.0,
        budget: float = BUDGET,
        judging: Judging | None = None,
        hold_rows: int | None = None,
        monitor: NaNMonitor | None = None,
        on_error: Literal["warn", "raise"] = "warn",
        resume: bool | None = None,
    ) -> None:
        _refuse(rank=rank, stats_every=stats_every, hold_rows=hold_rows, budget=budget, on_error=on_error)
        file = Path(path)
        self.rank = _rank() if rank is None else rank
        if self.rank:
            self.path = file.with_name(f"{file.stem}.rank{self.rank}{file.suffix}")
        else:
            self.path = file
        self.stats_every = stats_every
        self.keep_seconds = keep_seconds
        self.monitor = monitor or NaNMonitor("count")
        self._on_error = on_error
        self._warned: set[str] = set()
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._file = LogFile(self.path.absolute())  # the loop may change its working directory
        self._config: dict[str, Any] = {}
        self._last_step: int | None = None
        self._resume = resume
        begin, self._run_id = last_header(self.path)
        # The first and the last step of the last run that the file holds already.
        self._before = self._file.span(begin) or self._file.span()
        self._header: dict[str, Any] = {}
        self._begun = False
        self._settled = False
        self._waits_rows = 0
        self._pending: dict[int, dict[str, Any]] = {}
        self._kept: deque[tuple[int, dict[str, Value]]] = deque()
        self._written = -math.inf
        self._stats: ModelStats | None = None
        self._watch: LoopWatch | None = None
        if on_finding is not None and not self.rank:
            from stabtree.tools.live.recorder.in_loop import LoopWatch

            options: dict[str, Any] = {"fail_on": fail_on, "budget": budget, "judging": judging}
            self._watch = LoopWatch(self.path, on_finding, hold_rows=hold_rows, **options)
        self._ended = weakref.finalize(self, _end, self._file, self._pending, self._kept, self._process)

    @property
    def should_stop(self) -> News | None:
        """The first finding at or above `fail_on`; None while there is none, or where nothing is judged."""
        if self._watch:
            return self._watch.should_stop
        return None

    @property
    def news(self) -> tuple[News, ...]:
        """All findings that were reported so far."""
        if self._watch:
            return self._watch.news
        return ()

    def config(self, settings: Mapping[str, Any] | None = None, **named: Any) -> None:
        """Write what the run was started with: `dtype="bf16"`, `optimizer="AdamW"`, `lr=3e-4`, `warmup_steps=100`."""
        if not self._usable():
            return
        try:
            given = plain_settings({**(settings or {}), **named})
            line_of(given)
        except Exception as error:  # whatever a setting is, the training goes on
            self._failed("config", f"the configuration could not be written: {_told(error)}")
            return
        with self._lock:
            self._put_kept()
            self._config |= given
            if self._begun:
                self._write({"config": given})
                self._file.header = line_of({**self._header, "config": {**self._header["config"], **self._config}})
            elif self._before is None:
                self._begin()  # else it is not known yet which run this is

    def log(self, step: int, metrics: Mapping[str, Value] | None = None, **named: Value) -> None:
        """Write the metrics of a step.

        Args:
            step: the optimizer step.
            metrics: those whose names are no words of Python, as `{"weight_norm/attn": 1.0}`.
            named: the others; `stabtree explain loss` describes a name. A number is whatever `float` takes, a
                tensor on a GPU is waited for; None is left out, NaN and infinities are written as such.

        Raises:
            TrainingStoppedError: with `on_finding="raise"`, where the log shows something at or above `fail_on`.
            NonFiniteError: where the monitor raises.
        """
        if not self._usable():
            return
        with self._lock:
            at = self._step(step)
            if at is None:
                return
            if self._kept and at < self._kept[-1][0]:
                self._put_kept()  # a restart: what was kept for later steps is theirs
            row = {**(metrics or {}), **named}
            self._kept.append((at, row))
            if time.monotonic() - self._written >= self.keep_seconds or self._is_urgent(at, row):
                self._put_kept()

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
        if (self.stats_every or scaler is not None) and self._usable() and (at := self._step(step)) is not None:
            try:
                if self._stats is None and not self.rank and (share := trainable_share(model)) < 1:
                    self.config(trainable_share=share)
                found = self._model_stats().look(at, model, optimizer, scaler, clipped=clipped)
            except Exception as error:  # whatever torch says, the training goes on
                self._failed("model", f"the model could not be looked at: {_told(error)}")
            else:
                self._keep(at, found)

    def batch(self, step: int, batch: Any) -> None:
        """Keep a hash of a batch as `batch_id` of the row of the step; micro-batches of one step make one of all.

        Give it before it is moved to a GPU: what is hashed of a tensor there must be fetched.
        """
        if not self._usable() or (at := self._step(step)) is None:
            return
        from stabtree.tools.live.recorder.batch_id import batch_id

        with self._lock:
            self._put_kept()
        try:
            found = batch_id(batch, self._pending.get(at, {}).get("batch_id"))
        except Exception as error:  # as in `model`
            self._failed("batch", f"the batch could not be hashed: {_told(error)}")
            return
        if found is None:
            self._failed("batch", f"a batch of {type(batch).__name__} holds nothing to be known by: no batch_id")
        else:
            self._keep(at, {"batch_id": found})

    def close(self) -> None:
        """Judge the log for the last time, and close it; what is found now is reported, and raises nothing."""
        if self._ended.alive and os.getpid() == self._process:
            with self._lock:
                self._put_kept(last=True)
                for step in sorted(self._pending):
                    self._put(step, self._pending.pop(step))
                self._judged(lambda watch: watch.ended(self._file.size), last=True)
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
            self._failed("process", "another process logs to it, which is left out: make a Recorder there")
            return False
        if not self._ended.alive:
            self._failed("closed", "it is closed: what is logged now is left out")
            return False
        return True

    def _step(self, step: Any) -> int | None:
        try:
            at = whole(step)
        except Exception as error:  # as in `model`
            self._failed("step", f"{shown(step)} is no step, its row is left out: {_told(error)}")
            return None
        self._settle(at)
        return at

    def _settle(self, step: int) -> None:
        """Decide, by its first step, whether this run is the one that the file holds."""
        if self._before is None or self._settled:
            return
        first, last = self._before
        self._settled = True
        if self._resume is None:
            other_count = (first, step) == (0, 1) and last > step  # one run counts from 0, the other from 1
            self._resume = step > first and not other_count
        if self._resume and step <= last:
            self._waits_rows = BACK_ROWS

    def _begins_anew(self) -> bool:
        return self._before is not None and not self._resume

    def _begin(self) -> None:
        """Write the header, which begins another run of the file or goes on with the last one."""
        goes_on = self._before is not None and not self._begins_anew()
        self._header = record(self._config, self._run_id if goes_on else None, self.rank)
        self._begun = self._write(self._header)
        self._before = None
        self._file.header = line_of(self._header)

    def _take(self, row: dict[str, Any], name: object, value: Value) -> None:
        """Put a value into a row, as a plain number or a text; nothing where it is neither."""
        if value is None:
            return
        try:
            row[str(name)] = value if type(value) in PLAIN else plain(value)
        except Exception as error:  # as in `model`
            called = name if isinstance(name, str) else shown(name)
            self._failed(f"metric {called}", f"{called} is no number and is left out: {_told(error)}")

    def _keep(self, step: int, values: Mapping[str, Any]) -> None:
        """Keep values for the row of a step."""
        if values:
            with self._lock:
                if self._kept and step != self._kept[-1][0]:
                    self._put_kept()
                self._flush(step)
                self._pending.setdefault(step, {}).update(values)

    def _late(self, step: int, values: Mapping[str, Any]) -> None:
        """Keep what came to be known after its row was due; a step before the last row's would be read as a restart."""
        last = self._kept[-1][0] if self._kept else self._last_step
        if last is None or step >= last:
            self._keep(step, values)

    def _flush(self, at: int) -> None:
        """Write what was kept for steps that have no row yet and come before a step, or before going back to it."""
        last = self._last_step
        back = last is not None and at < last
        for step in sorted(self._pending):
            if step < at or (back and step != at):
                self._put(step, self._pending.pop(step))

    def _is_urgent(self, step: int, row: Mapping[str, Value]) -> bool:
        """Whether a row is to be written at once: it is broken, goes back, or a finding waits for its rows."""
        if self._last_step is not None and step < self._last_step:
            return True
        waits = self._watch is not None and self._watch.waits
        return waits or any(map(_is_broken, row.values()))

    def _put_kept(self, *, last: bool = False) -> None:
        """Write the rows that were kept; of the last ones nothing raises."""
        if len(self._kept) > 1:
            with suppress(Exception):  # then each is fetched by itself
                fetched([row for _, row in self._kept])
        while self._kept:
            at, given = self._kept.popleft()
            self._flush(at)
            row = self._pending.pop(at, {})
            for name, value in given.items():
                self._take(row, name, value)
            self._put(at, row, last=last)
            if not last:
                self._check(at, row)
        self._written = time.monotonic()

    def _put(self, step: int, row: dict[str, Any], *, last: bool = False) -> None:
        """Write a row, and judge the log where it is time to."""
        row.pop("step", None)
        self._last_step = step
        if not self._begun:
            self._begin()
        if self._write({"step": step, **{name: spelled(value) for name, value in row.items()}}):
            numbers = {name: value for name, value in row.items() if not isinstance(value, str)}
            self._judged(lambda watch: watch.grown(numbers, self._file.size), last=last)

    def _write(self, row: Mapping[str, Any]) -> bool:
        """Write a line; whether it could be."""
        try:
            self._file.append(line_of(row))
        except (OSError, TypeError, ValueError, RecursionError) as error:
            self._failed("write", f"a line could not be written: {getattr(error, 'strerror', None) or _told(error)}")
            return False
        return True

    def _check(self, step: int, row: Mapping[str, Any]) -> None:
        """Show the row to the monitor, unless it asks other ranks, which may not log."""
        if self.monitor.sync is not None:
            return
        if isinstance(loss := row.get("loss"), int | float):
            self.monitor.check_loss(loss, step)
        if "loss_scale" not in row and isinstance(norm := row.get("grad_norm"), int | float):
            self.monitor.check_gradients({"grad_norm": norm}, step)

    def _judged(self, look: Callable[[LoopWatch], tuple[News, ...]], *, last: bool = False) -> None:
        """Judge the log, and report what is found."""
        self._waits_rows -= 1
        if self._watch is None or (self._waits_rows > 0 and not last):
            return
        try:
            news = look(self._watch)
        except Exception as error:  # a fault of ours must not end the training
            self._failed("judge", f"the log could not be judged; it is tried again as it grows: {_told(error)}")
        else:
            self._watch.notify(news, last=last)

    def _model_stats(self) -> ModelStats:
        if self._stats is None:
            from stabtree.tools.live.recorder.torch_stats import ModelStats

            found = [] if self._begins_anew() else _SKIPPED.findall(self._file.tail(TAIL_BYTES))
            self._stats = ModelStats(self.stats_every, self._late, skipped=int(found[-1]) if found else 0)
        return self._stats

    def _failed(self, kind: str, problem: str) -> None:
        """Say once what is wrong with the log."""
        if self._on_error == "raise":
            raise StabtreeError(problem, where=str(self.path), hint="leave on_error out to go on all the same")
        if kind not in self._warned:
            self._warned.add(kind)
            _log.warning("%s: %s (reported once; the training goes on)", self.path, problem)


def _refuse(*, budget: object, on_error: object, **counts: object) -> None:
    """Refuse what would be found wrong only when it is used.

    Raises:
        StabtreeError: for the first such argument.
    """
    wrong = {name: "a whole number from 0 on" for name, value in counts.items() if not _is_count(value)}
    if not (isinstance(budget, SupportsFloat) and float(budget) >= 0):
        wrong["budget"] = "a share of the time, from 0 on"
    if on_error not in ("warn", "raise"):
        wrong["on_error"] = "'warn' or 'raise'"
    for name, wanted in wrong.items():
        value = {**counts, "budget": budget, "on_error": on_error}[name]
        raise StabtreeError(f"{shown(value)} is not {wanted}", where=f"Recorder: {name}", hint=f"give {wanted}")


def _is_count(value: object) -> bool:
    return value is None or (isinstance(value, SupportsIndex) and index(value) >= 0)


def _is_broken(value: Any) -> bool:
    """Whether a number is at hand and not finite; one that lies on a GPU is not waited for."""
    if type(value) in (int, str) or getattr(getattr(value, "device", None), "type", "cpu") != "cpu":
        return False
    try:
        return not math.isfinite(float(plain(value)))
    except Exception:  # no number: reported when its row is written
        return False


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {clean(error, 200)}"


def _rank() -> int:
    """The rank that torch.distributed has given this process; 0 where it was not asked to."""
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    return 0


def _end(
    file: LogFile, pending: dict[int, dict[str, Any]], kept: deque[tuple[int, dict[str, Value]]], process: int
) -> None:
    """Close a log whose Recorder is gone, with the rows that were kept, and what was for rows that did not come."""
    if os.getpid() == process:
        for step, given in kept:
            row = pending.setdefault(step, {})
            for name, value in given.items():
                with suppress(Exception):
                    row |= {} if value is None else {str(name): plain(value)}
        for step in sorted(pending):
            row = {name: spelled(value) for name, value in pending.pop(step).items()}
            try:
                file.append(line_of({"step": step, **row}))
            except (OSError, ValueError):
                break
    try:
        file.close()
    except OSError as error:  # a network disk reports so that it lost what it had accepted
        _log.warning("%s: it could not be closed, and its end may be lost: %s", file.path, error.strerror)
