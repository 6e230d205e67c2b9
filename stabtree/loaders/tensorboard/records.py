"""The framing of TensorBoard's event files: length, checksum of the length, data, checksum of the data.

A block of the file is handled at once: records of one length make a matrix of bytes, whose checksums are
gathered from tables. That is some twenty times faster than one record after the other.
"""

from __future__ import annotations

import struct
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Any

from stabtree.common.dataclass import dataclass
from stabtree.common.lazy import np
from stabtree.loaders.packed.unpack import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from stabtree.common.lazy import Ints

HEADER = 12
FOOTER = 4
# Images and graphs are longer; no scalar is. Their data is skipped, not kept.
MAX_RECORD = 16 << 20
# Above this only the length's checksum is verified: the tables grow with the length of a record.
CHECKED = 1024
_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8
_KNOWN = 4096


@dataclass(slots=True)
class Damage:
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


@dataclass(frozen=True, slots=True)
class Records:
    """Records of one length whose checksums are right.

    Attributes:
        data: uint8 (n, length).
        offsets: int64 (n,), where each begins, for putting records of several lengths in order.
    """

    data: NDArray[np.uint8]
    offsets: Ints


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
    length = data.shape[1]
    # The register starts with all ones, which is the same as inverting the first four bytes.
    flipped = data.copy()
    flipped[:, :4] ^= 255
    offsets = (np.arange(length - 1, -1, -1) * 256).astype(np.intp)
    crc: NDArray[np.uint32] = ~np.bitwise_xor.reduce(_tables().ravel()[offsets + flipped], axis=1)
    return np.asarray(((crc >> 15) | (crc << 17)) + np.uint32(_MASK), dtype=np.uint32)


def length_of(header: bytes) -> int | None:
    """Return the length that a header gives, None if its checksum is wrong."""
    length, stored = struct.unpack("<QI", header)
    if int(checksums(np.frombuffer(header[:8], dtype=np.uint8)[None])[0]) == stored:
        return int(length)
    return None


def _headers(data: bytes) -> Ints:
    """Return every offset of a header with a right checksum."""
    raw = np.frombuffer(data, dtype=np.uint8)
    if len(raw) < HEADER:
        return np.zeros(0, dtype=np.int64)
    windows: Any = np.lib.stride_tricks.sliding_window_view(raw, HEADER)
    # No useful record is longer than 2^24 bytes, so five bytes of its length are zero, but not all eight.
    likely = np.flatnonzero((raw[3:-8] == 0) & (raw[7:-4] == 0) & (raw[:-11] | raw[1:-10] | raw[2:-9] != 0))
    likely = likely[~windows[likely, 4:7].any(axis=1)]
    stored = np.ascontiguousarray(windows[likely, 8:12]).view("<u4").ravel()
    right: Ints = likely[checksums(windows[likely, :8]) == stored]
    return right


@dataclass(slots=True)
class RecordReader:
    """Splits the blocks of a file into records.

    Attributes:
        damage: what could not be read so far.
        stored: the size of the file in bytes, or an upper limit.
    """

    damage: Damage = field(default_factory=Damage)
    stored: int = MAX_BYTES
    _known: dict[bytes, int] = field(default_factory=dict)
    _skip: int = 0
    _skipped: int = 0

    def read(self, chunks: Iterable[bytes]) -> Iterator[list[Records]]:
        """Yield the records of each block, by length."""
        rest = b""
        for chunk in chunks:
            self.damage.size += len(chunk)
            if self._skip >= len(chunk):
                self._skip -= len(chunk)
                continue
            data = rest + chunk[self._skip :]
            self._skip = 0
            starts, lengths, at = self._walk(data)
            rest = data[at:]
            if starts:
                yield self._grouped(data, starts, lengths)
        # A record that claims more bytes than there are hides those after it, unless it was cut.
        starts, lengths, at = self._walk(rest, last=True)
        if starts:
            yield self._grouped(rest, starts, lengths)
        rest = rest[at:]
        self.damage.cut = len(rest)
        if self._skip:
            self.damage.lost += self._skipped - self._skip

    def _walk(self, data: bytes, *, last: bool = False) -> tuple[list[int], list[int], int]:
        """Return where the data of each whole record begins, how long it is, and where the rest begins."""
        starts: list[int] = []
        lengths: list[int] = []
        at, size = 0, len(data)
        headers: Ints | None = None
        while at + HEADER <= size:
            length = self._length(data[at : at + HEADER])
            end = size + 1 if length is None else at + HEADER + length + FOOTER
            if length is None or (last and end > size):
                # Looked for once a block: a file may be damaged at every other record.
                headers = _headers(data) if headers is None else headers
                if length is not None and (not len(headers) or headers[-1] <= at):
                    break
                at = self._resync(headers, at, size)
            elif length > MAX_RECORD:
                self.damage.large += 1
                if end > size:
                    self._skip = self._skipped = end - size
                    return starts, lengths, size
                at = end
            elif end > size:
                break
            else:
                starts.append(at + HEADER)
                lengths.append(length)
                at = end
        return starts, lengths, at

    def _length(self, header: bytes) -> int | None:
        """Return the length of a record; None if its header is damaged."""
        length = self._known.get(header)
        if length is None:
            length = length_of(header)
            if length is None or length > self.stored:
                return None
            if len(self._known) < _KNOWN:
                self._known[header] = length
        return length

    def _resync(self, headers: Ints, at: int, size: int) -> int:
        """Return the next offset of a header, or where one may begin in the next block; bytes up to it are lost."""
        index = int(np.searchsorted(headers, at + 1))
        if index < len(headers):
            found = int(headers[index])
        else:
            found = max(at + 1, size - HEADER + 1)
        self.damage.lost += found - at
        return found

    def _grouped(self, data: bytes, starts: list[int], lengths: list[int]) -> list[Records]:
        raw = np.frombuffer(data, dtype=np.uint8)
        offsets, sizes = np.array(starts), np.array(lengths)
        order = np.argsort(sizes, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1)
        return [self._checked(raw, offsets[group], int(sizes[group[0]])) for group in groups]

    def _checked(self, raw: NDArray[np.uint8], offsets: Ints, length: int) -> Records:
        rows: Any = np.lib.stride_tricks.sliding_window_view(raw, length + FOOTER)[offsets]
        data = rows[:, :length]
        if 4 <= length <= CHECKED:
            right = checksums(data) == np.ascontiguousarray(rows[:, length:]).view("<u4").ravel()
            if not right.all():
                self.damage.records += int(np.count_nonzero(~right))
                return Records(data[right], offsets[right])
        return Records(data, offsets)
