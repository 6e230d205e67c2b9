"""A logger of MosaicML Composer.

```python
from stabtree.integrations import ComposerLogger

trainer = Trainer(..., loggers=[ComposerLogger("run.jsonl")])
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree.tools.live.callbacks.attached import missing
from stabtree.tools.live.callbacks.ranks import main_says
from stabtree.tools.live.sink import Sink

try:
    from composer.loggers import LoggerDestination
    from composer.utils import dist
except ImportError as error:
    raise missing("Composer", "mosaicml") from error

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.tools.live.recorder.recorder import Recorder


class ComposerLogger(LoggerDestination):  # type: ignore[misc,unused-ignore]  # Composer may be missing
    """Writes what Composer logs, on rank 0 alone, and stops a run that is lost on all ranks after the same batch.

    Args:
        path: the log, or a Recorder of your own.
        stop_on: the mildest severity that stops the run; None to only tell.
        options: those of the Recorder.
    """

    def __init__(
        self, path: str | Path | Recorder = "stabtree.jsonl", *, stop_on: str | None = "critical", **options: Any
    ) -> None:
        super().__init__()
        self._stops = stop_on is not None
        self._path, self._options = path, {"fail_on": stop_on or "critical", **options}
        self._sink: Sink | None = None

    def _opened(self) -> Sink | None:
        """Return the sink, which is opened once the ranks are known; None on all but the first."""
        if self._sink is None and dist.get_global_rank() == 0:
            self._sink = Sink(self._path, **self._options)
        return self._sink

    def log_hyperparameters(self, hyperparameters: dict[str, Any]) -> None:
        """Write settings."""
        if sink := self._opened():
            sink.log_config({"framework": "composer", **hyperparameters})

    def log_metrics(self, metrics: dict[str, Any], step: int | None = None) -> None:
        """Write a row."""
        if sink := self._opened():
            sink.log(metrics, step)

    def batch_end(self, state: Any, logger: Any) -> None:
        """Stop by Composer's own way, where rank 0 says so."""
        ends = self._stops and self._sink is not None and self._sink.should_stop is not None
        if self._stops and dist.get_world_size() > 1:
            ends = main_says(ends, next(state.model.parameters()).device)
        if ends:
            state.stop_training()

    def post_close(self) -> None:
        """Close the log."""
        if self._sink is not None:
            self._sink.close()
