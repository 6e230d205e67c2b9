"""VisualDL, PaddlePaddle's own tracker: vdlrecords files, records of protocol buffers behind their lengths."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from stabtree.loaders.protobuf import BYTES, FIXED32, VARINT, fields, signed, text
from stabtree.loaders.source import Sure, chunks
from stabtree.loaders.tables.collected import Collected

if TYPE_CHECKING:
    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names

# Numbers of the fields in VisualDL's schema record.proto.
VALUES, ID, TAG, TIME, VALUE = 1, 1, 2, 3, 4
LENGTH = 8


def sniff(_source: Source, _names: Names) -> Sure:
    """Return that this is of VisualDL: nobody else begins a file as `formats` says."""
    return Sure.SURELY


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
    for whole in fields(data):
        if (whole.number, whole.wire) != (VALUES, BYTES):
            continue
        parts = {(part.number, part.wire): part for part in fields(data, whole.start, whole.end)}
        tag, value = parts.get((TAG, BYTES)), parts.get((VALUE, FIXED32))
        if tag and value:
            step, time = (signed(parts[key, VARINT].varint) if (key, VARINT) in parts else 0 for key in (ID, TIME))
            (number,) = struct.unpack_from("<f", data, value.start)
            found.add(text(data, tag), step, number, time)
