"""A callback of the Hugging Face Trainer, and so of TRL's trainers, which are built on it.

```python
from stabtree.integrations import HuggingFaceCallback

trainer = Trainer(..., callbacks=[HuggingFaceCallback("run.jsonl")])
```
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stabtree.frameworks.recognise import of_model
from stabtree.loaders.config import known
from stabtree.loaders.json.trainer_state import checkpoints, is_summary
from stabtree.tools.live.callbacks.attached import AttachedRecorder, missing
from stabtree.tools.live.sink import numbers

try:
    from transformers.trainer_callback import TrainerCallback
except ImportError as error:
    raise missing("Transformers", "transformers") from error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


MAX_LISTED = 100


class HuggingFaceCallback(AttachedRecorder, TrainerCallback):  # type: ignore[misc,unused-ignore]  # transformers may be missing
    """Writes what the Trainer logs, and how the model does now and then, and stops a run that is lost.

    Only the main process writes and judges; the others learn whether to stop each time that the Trainer logs. Once
    stopped, no more checkpoints are saved: under a `save_total_limit` they would push out the last good one.

    The Trainer clips the gradients before it calls anyone, so their norm is the one that it logs itself. Its
    `logging_nan_inf_filter` hides a loss that is NaN, but not the gradient that comes of it: where that shows between
    two logs of the Trainer, the step is written as well.
    """

    _own_options: ClassVar[Mapping[str, Any]] = {"rank": 0}  # the Trainer has a way of its own to stop all ranks

    def _begin(self, saved: Iterable[int] = ()) -> None:
        self._saved = set(saved)
        self._smallest: Any = None
        self._hidden: dict[str, float] = {}
        self._stopped = False
        self._agree = False

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Open the log, and write the configuration to it."""
        self._begin(step for step in _saved(args) if step <= state.global_step)
        if state.is_world_process_zero:
            self._open().config(**settings(args, state, model), checkpoints=sorted(self._saved))

    def on_pre_optimizer_step(
        self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None, **_: Any
    ) -> None:
        """Look at the gradients, which are there now, and at what the step is taken with."""
        if (recorder := self._recorder) is None:
            return
        if args.logging_nan_inf_filter:
            self._hidden = self._broken(model)
        scaler, clipped = getattr(optimizer, "scaler", None), bool(args.max_grad_norm)
        recorder.model(state.global_step + 1, model, optimizer, scaler=scaler, clipped=clipped)

    def on_step_end(self, args: Any, state: Any, control: Any, optimizer: Any = None, **_: Any) -> None:
        """Write what this step shows where the Trainer logs nothing of it."""
        self._agree = control.should_log
        if getattr(optimizer, "step_was_skipped", False):
            self._hidden = {}  # an overflow, for which there is a loss scale
        if self._recorder is not None and self._hidden and not control.should_log:
            self._recorder.log(state.global_step, self._hidden)
            self._stop(args, control)

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        """Write what the Trainer logs, but for its summary at the end."""
        if self._recorder is not None and logs and not is_summary(logs):
            row = dict(numbers(logs))
            if self._hidden and "loss" in row:
                # The filter puts the mean of the losses before, since the last log, for one that is NaN: 0 for none.
                row |= self._hidden
                if not row["loss"]:
                    row["loss"] = math.nan
            self._recorder.log(state.global_step, row)
        self._stop(args, control)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write which checkpoints there are: a restart goes back to one of these."""
        if self._recorder is not None:
            self._saved.add(state.global_step)
            there = _saved(args)
            if state.global_step in there:  # else they are elsewhere, as in a search of hyperparameters
                self._saved &= there
            self._recorder.config(checkpoints=sorted(self._saved)[-MAX_LISTED:])

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Save nothing at the end of an epoch that was stopped."""
        control.should_save = control.should_save and not self._stopped

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Close the log."""
        self._close()

    def _broken(self, model: Any) -> dict[str, float]:
        """Return the norm of the gradient where it is not finite, by that of the smallest parameter; and the loss then.

        A sample whose loss is NaN makes the gradient of all that it passed NaN, and clipping that of all parameters.
        Where the parameter itself is NaN, from the step before, the loss was.
        """
        if self._smallest is None:
            trained = (parameter for parameter in model.parameters() if parameter.grad is not None)
            self._smallest = min(trained, key=lambda parameter: parameter.numel(), default=None)
        if _is_finite(getattr(self._smallest, "grad", None)):
            return {}
        found = {"grad_norm": math.nan}
        if not _is_finite(self._smallest.detach()):
            found["loss"] = math.nan
        return found

    def _stop(self, args: Any, control: Any) -> None:
        """Stop by the Trainer's own way, in all processes at the same step."""
        several = args.world_size > 1
        if several and not self._agree:
            return  # here no other process is asked, so they learn it at the next log of the Trainer
        self._agree = False
        ends = self._ends()
        if several:
            ends = main_says(ends, args.device)
        if ends:
            self._stopped = control.should_training_stop = True
            control.should_save = False


def settings(args: Any, state: Any, model: Any) -> dict[str, Any]:
    """What the arguments of a Trainer and the configuration of its model say of the run, as far as loaders read it."""
    given = args.to_dict()
    given |= {"max_steps": state.max_steps, "warmup_steps": args.get_warmup_steps(state.max_steps)}
    # An interval that is not in force keeps its default.
    for interval, strategy in (("logging_steps", "logging"), ("eval_steps", "eval"), ("save_steps", "save")):
        given[interval] = None
        if given[f"{strategy}_strategy"] == "steps":
            given[interval] = getattr(state, interval)
    if args.max_steps > 0:
        given["num_train_epochs"] = None
    own: Any = getattr(model, "config", None)
    if hasattr(own, "to_dict"):
        given |= of_model(own.to_dict())
    given["weights_dtype"] = None
    if model is not None:
        given["weights_dtype"] = next((str(parameter.dtype) for parameter in model.parameters()), None)
    return known({**given, "device": args.device.type, "log_reduce": "mean"})


def main_says(stop: bool, device: Any) -> bool:
    """Return what the main process says, in all of them; each has to ask, at the same step."""
    from torch import distributed, tensor

    if not (distributed.is_available() and distributed.is_initialized()):
        return False  # no one to ask: one alone that stops would leave the others waiting
    flag = tensor(int(stop), device=device)
    distributed.broadcast(flag, src=0)
    return bool(flag.item())


def _saved(args: Any) -> set[int]:
    return {step for step, _ in checkpoints(Path(args.output_dir))}


def _is_finite(tensor: Any) -> bool:
    """Whether all that this process holds of a tensor is finite; to sum up the others' parts would wait for them."""
    if tensor is None:
        return True
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    return math.isfinite(tensor.sum().item())
