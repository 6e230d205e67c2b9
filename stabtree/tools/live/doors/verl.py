"""A backend of verl's `Tracking`, named `stabtree`, which verl finds by itself where stabtree is installed.

```yaml
trainer:
  logger: [console, stabtree]
```

verl imports this module by the entry point `verl.plugins`; it puts a class of ours in the place of `Tracking`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from verl.utils import tracking

from stabtree.tools.live.sink import Sink

NAME = "stabtree"


class Tracking(tracking.Tracking):  # type: ignore[misc,unused-ignore]  # verl may be missing
    """Writes what verl logs to `stabtree.jsonl`, in the folder of the run's checkpoints."""

    supported_backend: ClassVar[list[str]] = [*tracking.Tracking.supported_backend, NAME]

    def __init__(
        self,
        project_name: str,
        experiment_name: str,
        default_backend: str | list[str] = "console",
        config: Any = None,
    ) -> None:
        super().__init__(project_name, experiment_name, default_backend, config)
        if NAME in default_backend:
            trainer = (config or {}).get("trainer") or {}
            sink = Sink(Path(trainer.get("default_local_dir") or ".") / "stabtree.jsonl")
            sink.log_config({"framework": "verl", **(config or {})})
            self.logger[NAME] = sink

    def finish(self, *args: Any, **named: Any) -> None:
        """Close the log with the others."""
        super().finish(*args, **named)
        if NAME in getattr(self, "logger", {}):
            self.logger[NAME].close()


tracking.Tracking = Tracking
