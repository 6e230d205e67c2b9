"""A plug-in of axolotl, which adds the callback of the Hugging Face Trainer.

```yaml
plugins:
  - stabtree.integrations.AxolotlPlugin
```
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stabtree.tools.live.callbacks.attached import missing
from stabtree.tools.live.callbacks.huggingface import HuggingFaceCallback

try:
    from axolotl.integrations.base import BasePlugin
    from pydantic import BaseModel
except ImportError as error:
    raise missing("axolotl", "axolotl") from error


class AxolotlArgs(BaseModel):  # type: ignore[misc,unused-ignore]  # pydantic comes with axolotl
    """The key that the plug-in adds to the YAML: the arguments of the callback, `stabtree: {stop_on: warning}`."""

    stabtree: dict[str, Any] | None = None


class AxolotlPlugin(BasePlugin):  # type: ignore[misc,unused-ignore]  # axolotl may be missing
    """Writes `stabtree.jsonl` in axolotl's `output_dir`, and stops a run that is lost."""

    def get_input_args(self) -> str:
        """Return where the key of the YAML is declared."""
        return f"{AxolotlArgs.__module__}.{AxolotlArgs.__name__}"

    def add_callbacks_post_trainer(self, cfg: Any, trainer: Any) -> list[Any]:
        """Return the callback, for whichever of axolotl's trainers was made."""
        given = {"path": Path(cfg.output_dir or ".") / "stabtree.jsonl", **(cfg.stabtree or {})}
        return [HuggingFaceCallback(**given)]
