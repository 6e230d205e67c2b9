"""The text of a source as it stands, line ends and damaged bytes included, in pieces of whole lines."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from stabtree.loaders.packed.unpack import chunks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.loaders.source import Source

# A longer line is cut at a blank or a comma, so that no text of many megabytes is held.
MAX_HELD = 4 << 20
_ENDS = ("\n", "\r")
_BREAKS = (", ", ",", " ", "\t", ";")
# Bytes that are no UTF-8 are kept as they are; half a letter of UTF-16 can't be.
_ERRORS = {"utf-8": "surrogateescape"}


def texts(source: Source, notes: list[str]) -> Iterator[str]:
    """The text behind the byte order mark, in pieces that end with a line wherever lines are shorter than 4 MiB.

    Args:
        source: what to read.
        notes: told what was damaged.
    """
    decoder = codecs.getincrementaldecoder(source.encoding)(_ERRORS.get(source.encoding, "replace"))
    drop, held = source.bom, ""
    for chunk in chunks(source, notes):
        piece = chunk[drop:]
        drop -= len(chunk) - len(piece)
        held += decoder.decode(piece, final=not chunk)
        cut = len(held) if not chunk else _cut(held)
        if cut:
            yield held[:cut]
            held = held[cut:]


def _cut(text: str) -> int:
    """Where to cut a text of which more follows; 0 where nothing of it may be given yet."""
    end = text.rfind("\n") + 1
    if end or len(text) < MAX_HELD:
        return end
    return next((place for mark in (*_ENDS, *_BREAKS) if (place := text.rfind(mark) + 1)), len(text))


def encoded(text: str, source: Source) -> bytes:
    """A text in the bytes of its source."""
    return text.encode(source.encoding, _ERRORS.get(source.encoding, "replace"))
