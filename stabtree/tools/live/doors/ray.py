"""A callback of Ray Train.

```python
from stabtree.integrations import RayTrainCallback

trainer = TorchTrainer(..., run_config=ray.train.RunConfig(callbacks=[RayTrainCallback("run.jsonl")]))
```
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stabtree.tools.live.callbacks.attached import missing
from stabtree.tools.live.recorder.findings import TrainingStoppedError
from stabtree.tools.live.sink import Sink, floats

try:
    from ray.train import UserCallback
except ImportError as error:
    raise missing("Ray Train", "ray") from error


class RayTrainCallback(UserCallback):  # type: ignore[misc,unused-ignore]  # Ray may be missing
    """Writes what the workers report, in the controller of the run: one row for each `ray.train.report`.

    A value of the row is the mean over the workers, which is NaN where one of them is. The callback is made by the
    driver and handed to the controller, so that the log is opened with the first report.

    Args:
        path: the log, on the machine of the driver.
        options: those of the Recorder; with `on_finding="raise"` a critical finding ends the run.
    """

    def __init__(self, path: str | Path = "stabtree.jsonl", **options: Any) -> None:
        self._path, self._options = Path(path).absolute(), options
        self._sink: Sink | None = None

    def after_report(self, run_context: Any, metrics: list[dict[str, Any]], checkpoint: Any) -> None:
        """Write what all workers have reported."""
        if self._sink is None:
            self._sink = Sink(self._path, rank=0, **self._options)
            self._sink.log_config({"framework": "ray"})
        rows = [floats(row) for row in metrics if row]  # a worker may report nothing
        names = dict.fromkeys(name for row in rows for name in row)
        try:
            self._sink.log({name: _mean([row[name] for row in rows if name in row]) for name in names})
        except TrainingStoppedError as error:  # the driver is handed a text, and not all that was found
            raise RuntimeError(str(error)) from None


def _mean(values: list[float]) -> float:
    """Return the mean; values that are all the same, as a step is, stay as they are."""
    if len(set(values)) == 1:
        return values[0]
    return sum(values) / len(values)
