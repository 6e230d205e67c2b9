"""Records in the blocks of LevelDB's log format, as W&B and SwanLab keep them."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

HEADER = 7  # of the file and of each piece alike
BLOCK = 1 << 15
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4
# A longer record, which spans many blocks, holds no row of metrics.
MAX_RECORD = 16 << 20


class RecordBlocks(Struct):
    """Yields the records of a file, and counts what could not be read."""

    damaged: int = 0  # how often a checksum is wrong or a record is missing
    cut: int = 0  # bytes of an incomplete last record

    def notes(self) -> list[str]:
        """Describe what could not be read."""
        counts = (
            (self.damaged, f"Damaged places: {self.damaged:,}, the records there were not read."),
            (self.cut, f"The file ends inside a record, whose {self.cut:,} bytes were not read."),
        )
        return [text for count, text in counts if count]

    def records(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the records of a file that is given in parts."""
        pieces: list[bytes] = []
        size = 0
        for block, whole in _blocks(parts):
            for kind, piece in self._pieces(block, whole=whole):
                if kind in (WHOLE, FIRST):
                    # A record that was begun before and never ended.
                    self.damaged += bool(pieces)
                    pieces, size = [], 0
                elif not pieces:
                    # The rest of a record whose beginning is lost, which was counted there.
                    continue
                size += len(piece)
                if size <= MAX_RECORD:
                    pieces.append(piece)
                if kind in (WHOLE, LAST):
                    if size <= MAX_RECORD:
                        yield b"".join(pieces)
                    else:
                        self.damaged += 1
                    pieces, size = [], 0
        self.cut += size

    def _pieces(self, block: bytes, *, whole: bool) -> Iterator[tuple[int, bytes]]:
        """Yield (kind, content) of the records and parts of records in one block, which may be the cut last one."""
        at = 0
        while at + HEADER <= len(block):
            crc, length, kind = struct.unpack_from("<IHB", block, at)
            end = at + HEADER + length
            if not kind and not length:
                return
            if not WHOLE <= kind <= LAST or (whole and end > len(block)):
                # The next block begins with a record again.
                self.damaged += 1
                return
            if end > len(block):
                break
            piece = block[at + HEADER : end]
            if zlib.crc32(piece, zlib.crc32(bytes([kind]))) == crc:
                yield kind, piece
            else:
                self.damaged += 1
            at = end
        if not whole:
            self.cut += len(block) - at


def _blocks(parts: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield the blocks of the file, without the header of the first, and whether each is whole."""
    rest = b""
    begin = HEADER
    for part in parts:
        data = rest + part
        whole = len(data) - len(data) % BLOCK
        for at in range(0, whole, BLOCK):
            yield data[at + begin : at + BLOCK], True
            begin = 0
        rest = data[whole:]
    if rest:
        yield rest[begin:], False
