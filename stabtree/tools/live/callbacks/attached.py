"""What callbacks share: a Recorder that is open while a trainer trains, and whether the run is to end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

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
    """A callback with a Recorder, which is there while the trainer trains.

    Args:
        path: the log, which a resumed run goes on with; or a Recorder of your own, whose `fail_on` decides then.
        stop_on: the mildest severity that stops the run; None to only tell.
        stats_every: steps between two looks at the model: norms of its gradient and weights, sizes of its updates; 0
            for none.
        options: those of the Recorder.
    """

    _own_options: ClassVar[Mapping[str, Any]] = {}

    def __init__(
        self,
        path: str | Path | Recorder = "stabtree.jsonl",
        *,
        stop_on: str | None = "critical",
        stats_every: int = 100,
        **options: Any,
    ) -> None:
        super().__init__()
        self._path, self._stops = path, stop_on is not None
        own = {"on_finding": "warn", "fail_on": stop_on or "critical", "stats_every": stats_every, **self._own_options}
        self._options: dict[str, Any] = {**own, **options}
        self._recorder: Recorder | None = None
        self._begin()

    def _begin(self) -> None:
        """Forget what was seen of another run."""
        raise NotImplementedError

    def _open(self) -> Recorder:
        """Open the log, which a run that goes on appends to."""
        self._close()
        self._recorder = self._path if isinstance(self._path, Recorder) else Recorder(self._path, **self._options)
        return self._recorder

    def _ends(self) -> bool:
        """Return whether the run is to end."""
        return self._stops and self._recorder is not None and self._recorder.should_stop is not None

    def _close(self) -> None:
        """Close the log, unless it is the user's own."""
        if self._recorder is not None and self._recorder is not self._path:
            self._recorder.close()
        self._recorder = None
