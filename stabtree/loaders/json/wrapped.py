"""Printed text that a container kept as JSON: one object for each piece, with the stream that it came from."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Docker's, Kaggle's and CloudWatch's spellings.
_STREAM = re.compile(r'"(?:stream|stream_name|fd|source)"\s*:\s*"std(?:out|err)"')
_TEXT = ("data", "log", "message", "msg", "line", "text")
# Objects at the head of a file that are checked.
_FIRST = 5
# A longer piece without a line end is no line of a log.
_LONGEST = 1 << 20


def is_wrapped(head: str) -> bool:
    """Return whether a file holds printed text wrapped in JSON, by its first lines."""
    pieces = [_piece(line) for line in head.split("\n", _FIRST)[:_FIRST] if line.strip(" \r,[]")]
    return bool(pieces) and all(piece is not None for piece in pieces[:-1] or pieces)


def unwrapped(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of the text inside; lines that hold no such object are left out."""
    parts: list[str] = []
    size = 0
    for line in lines:
        piece = _piece(line)
        if piece is None:
            continue
        *whole, rest = piece.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        if whole:
            yield "".join((*parts, whole[0]))
            yield from whole[1:]
            parts, size = [], 0
        if rest and size < _LONGEST:
            parts.append(rest)
            size += len(rest)
    if parts:
        yield "".join(parts)


def _piece(line: str) -> str | None:
    """Return the text in a line that holds one object; None if it holds none."""
    if not _STREAM.search(line[:300]) and not _STREAM.search(line[-300:]):
        return None
    try:
        found = json.loads(line.strip(" \r,[]\t"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    return next((found[key] for key in _TEXT if isinstance(found.get(key), str)), None)
