"""VisualDL, PaddlePaddle's own tracker: vdlrecords files, records of protocol buffers behind their lengths."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from stabtree.loaders.binary import BYTES, FIXED32, integer, messages, parts, real, text
from stabtree.loaders.source import chunks
from stabtree.loaders.tables.collected import Collected

if TYPE_CHECKING:
    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names

# Numbers of the fields in VisualDL's schema record.proto.
VALUES, ID, TAG, TIME, VALUE = 1, 1, 2, 3, 4
LENGTH = 8


def read(source: Source, names: Names) -> Table:
    """Read the scalars; images, histograms and texts are other fields.

    Raises:
        StabtreeError: if it holds none.
    """
    notes: list[str] = []
    found, rest, damaged = Collected(), b"", 0
    for chunk in chunks(source, notes):
        data, at = rest + chunk, 0
        while at + LENGTH <= len(data):
            (length,) = struct.unpack_from("<Q", data, at)
            if at + LENGTH + length > len(data):
                break
            try:
                _record(found, data[at + LENGTH : at + LENGTH + length])
            except ValueError:
                damaged += 1
            at += LENGTH + length
        rest = data[at:]
    if rest:
        notes.append(f"The file ends inside a record, whose {len(rest):,} bytes were not read.")
    if damaged:
        notes.append(f"Damaged records: {damaged:,}, not read.")
    return found.table(source.path, "visualdl", names, notes=tuple(notes))


def _record(found: Collected, data: bytes) -> None:
    for whole in messages(data, None, VALUES):
        own = parts(data, whole)
        tag, value = own.get((TAG, BYTES)), own.get((VALUE, FIXED32))
        if tag and value:
            found.add(text(data, tag), integer(own, ID), real(data, value), integer(own, TIME))
