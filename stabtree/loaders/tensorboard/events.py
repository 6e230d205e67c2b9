"""The events of TensorBoard: where the scalars of one are, and the columns of all.

Events of one length mostly differ in nothing but time, step, tag and value. So one of them is parsed, which
gives a template, and all that fit it are read as columns of the matrix of their bytes.
"""

from __future__ import annotations

import struct
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field

from stabtree.common.lazy import np
from stabtree.frameworks.recognise import of_model
from stabtree.loaders.binary import BYTES, FIXED32, FIXED64, VARINT, Field, fields, messages, parts, real, text
from stabtree.loaders.json.lines import parse_object
from stabtree.loaders.source import MAX_BYTES
from stabtree.loaders.table import Points

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
# A file with more names than this logs something other than metrics.
MAX_TAGS = 20_000
# Groups of records that fit no template are parsed one by one once so many templates were tried.
MAX_TEMPLATES = 12
# Numbers of the fields in the schemas event.proto, summary.proto and tensor.proto.
WALL_TIME, STEP, SUMMARY = 1, 2, 5
TAG, SIMPLE_VALUE, TENSOR, METADATA = 1, 2, 8, 9
DTYPE, CONTENT, STRINGS = 1, 4, 8
# The types of a scalar, which every writer turns into a float, and the tensor fields that hold one.
_TYPES = {1: "<f4", 2: "<f8"}
_FIXED = {5: "<f4", 6: "<f8"}


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


@lru_cache(maxsize=4096)  # most records of a file are of a few lengths
def length_of(header: bytes) -> int | None:
    """Return the length that a header gives, None if its checksum is wrong."""
    length, stored = struct.unpack("<QI", header)
    right = int(checksums(np.frombuffer(header[:8], dtype=np.uint8)[None])[0]) == stored
    return int(length) if right else None


class Scalar(NamedTuple):
    """A value within an event: where its name is, where it begins and ends, and its type."""

    tag: tuple[int, int]
    start: int
    end: int
    kind: str


class Event(Struct):
    """Where the parts of one record are."""

    time: int = -1
    step: tuple[int, int] = (0, 0)
    scalars: list[Scalar] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)


def parse(data: bytes) -> Event:
    """Take one event apart.

    Raises:
        ValueError: if it is none.
    """
    event, own = Event(), parts(data)
    if time := own.get((WALL_TIME, FIXED64)):
        event.time = time.start
    if step := own.get((STEP, VARINT)):
        event.step = step.start, step.end
    for value in messages(data, None, SUMMARY, 1):
        _value(data, value, event)
    return event


def _value(data: bytes, whole: Field, event: Event) -> None:
    """Add one value of a summary to its event, if it is a scalar or a configuration."""
    own = parts(data, whole)
    tag = own.get((TAG, BYTES))
    if tag is None or tag.start == tag.end:
        return
    name = tag.start, tag.end
    if simple := own.get((SIMPLE_VALUE, FIXED32)):
        event.scalars.append(Scalar(name, simple.start, simple.end, "<f4"))
    elif tensor := own.get((TENSOR, BYTES)):
        _tensor(data, tensor, name, event)
    if (METADATA, BYTES) in own and text(data, tag) == "_hparams_/session_start_info":
        event.config |= _hparams(data, own[METADATA, BYTES])


def _tensor(data: bytes, whole: Field, tag: tuple[int, int], event: Event) -> None:
    """Add a tensor of one float as a scalar, one text that is a JSON object as configuration."""
    kind = ""
    found: list[Scalar] = []
    for part in fields(data, whole):
        if part.number == DTYPE and part.wire == VARINT:
            kind = _TYPES.get(part.varint, "")
        elif part.number == STRINGS and part.wire == BYTES and data[part.start : part.start + 1] == b"{":
            settings = parse_object(text(data, part)) or {}
            if "model_type" in settings:
                settings = of_model(settings)
            event.config |= settings
        elif part.end > part.start and (part.number == CONTENT or (part.number in _FIXED and part.wire != VARINT)):
            found.append(Scalar(tag, part.start, part.end, _FIXED.get(part.number, kind)))
    if kind and len(found) == 1 and found[0].end - found[0].start == np.dtype(found[0].kind).itemsize:
        event.scalars += found


# The fields of google.protobuf.Value that hold a number, a text and a truth value.
_CONTENTS: dict[tuple[int, int], Callable[[bytes, Field], float | str | bool]] = {
    (2, FIXED64): real,
    (3, BYTES): text,
    (4, VARINT): lambda _, value: bool(value.varint),
}


