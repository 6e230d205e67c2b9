"""A callback of fastai.

```python
from stabtree.integrations import FastaiCallback

learn = Learner(dls, model, cbs=[FastaiCallback("run.jsonl")])
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree.tools.live.callbacks.attached import missing
from stabtree.tools.live.callbacks.ranks import main_says
from stabtree.tools.live.sink import Sink

try:
    from fastai.callback.core import Callback, CancelFitException
    from fastai.learner import Recorder as Metrics
    from fastai.torch_core import num_distrib, rank_distrib
except ImportError as error:
    raise missing("fastai", "fastai") from error

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.tools.live.recorder.recorder import Recorder


class FastaiCallback(Callback):  # type: ignore[misc,unused-ignore]  # fastai may be missing
    """Writes the loss of each batch and what is measured after each epoch, and stops a run that is lost.

    A row is a batch; the steps of a second `fit` go on from those of the first. The gradients are looked at before they
    are clipped, but not where they are scaled (fp16) or accumulated. Of several processes the first writes, and all
    stop after the same batch.

    Args:
        path: the log, or a Recorder of your own.
        stop_on: the mildest severity that stops the run; None to only tell.
        options: those of the Recorder.
    """

    order = Metrics.order + 1  # the measures of an epoch are there then

    def __init__(
        self, path: str | Path | Recorder = "stabtree.jsonl", *, stop_on: str | None = "critical", **options: Any
    ) -> None:
        super().__init__()
        self._stops = stop_on is not None
        self._log, self._options = path, {"fail_on": stop_on or "critical", **options}
        self._sink: Sink | None = None
        self._before = self._step = 0

    def before_fit(self) -> None:
        """Open the log, but not for a search of a learning rate, or for predictions."""
        self.run = not (hasattr(self.learn, "lr_finder") or hasattr(self.learn, "gather_preds"))
        if self.run and rank_distrib() == 0:
            self._before = self._step
            self._sink = Sink(self._log, **self._options)
            self._sink.log_config(settings(self.learn))

    def after_backward(self) -> None:
        """Look at the model while its gradients are there."""
        if self._sink and not hasattr(self.learn, "scaler") and not hasattr(self.learn, "gradient_accumulation"):
            self._sink.recorder.model(self._before + self.learn.train_iter + 1, self.learn.model)

    def after_batch(self) -> None:
        """Write a step, and stop by fastai's own way."""
        if not self.learn.training:
            return
        if self._sink:
            self._step = self._before + self.learn.train_iter
            self._sink.log({"loss": self.learn.loss, "lr": self.learn.opt.hypers[-1]["lr"]}, self._step)
        ends = self._stops and self._sink is not None and self._sink.should_stop is not None
        if self._stops and num_distrib() > 1:
            ends = main_says(ends, self.learn.loss.device)
        if ends:
            raise CancelFitException

    def after_epoch(self) -> None:
        """Write what the epoch measured: the held-out loss and the metrics."""
        if self._sink:
            measured = zip(self.learn.recorder.metric_names, self.learn.recorder.log, strict=False)
            row = {name: value for name, value in measured if name not in ("train_loss", "time")}
            self._sink.log(row, self._step)

    def after_fit(self) -> None:
        """Close the log."""
        if self._sink:
            self._sink.close()
        self._sink = None  # a Learner that is exported holds no open file


def settings(learn: Any) -> dict[str, Any]:
    """Return what a fit is started with, of what a Learner holds."""
    hypers = learn.opt.hypers[-1]
    return {
        "framework": "fastai",
        "optimizer": getattr(learn.opt_func, "__name__", None),
        "lr": hypers.get("lr"),
        "weight_decay": hypers.get("wd"),
        "batch_size": getattr(learn.dls, "bs", None),
        "epochs": learn.n_epoch,
        "log_interval": 1,
        "log_reduce": "step",
    }
