"""Stand-ins for trainers that are not installed: what of their documented interfaces a door uses, and no more."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

DOORS = "stabtree.tools.live.doors"


def door(name: str, monkeypatch: pytest.MonkeyPatch, **modules: dict[str, Any]) -> Any:
    """Return the module of a door, imported with stand-ins for the modules that it needs, `a__b` for `a.b`."""
    for called, held in modules.items():
        put(called.replace("__", "."), held, monkeypatch)
    anew(f"{DOORS}.{name}", monkeypatch)
    return importlib.import_module(f"{DOORS}.{name}")


def put(address: str, held: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a module where imports find it, within packages that hold nothing else."""
    package = ""
    for part in address.split("."):
        outer, package = package, f"{package}.{part}".strip(".")
        if package not in sys.modules or not getattr(sys.modules[package], "stands_in", False):
            module = ModuleType(package)
            vars(module).update(stands_in=True, __path__=[])
            monkeypatch.setitem(sys.modules, package, module)
            if outer:
                setattr(sys.modules[outer], part, module)
    vars(sys.modules[address]).update(held)


def anew(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a module imported anew, and forgotten after the test."""
    monkeypatch.setitem(sys.modules, address, ModuleType(address))
    del sys.modules[address]


class ComposerDestination:
    """composer.loggers.LoggerDestination: `log_metrics`, `log_hyperparameters`, and as a Callback `batch_end`."""


class ComposerState:
    """composer.core.State, as far as a stop goes."""

    stopped = False

    def stop_training(self) -> None:
        """End the training after this batch."""
        self.stopped = True


class RayCallback:
    """ray.train.UserCallback: `after_report(run_context, metrics, checkpoint)`, called in the controller."""


class CancelFit(Exception):  # noqa: N818  # fastai.callback.core.CancelFitException
    """Ends a fit, by way of `after_fit`."""


class FastaiBase:
    """fastai.callback.core.Callback: the Learner is `learn`, and nothing is called where `run` is false."""

    learn: Any = None
    run = True

    def __call__(self, event: str) -> None:
        """Call the method of an event, where there is one."""
        if self.run:
            getattr(self, event, lambda: None)()


class Learner:
    """fastai.learner.Learner: the events of a fit in their order, one callback."""

    def __init__(self, callback: FastaiBase) -> None:
        self.callback, callback.learn = callback, self
        self.model, self.opt_func, self.dls = object(), dict, SimpleNamespace(bs=8)
        self.opt = SimpleNamespace(hypers=[{"lr": 0.5, "wd": 0.01}])
        self.recorder = SimpleNamespace(metric_names=["epoch", "train_loss", "valid_loss", "time"], log=[])
        self.training, self.train_iter, self.epoch, self.n_epoch, self.loss = True, 0, 0, 0, 0.0

    def fit(self, epochs: list[list[float]]) -> None:
        """Go through epochs, each of which is the losses of its batches."""
        self.n_epoch, self.train_iter = len(epochs), 0
        self.callback("before_fit")
        try:
            for self.epoch, losses in enumerate(epochs):
                self._epoch(losses)
        except CancelFit:
            pass
        self.callback("after_fit")
        self.callback.run = True

    def _epoch(self, losses: list[float]) -> None:
        self.training = True
        for self.loss in losses:
            self.callback("after_backward")
            self.train_iter += 1
            self.callback("after_batch")
        self.training = False
        self.callback("after_batch")  # of the validation
        self.recorder.log = [self.epoch, 1.0, 2.0, "00:01"]
        self.callback("after_epoch")


class TitanLogger:
    """torchtitan.components.metrics.BaseLogger: `log(metrics, step)` and `close()`."""

    def __init__(self) -> None:
        self.rows: list[tuple[dict[str, Any], int]] = []
        self.closed = False

    def log(self, metrics: dict[str, Any], step: int) -> None:
        """Keep a row."""
        self.rows.append((metrics, step))

    def close(self) -> None:
        """Remember that it was closed."""
        self.closed = True


class TitanMetrics:
    """torchtitan.components.metrics.MetricsProcessor: its `Config`, and `_build_metric_logger(**)`."""

    @dataclass(kw_only=True, slots=True)
    class Config:
        """Its settings."""

        log_freq: int = 10

    def __init__(self, config: Config, **given: Any) -> None:
        self.logger = self._build_metric_logger(config=config, **given)

    def _build_metric_logger(self, **_: Any) -> Any:
        return TitanLogger()


class VerlTracking:
    """verl.utils.tracking.Tracking: a backend is what lies in `logger`, whose `log(data=, step=)` is called."""

    supported_backend = ("console", "wandb")

    def __init__(
        self, project_name: str, experiment_name: str, default_backend: str | list[str] = "console", config: Any = None
    ) -> None:
        del project_name, experiment_name, config
        if isinstance(default_backend, str):
            default_backend = [default_backend]
        if any(backend not in self.supported_backend for backend in default_backend):
            raise AssertionError(default_backend)
        self.logger: dict[str, Any] = {}
        self.finished = 0

    def log(self, data: dict[str, Any], step: int) -> None:
        """Hand a row to every backend."""
        for backend in self.logger.values():
            backend.log(data=data, step=step)

    def finish(self, exit_code: int = 0) -> None:
        """Close the backends that it knows."""
        del exit_code
        self.finished += 1
