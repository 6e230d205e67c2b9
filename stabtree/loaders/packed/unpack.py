"""The bytes of a source, decompressed while they are read, within bounds that a compression bomb can't pass."""

from __future__ import annotations

import io
import lzma
import sys
import zlib
from dataclasses import field
from typing import TYPE_CHECKING, Any

from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Small enough that what is made of a piece stays in the processor's cache.
CHUNK_BYTES = 1 << 17
# Far above any metrics file.
MAX_BYTES = 4 << 30
# Logs shrink ten to fifty times; what shrinks more than this, and grows large, is no log.
MAX_RATIO = 150
FREE_BYTES = 64 << 20
# One block of zstd can hold 30,000 times its size, and its decoder can't be stopped within a piece: 8 MiB at once.
ZSTD_PIECE = 256
# What `zstd --long` writes; a header may ask for far more, which is allocated before a byte is read.
ZSTD_WINDOW = 128 << 20
MAGIC = ((b"\x1f\x8b", "gzip"), (b"BZh", "bzip2"), (b"\xfd7zXZ\x00", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"))
_SMALLER = "thin the log out, or name a smaller file"


@dataclass(frozen=True, slots=True)
class Stored:
    """Bytes as stored on disk, or read from standard input.

    Attributes:
        path: the input's name as the user gave it, safe to print.
        file: its path; None for standard input.
        stored: all of standard input, which can't be read twice, or the first lines of a file; empty for a whole file.
        size: bytes as stored.
        packed: `gzip`, `bzip2`, `xz`, `zstd` or nothing.
    """

    path: str
    file: Path | None
    stored: bytes = field(repr=False)
    size: int
    packed: str = ""


def packing(data: bytes) -> str:
    """Return the compression that these first bytes show; nothing for none."""
    return next((name for magic, name in MAGIC if data.startswith(magic)), "")


def chunks(source: Stored, notes: list[str]) -> Iterator[bytes]:
    """Yield the decompressed bytes, then one empty chunk to close the decoder. What was damaged goes to `notes`.

    Raises:
        StabtreeError: if the file has gone, can't be decompressed at all, or grows beyond all bounds.
    """
    total = 0
    with _opened(source) as raw:
        stream = _unpacked(raw, source)
        while True:
            try:
                chunk = stream.read1(CHUNK_BYTES)
            except MemoryError:
                raise StabtreeError(
                    "takes more memory to decompress than there is",
                    where=source.path,
                    hint="decompress it yourself, and name the result",
                ) from None
            except _damage() as error:
                if not total:
                    raise _nothing_readable(error, source) from None
                damage = f"is damaged before byte {raw.tell():,}"
                if isinstance(error, EOFError):
                    damage = "ends inside its compressed data"
                notes.append(f"The file {damage} (of {source.size:,} bytes): what comes before was read.")
                chunk = b""
            total += len(chunk)
            _check_size(source, total, raw.tell())
            yield chunk
            if not chunk:
                return


def _nothing_readable(error: Exception, source: Stored) -> StabtreeError:
    """Return the error for a file of which nothing can be decompressed."""
    problem, hint = clean(error), "check the file"
    if isinstance(error, EOFError):
        problem = "it is cut before anything of it can be decompressed"
        hint = "copy it again from where it was written"
    return StabtreeError(f"can't be read: {problem}", where=source.path, hint=hint)


def _check_size(source: Stored, total: int, stored: int) -> None:
    """Compare the bytes written so far with those read so far: a bomb is refused before it has gone off."""
    if source.packed and total > max(FREE_BYTES, MAX_RATIO * stored):
        raise StabtreeError(
            f"grows to more than {MAX_RATIO} times its size when it is decompressed, which no log does",
            where=source.path,
            hint="decompress it yourself if you trust it, and name the result",
        )
    if total > MAX_BYTES:
        raise StabtreeError("holds more than 4 GiB, which is not a metrics file", where=source.path, hint=_SMALLER)


def unreadable(error: Exception, shown: str) -> StabtreeError:
    """Return the error for a file that the system does not let us read."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return StabtreeError(f"can't be read: {clean(reason)}", where=shown, hint="check the path and its rights")


def _damage() -> tuple[type[Exception], ...]:
    """Return the exceptions of the decompressors for bytes that are cut or wrong."""
    errors: tuple[type[Exception], ...] = (EOFError, OSError, zlib.error, lzma.LZMAError)
    zstandard: Any = sys.modules.get("zstandard")
    if zstandard:
        return (*errors, zstandard.ZstdError)
    return errors


def _opened(source: Stored) -> Any:
    """Open the stored bytes as a file.

    Raises:
        StabtreeError: if the file has gone.
    """
    if source.stored or source.file is None:
        return io.BytesIO(source.stored)
    try:
        return source.file.open("rb")
    except OSError as error:
        raise unreadable(error, source.path) from None


def _unpacked(raw: Any, source: Stored) -> Any:
    """Return the file with the decompressor around it.

    Raises:
        StabtreeError: if the decompressor is not installed.
    """
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
            raise StabtreeError(
                "is compressed with zstd, which needs an extra package",
                where=source.path,
                hint="pip install 'stabtree[zstd]'",
            ) from None
        return _Zstd(raw, zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW))
    return raw


class _Zstd:
    """A zstd file that, unlike the library's own reader, reports that it was cut."""

    def __init__(self, raw: Any, decompressor: Any) -> None:
        self._raw = raw
        self._decompressor = decompressor
        self._frame: Any = None
        self._rest = b""
        self._out = memoryview(b"")

    def read1(self, size: int) -> bytes:
        """Return some bytes, up to `size`; none at the end.

        Raises:
            EOFError: if the file ends inside a frame.
        """
        if not self._out:
            self._out = memoryview(self._decoded(size))
        found, self._out = self._out[:size], self._out[size:]
        return bytes(found)

    def _decoded(self, size: int) -> bytes:
        """Some bytes, at least `size` where there are as many, and up to what one piece more holds."""
        parts: list[bytes] = []
        total = 0
        while total < size:
            piece = self._rest or self._raw.read(ZSTD_PIECE)
            self._rest = b""
            if not piece:
                if self._frame is not None and not total:
                    raise EOFError("the compressed file is cut")
                break
            if self._frame is None:
                self._frame = self._decompressor.decompressobj()
            parts.append(self._frame.decompress(piece))
            total += len(parts[-1])
            if self._frame.eof:
                self._rest, self._frame = self._frame.unused_data, None
        return b"".join(parts)
