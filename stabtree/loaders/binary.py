"""Binary records, read without a schema: the wire format of protocol buffers, and the blocks of LevelDB's log format.

Event files are made of the first, W&B's and SwanLab's records of both.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_SIZES = {FIXED64: 8, FIXED32: 4}
_REALS = {FIXED64: "<d", FIXED32: "<f"}


class Field(NamedTuple):
    """One field of a message."""

    number: int  # its number in the schema
    wire: int  # how it is coded: `VARINT`, `FIXED64`, `BYTES` or `FIXED32`
    start: int  # where its content begins, after key and length
    end: int  # where its content ends
    varint: int  # the value of a varint as an unsigned number, else 0


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the varint at `at`, and where it ends.

    Raises:
        ValueError: if it is cut or longer than ten bytes.
    """
    value = shift = 0
    for index in range(at, min(end, at + 10)):
        byte = data[index]
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFF_FFFF_FFFF_FFFF, index + 1
        shift += 7
    raise ValueError("a number is cut or too long")


def fields(data: bytes, whole: Field | None = None) -> Iterator[Field]:
    """Yield the fields of a message within the data, or of the data itself.

    Raises:
        ValueError: if the bytes are no message.
    """
    at, end = (whole.start, whole.end) if whole else (0, len(data))
    while at < end:
        key, at = varint(data, at, end)
        number, wire = key >> 3, key & 7
        value, first = 0, at
        if wire == VARINT:
            value, at = varint(data, at, end)
        elif wire == BYTES:
            length, first = varint(data, at, end)
            at = first + length
        elif wire in _SIZES:
            at += _SIZES[wire]
        else:
            raise ValueError("a field has no known kind")
        if at > end or not number:
            raise ValueError("a field is longer than its message")
        yield Field(number, wire, first, at, value)


def text(data: bytes, field: Field) -> str:
    """Return the content of a string field; bytes that are not UTF-8 are replaced."""
    return data[field.start : field.end].decode("utf-8", "replace")


def real(data: bytes, field: Field) -> float:
    """Return the content of a field of the type double or float, which `FIXED64` and `FIXED32` code."""
    return float(struct.unpack_from(_REALS[field.wire], data, field.start)[0])


def parts(data: bytes, whole: Field | None = None) -> dict[tuple[int, int], Field]:
    """Return the fields of a message by number and wire; of one that is repeated the last."""
    return {(part.number, part.wire): part for part in fields(data, whole)}


def integer(own: dict[tuple[int, int], Field], number: int) -> int:
    """Return a number of the type int64 among the fields of a message: 0 is not written, below 0 is a complement."""
    value = own[number, VARINT].varint if (number, VARINT) in own else 0
    return value - (value >> 63 << 64)


def messages(data: bytes, whole: Field | None, *path: int) -> Iterator[Field]:
    """Yield the messages, or texts, at a path of numbers within a message, or within all of the data."""
    for part in fields(data, whole):
        if part.number == path[0] and part.wire == BYTES:
            if path[1:]:
                yield from messages(data, part, *path[1:])
            else:
                yield part


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
