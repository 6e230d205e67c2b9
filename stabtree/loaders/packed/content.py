"""What the first bytes of a file show: the encoding of a text, or the kind of a binary file."""

from __future__ import annotations

import codecs
import re

# The share of characters that no text holds, above which a file is binary.
MAX_ODD = 0.1
_ODD = re.compile("[\N{REPLACEMENT CHARACTER}\x01-\x07\x0b\x0e-\x1a\x1c-\x1f]")
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


def encoding_of(data: bytes) -> tuple[str, int]:
    """Return codec and length of the byte order mark. PowerShell's `>` writes UTF-16, not always with a mark."""
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


def binary_kind(data: bytes, text: str) -> str:
    """Return what kind of binary file begins like this; empty for text."""
    for magic, kind in _BINARY:
        if data.startswith(magic):
            return kind
    head = text[:4096]
    if len(_ODD.findall(head)) > MAX_ODD * len(head):
        return "a binary file"
    return ""
