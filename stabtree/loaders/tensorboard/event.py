"""The parts of one TensorBoard event: where its scalars are, and the configuration that it may hold."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field

from stabtree.common.lazy import np
from stabtree.frameworks.model_config import of_model
from stabtree.loaders.protobuf import BYTES, FIXED32, FIXED64, VARINT, Field, fields, signed, text

if TYPE_CHECKING:
    from collections.abc import Iterator

# Numbers of the fields in the schemas event.proto, summary.proto and tensor.proto.
WALL_TIME, STEP, SUMMARY = 1, 2, 5
TAG, SIMPLE_VALUE, TENSOR, METADATA = 1, 2, 8, 9
DTYPE, CONTENT, STRINGS = 1, 4, 8
# Tensor fields of fixed size -> type of an element; those of varints.
_FIXED = {5: "<f4", 6: "<f8"}
_VARINTS = frozenset({7, 10, 11, 13, 16, 17})
_HALF_FIELD = 13
# The fields of google.protobuf.Value that hold a number, a text and a truth value.
_VALUE_WIRES = {2: FIXED64, 3: BYTES, 4: VARINT}
_TYPES = {
    1: "<f4",
    2: "<f8",
    3: "<i4",
    4: "<u1",
    5: "<i2",
    6: "<i1",
    9: "<i8",
    10: "<u1",
    14: "bfloat16",
    17: "<u2",
    19: "<f2",
    22: "<u4",
    23: "<u8",
}


class Scalar(NamedTuple):
    """A value within an event.

    Attributes:
        tag: where its name is.
        start: where the value begins.
        end: where it ends.
        kind: the type of the value.
        value: the value, if its bytes alone are not enough.
    """

    tag: tuple[int, int]
    start: int
    end: int
    kind: str
    value: float | None = None


class Event(Struct):
    """Where the parts of one record are."""

    time: int = -1
    step: tuple[int, int] = (0, 0)
    scalars: list[Scalar] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)


def parse(data: bytes) -> Event:
    """Take one event apart.

    Raises:
        ValueError: if it is none.
    """
    event = Event()
    for part in fields(data):
        kind = part.number, part.wire
        if kind == (WALL_TIME, FIXED64):
            event.time = part.start
        elif kind == (STEP, VARINT):
            event.step = part.start, part.end
        elif kind == (SUMMARY, BYTES):
            for value in _at(data, part, (1,)):
                _value(data, value, event)
    return event


def _value(data: bytes, whole: Field, event: Event) -> None:
    """Add one value of a summary to its event, if it is a scalar or a configuration."""
    parts = {(part.number, part.wire): part for part in fields(data, whole.start, whole.end)}
    tag, metadata = parts.get((TAG, BYTES)), parts.get((METADATA, BYTES))
    simple, tensor = parts.get((SIMPLE_VALUE, FIXED32)), parts.get((TENSOR, BYTES))
    if tag is None:
        return
    name = tag.start, tag.end
    if simple:
        event.scalars.append(Scalar(name, simple.start, simple.end, "<f4"))
    elif tensor:
        _tensor(data, tensor, name, event)
    if metadata and text(data, tag) == "_hparams_/session_start_info":
        event.config |= _hparams(data, metadata)


def _tensor(data: bytes, whole: Field, tag: tuple[int, int], event: Event) -> None:
    """Add a tensor of one number as a scalar, one text that is a JSON object as configuration."""
    kind = ""
    found: list[Scalar] = []
    for part in fields(data, whole.start, whole.end):
        if part.number == DTYPE and part.wire == VARINT:
            kind = _TYPES.get(part.varint, "")
        elif part.number == STRINGS and part.wire == BYTES and data[part.start : part.start + 1] == b"{":
            event.config |= _object(text(data, part))
        elif part.end > part.start:
            found += _elements(data, part, tag, kind)
    if len(found) == 1 and kind:
        only = found[0]._replace(kind=found[0].kind or kind)
        if only.value is not None or only.end - only.start == _size(only.kind):
            event.scalars.append(only)


def _elements(data: bytes, part: Field, tag: tuple[int, int], kind: str) -> list[Scalar]:
    if part.number == CONTENT:
        return [Scalar(tag, part.start, part.end, "")]
    if part.number in _FIXED and part.wire != VARINT:
        return [Scalar(tag, part.start, part.end, _FIXED[part.number])]
    if part.number in _VARINTS:
        return [_counted(data, part, tag, kind)]
    return []


def _size(kind: str) -> int:
    if kind == "bfloat16":
        return 2
    return int(np.dtype(kind).itemsize)


def _counted(data: bytes, part: Field, tag: tuple[int, int], kind: str) -> Scalar:
    """Return an element that is coded as a varint, alone or as the only one of a packed field."""
    value = part.varint
    if part.wire == BYTES:
        inner = []
        if part.end - part.start <= 10:
            inner = list(fields(b"\x08" + data[part.start : part.end]))
        if len(inner) != 1:
            # Several elements: a length that no type has.
            return Scalar(tag, part.start, part.start, "<f4")
        value = inner[0].varint
    if part.number == _HALF_FIELD:
        return Scalar(tag, part.start, part.end, kind, _of_bytes(struct.pack("<H", value & 0xFFFF), kind or "<f2"))
    return Scalar(tag, part.start, part.end, kind, float(signed(value)))


def _of_bytes(data: bytes, kind: str) -> float:
    if kind == "bfloat16":
        data, kind = b"\0\0" + data, "<f4"
    if len(data) == np.dtype(kind).itemsize:
        return float(np.frombuffer(data, dtype=kind)[0])
    return float("nan")


def _object(content: str) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    if "model_type" in found:
        return of_model(found)
    return found


def _hparams(data: bytes, metadata: Field) -> dict[str, Any]:
    """Return the hyperparameters that the plugin `hparams` keeps in the metadata of an empty value."""
    found: dict[str, Any] = {}
    # SummaryMetadata.plugin_data.content.session_start_info.hparams, a map of google.protobuf.Value.
    for entry in _at(data, metadata, (1, 2, 3, 1)):
        parts = {part.number: part for part in fields(data, entry.start, entry.end)}
        if 1 in parts and 2 in parts:
            for value in fields(data, parts[2].start, parts[2].end):
                if value.wire == _VALUE_WIRES.get(value.number):
                    found[text(data, parts[1])] = _content(data, value)
    return found


def _content(data: bytes, value: Field) -> float | str | bool:
    if value.wire == FIXED64:
        return float(struct.unpack_from("<d", data, value.start)[0])
    if value.wire == BYTES:
        return text(data, value)
    return bool(value.varint)


def _at(data: bytes, whole: Field, path: tuple[int, ...]) -> Iterator[Field]:
    """Yield the fields at a path of numbers below a field."""
    for part in fields(data, whole.start, whole.end):
        if part.number == path[0] and part.wire == BYTES:
            if len(path) == 1:
                yield part
            else:
                yield from _at(data, part, path[1:])
