"""The framing of TensorBoard's event files: length, checksum of the length, data, checksum of the data.

A block of the file is handled at once: records of one length make a matrix of bytes, whose checksums are
gathered from tables. That is some twenty times faster than one record after the other.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from stabtree.common.lazy import np
from stabtree.loaders.source import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from stabtree.common.lazy import Ints

    # Records of one length: their data, uint8 (n, length), and where each begins, int64 (n,).
    Records = tuple[NDArray[np.uint8], Ints]

HEADER = 12
FOOTER = 4
# Images and graphs are longer; no scalar is. Their data is skipped, not kept.
MAX_RECORD = 16 << 20
# Above this only the length's checksum is verified: the tables grow with the length of a record.
CHECKED = 1024
_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8
_KNOWN = 4096


class Damage(Struct):
    """The parts of a file that could not be read.

    Attributes:
        records: records whose data does not fit its checksum or is no event.
        lost: bytes that were skipped to find the next record.
        cut: bytes of an incomplete last record.
        large: records that were skipped because of their size.
        size: bytes of the file, decompressed.
    """

    records: int = 0
    lost: int = 0
    cut: int = 0
    large: int = 0
    size: int = 0

    @property
    def share(self) -> float:
        """The share of the file that was skipped because it is damaged."""
        return self.lost / max(1, self.size)

    def notes(self) -> list[str]:
        """Describe it."""
        counts = (
            (self.records, f"Damaged records: {self.records:,}, not read."),
            (self.lost, f"Damaged bytes between records: {self.lost:,} of {self.size:,}, skipped."),
            (self.cut, f"The file ends inside a record, whose {self.cut:,} bytes were not read."),
            (self.large, f"Records above {MAX_RECORD >> 20} MiB: {self.large:,}, not read."),
        )
        return [text for count, text in counts if count]


@cache
def _tables() -> NDArray[np.uint32]:
    """Return what a byte adds to the CRC-32C when so many bytes follow it, uint32 (CHECKED, 256)."""
    first = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        first = np.where(first & 1, (first >> 1) ^ np.uint32(_POLYNOMIAL), first >> 1)
    tables = np.empty((CHECKED, 256), dtype=np.uint32)
    tables[0] = first
    for index in range(1, CHECKED):
        last = tables[index - 1]
        tables[index] = first[last & 255] ^ (last >> 8)
    return tables


def checksums(data: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Return the masked CRC-32C of each row, as the format stores it.

    Args:
        data: uint8 (n, length), `length` from 4 to `CHECKED`.
    """
    # The register starts with all ones, which is the same as inverting the first four bytes.
    flipped = data.copy()
    flipped[:, :4] ^= 255
    offsets = (np.arange(data.shape[1] - 1, -1, -1) * 256).astype(np.intp)
    crc: NDArray[np.uint32] = ~np.bitwise_xor.reduce(_tables().ravel()[offsets + flipped], axis=1)
    return np.asarray(((crc >> 15) | (crc << 17)) + np.uint32(_MASK), dtype=np.uint32)


def length_of(header: bytes) -> int | None:
    """Return the length that a header gives, None if its checksum is wrong."""
    length, stored = struct.unpack("<QI", header)
    right = int(checksums(np.frombuffer(header[:8], dtype=np.uint8)[None])[0]) == stored
    return int(length) if right else None


class RecordReader(Struct):
    """Splits the blocks of a file into records.

    Attributes:
        damage: what could not be read so far.
        stored: the size of the file in bytes, or an upper limit.
    """

    damage: Damage = field(default_factory=Damage)
    stored: int = MAX_BYTES
    _lengths: dict[bytes, int | None] = field(default_factory=dict)

    def read(self, chunks: Iterable[bytes]) -> Iterator[list[Records]]:
        """Yield the records of each block, by length."""
        rest, skip, skipped = b"", 0, 0
        for chunk in chunks:
            self.damage.size += len(chunk)
            if skip >= len(chunk):
                skip -= len(chunk)
                continue
            data = rest + chunk[skip:]
            records, at = self._walk(data)
            rest = data[at:]
            skip = skipped = max(0, at - len(data))
            if records:
                yield self._grouped(data, records)
        # A record that claims more bytes than there are hides those after it, unless it was cut.
        records, at = self._walk(rest, last=True)
        if records:
            yield self._grouped(rest, records)
        self.damage.cut = len(rest[at:])
        self.damage.lost += skipped - skip if skip else 0

    def _walk(self, data: bytes, *, last: bool = False) -> tuple[list[tuple[int, int]], int]:
        """Return start and length of the data of each whole record, and where the rest begins."""
        records: list[tuple[int, int]] = []
        at, size = 0, len(data)
        while at + HEADER <= size:
            length = self._length(data[at : at + HEADER])
            end = at + HEADER + (length or 0) + FOOTER
            if length is None or (last and end > size):
                begin = self._next_header(data, at + 1)
                if length is not None and begin > size - HEADER:
                    break
                self.damage.lost += begin - at
                at = begin
            elif length > MAX_RECORD:
                self.damage.large += 1
                at = end
            elif end > size:
                break
            else:
                records.append((at + HEADER, length))
                at = end
        return records, at

    def _length(self, header: bytes) -> int | None:
        """Return the length of a record; None if its header is damaged."""
        if header not in self._lengths:
            if len(self._lengths) > _KNOWN:
                self._lengths.clear()
            length = length_of(header)
            self._lengths[header] = None if length is None or length > self.stored else length
        return self._lengths[header]

    def _next_header(self, data: bytes, at: int) -> int:
        """Return the next offset of a header with a right checksum, or where one may begin in the next block."""
        # No useful record is longer than 2^24 bytes, so five bytes of its length are zero.
        while (zeros := data.find(bytes(5), at + 3)) >= 0 and zeros + 9 <= len(data):
            if self._length(data[zeros - 3 : zeros + 9]):
                return zeros - 3
            at = zeros - 2
        return max(at, len(data) - HEADER + 1)

    def _grouped(self, data: bytes, records: list[tuple[int, int]]) -> list[Records]:
        raw = np.frombuffer(data, dtype=np.uint8)
        offsets, sizes = np.array(records).T
        return [self._checked(raw, offsets[sizes == size], int(size)) for size in np.unique(sizes)]

    def _checked(self, raw: NDArray[np.uint8], offsets: Ints, length: int) -> Records:
        """Return the records of one length whose checksums are right."""
        rows: Any = np.lib.stride_tricks.sliding_window_view(raw, length + FOOTER)[offsets]
        data = rows[:, :length]
        if not 4 <= length <= CHECKED:
            return data, offsets
        right = checksums(data) == np.ascontiguousarray(rows[:, length:]).view("<u4").ravel()
        self.damage.records += int(np.count_nonzero(~right))
        return data[right], offsets[right]
