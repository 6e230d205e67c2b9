"""What hatch calls before it packs: our YAML is compiled for the wheel, or for the checkout of an editable install."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from release.compiled import written


class CustomBuildHook(BuildHookInterface[Any]):
    """Compiles before hatch packs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file where an editable install finds it, or pack one for a wheel."""
        if version == "editable":
            written()
        elif self.target_name == "wheel":
            packed = written(Path(self.directory) / "compiled.json", checkout=False)
            build_data["force_include"][str(packed)] = "stabtree/compiled.json"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Leave only what was built."""
        (Path(self.directory) / "compiled.json").unlink(missing_ok=True)
