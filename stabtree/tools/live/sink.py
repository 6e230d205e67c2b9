"""`stabtree.Sink`: the log of anything that hands a dict of numbers and a step to a logger.

```python
sink = stabtree.Sink("run.jsonl")
for step in range(steps):
    ...
    sink.log({"loss": loss, "eval": {"loss": held_out}}, step)
    if sink.should_stop:
        break
```
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any, Self, SupportsInt

from stabtree.tools.live.recorder import Recorder
from stabtree.tools.live.writer import Problems, described

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from stabtree.tools.live.events import News

STEP_NAMES = ("step", "global_step", "_step", "trainer/global_step")
"""Where a row says at which step it is, if its logger does not."""


class Sink:
    """Writes rows of any shape to the log of a Recorder, which judges them while the run goes on.

    Nested dicts become names such as `eval/loss`. What is a single number is written, of whatever library it is; texts,
    None, images and whole arrays are left out. What is wrong with a row never ends the training: it is reported once
    through `logging`.

    Args:
        path: the log; or a Recorder of your own, which stays open when the sink is closed.
        options: those of the Recorder. `on_finding` is `warn` where not given.

    Attributes:
        recorder: what writes the log: `sink.recorder.model(step, model, optimizer)` looks at a torch model.
    """

    def __init__(self, path: str | Path | Recorder, **options: Any) -> None:
        self._own = not isinstance(path, Recorder)
        self.recorder = path if isinstance(path, Recorder) else Recorder(path, **{"on_finding": "warn", **options})
        self._next = 0
        self._problems = Problems(self.recorder.path)

    @property
    def should_stop(self) -> News | None:
        """The first finding at or above `fail_on`; None while there is none."""
        return self.recorder.should_stop

    @property
    def news(self) -> tuple[News, ...]:
        """All findings that were reported so far."""
        return self.recorder.news

    def log(self, data: Mapping[Any, Any], step: SupportsInt | None = None) -> None:
        """Write a row.

        Args:
            data: numbers by their names, nested or not.
            step: the optimizer step. Where not given it is what the row itself calls its step; else rows are counted
                from the last step that is known.

        Raises:
            TrainingStoppedError: with `on_finding="raise"`, where the log shows something at or above `fail_on`.
        """
        try:
            row = dict(numbers(data))
        except Exception as error:  # whatever a row is, the training goes on
            self._problems.report("row", f"a row could not be read: {described(error)}")
            return
        at: Any = next((row[name] for name in STEP_NAMES if name in row), None) if step is None else step
        if at is None:
            at, self._next = self._next, self._next + 1
        else:
            with suppress(Exception):  # where it is no step, the Recorder says so
                # A row without a step belongs to the last that was named, and ends it.
                at = self._next = int(at)
        if row:
            self.recorder.log(at, row)

    def log_config(self, config: Any) -> None:
        """Write what the run was started with: a dict, nested or not, a dataclass, or the arguments of argparse."""
        try:
            if is_dataclass(config) and not isinstance(config, type):
                config = asdict(config)
            self.recorder.config(dict(config) if isinstance(config, Mapping) else dict(vars(config)))
        except TypeError as error:
            self._problems.report("config", f"the configuration could not be read: {described(error)}")

    def close(self) -> None:
        """Judge the log for the last time, and close it, unless the Recorder is the user's own."""
        if self._own:
            self.recorder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def numbers(data: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the numbers of a row by their names; those in a nested dict under its name and theirs, `eval/loss`."""
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from numbers(value, f"{name}/")
        # One number, which `float` takes; nothing is fetched from a GPU to know.
        elif isinstance(value, int | float) or (
            hasattr(value, "__float__") and math.prod(getattr(value, "shape", ())) == 1
        ):
            yield name, value