def _hparams(data: bytes, metadata: Field) -> dict[str, Any]:
    """Return the hyperparameters that the plugin `hparams` keeps in the metadata of an empty value."""
    found: dict[str, Any] = {}
    # SummaryMetadata.plugin_data.content.session_start_info.hparams, a map of google.protobuf.Value.
    for entry in messages(data, metadata, 1, 2, 3, 1):
        own = parts(data, entry)
        if not {(1, BYTES), (2, BYTES)} <= own.keys():
            continue
        for value in parts(data, own[2, BYTES]).values():
            if content := _CONTENTS.get((value.number, value.wire)):
                found[text(data, own[1, BYTES])] = content(data, value)
    return found


class EventTemplate(NamedTuple):
    """Events that differ in time, step, tags and values only."""

    event: Event  # one of them, taken apart
    mask: NDArray[np.uint8]  # (length,), zero where they may differ
    expected: NDArray[np.uint8]  # (length,), the bytes under the mask

    @classmethod
    def of(cls, event: Event, data: NDArray[np.uint8]) -> EventTemplate:
        """Return the template of an event."""
        mask = np.full(len(data), 255, dtype=np.uint8)
        if event.time >= 0:
            mask[event.time : event.time + 8] = 0
        # All but the last byte of a varint have their high bit set; the others are the number.
        mask[slice(*event.step)] = 128
        for scalar in event.scalars:
            mask[slice(*scalar.tag)] = mask[scalar.start : scalar.end] = 0
        return cls(event, mask, data & mask)


