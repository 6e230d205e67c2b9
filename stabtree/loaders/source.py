"""A file, or standard input, as decoded lines: compression and encoding are detected by content."""

from __future__ import annotations

import codecs
import difflib
import io
import lzma
import re
import shlex
import stat
import sys
import zlib
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, masked, without_escapes
from stabtree.metrics.names import Names, likely_loss

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# Long enough for the header of a log with some norm of each of ten thousand layers.
HEAD_BYTES = 1 << 18
# A longer line is no row of metrics; what comes after this many characters is dropped.
MAX_LINE = 16 << 20
# Small enough that what is made of a piece stays in the processor's cache.
CHUNK_BYTES = 1 << 17
# Far above any metrics file.
MAX_BYTES = 4 << 30
# Logs shrink ten to fifty times; what shrinks more than this, and grows large, is no log.
MAX_RATIO = 150
FREE_BYTES = 64 << 20
# What `zstd --long` writes; a header may ask for far more, which is allocated before a byte is read.
ZSTD_WINDOW = 128 << 20
# First bytes, name, and bytes to decompress at once: of what shrinks most, a piece grows to 16 MiB.
PACKINGS = (
    (b"\x1f\x8b", "gzip", 1 << 14),
    (b"BZh", "bzip2", 256),
    (b"\xfd7zXZ\x00", "xz", 1 << 11),
    (b"\x28\xb5\x2f\xfd", "zstd", 256),
)
# A scheme, `://` and what follows it; a run of a service may be named without the slashes.
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(//|:)|(wandb|mlflow):|runs:/")
NAME_METRICS = "name the file that the trainer wrote its metrics to"
PRINT_METRICS = 'print(f"step {step} loss {loss:.4f} grad_norm {grad_norm:.3f} lr {lr:.2e}")'

# The beginnings of the notes on a compressed file of which the rest can't be read.
DAMAGE = ("The file ends inside its compressed data", "The file is damaged before byte ")
_COLOURS = "Terminal escape codes were removed."
# A byte order mark that is not at the beginning: in front of a header that a second writer appended.
_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"
# The share of characters that no text holds, above which a file is binary.
MAX_ODD = 0.1
_BLANK_LINES = re.compile(r"\n\s{3,}\n")
_ODD = re.compile("[\N{REPLACEMENT CHARACTER}\x01-\x07\x0b\x0e-\x1a\x1c-\x1f]")
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BINARY = {
    "a Parquet file": (b"PAR1",),
    "a Feather file": (b"ARROW1", b"FEA1"),
    "a zip archive (or .npz, .pt, .xlsx)": (b"PK\x03\x04",),
    "an SQLite database": (b"SQLite format 3",),
    "an HDF5 file": (b"\x89HDF",),
    "a NumPy array": (b"\x93NUMPY",),
    "an image": (b"\x89PNG",),
    "a program": (b"\x7fELF",),
    "a pickle": (b"\x80\x04", b"\x80\x05"),
}


def naming_a_loss(columns: Iterable[str], names: Names) -> str:
    """Return the option that reads one of these columns as the loss; nothing where none can be one."""
    likely = likely_loss(column for column in columns if not names.role(column))
    return f"name it: --column {shlex.quote('loss=' + likely)}" * bool(likely)


class Sure(IntEnum):
    """How surely a source is of a format, by that format alone; `formats.RANKS` compares the formats."""

    NO = 0
    HARDLY = 1
    MAYBE = 2
    LIKELY = 3
    SURELY = 4

    def when(self, is_known: object) -> Sure:
        """Return this where a source is known by something, and `NO` otherwise."""
        if is_known:
            return self
        return Sure.NO


class Source(Struct, frozen=True):
    """An input that was opened once to see what it is."""

    path: str  # its name as the user gave it, safe to print
    file: Path | None  # None for standard input
    stored: bytes  # all of standard input, or the first lines of a file; empty where all of the file is read
    size: int  # bytes as stored
    packed: str = ""  # `gzip`, `bzip2`, `xz`, `zstd` or nothing
    data: bytes = b""  # the first 256 KiB, decompressed
    head: str = ""  # the same decoded, lines ending as in `lines`; bytes that can't be decoded are replaced
    encoding: str = "utf-8"  # the codec that decodes it
    bom: int = 0  # bytes of byte order mark to drop before
    binary: str = ""  # what kind of binary file it seems to be; empty for text
    cut: bool = False  # whether it is compressed, and cut or damaged within its first 256 KiB

    @property
    def name(self) -> str:
        """The file's own name, safe to print."""
        return clean(self.file.name) if self.file else "standard input"

    def describe(self, name: str) -> str:
        """Return the loader's `name` with compression and encoding, where they are out of the ordinary."""
        encoding = self.encoding if self.encoding != "utf-8" else ""
        return ", ".join(filter(None, (name, encoding, self.packed)))

    def lines(self) -> Lines:
        """Return a reader of the whole input."""
        return Lines(self)


class Lines(Struct):
    """The lines of a source without their line ends, as of `lines_of`, decoded while they are read."""

    source: Source
    notes: list[str] = field(default_factory=list)  # what was replaced or dropped, complete when the iteration is
    ended: bool = True  # whether the last line had its line end

    def __iter__(self) -> Iterator[str]:
        for block in self.blocks():
            yield from lines_of(block.removesuffix("\n"))

    def blocks(self) -> Iterator[str]:
        """Yield the text in pieces of whole lines, each ending as in `__iter__`; the last may lack its line end."""
        held: list[str] = []
        size = 0
        cut = False
        for piece in self._texts():
            text = piece
            end = text.find("\n")
            if end >= 0 and size + end > MAX_LINE:
                held.append(text[: max(0, MAX_LINE - size)])
                text, cut = text[end:], True
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
        text = text.replace(_MARK, "")
        if "\x1b" not in text:
            return text
        if _COLOURS not in self.notes:
            self.notes.append(_COLOURS)
        return without_escapes(text)

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


def lines_of(text: str) -> list[str]:
    r"""Return the lines of a text; a run of blank ones is one item of the line ends between them, and costs no more.

    >>> lines_of("a\n\nb\n\n  \n\nc")
    ['a', '', 'b', '\n\n', 'c']
    """
    found, begin = list[str](), 0
    for run in _BLANK_LINES.finditer(text):
        found += (*text[begin : run.start()].split("\n"), "\n" * (run[0].count("\n") - 2))
        begin = run.end()
    return found + text[begin:].split("\n")


def chunks(source: Source, notes: list[str]) -> Iterator[bytes]:
    """Yield the decompressed bytes, then one empty chunk to close the decoder. What was damaged goes to `notes`."""
    zstandard: Any = sys.modules.get("zstandard")
    broken = (zlib.error, OSError, lzma.LZMAError, EOFError, *((zstandard.ZstdError,) if zstandard else ()))
    own_hint = "decompress it yourself if you trust it, and name the result"
    total, chunk = 0, b"\0"
    try:
        raw = source.file.open("rb") if source.file and not source.stored else io.BytesIO(source.stored)
    except OSError as error:
        raise unreadable(error, source.path) from None
    with raw:
        pieces = _unpacked(raw, source) if source.packed else iter(lambda: raw.read(CHUNK_BYTES), b"")
        while chunk:
            problem = ""
            try:
                chunk = next(pieces, b"")
            except MemoryError:
                problem = "takes more memory to unpack than there is"
            except broken as error:
                cut = isinstance(error, EOFError)
                if not total:
                    problem = "it is cut before anything of it can be decompressed" if cut else clean(error)
                    hint = "copy it again from where it was written" if cut else "check the file"
                    raise StabtreeError(f"can't be read: {problem}", where=source.path, hint=hint) from None
                damage = DAMAGE[0] if cut else f"{DAMAGE[1]}{raw.tell():,}"
                notes.append(f"{damage} (of {source.size:,} bytes): what comes before was read.")
                chunk = b""
            total += len(chunk)
            if source.packed and total > max(FREE_BYTES, MAX_RATIO * raw.tell()):
                problem = f"grows to more than {MAX_RATIO} times its size when it is decompressed, which no log does"
            elif total > MAX_BYTES:
                problem, own_hint = "holds more than 4 GiB, which is not a metrics file", "thin the log out"
            if problem:
                raise StabtreeError(problem, where=source.path, hint=own_hint)
            yield chunk


def _unpacked(raw: Any, source: Source) -> Iterator[bytes]:
    """Yield the decompressed bytes of packed parts that follow each other; an EOFError is raised inside a part."""
    size = next(size for _, name, size in PACKINGS if name == source.packed)
    new = _decompressor(source)
    unpacker: Any = None
    parts, total, rest = list[bytes](), 0, b""
    while piece := rest or raw.read(size):
        unpacker = unpacker or new()
        rest = b""
        parts.append(unpacker.decompress(piece))
        total += len(parts[-1])
        if unpacker.eof:
            rest, unpacker = unpacker.unused_data.lstrip(b"\0"), None  # some pad a part with zeros
        if total >= CHUNK_BYTES:
            yield b"".join(parts)
            parts, total = [], 0
    yield from filter(None, (b"".join(parts),))
    if unpacker:
        raise EOFError


def _decompressor(source: Source) -> Callable[[], Any]:
    """Return what makes a decompressor for one part of a packed file."""
    if source.packed == "gzip":
        return lambda: zlib.decompressobj(wbits=31)
    if source.packed == "bzip2":
        import bz2

        return bz2.BZ2Decompressor
    if source.packed == "xz":
        return lzma.LZMADecompressor
    try:
        import zstandard
    except ImportError:
        problem, hint = "is compressed with zstd, which needs an extra package", "pip install 'stabtree[zstd]'"
        raise StabtreeError(problem, where=source.path, hint=hint) from None
    return lambda: zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW).decompressobj()


