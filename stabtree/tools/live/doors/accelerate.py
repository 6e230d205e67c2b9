"""A tracker of accelerate.

```python
from stabtree.integrations import AccelerateTracker

tracker = AccelerateTracker("run.jsonl")
accelerator = Accelerator(log_with=tracker)
accelerator.init_trackers("project", config={"learning_rate": 1e-3})
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree.tools.live.callbacks.attached import missing
from stabtree.tools.live.sink import Sink

try:
    from accelerate.tracking import GeneralTracker, on_main_process
except ImportError as error:
    raise missing("accelerate", "accelerate") from error

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.tools.live.news import News
    from stabtree.tools.live.recorder.recorder import Recorder


class AccelerateTracker(GeneralTracker):  # type: ignore[misc,unused-ignore]  # accelerate may be missing
    """Writes what `accelerator.log` is given, in the main process alone.

    Args:
        path: the log, or a Recorder of your own.
        options: those of the Recorder.
    """

    name = "stabtree"
    requires_logging_directory = False

    def __init__(self, path: str | Path | Recorder = "stabtree.jsonl", **options: Any) -> None:
        super().__init__()
        self._path, self._options = path, options
        self._sink: Sink | None = None

    @property
    def tracker(self) -> Sink:
        """The sink, which is opened once the processes are known."""
        if self._sink is None:
            self._sink = Sink(self._path, **self._options)
        return self._sink

    @property
    def should_stop(self) -> News | None:
        """The first finding at or above `fail_on`, in the main process; None in the others."""
        if self._sink is None:
            return None
        return self._sink.should_stop

    @on_main_process  # type: ignore[untyped-decorator,unused-ignore]
    def store_init_configuration(self, values: dict[str, Any]) -> None:
        """Write the configuration."""
        self.tracker.log_config({"framework": "accelerate", **values})

    @on_main_process  # type: ignore[untyped-decorator,unused-ignore]
    def log(self, values: dict[str, Any], step: int | None = None, **_: Any) -> None:
        """Write a row."""
        self.tracker.log(values, step)

    @on_main_process  # type: ignore[untyped-decorator,unused-ignore]
    def finish(self) -> None:
        """Close the log."""
        self.tracker.close()
