"""Loggers that answer to the names that training code calls: `SummaryWriter`, the run of `wandb`, torchtune's.

None of them needs the library whose names it answers to.

```python
from stabtree.integrations import Logger

writer = Logger("run.jsonl", beside=SummaryWriter("runs/1"))  # or beside=wandb.init(...)
```
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsInt

from stabtree.tools.live.sink import Sink, floats

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree.tools.live.recorder.recorder import Recorder

_NOT_WRITTEN = ("add_", "define_metric", "watch", "unwatch")


class Logger(Sink):
    """Takes what is logged to torch's `SummaryWriter` or to a run of Weights & Biases, in place of it or beside it.

    Calls of `add_scalar` for the same step make one row, which is written when the next step begins, at `flush` or at
    `close`. Pictures, histograms and texts are left out.

    Args:
        path: the log, or a Recorder of your own.
        beside: the writer or the run that gets every call as well, and answers those that a Logger does not know.
        options: those of the Recorder.
    """

    def __init__(self, path: str | Path | Recorder = "stabtree.jsonl", *, beside: Any = None, **options: Any) -> None:
        super().__init__(path, **options)
        self._beside = beside
        self._row: dict[str, float] = {}
        self._at: Any = None
        self._config = _Config(self.log_config)
        with suppress(Exception):  # the run may have no configuration, or one of another kind
            self.log_config(dict(beside.config))

    @property
    def config(self) -> Any:
        """The settings of the run: `config.update(...)`, `config["lr"] = 1e-3`, `config.lr = 1e-3`."""
        return getattr(self._beside, "config", self._config)

    def log(self, data: Mapping[Any, Any], step: SupportsInt | None = None, **more: Any) -> None:
        """Write a row, as `wandb.log` does; other arguments are for the run beside it."""
        self._also("log", data, step, **more)
        self._put()
        super().log(data, step)

    def add_scalar(self, tag: str, scalar_value: Any, global_step: int | None = None, *args: Any, **more: Any) -> None:
        """Keep a number for the row of its step."""
        self._also("add_scalar", tag, scalar_value, global_step, *args, **more)
        self._gather({tag: scalar_value}, global_step)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: int | None = None, *args: Any, **more: Any
    ) -> None:
        """Keep several numbers for the row of their step, as `main_tag/name`."""
        self._also("add_scalars", main_tag, tag_scalar_dict, global_step, *args, **more)
        self._gather({main_tag: tag_scalar_dict}, global_step)

    def add_hparams(self, hparam_dict: Mapping[str, Any], *args: Any, **more: Any) -> None:
        """Write what the run was started with."""
        self._also("add_hparams", hparam_dict, *args, **more)
        self.log_config(hparam_dict)

    def flush(self) -> None:
        """Write the row that is not complete yet."""
        self._also("flush")
        self._put()

    def close(self) -> None:
        """Write what was kept, and close the log."""
        self._also("close")
        self._end()

    def finish(self, *args: Any, **more: Any) -> None:
        """Do as `close`, under the name that it has in `wandb`."""
        self._also("finish", *args, **more)
        self._end()

    def __getattr__(self, name: str) -> Any:
        beside = self.__dict__.get("_beside")
        if beside is not None:
            return getattr(beside, name)
        if name.startswith(_NOT_WRITTEN):
            return _nothing
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _also(self, name: str, *args: Any, **more: Any) -> None:
        """Call the writer or the run beside this one: its errors are those that there would be without us."""
        if self._beside is not None:
            getattr(self._beside, name)(*args, **more)

    def _gather(self, values: Mapping[str, Any], step: Any) -> None:
        found = floats(values)
        if step != self._at or not found.keys().isdisjoint(self._row):
            self._put()
        self._at = step
        self._row |= found

    def _put(self) -> None:
        row, self._row = self._row, {}
        if row:
            super().log(row, self._at)

    def _end(self) -> None:
        self._put()
        super().close()


class TorchtuneLogger(Logger):
    """The metric logger of a torchtune recipe: its methods are those of torchtune's `MetricLoggerInterface`.

    ```yaml
    metric_logger:
      _component_: stabtree.integrations.TorchtuneLogger
      log_dir: ${output_dir}
    ```

    Args:
        log_dir: the folder of the log.
        filename: its name.
        options: those of the Recorder; with `on_finding: raise` a critical finding ends the recipe.
    """

    def __init__(self, log_dir: str | Path = ".", filename: str = "stabtree.jsonl", **options: Any) -> None:
        super().__init__(Path(log_dir) / filename, **options)

    def log(self, name: str, data: Any, step: int) -> None:  # type: ignore[override]  # torchtune's own order
        """Keep a number for the row of its step."""
        self.add_scalar(name, data, step)

    def log_dict(self, payload: Mapping[str, Any], step: int) -> None:
        """Write a row."""
        super().log(payload, step)


class _Config(dict[str, Any]):
    """Settings that are written as soon as they are set, as in `wandb.config`."""

    def __init__(self, write: Callable[[Any], None]) -> None:
        super().__init__()
        self.__dict__["_write"] = write

    def update(self, given: Any = (), **named: Any) -> None:  # type: ignore[override]  # it takes a Namespace, too
        """Set and write settings, those of a dict or of the arguments of argparse."""
        named.pop("allow_val_change", None)
        settings = {**getattr(given, "__dict__", {}), **named}
        if isinstance(given, Mapping):
            settings |= given
        super().update(settings)
        self.__dict__["_write"](settings)

    def __setitem__(self, key: str, value: Any) -> None:
        self.update({key: value})

    __setattr__ = __setitem__

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(name)


def _nothing(*_: Any, **__: Any) -> None:
    """Take what is no number, and write nothing."""