def packing(data: bytes) -> str:
    """Return the compression that these first bytes show; nothing for none."""
    return next((name for magic, name, _ in PACKINGS if data.startswith(magic)), "")


def unreadable(error: Exception, shown: str) -> StabtreeError:
    """Return the error for a file that the system does not let us read."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return StabtreeError(f"can't be read: {clean(reason)}", where=shown, hint="check the path and its rights")


def encoding_of(data: bytes) -> tuple[str, int]:
    """Return codec and length of the byte order mark. PowerShell's `>` writes UTF-16, not always with a mark."""
    for mark, codec in _BOMS:
        if data.startswith(mark):
            return codec, len(mark)
    head = data[:2048]
    for codec, high, low in (("utf-16-le", head[1::2], head[0::2]), ("utf-16-be", head[0::2], head[1::2])):
        if len(head) > 3 and high.count(0) > 0.7 * len(high) and low.count(0) < 0.1 * len(low):
            return codec, 0
    return "utf-8", 0


def open_source(path: str | Path, content: bytes | None = None) -> Source:
    """Open a file, or standard input for `-`, and detect what it holds; a StabtreeError says why it can't be."""
    if content is not None:
        return _sniffed(Source(masked(clean(path)), Path(path), content, len(content), data=content[:HEAD_BYTES]))
    if str(path) == "-":
        if sys.stdin is None:
            raise StabtreeError("is closed", where="standard input", hint="pipe a log in, or name a file")
        stored = sys.stdin.buffer.read(MAX_BYTES)
        return _sniffed(Source("standard input", None, stored, len(stored), data=stored[:HEAD_BYTES]))
    file, shown = Path(path), masked(clean(path))
    try:
        status = file.stat()
        if stat.S_ISDIR(status.st_mode):
            raise StabtreeError("is a folder, not a file", where=shown, hint="name a file in it")
        if not stat.S_ISREG(status.st_mode):
            raise StabtreeError("is not a regular file", where=shown, hint="pipe it in: stabtree inspect - < FILE")
        # What the kernel makes up (/proc, /sys) has no size; reading it may wait for ever.
        data = b""
        if status.st_size:
            with file.open("rb") as stream:
                data = stream.read(HEAD_BYTES)
    except FileNotFoundError:
        raise _missing(file, shown) from None
    except (OSError, ValueError) as error:
        raise unreadable(error, shown) from None
    return _sniffed(Source(shown, file, b"", status.st_size, data=data))


