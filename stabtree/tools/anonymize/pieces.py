"""The unchanged text of a source, with line ends and damaged bytes, in pieces of whole lines."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from stabtree.loaders.packed.unpack import chunks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.loaders.source import Source

# A longer line is cut at a blank or a comma, so that memory stays small.
MAX_HELD = 4 << 20
_ENDS = ("\n", "\r")
_BREAKS = (", ", ",", " ", "\t", ";")
# Bytes that are not UTF-8 are kept; half a letter of UTF-16 can't be.
_ERRORS = {"utf-8": "surrogateescape"}


def texts(source: Source, notes: list[str]) -> Iterator[str]:
    """Yield the text after the byte order mark, in pieces that end with a line if lines are shorter than 4 MiB.

    Args:
        source: the source.
        notes: gets a note on what was damaged.
    """
    decoder = codecs.getincrementaldecoder(source.encoding)(_ERRORS.get(source.encoding, "replace"))
    drop, held = source.bom, ""
    for chunk in chunks(source, notes):
        piece = chunk[drop:]
        drop -= len(chunk) - len(piece)
        held += decoder.decode(piece, final=not chunk)
        cut = _cut(held) if chunk else len(held)
        if cut:
            yield held[:cut]
            held = held[cut:]


def _cut(text: str) -> int:
    """Return where to cut a text that continues; 0 if nothing can be given out yet."""
    end = text.rfind("\n") + 1
    if end or len(text) < MAX_HELD:
        return end
    ends = (text.rfind(mark) + 1 for mark in (*_ENDS, *_BREAKS))
    return next(filter(None, ends), len(text))


def encoded(text: str, source: Source) -> bytes:
    """Return a text in the encoding of its source."""
    return text.encode(source.encoding, _ERRORS.get(source.encoding, "replace"))
