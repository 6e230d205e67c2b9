"""A file, or standard input, as decoded lines: finds out compression and encoding by content."""

from __future__ import annotations

import codecs
import difflib
import io
import re
import stat
import sys
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, masked
from stabtree.loaders.packed.unpack import MAX_BYTES, Stored, chunks, packing, unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

# Long enough for the header of a log with some norm of each of ten thousand layers.
HEAD_BYTES = 1 << 18
# A longer line is no row of metrics; what stands after this many characters is dropped.
MAX_LINE = 16 << 20
NAME_METRICS = "name the file that the trainer wrote its metrics to"
# The share of characters that no text holds, above which a file is binary.
MAX_ODD = 0.1
_ODD = re.compile("[\N{REPLACEMENT CHARACTER}\x01-\x07\x0b\x0e-\x1a\x1c-\x1f]")

_COLOURS = "Terminal escape codes were removed."
# They never reach over a line end, whatever follows: no row may be lost to a stray one.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\^_])?")
# A byte order mark that does not stand at the beginning: in front of a header that a second writer appended.
_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BINARY = (
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "a Feather file"),
    (b"FEA1", "a Feather file"),
    (b"PK\x03\x04", "a zip archive (or .npz, .pt, .xlsx)"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x89PNG", "an image"),
    (b"\x7fELF", "a program"),
    (b"\x80\x04", "a pickle"),
    (b"\x80\x05", "a pickle"),
)


class Sure(IntEnum):
    """How surely a source is of a format, by that format alone; `formats.RANKS` compares the formats."""

    NO = 0
    HARDLY = 1
    MAYBE = 2
    LIKELY = 3
    SURELY = 4


@dataclass(frozen=True, slots=True)
class Source(Stored):
    """An input that was opened once to see what it is.

    Attributes:
        data: the first 256 KiB, decompressed.
        head: the same decoded, lines ending as in `lines`; bytes that can't be decoded are replaced.
        encoding: the codec that decodes it.
        bom: bytes of byte order mark to drop before.
        binary: what kind of binary file it seems to be; empty for text.
        cut: whether it is compressed, and cut or damaged within its first 256 KiB.
    """

    data: bytes = field(default=b"", repr=False)
    head: str = field(default="", repr=False)
    encoding: str = "utf-8"
    bom: int = 0
    binary: str = ""
    cut: bool = False

    @property
    def name(self) -> str:
        """The file's own name, safe to print."""
        return clean(self.file.name) if self.file else "standard input"

    def describe(self, name: str) -> str:
        """The loader's `name` with compression and encoding, where they are out of the ordinary."""
        encoding = self.encoding if self.encoding != "utf-8" else ""
        return ", ".join(part for part in (name, encoding, self.packed) if part)

    def lines(self) -> Lines:
        """A reader of the whole input."""
        return Lines(self)