class EventFile(Struct):
    """Reads the scalars of a file, and counts what can't be read."""

    stored: int = MAX_BYTES  # the size of the file in bytes, or an upper limit
    config: dict[str, Any] = field(default_factory=dict)  # hyperparameters in it
    size: int = 0  # bytes of the file, decompressed
    lost: int = 0  # bytes that were skipped to find the next record
    _names: dict[str, int] = field(default_factory=dict)  # the tags that were met, each with its number
    _templates: dict[int, list[EventTemplate]] = field(default_factory=dict)
    # Of scalars that were read together: where each begins in the file, its tag, step, time and value.
    _columns: list[tuple[NDArray[Any], ...]] = field(default_factory=list)
    _damaged: int = 0  # records whose data does not fit its checksum or is no event
    _cut: int = 0  # bytes of an incomplete last record
    _large: int = 0  # records that were skipped because of their size
    _crowded: int = 0  # values of tags beyond `MAX_TAGS`, which were left out

    def notes(self) -> list[str]:
        """Describe what could not be read."""
        tags = f"The file has more than {len(self._names):,} tags: {self._crowded:,} values were left out."
        counts = (
            (self._damaged, f"Damaged records: {self._damaged:,}, not read."),
            (self.lost, f"Damaged bytes between records: {self.lost:,} of {self.size:,}, skipped."),
            (self._cut, f"The file ends inside a record, whose {self._cut:,} bytes were not read."),
            (self._large, f"Records above {MAX_RECORD >> 20} MiB: {self._large:,}, not read."),
            (self._crowded, tags),
        )
        return [text for count, text in counts if count]

    def points(self) -> Points:
        """Return all scalars in the order of the file."""
        if not self._columns:
            return Points.nothing()
        offset, *columns = map(np.concatenate, zip(*self._columns, strict=True))
        order = np.argsort(offset, kind="stable")
        return Points(tuple(self._names), *(values[order] for values in columns))

    def read(self, chunks: Iterable[bytes]) -> None:
        """Read the records of a file that is given in chunks."""
        rest, skip, skipped = b"", 0, 0
        for chunk in chunks:
            self.size += len(chunk)
            if skip >= len(chunk):
                skip -= len(chunk)
                continue
            data = rest + chunk[skip:]
            at = self._walk(data)
            rest = data[at:]
            skip = skipped = max(0, at - len(data))
        # A record that claims more bytes than there are hides those after it, unless it was cut.
        self._cut = len(rest[self._walk(rest, last=True) :])
        self.lost += skipped - skip if skip else 0

    def _walk(self, data: bytes, *, last: bool = False) -> int:
        """Read the whole records in what was read last of the file; return where the rest begins."""
        records: list[tuple[int, int]] = []  # start and length of the data of each
        at, size = 0, len(data)
        while at + HEADER <= size:
            length = self._length(data[at : at + HEADER])
            end = at + HEADER + (length or 0) + FOOTER
            if length is None or (last and end > size):
                begin = self._next_header(data, at + 1)
                if length is not None and begin > size - HEADER:
                    break
                self.lost += begin - at
                at = begin
            elif length > MAX_RECORD:
                self._large += 1
                at = end
            elif end > size:
                break
            else:
                records.append((at + HEADER, length))
                at = end
        if records:
            raw = np.frombuffer(data, dtype=np.uint8)
            starts, lengths = np.array(records).T
            for length in np.unique(lengths).tolist():
                self._add_checked(raw, starts[lengths == length], length)
        return at

    def _length(self, header: bytes) -> int | None:
        """Return the length of a record; None if its header is damaged."""
        length = length_of(header)
        return None if length is None or length > self.stored else length

    def _next_header(self, data: bytes, at: int) -> int:
        """Return the next offset of a header with a right checksum, or where one may begin in the next block."""
        # No useful record is longer than 2^24 bytes, so five bytes of its length are zero.
        while (zeros := data.find(bytes(5), at + 3)) >= 0 and zeros + 9 <= len(data):
            if self._length(data[zeros - 3 : zeros + 9]):
                return zeros - 3
            at = zeros - 2
        return max(at, len(data) - HEADER + 1)

    def _add_checked(self, raw: NDArray[np.uint8], starts: Ints, length: int) -> None:
        """Read the records of one length whose checksums are right."""
        rows: Any = np.lib.stride_tricks.sliding_window_view(raw, length + FOOTER)[starts]
        data, offsets = rows[:, :length], starts + (self.size - len(raw))
        if 4 <= length <= CHECKED:
            right = checksums(data) == np.ascontiguousarray(rows[:, length:]).view("<u4").ravel()
            self._damaged += int(np.count_nonzero(~right))
            data, offsets = data[right], offsets[right]
        templates = self._templates.setdefault(length, [])
        for template in templates:
            data, offsets = self._fitting(template, data, offsets)
        while len(data):
            try:
                event = parse(data[0].tobytes())
            except ValueError:
                self._damaged += 1
                event = None
            if event and not event.config and len(templates) < MAX_TEMPLATES:
                templates.append(EventTemplate.of(event, data[0]))
                data, offsets = self._fitting(templates[-1], data, offsets)
                continue
            if event:  # one that holds settings, or is like none before
                self.config |= event.config
                self._add(event, data[:1], offsets[:1])
            data, offsets = data[1:], offsets[1:]

    def _fitting(
        self, template: EventTemplate, data: NDArray[np.uint8], offsets: Ints
    ) -> tuple[NDArray[np.uint8], Ints]:
        """Read the records that fit a template; return the others."""
        fits = ~((data ^ template.expected) & template.mask).any(axis=1)
        if fits.any():
            self._add(template.event, data[fits], offsets[fits])
        return data[~fits], offsets[~fits]

    def _add(self, event: Event, data: NDArray[np.uint8], offsets: Ints) -> None:
        """Read the scalars of events that are laid out like `event`."""
        step = np.zeros(len(data), dtype=np.int64)
        for index, column in enumerate(range(*event.step)):
            step |= (data[:, column] & 127).astype(np.int64) << (7 * index)
        time = np.zeros(len(data))
        if event.time >= 0 and event.scalars:
            time = _numbers(data, event.time, event.time + 8, "<f8")
        for scalar in event.scalars:
            tag = self._numbered(data[:, slice(*scalar.tag)])
            value = _numbers(data, scalar.start, scalar.end, scalar.kind)
            known = tag >= 0
            self._crowded += len(data) - int(np.count_nonzero(known))
            columns = (offsets + scalar.tag[0], tag, step, time, value)
            self._columns.append(tuple(values[known] for values in columns))

    def _numbered(self, tags: NDArray[np.uint8]) -> Ints:
        """Return the number of each row's tag; -1 for tags beyond `MAX_TAGS`."""
        whole: Any = np.ascontiguousarray(tags).view(f"V{tags.shape[1]}").ravel()
        _, first, which = np.unique(whole, return_index=True, return_inverse=True)
        numbers = np.full(len(first), -1, dtype=np.int64)
        for at in np.argsort(first).tolist():
            name = whole[first[at]].tobytes().decode("utf-8", "replace")
            if name in self._names or len(self._names) < MAX_TAGS:
                numbers[at] = self._names.setdefault(name, len(self._names))
        return np.asarray(numbers[which])


def _numbers(data: NDArray[np.uint8], start: int, end: int, kind: str) -> NDArray[np.float64]:
    raw: Any = np.ascontiguousarray(data[:, start:end])
    with np.errstate(invalid="ignore"):
        return np.asarray(raw.view(kind).ravel(), dtype=np.float64)
