"""A callback of Keras 3, on any of its backends.

```python
from stabtree.integrations import KerasCallback

model.fit(..., callbacks=[KerasCallback("run.jsonl")])
```
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from stabtree.tools.live.callbacks.attached import AttachedRecorder, missing

try:
    import keras
except ImportError as error:
    raise missing("Keras", "keras") from error

if TYPE_CHECKING:
    from collections.abc import Mapping


HALF_ULP = 2.0**-24  # by which a sum in float32 may be off, as a share of itself
SCHEDULE_EVERY = 10  # steps: to work a schedule out takes Keras longer than all else that is written
MIN_DIGITS = 20  # a batch's own share of a sum is written if it is so many times what rounding may have made of it
_POLICIES = {"mixed_float16": "16-mixed", "mixed_bfloat16": "bf16-mixed"}


class OwnMean:
    """What each batch has brought, of the mean over its epoch that Keras gives after it.

    A mean that has become NaN or infinite stays so to the end of the epoch: what comes after the batch that made it so
    can't be known.
    """

    def __init__(self) -> None:
        self._total = self._count = 0.0

    def own(self, total: float, count: float) -> float | None:
        """Return the mean since the last one that was returned; None where it can't be known yet.

        Args:
            total: the weighted sum of all batches of the epoch up to now.
            count: the sum of their weights.
        """
        more, weight = total - self._total, count - self._count
        if not math.isfinite(self._total) or weight <= 0 or abs(more) < MIN_DIGITS * HALF_ULP * abs(total):
            return None
        self._total, self._count = total, count
        return more / weight


class KerasCallback(AttachedRecorder, keras.callbacks.Callback):  # type: ignore[misc,unused-ignore]  # Keras may be missing
    """Writes each optimizer step and each validation, and stops a run that is lost.

    A row is an optimizer step, or as many as `steps_per_execution` runs at once. Keras gives the mean loss of the epoch
    so far: the loss that is written is that of the step's own batches. Other metrics are written when the epoch ends.

    With torch behind Keras the gradients are at hand after each step, as they were before they were clipped, and the
    norms of gradient and weights are written, but for that of a gradient that is scaled or accumulated; other backends
    hand out none. Without torch the batches of an epoch count alike, so that a smaller last one counts for too little,
    and learning rate and loss scale are read when an epoch begins.
    """

    def _begin(self, step: int = 0) -> None:
        self._by_torch = keras.config.backend() == "torch"
        self._first_step = self._step = step
        self._parts = 1
        self._batches = 0
        self._batch = -1
        self._epoch = 0
        self._of_step: dict[str, float] = {}
        self._means: dict[str, tuple[Any, OwnMean]] = {}

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Open the log, and write the configuration to it."""
        optimizer = self.model.optimizer
        self._begin(0 if optimizer is None else int(_number(optimizer.iterations)))
        self._parts = _parts(optimizer)
        self._open().config(settings(self.model, self.params))

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Begin the means anew."""
        self._epoch, self._batch = epoch, -1
        means = [metric for metric in self.model.metrics if isinstance(metric, keras.metrics.Mean)]
        self._means = {metric.name: (metric, OwnMean()) for metric in means if metric.name.endswith("loss")}

    def on_train_batch_begin(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Take down what the step is taken with."""
        # Without torch the optimizer is out of reach between the batches of an epoch, but for a high price.
        if (self._by_torch or self._batch < 0) and (self._batches + 1) % self._parts == 0:
            self._of_step = _of_step(self.model.optimizer, seldom=self._step % SCHEDULE_EVERY > 0)

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Write the step, once the last of its batches has come."""
        recorder = self._recorder
        self._batches += batch - self._batch
        self._batch = batch
        step = self._first_step + self._batches // self._parts
        if recorder is None or step == self._step:
            return
        self._step = step
        if self._by_torch and self._parts == 1:  # else the gradients are those of the last batch alone
            recorder.model(step, _TorchWeights(self.model), clipped="loss_scale" in self._of_step)
        recorder.log(step, {**self._own(logs or {}), **self._of_step}, epoch=self._epoch)
        self._of_step = {}
        if self._ends():
            self.model.stop_training = True

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Write what is known at the end of an epoch: the validation, and the metrics of the training."""
        row = {name: value for name, value in (logs or {}).items() if name not in (*self._means, "learning_rate")}
        if self._recorder is not None and row:
            self._recorder.log(self._step, row, epoch=epoch)

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Close the log."""
        self._close()

    def _own(self, logs: Mapping[str, Any]) -> dict[str, float | None]:
        """Return the losses of a step's own batches; one that is no mean is written as it is."""
        found: dict[str, float | None] = {}
        for name, value in logs.items():
            if name in self._means:
                metric, mean = self._means[name]
                total, count = value * (self._batch + 1), self._batch + 1.0
                if self._by_torch:
                    total, count = float(metric.total), float(metric.count)
                found[name] = mean.own(total, count)
            elif name.endswith("loss"):
                found[name] = value
        return found