def glimpse(file: Path, max_bytes: int) -> Source:
    """Return the whole lines that a file begins with, as if there were no more of it."""
    try:
        with file.open("rb") as stream:
            data = stream.read(max_bytes)
    except (OSError, ValueError) as error:
        raise unreadable(error, clean(file)) from None
    if len(data) == max_bytes and not packing(data) and b"\n" in data:
        data = data[: data.rindex(b"\n") + 1]
    return _sniffed(Source(clean(file), file, data, len(data), data=data))


def _sniffed(bare: Source) -> Source:
    """Return the source with all that its first bytes show."""
    if not bare.data:
        raise StabtreeError("is empty", where=bare.path, hint=NAME_METRICS)
    source = replace(bare, packed=packing(bare.data))
    head, damage = bare.data, list[str]()
    if source.packed:
        head = b""
        for chunk in chunks(source, damage):
            head += chunk
            if len(head) >= HEAD_BYTES:
                break
        if not head:
            raise StabtreeError("is empty once decompressed", where=bare.path, hint=NAME_METRICS)
    head = head[:HEAD_BYTES]
    encoding, bom = encoding_of(head)
    text = head[bom:].decode(encoding, "replace").replace(_MARK, "")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    odd = "a binary file" * (len(_ODD.findall(text[:4096])) > MAX_ODD * len(text[:4096]))
    binary = next((kind for kind, magic in _BINARY.items() if head.startswith(magic)), odd)
    plain = without_escapes(text)
    return replace(source, data=head, head=plain, encoding=encoding, bom=bom, binary=binary, cut=bool(damage))


def _missing(file: Path, shown: str) -> StabtreeError:
    if re.match(r"[A-Za-z][A-Za-z0-9+-]+:[/\\]", shown):  # a `Path` drops the second slash
        hint = "copy it to this machine, and name the copy"
        return StabtreeError("only files of this machine are read here, not addresses", where=shown, hint=hint)
    try:
        names = [entry.name for entry in file.parent.iterdir() if entry.name != file.name]  # not a link to nothing
    except OSError:
        names = []
    close = difflib.get_close_matches(file.name, names, n=1, cutoff=0.5)
    hint = f"did you mean {clean(file.parent / close[0])}?" if close else "check the path"
    return StabtreeError("there is no such file", where=shown, hint=hint)


def in_large_blocks(blocks: Iterable[str], min_size: int) -> Iterator[str]:
    """Yield blocks joined to pieces of some size."""
    piece = ""
    for block in blocks:
        piece += block
        if len(piece) >= min_size:
            yield piece
            piece = ""
    if piece:
        yield piece
