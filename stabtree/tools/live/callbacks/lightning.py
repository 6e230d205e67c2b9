"""A callback of Lightning's Trainer, as `lightning.pytorch` and as `pytorch_lightning`.

```python
from stabtree.integrations import LightningCallback

trainer = Trainer(..., callbacks=[LightningCallback("run.jsonl")])
```
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stabtree.tools.live.callbacks.attached import AttachedRecorder, missing

try:
    # Each has its Trainer and its base class: the one that the user works with is imported already.
    if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
        from pytorch_lightning.callbacks import Callback
    else:
        from lightning.pytorch.callbacks import Callback
except ImportError as error:
    raise missing("Lightning", "lightning") from error

if TYPE_CHECKING:
    from collections.abc import Mapping


NO_METRICS = ("step", "epoch")  # what users log to have another axis in a dashboard
SHARDED = {"DeepSpeedStrategy", "FSDPStrategy", "ModelParallelStrategy"}
MAX_LISTED = 100


class LightningCallback(AttachedRecorder, Callback):  # type: ignore[misc,unused-ignore]  # Lightning may be missing
    """Writes each optimizer step and each validation, and stops a run that is lost.

    A row is an optimizer step: with gradient accumulation its loss is the mean of its batches. All that the module
    logs is written with it under its own name; what is checked before the training starts is not. Only rank zero
    writes and judges, and the others learn at each step whether to stop. Once stopped, no more checkpoints are saved:
    the first would push out the last good one.

    The gradients are looked at before they are clipped, and with their scale taken out. Where a strategy shards
    them (FSDP, DeepSpeed), no rank holds what a norm takes: nothing is written about the model there. Of a model that
    several optimizers share, only the norms of its weights are written.
    """

    _own_options: ClassVar[Mapping[str, Any]] = {"rank": 0}  # the Trainer has a way of its own to stop all ranks

    def _begin(self, step: int = 0) -> None:
        self._step = step
        self._stride = 1
        self._alone = True
        self._several = False
        self._scaler: Any = None
        self._sharded = False
        self._epoch = 0
        self._losses: list[Any] = []
        self._lr: float | None = None
        self._seen: dict[str, Any] = {}
        self._saved: int | None = None
        self._checkpoints: dict[str, tuple[int, int]] = {}
        self._silenced: list[tuple[Any, int, Any]] = []

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Open the log, and write the configuration to it."""
        self._begin(trainer.global_step)
        self._epoch = trainer.current_epoch
        self._alone = len(trainer.optimizers) == 1
        self._several = trainer.world_size > 1
        self._scaler = getattr(trainer.precision_plugin, "scaler", None)
        self._sharded = bool(SHARDED & {kind.__name__ for kind in type(trainer.strategy).__mro__})
        if not pl_module.automatic_optimization:
            self._stride = max(len(trainer.optimizers), 1)
        self._seen = dict(trainer.callback_metrics)
        if trainer.ckpt_path:
            self._checkpoints[str(trainer.ckpt_path)] = self._step, _written(str(trainer.ckpt_path))
        if trainer.is_global_zero:
            self._open().config(settings(trainer, pl_module))

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        """Look at the gradients, which are whole now and not yet clipped, and at the learning rate of the step."""
        recorder = self._recorder
        if recorder is not None and self._lr is None:  # of several optimizers the first speaks for the row
            self._lr = optimizer.param_groups[0]["lr"]
            if not self._sharded:
                # Of several, each moves its own part of the model, by gradients that are there at its own time.
                own = optimizer if self._alone else None
                recorder.model(self._step + self._stride, pl_module, own, scaler=self._scaler, clipped=not self._alone)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Write the step, once the last of its batches has come."""
        recorder, losses = self._recorder, self._losses
        if recorder is not None and (loss := _loss(outputs)) is not None:
            # Lightning divides it, so that the gradients of a step's batches sum up to their mean.
            if pl_module.automatic_optimization and trainer.accumulate_grad_batches > 1:
                loss = loss * trainer.accumulate_grad_batches  # a new tensor: the loss is the module's own
            losses.append(loss)
        step = trainer.global_step
        if step == self._step:
            return
        self._stride, self._step = step - self._step, step
        if recorder is not None:
            row = self._fresh(trainer)
            if losses:
                row["loss"] = losses[0] if len(losses) == 1 else sum(losses) / len(losses)
                losses.clear()
            row["lr"], row["epoch"] = self._lr, self._epoch
            recorder.log(step, row)
            self._lr = None
            if self._saved is not None:
                self._list_checkpoints(trainer)
        self._stop(trainer)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Write what the validation found."""
        if not trainer.sanity_checking:
            self._write_fresh(trainer)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Write what was logged when the epoch before ended."""
        self._write_fresh(trainer)
        self._epoch = trainer.current_epoch

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Write what was logged when the last epoch ended."""
        self._write_fresh(trainer)

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Mapping[str, Any]) -> None:
        """Remember the step, until it is known where the file is."""
        self._saved = trainer.global_step

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Close the log."""
        self._end(trainer)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Close the log of a run that died."""
        self._end(trainer)

    def _end(self, trainer: Any) -> None:
        self._list_checkpoints(trainer)
        self._close()
        for saving, top, last in self._silenced:
            saving.save_top_k, saving.save_last = top, last
        self._silenced = []

    def _write_fresh(self, trainer: Any) -> None:
        if (recorder := self._recorder) is not None:
            if row := self._fresh(trainer):
                recorder.log(self._step, row, epoch=self._epoch)
            self._list_checkpoints(trainer)

    def _fresh(self, trainer: Any) -> dict[str, Any]:
        """Return what the module has logged since the last time.

        Lightning keeps all that was ever logged, and a value under two names where it is logged by step and by epoch:
        the longer says which of them it is.
        """
        found: dict[int, tuple[str, Any]] = {}
        for name, value in trainer.callback_metrics.items():
            place, before = value.data_ptr(), self._seen.get(name)
            if before is not None and place == before.data_ptr():
                continue
            self._seen[name] = value
            if name not in NO_METRICS and len(name) > len(found.get(place, ("",))[0]):
                found[place] = name, value
        return dict(found.values())

    def _list_checkpoints(self, trainer: Any) -> None:
        """Once one was saved, list those that there are: a run can't go on from one that was removed since."""
        if self._saved is None or self._recorder is None:
            return
        savers = [saver for saver in trainer.checkpoint_callbacks if hasattr(saver, "best_k_models")]
        listed = {path for one in savers for path in (one.best_model_path, one.last_model_path, *one.best_k_models)}
        stamps = {path: _written(path) for path in listed - {""}}
        fresh = {path: stamp for path, stamp in stamps.items() if self._checkpoints.get(path, (0, -1))[1] != stamp}
        # Nobody knows where a checkpoint is that was saved by hand.
        for path, stamp in (fresh or {f"by-hand://{self._saved}": 0}).items():
            self._checkpoints[path] = self._saved, stamp
        gone = [path for path in self._checkpoints if path not in listed and "://" not in path]
        for path in gone:
            if not Path(path).exists():
                del self._checkpoints[path]
        self._saved = None
        steps = sorted({step for step, _ in self._checkpoints.values()})
        self._recorder.config(checkpoints=steps[-MAX_LISTED:])

    def _stop(self, trainer: Any) -> None:
        """Stop by the Trainer's own way, on all ranks at the same step."""
        ends = self._ends()
        if self._several:
            ends = trainer.strategy.reduce_boolean_decision(ends, all=False)
        if ends and not self._silenced:
            trainer.should_stop = True
            for saving in trainer.checkpoint_callbacks:
                if hasattr(saving, "save_top_k"):
                    self._silenced.append((saving, saving.save_top_k, saving.save_last))
                    saving.save_top_k, saving.save_last = 0, None


