"""What a run printed, as W&B keeps it: pieces of two streams, which become lines again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct, field

from stabtree.loaders.source import without_escapes

if TYPE_CHECKING:
    from collections.abc import Iterator

# A longer line is a progress bar or a dump: no line of an error is.
MAX_LINE = 1 << 16
_LINE_ENDS = re.compile(r"\r\n|\n|\r")


class Console(Struct):
    """The two streams that a program prints to.

    Attributes:
        count: how many lines were taken out so far.
    """

    count: int = 0
    _open: dict[int, str] = field(default_factory=dict)

    def lines(self, stream: int, piece: str) -> Iterator[str]:
        """Yield the lines that a piece of a stream completes; of a very long line its beginning is kept."""
        *whole, rest = _LINE_ENDS.split(piece)
        for text in whole:
            yield self._line(stream, text)
            self._open.pop(stream, None)
        self._open[stream] = (self._open.get(stream, "") + rest)[:MAX_LINE]

    def rest(self) -> Iterator[str]:
        """Yield the last lines, which have no line end."""
        for stream, text in self._open.items():
            if text:
                yield self._line(stream, "")

    def _line(self, stream: int, end: str) -> str:
        self.count += 1
        return without_escapes((self._open.get(stream, "") + end)[:MAX_LINE])
