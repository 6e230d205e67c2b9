"""The wire format of protocol buffers, read without their schema: event files and W&B's records are made of it."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def signed(value: int) -> int:
    """Return a varint of the type int64, which codes a negative number as its two's complement."""
    return value - (value >> 63 << 64)


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
    """Return a number of the type int64 among the fields of a message; 0 is not written."""
    return signed(own[number, VARINT].varint) if (number, VARINT) in own else 0


def messages(data: bytes, whole: Field | None, *path: int) -> Iterator[Field]:
    """Yield the messages, or texts, at a path of numbers within a message, or within all of the data."""
    for part in fields(data, whole):
        if part.number == path[0] and part.wire == BYTES:
            if path[1:]:
                yield from messages(data, part, *path[1:])
            else:
                yield part