class _TorchWeights:
    """The weights of a Keras model as a torch module shows them, under the names that Keras gives them."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def named_parameters(self) -> list[tuple[str, Any]]:
        return [(weight.path.replace("/", "."), weight.value) for weight in self._model.trainable_variables]

    def parameters(self) -> list[Any]:
        return [weight for _, weight in self.named_parameters()]

    def modules(self) -> tuple[()]:
        return ()

    named_modules = modules


def _inner(optimizer: Any) -> Any:
    """Return the optimizer within one that scales the loss."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def _parts(optimizer: Any) -> int:
    """Return how many batches make a step."""
    return getattr(_inner(optimizer), "gradient_accumulation_steps", None) or 1


def _schedule(optimizer: Any) -> Any:
    """Return what the learning rate is worked out by at each step; None where it is set."""
    rate = getattr(_inner(optimizer), "_learning_rate", None)
    if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
        return rate
    return None


def _number(value: Any) -> float:
    """Return a number of Keras, without the digits that float32 does not have."""
    return float(f"{float(value):.7g}")


def _of_step(optimizer: Any, *, seldom: bool) -> dict[str, float]:
    """The learning rate and the loss scale of the coming step; a rate that is worked out is left out where `seldom`."""
    found = {}
    if optimizer is not None and not (seldom and _schedule(optimizer)):
        found["lr"] = _number(optimizer.learning_rate)
    if (scale := getattr(optimizer, "dynamic_scale", None)) is not None:
        found["loss_scale"] = _number(scale)
    return found


def settings(model: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run is started with, of what a model was compiled and is fitted with."""
    optimizer, policy = _inner(model.optimizer), model.dtype_policy.name
    steps, epochs, parts = params.get("steps"), params.get("epochs"), _parts(optimizer)
    found = {
        "framework": "keras",
        "dtype": _POLICIES.get(policy, policy),
        "epochs": epochs,
        "accumulation_steps": parts,
        "n_classes": _classes(model),
        "log_interval": 1,
        "log_reduce": "step",
        "max_steps": steps * epochs // parts if steps and epochs else None,
    }
    if optimizer is not None:
        schedule = _schedule(optimizer)
        by_norm = getattr(optimizer, "global_clipnorm", None) or getattr(optimizer, "clipnorm", None)
        by_value = getattr(optimizer, "clipvalue", None)
        found |= {
            "optimizer": type(optimizer).__name__,
            "weight_decay": getattr(optimizer, "weight_decay", None),
            "beta1": getattr(optimizer, "beta_1", None),
            "beta2": getattr(optimizer, "beta_2", None),
            "epsilon": getattr(optimizer, "epsilon", None),
            "lr_schedule": type(schedule).__name__ if schedule else None,
            "lr": None if schedule else _number(optimizer.learning_rate),
            "grad_clip": by_norm or by_value or 0.0,
            "grad_clip_by": "norm" if by_norm else ("value" * bool(by_value) or None),
        }
    return {name: value for name, value in found.items() if value is not None}


def _classes(model: Any) -> int | None:
    """Return how many classes are distinguished, where the loss says that it is classes."""
    loss = getattr(model, "loss", None)
    shape = getattr(model, "output_shape", None)
    classes = shape[-1] if isinstance(shape, tuple) and shape else None
    if "categorical_crossentropy" in str(getattr(loss, "name", loss)) and isinstance(classes, int) and classes > 1:
        return classes
    return None