def _loss(outputs: Any) -> Any:
    """Return the loss among what a training step returned; None where it returned none."""
    loss: Any = outputs.get("loss") if isinstance(outputs, dict) else outputs
    return loss.detach() if getattr(loss, "requires_grad", False) else loss


def _written(path: str) -> int:
    """When a checkpoint was written, 0 where that can't be seen."""
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0


def settings(trainer: Any, module: Any) -> dict[str, Any]:
    """Return what a run is started with, of what a Trainer and its module hold."""
    batch, total = getattr(trainer.train_dataloader, "batch_size", None), trainer.estimated_stepping_batches
    accumulation, world = trainer.accumulate_grad_batches, trainer.world_size
    found = {
        "framework": "lightning",
        "dtype": trainer.precision,
        "device": module.device.type,
        "lr_schedule": next((type(one.scheduler).__name__ for one in trainer.lr_scheduler_configs), None),
        "micro_batch_size": batch,
        "accumulation_steps": accumulation,
        "world_size": world,
        "log_interval": 1,
        "log_reduce": "step",
        **_clipping(trainer, module),
    }
    for optimizer in trainer.optimizers[:1]:
        group = optimizer.param_groups[0]
        betas = group.get("betas", (None, None))
        found |= {
            "optimizer": type(optimizer).__name__,
            "lr": group.get("initial_lr", group.get("lr")),
            "weight_decay": group.get("weight_decay"),
            "beta1": betas[0],
            "beta2": betas[1],
            "epsilon": group.get("eps"),
        }
    if 0 < total < float("inf"):
        found["max_steps"] = int(total)
    if trainer.max_epochs not in (None, 0, -1):
        found["epochs"] = trainer.max_epochs
    if isinstance(batch, int):
        found["batch_size"] = batch * accumulation * world
    # The user's own settings come after those that the Trainer knows.
    found["hparams"] = {name: value for name, value in module.hparams.items() if isinstance(value, str | int | float)}
    return {name: value for name, value in found.items() if value is not None}


def _clipping(trainer: Any, module: Any) -> dict[str, Any]:
    package = type(module).configure_gradient_clipping.__module__.partition(".")[0]
    if package not in ("lightning", "pytorch_lightning") or not module.automatic_optimization:
        return {}  # it clips as it likes
    if not trainer.gradient_clip_val:
        return {"grad_clip": 0.0}
    return {
        "grad_clip": trainer.gradient_clip_val,
        "grad_clip_by": str(trainer.gradient_clip_algorithm or "norm"),
    }
