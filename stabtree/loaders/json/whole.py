"""A whole JSON document, or as much of a cut one as can be read."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError

if TYPE_CHECKING:
    from stabtree.loaders.source import Source

# A document is parsed whole, at some ten times its size; no trainer's state comes near this.
MAX_TEXT = 512 << 20
_BETWEEN = re.compile(r"[\s,]*")


def text_of(source: Source, notes: list[str]) -> str:
    """Return the text of a document; what had to be replaced in it goes to `notes`.

    Raises:
        StabtreeError: if it is too large to be parsed as one.
    """
    lines = source.lines()
    parts = []
    size = 0
    for block in lines.blocks():
        parts.append(block)
        size += len(block)
        if size > MAX_TEXT:
            raise StabtreeError(
                "is one JSON document of more than 512 MiB",
                where=source.path,
                hint="write one object a line (JSON lines), which can be of any size",
            )
    notes += lines.notes
    return "".join(parts)


def objects(text: str, start: int = 0) -> list[dict[str, Any]]:
    """Return the objects that follow each other from `start` on, up to the first thing that is none."""
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    while True:
        start = _BETWEEN.match(text, start).end()  # type: ignore[union-attr]
        if not text.startswith("{", start):
            return found
        try:
            value, start = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            return found
        found.append(value)


def records(values: Any) -> list[dict[str, Any]]:
    """Return the entries of a list that are objects; none if it is no list."""
    if not isinstance(values, list):
        return []
    return [value for value in values if isinstance(value, dict)]
