"""Compression as the file had it, so that what is sent is read the way the log was."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def packed(pieces: Iterable[bytes], packing: str) -> Iterator[bytes]:
    """The bytes compressed, or as they are where the source was not.

    Args:
        pieces: what to compress, in order.
        packing: as in `Source.packed`.
    """
    if not packing:
        yield from pieces
        return
    compressor = _compressor(packing)
    for piece in pieces:
        if found := compressor.compress(piece):
            yield found
    yield compressor.flush()


def _compressor(packing: str) -> Any:
    if packing == "gzip":
        zlib = import_module("zlib")
        return zlib.compressobj(wbits=31)  # a gzip header that bears no name and no time
    if packing == "bzip2":
        return import_module("bz2").BZ2Compressor()
    if packing == "xz":
        return import_module("lzma").LZMACompressor()
    return import_module("zstandard").ZstdCompressor().compressobj()
