"""What callbacks share: a Recorder that is open while a trainer trains, and whether the run is to end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.tools.live.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def missing(framework: str, package: str) -> StabtreeError:
    """Return what is raised where the framework of a callback can't be imported."""
    return StabtreeError(
        f"the callback of {framework} needs {framework}, which is not installed here",
        where=f"stabtree.integrations.{package}",
        hint=f"pip install {package}, or log from a loop of your own with stabtree.Recorder",
    )


class AttachedRecorder:
    """The Recorder of a callback.

    Args:
        path: the log, or a Recorder of the user's own, which stays open.
        stop_on: the mildest severity that ends the run; None to only tell.
        options: what else the Recorder is made with.

    Attributes:
        recorder: it, while the trainer trains.
    """

    def __init__(self, path: str | Path | Recorder, stop_on: str | None, options: Mapping[str, Any]) -> None:
        self._path = path
        self._stops = stop_on is not None
        own = {"on_finding": "warn", "fail_on": stop_on or "critical"}
        self._options: dict[str, Any] = {**own, **options}
        self.recorder: Recorder | None = None

    def open(self) -> Recorder:
        """Open the log, which a run that goes on appends to."""
        self.close()
        if isinstance(self._path, Recorder):
            self.recorder = self._path
        else:
            self.recorder = Recorder(self._path, **self._options)
        return self.recorder

    def ends(self) -> bool:
        """Return whether the run is to end."""
        return self._stops and self.recorder is not None and self.recorder.should_stop is not None

    def close(self) -> None:
        """Close the log, unless it is the user's own."""
        if self.recorder is not None and self.recorder is not self._path:
            self.recorder.close()
        self.recorder = None


def main_says(stop: bool, device: Any) -> bool:
    """Return what the main process says, in all of them; each has to ask, at the same step."""
    from torch import distributed, tensor

    if not (distributed.is_available() and distributed.is_initialized()):
        return False  # no one to ask: one alone that stops would leave the others waiting
    flag = tensor(int(stop), device=device)
    distributed.broadcast(flag, src=0)
    return bool(flag.item())
