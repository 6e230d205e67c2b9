"""Compression of the same kind as the original file, so that the result is read the same way."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def packed(pieces: Iterable[bytes], packing: str) -> Iterator[bytes]:
    """Yield the bytes compressed, or unchanged if the source was not.

    Args:
        pieces: what to compress, in order.
        packing: as in `Source.packed`.
    """
    if not packing:
        yield from pieces
        return
    compressor = _compressor(packing)
    for piece in pieces:
        compressed = compressor.compress(piece)
        if compressed:
            yield compressed
    yield compressor.flush()


def _compressor(packing: str) -> Any:
    if packing == "gzip":
        zlib = import_module("zlib")
        return zlib.compressobj(wbits=31)  # a gzip header without a name or a time
    if packing == "bzip2":
        return import_module("bz2").BZ2Compressor()
    if packing == "xz":
        return import_module("lzma").LZMACompressor()
    return import_module("zstandard").ZstdCompressor().compressobj()