@dataclass(slots=True)
class Lines:
    """The lines of a source without their line ends, decoded while they are read.

    Attributes:
        source: what is read.
        notes: what had to be replaced or dropped, complete when the iteration is.
        ended: whether the last line had its line end.
    """

    source: Source
    notes: list[str] = field(default_factory=list)
    ended: bool = True

    def __iter__(self) -> Iterator[str]:
        for block in self.blocks():
            *whole, rest = block.split("\n")
            yield from whole
            if rest:
                yield rest

    def blocks(self) -> Iterator[str]:
        """The text in pieces of whole lines, each ending as in `__iter__`; the last may lack its line end."""
        held: list[str] = []
        size = 0
        cut = False
        for piece in self._texts():
            text = piece
            end = text.find("\n")
            if end >= 0 and size + end > MAX_LINE:
                held, text, cut = [*held, text[: max(0, MAX_LINE - size)]], text[end:], True
            last = text.rfind("\n") + 1
            if last:
                yield self._plain("".join((*held, text[:last])))
                held, size = [], 0
            rest = text[last:]
            if size < MAX_LINE:
                held.append(rest[: MAX_LINE - size])
            size += len(rest)
        if cut or size > MAX_LINE:
            self.notes.append("A line longer than 16 MiB was cut.")
        self.ended = not size
        if size:
            yield self._plain("".join(held))

    def _plain(self, text: str) -> str:
        text = text.replace(_MARK, "") if _MARK in text else text
        if "\x1b" not in text:
            return text
        if _COLOURS not in self.notes:
            self.notes.append(_COLOURS)
        return _ESCAPES.sub("", text)

    def _texts(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder(self.source.encoding)()
        newlines = io.IncrementalNewlineDecoder(decoder, translate=True)
        replaced = False
        drop = self.source.bom
        for chunk in chunks(self.source, self.notes):
            piece = chunk[drop:]
            drop -= len(chunk) - len(piece)
            try:
                yield newlines.decode(piece, final=not chunk)
            except UnicodeDecodeError:
                # The decoder keeps its state when it raises, so the same bytes can be given again.
                replaced, decoder.errors = True, "replace"
                yield newlines.decode(piece, final=not chunk)
                decoder.errors = "strict"
        if replaced:
            self.notes.append(f"Bytes that are not {self.source.encoding} were replaced.")


def open_source(path: str | Path) -> Source:
    """Look at a file, or at standard input for `-`, and find out what it holds.

    Raises:
        StabtreeError: where there is no such file, it is empty, no regular file, or may not be read.
    """
    if str(path) == "-":
        if sys.stdin is None:
            raise StabtreeError("is closed", where="standard input", hint="pipe a log in, or name a file")
        stored = sys.stdin.buffer.read(MAX_BYTES)
        return _look(Source("standard input", None, stored, len(stored), data=stored[:HEAD_BYTES]))
    file = Path(path)
    shown = masked(clean(path))
    try:
        status = file.stat()
        mode = status.st_mode
        if stat.S_ISDIR(mode):
            raise StabtreeError("is a folder, not a file", where=shown, hint="name a file in it")
        if not stat.S_ISREG(mode):
            raise StabtreeError("is not a regular file", where=shown, hint="pipe it in: stabtree inspect - < FILE")
        # What the kernel makes up (/proc, /sys) has no size; reading it may wait for ever.
        data = b""
        if status.st_size:
            with file.open("rb") as stream:
                data = stream.read(HEAD_BYTES)
        return _look(Source(shown, file, b"", status.st_size, data=data))
    except FileNotFoundError:
        raise _missing(file, shown) from None
    except (OSError, ValueError) as error:
        raise unreadable(error, shown) from None


def glimpse(file: Path, most: int) -> Source:
    """The whole lines that a file begins with, as if there were no more of it.

    Raises:
        StabtreeError: where they can't be read.
    """
    shown = clean(file)
    try:
        with file.open("rb") as stream:
            data = stream.read(most)
    except (OSError, ValueError) as error:
        raise unreadable(error, shown) from None
    if len(data) == most and not packing(data) and b"\n" in data:
        data = data[: data.rindex(b"\n") + 1]
    return _look(Source(shown, file, data, len(data), data=data))


def in_memory(path: str | Path, text: str) -> Source:
    """A text as if it were all that a file holds.

    Raises:
        StabtreeError: where it is empty.
    """
    data = text.encode("utf-8", "replace")
    return _look(Source(clean(path), None, data, len(data), data=data[:HEAD_BYTES]))


def _look(bare: Source) -> Source:
    """The source with what its first bytes tell."""
    if not bare.data:
        raise StabtreeError("is empty", where=bare.path, hint=NAME_METRICS)
    packed = packing(bare.data)
    source = replace(bare, packed=packed)
    head = bare.data
    damage: list[str] = []
    if packed:
        head = b""
        for chunk in chunks(source, damage):
            head += chunk
            if len(head) >= HEAD_BYTES:
                break
        if not head:
            raise StabtreeError("is empty once decompressed", where=bare.path, hint=NAME_METRICS)
    head = head[:HEAD_BYTES]
    encoding, bom = _encoding(head)
    text = head[bom:].decode(encoding, "replace").replace("\r\n", "\n").replace("\r", "\n").replace(_MARK, "")
    text = _ESCAPES.sub("", text) if "\x1b" in text else text
    return replace(
        source, data=head, head=text, encoding=encoding, bom=bom, binary=_binary(head, text), cut=bool(damage)
    )


def _binary(data: bytes, text: str) -> str:
    """What kind of binary file begins like this; empty for text."""
    for magic, kind in _BINARY:
        if data.startswith(magic):
            return kind
    head = text[:4096]
    return "a binary file" if len(_ODD.findall(head)) > MAX_ODD * len(head) else ""


def _encoding(data: bytes) -> tuple[str, int]:
    """Codec and length of the byte order mark. PowerShell's `>` writes UTF-16, not always with a mark."""
    for mark, codec in _BOMS:
        if data.startswith(mark):
            marks = 1
            while data.startswith(mark, marks * len(mark)):
                marks += 1  # two programs that each wrote one
            return codec, marks * len(mark)
    head = data[:2048]
    for codec, high, low in (("utf-16-le", head[1::2], head[0::2]), ("utf-16-be", head[0::2], head[1::2])):
        if len(head) > 3 and high.count(0) > 0.7 * len(high) and low.count(0) < 0.1 * len(low):
            return codec, 0
    return "utf-8", 0


# A path swallows the second slash of an address.
_REMOTE = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+-]+):[/\\]{1,2}(?P<rest>.*)")
_FETCH = {
    "s3": "aws s3 cp {url} -",
    "gs": "gcloud storage cat {url}",
    "http": "curl -sL {url}",
    "https": "curl -sL {url}",
}


def _missing(file: Path, shown: str) -> StabtreeError:
    if remote := _REMOTE.match(shown):
        scheme, rest = remote["scheme"].lower(), remote["rest"]
        fetch = _FETCH.get(scheme, "").format(url=f"{scheme}://{rest}")
        hint = f"type `{fetch} | stabtree -`" if fetch else "copy it to this machine, and name the copy"
        return StabtreeError("stabtree reads files of this machine, not addresses", where=shown, hint=hint)
    try:
        names = [entry.name for entry in file.parent.iterdir()]
    except OSError:
        return StabtreeError("there is no such file", where=shown, hint="check the path")
    close = difflib.get_close_matches(file.name, names, n=1, cutoff=0.5)
    hint = f"did you mean {clean(file.parent / close[0])}?" if close else "check the path"
    return StabtreeError("there is no such file", where=shown, hint=hint)
