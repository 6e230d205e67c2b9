"""`stabtree.Recorder`: the log of a training loop, one line a call, judged while it is written."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, SupportsFloat

if TYPE_CHECKING:
    from types import TracebackType


class Recorder:
    """Writes one JSON line a step, under the names that stabtree reads.

    Args:
        path: the log; a run that goes on appends to it.
        rank: of several, which one this is; each writes a log of its own.
    """

    def __init__(self, path: str | Path, *, rank: int = 0) -> None:
        file = Path(path)
        self.path = file if not rank else file.with_name(f"{file.stem}.rank{rank}{file.suffix}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def config(self, **settings: object) -> None:
        """Write what the run was started with, once."""
        self._write({"config": settings})

    def log(self, step: int, **metrics: SupportsFloat | str | None) -> None:
        """Write the metrics of a step; None is left out."""
        row = {name: _plain(value) for name, value in metrics.items() if value is not None}
        self._write({"step": int(step), **row})

    def close(self) -> None:
        """Close the log."""
        os.close(self._descriptor)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, row: dict[str, object]) -> None:
        os.write(self._descriptor, (json.dumps(row, default=str) + "\n").encode())


def _plain(value: SupportsFloat | str) -> float | int | str:
    if isinstance(value, str | int):
        return value
    number = float(value)
    return number if math.isfinite(number) else str(number)
