"""A file, or standard input, as decoded lines: finds out compression and encoding by content."""

from __future__ import annotations

import codecs
import difflib
import io
import lzma
import stat
import sys
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from stabtree.errors import StabtreeError
from stabtree.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD_BYTES = 1 << 16
CHUNK_BYTES = 1 << 20
# Far above any metrics file; below what a compression bomb would make of a small one.
MAX_BYTES = 4 << 30
# A longer line is no row of metrics; what stands after this many characters is dropped.
MAX_LINE = 16 << 20

_PACKED = ((b"\x1f\x8b", "gzip"), (b"BZh", "bzip2"), (b"\xfd7zXZ\x00", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"))
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BINARY = (
    (b"PAR1", "a Parquet file"),
    (b"PK\x03\x04", "a zip archive (or .npz, .pt, .xlsx)"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x89PNG", "an image"),
    (b"\x7fELF", "a program"),
    (b"\x80\x04", "a pickle"),
    (b"\x80\x05", "a pickle"),
)


@dataclass(frozen=True, slots=True)
class Source:
    """An input that was opened once to see what it is.

    Attributes:
        path: its name as the user gave it, safe to print.
        file: where it lies; None for standard input.
        packed: `gzip`, `bzip2`, `xz`, `zstd` or nothing.
        encoding: the codec that decodes it, and `bom` the bytes to drop before.
        data: its first 64 KiB, decompressed; all of it for standard input.
        size: bytes as stored.
    """

    path: str
    file: Path | None
    packed: str
    encoding: str
    bom: int
    data: bytes = field(repr=False)
    size: int

    @property
    def head(self) -> str:
        """The first characters, decoded; bytes that can't be are replaced."""
        return self.data[self.bom : HEAD_BYTES].decode(self.encoding, "replace")

    @property
    def name(self) -> str:
        """The file's own name, safe to print."""
        return clean(self.file.name) if self.file else "standard input"

    @property
    def binary(self) -> str:
        """What kind of binary file it seems to be; empty for text."""
        for magic, kind in _BINARY:
            if self.data.startswith(magic):
                return kind
        head = self.head[:4096]
        odd = sum((not char.isprintable() and char not in "\t\n\r\0\x1b\f\b") or char == "�" for char in head)
        return "a binary file" if odd > 0.1 * len(head) else ""

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
        rest = ""
        cut = 0
        for text in self._texts():
            *whole, rest = (rest + text).split("\n")
            yield from whole
            if len(rest) > MAX_LINE:
                rest, cut = rest[:MAX_LINE], cut + 1
        if cut:
            self.notes.append("A line longer than 16 MiB was cut.")
        self.ended = not rest
        if rest:
            yield rest

    def _texts(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder(self.source.encoding)()
        newlines = io.IncrementalNewlineDecoder(decoder, translate=True)
        replaced = False
        drop = self.source.bom
        for chunk in self._chunks():
            piece = chunk[drop:]
            drop = 0
            try:
                yield newlines.decode(piece, final=not chunk)
            except UnicodeDecodeError:
                # The decoder keeps its state when it raises, so the same bytes can be given again.
                replaced, decoder.errors = True, "replace"
                yield newlines.decode(piece, final=not chunk)
                decoder.errors = "strict"
        if replaced:
            self.notes.append(f"Bytes that are not {self.source.encoding} were replaced.")

    def _chunks(self) -> Iterator[bytes]:
        """The decompressed bytes, then one empty chunk to close the decoder."""
        total = 0
        with _stream(self.source) as stream:
            while True:
                try:
                    chunk = stream.read1(CHUNK_BYTES)
                except _damage() as error:
                    if not total:
                        raise StabtreeError(
                            f"the {self.source.packed} data can't be read ({clean(error)})",
                            where=self.source.path,
                        ) from None
                    self.notes.append(
                        f"The {self.source.packed} data is cut or damaged: what stands before was read."
                    )
                    chunk = b""
                total += len(chunk)
                if total > MAX_BYTES:
                    raise StabtreeError(
                        "holds more than 4 GiB of text, which is no metrics file",
                        where=self.source.path,
                        hint="thin the log out, or name a smaller file",
                    )
                yield chunk
                if not chunk:
                    return


def open_source(path: str | Path) -> Source:
    """Look at a file, or at standard input for `-`, and find out what it holds.

    Raises:
        StabtreeError: where there is no such file, it is empty, no regular file, or may not be read.
    """
    if str(path) == "-":
        data = sys.stdin.buffer.read(MAX_BYTES)
        return _source("standard input", None, data, len(data))
    file = Path(path)
    shown = clean(path)
    try:
        mode = file.stat().st_mode
        if stat.S_ISDIR(mode):
            raise StabtreeError("is a folder, not a file", where=shown, hint="name a file in it")
        if not stat.S_ISREG(mode):
            raise StabtreeError(
                "is not a regular file", where=shown, hint="pipe it in: stabtree inspect - < FILE"
            )
        with file.open("rb") as stream:
            data = stream.read(HEAD_BYTES)
        return _source(shown, file, data, file.stat().st_size)
    except FileNotFoundError:
        raise _missing(file, shown) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise StabtreeError(
            f"can't be read: {clean(reason)}", where=shown, hint="check the path and its rights"
        ) from None


def _source(shown: str, file: Path | None, data: bytes, size: int) -> Source:
    if not data:
        raise StabtreeError(
            "is empty", where=shown, hint="name the file that the trainer wrote its metrics to"
        )
    packed = next((name for magic, name in _PACKED if data.startswith(magic)), "")
    bare = Source(shown, file, packed, "utf-8", 0, data, size)
    if packed:
        data = _first(bare) if file else b"".join(bare.lines()._chunks())  # noqa: SLF001
        if not data:
            raise StabtreeError("is empty once decompressed", where=shown)
        bare = Source(shown, file, packed if file else "", "utf-8", 0, data, size)
    encoding, bom = _encoding(data)
    return Source(shown, file, bare.packed, encoding, bom, data, size)


def _first(source: Source) -> bytes:
    """The first 64 KiB of what a packed file holds."""
    head = b""
    for chunk in source.lines()._chunks():  # noqa: SLF001
        head += chunk
        if len(head) >= HEAD_BYTES:
            break
    return head[:HEAD_BYTES]


def _encoding(data: bytes) -> tuple[str, int]:
    """Codec and length of the byte order mark. PowerShell's `>` writes UTF-16, not always with a mark."""
    for mark, codec in _BOMS:
        if data.startswith(mark):
            return codec, len(mark)
    head = data[:2048]
    for codec, high, low in (("utf-16-le", head[1::2], head[0::2]), ("utf-16-be", head[0::2], head[1::2])):
        if len(head) > 3 and high.count(0) > 0.7 * len(high) and low.count(0) < 0.1 * len(low):
            return codec, 0
    return "utf-8", 0


def _missing(file: Path, shown: str) -> StabtreeError:
    try:
        names = [entry.name for entry in file.parent.iterdir()]
    except OSError:
        return StabtreeError("there is no such file", where=shown, hint="check the path")
    close = difflib.get_close_matches(file.name, names, n=1, cutoff=0.5)
    hint = f"did you mean {clean(file.parent / close[0])}?" if close else "check the path"
    return StabtreeError("there is no such file", where=shown, hint=hint)


def _damage() -> tuple[type[Exception], ...]:
    """What the decompressors raise over bytes that are cut or wrong."""
    errors: tuple[type[Exception], ...] = (EOFError, OSError, zlib.error, lzma.LZMAError)
    zstandard: Any = sys.modules.get("zstandard")
    return (*errors, zstandard.ZstdError) if zstandard else errors


def _stream(source: Source) -> IO[Any]:
    """The decompressed bytes as a file.

    Raises:
        StabtreeError: where the file has gone, or its decompressor is not installed.
    """
    if source.file is None and not source.packed:
        return io.BytesIO(source.data)
    try:
        raw: Any = source.file.open("rb") if source.file else io.BytesIO(source.data)
    except OSError as error:
        raise StabtreeError(f"can't be read: {clean(error.strerror)}", where=source.path) from None
    return _unpack(raw, source)


def _unpack(raw: Any, source: Source) -> Any:
    if source.packed == "gzip":
        import gzip

        return gzip.GzipFile(fileobj=raw)
    if source.packed == "bzip2":
        import bz2

        return bz2.BZ2File(raw)
    if source.packed == "xz":
        return lzma.LZMAFile(raw)
    if source.packed == "zstd":
        try:
            import zstandard
        except ImportError:
            raw.close()
            raise StabtreeError(
                "is compressed with zstd, which needs an extra package",
                where=source.path,
                hint="pip install 'stabtree[zstd]'",
            ) from None
        return zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True, closefd=True)
    return raw
