"""W&B's own `.wandb` files: records of protocol buffers in the blocks of LevelDB's log format."""

from __future__ import annotations

import re
import struct
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field

from stabtree.common.files import recorded
from stabtree.loaders.json.lines import parse
from stabtree.loaders.protobuf import BYTES, VARINT, Field, fields, signed, text
from stabtree.loaders.source import without_escapes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.run import LogLine


MAGIC = b":W&B"
HEADER = 7
BLOCK = 1 << 15
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4
# A longer record, which spans many blocks, holds no row of metrics.
MAX_RECORD = 16 << 20
# Numbers of the fields in W&B's schema wandb_internal.proto.
HISTORY, OUTPUT, CONFIG, RAW_OUTPUT, RUN, EXIT = 2, 4, 5, 13, 17, 18
ITEM, STEP = 1, 2
KEY, NESTED_KEY, VALUE_JSON = 1, 2, 16
RUN_CONFIG, DISPLAY_NAME = 4, 8
UPDATE = 1
EXIT_CODE = 1
STREAM, PRINTED = 1, 3


class Printed(NamedTuple):
    """A piece of what the program printed, and which of its streams it printed to."""

    stream: int
    text: str


class Log(Struct):
    """What a `.wandb` file holds.

    Attributes:
        config: the run's configuration.
        name: its display name.
        exit_code: the code that the program ended with; None where it has not ended, or was killed.
        damaged: how often a checksum is wrong or a record is missing.
        cut: bytes of an incomplete last record.
    """

    config: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    exit_code: int | None = None
    damaged: int = 0
    cut: int = 0

    def entries(self, chunks: Iterable[bytes]) -> Iterator[dict[str, Any] | Printed]:
        """Yield the rows of the history and what was printed; set the other attributes on the way."""
        for record in self._records(chunks):
            try:
                entry = self._entry(record)
            except ValueError:
                self.damaged += 1
                continue
            if entry:
                yield entry

    def notes(self) -> list[str]:
        """Describe what could not be read."""
        notes = []
        if self.damaged:
            notes.append(f"Damaged places: {self.damaged:,}, the records there were not read.")
        if self.cut:
            notes.append(f"The file ends inside a record, whose {self.cut:,} bytes were not read.")
        return notes

    def ending(self) -> tuple[LogLine, ...]:
        """Return how the program ended, where that was recorded."""
        if self.exit_code is None:
            return ()
        return (recorded(f"exit code: {self.exit_code} (W&B)"),)

    def _records(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        parts: list[bytes] = []
        size = 0
        for block, whole in _blocks(chunks):
            for kind, piece in self._pieces(block, whole=whole):
                if kind in (WHOLE, FIRST):
                    # A record that was begun before and never ended.
                    self.damaged += bool(parts)
                    parts, size = [], 0
                elif not parts:
                    # The rest of a record whose beginning is lost, which was counted there.
                    continue
                size += len(piece)
                if size <= MAX_RECORD:
                    parts.append(piece)
                if kind in (WHOLE, LAST):
                    if size <= MAX_RECORD:
                        yield b"".join(parts)
                    else:
                        self.damaged += 1
                    parts, size = [], 0
        self.cut += size

    def _pieces(self, block: bytes, *, whole: bool) -> Iterator[tuple[int, bytes]]:
        """Yield (kind, content) of the records and parts of records in one block, which may be the cut last one."""
        at = 0
        while at + HEADER <= len(block):
            crc, length, kind = struct.unpack_from("<IHB", block, at)
            start = at + HEADER
            end = start + length
            if not kind and not length:
                return
            if not WHOLE <= kind <= LAST or (whole and end > len(block)):
                # The next block begins with a record again.
                self.damaged += 1
                return
            if end > len(block):
                self.cut += len(block) - at
                return
            piece = block[start:end]
            if zlib.crc32(piece, zlib.crc32(bytes([kind]))) == crc:
                yield kind, piece
            else:
                self.damaged += 1
            at = end
        if not whole:
            self.cut += len(block) - at

    def _entry(self, data: bytes) -> dict[str, Any] | Printed:
        row: dict[str, Any] = {}
        for part in fields(data):
            if part.wire != BYTES:
                continue
            if part.number == HISTORY:
                row |= _history(data, part)
            elif part.number in (OUTPUT, RAW_OUTPUT):
                return _printed(data, part)
            elif part.number == CONFIG:
                self.config |= _items(data, part, UPDATE)
            elif part.number == EXIT:
                self.exit_code = _exit_code(data, part)
            elif part.number == RUN:
                for inner in _strings(data, part):
                    if inner.number == RUN_CONFIG:
                        self.config |= _items(data, inner, UPDATE)
                    elif inner.number == DISPLAY_NAME:
                        self.name = text(data, inner)
        return row


def _blocks(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield the blocks of the file, without the header of the first, and whether each is whole."""
    rest = b""
    begin = HEADER
    for chunk in chunks:
        data = rest + chunk
        whole = len(data) - len(data) % BLOCK
        for at in range(0, whole, BLOCK):
            yield data[at + begin : at + BLOCK], True
            begin = 0
        rest = data[whole:]
    if rest:
        yield rest[begin:], False


def _history(data: bytes, whole: Field) -> dict[str, Any]:
    row = _items(data, whole, ITEM)
    if "_step" not in row:
        for part in _strings(data, whole):
            if part.number == STEP:
                numbers = [inner.varint for inner in fields(data, part.start, part.end) if inner.wire == VARINT]
                row["_step"] = signed(numbers[0]) if numbers else 0
    return row


def _printed(data: bytes, whole: Field) -> Printed:
    """Return a piece of what was printed; the number of the error stream, 0, is not written."""
    stream, piece = 0, ""
    for part in fields(data, whole.start, whole.end):
        if part.number == STREAM and part.wire == VARINT:
            stream = part.varint
        elif part.number == PRINTED and part.wire == BYTES:
            piece = text(data, part)
    return Printed(stream, piece)


def _exit_code(data: bytes, whole: Field) -> int:
    """Return the code of an exit record; a code of 0 is not written."""
    codes = [part.varint for part in fields(data, whole.start, whole.end) if part.number == EXIT_CODE]
    return signed(codes[0]) if codes else 0


def _strings(data: bytes, whole: Field) -> Iterator[Field]:
    """Yield the fields of a message that hold bytes: text or messages."""
    return (part for part in fields(data, whole.start, whole.end) if part.wire == BYTES)


def _items(data: bytes, whole: Field, number: int) -> dict[str, Any]:
    """Return the keys and values of a history or configuration; nested keys are joined with `/`."""
    found: dict[str, Any] = {}
    for item in _strings(data, whole):
        if item.number != number:
            continue
        keys: list[str] = []
        value = ""
        for part in _strings(data, item):
            if part.number in (KEY, NESTED_KEY):
                keys.append(text(data, part))
            elif part.number == VALUE_JSON:
                value = text(data, part)
        name = "/".join(filter(None, keys))
        if name:
            found[name] = _value(value)
    return found


def _value(text_: str) -> Any:
    """Return the value of an item; text that is no JSON stays text, which no number is read from."""
    if not text_:
        return None
    try:
        return parse(text_)
    except ValueError:
        return text_


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
        for line in whole:
            yield self._line(stream, line)
            self._open.pop(stream, None)
        self._open[stream] = (self._open.get(stream, "") + rest)[:MAX_LINE]

    def rest(self) -> Iterator[str]:
        """Yield the last lines, which have no line end."""
        for stream, begun in self._open.items():
            if begun:
                yield self._line(stream, "")

    def _line(self, stream: int, end: str) -> str:
        self.count += 1
        return without_escapes((self._open.get(stream, "") + end)[:MAX_LINE])
