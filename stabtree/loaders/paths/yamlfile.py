"""The configuration that a trainer left as YAML beside its log: W&B's config.yaml, Lightning's hparams.yaml."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stabtree import yaml12
from stabtree.errors import StabtreeError
from stabtree.text import clean

if TYPE_CHECKING:
    from pathlib import Path

# The whole configuration of a large model fits many times.
MAX_BYTES = 1 << 20


def load(file: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The mapping that a file holds, empty without a file; and a note where it could not be read."""
    if not file.is_file():
        return {}, ()
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES).decode("utf-8", "replace")
        value = yaml12.parse(content, clean(file.name)).value
    except (OSError, StabtreeError) as error:
        return {}, (f"{clean(file.name)} was not read: {clean(error, 160)}.",)
    return value if isinstance(value, dict) else {}, ()
