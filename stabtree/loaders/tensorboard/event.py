"""One TensorBoard event taken apart: where its scalars stand, and the configuration that it may hold."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from stabtree.common.lazy import np
from stabtree.loaders.config import of_model
from stabtree.loaders.packed.protobuf import BYTES, FIXED32, FIXED64, VARINT, Field, fields, signed, text

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
        tag: where its name stands.
        start: where the value begins.
        end: where it ends.
        kind: the type of the value.
        value: the value, where its bytes alone don't tell it.
    """

    tag: tuple[int, int]
    start: int
    end: int
    kind: str
    value: float | None = None


@dataclass(slots=True)
class Event:
    """Where things stand in one record."""

    time: int = -1
    step: tuple[int, int] = (0, 0)
    number: int = 0
    scalars: list[Scalar] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)


def parse(data: bytes) -> Event:
    """Take one event apart.

    Raises:
        ValueError: where it is none.
    """
    event = Event()
    for part in fields(data):
        if part.number == WALL_TIME and part.wire == FIXED64:
            event.time = part.start
        elif part.number == STEP and part.wire == VARINT:
            event.step, event.number = (part.start, part.end), signed(part.varint)
        elif part.number == SUMMARY and part.wire == BYTES:
            for value in fields(data, part.start, part.end):
                if value.number == 1 and value.wire == BYTES:
                    _value(data, value, event)
    return event


def _value(data: bytes, whole: Field, event: Event) -> None:
    """Add one value of a summary to its event, if it is a scalar or a configuration."""
    tag = tensor = metadata = simple = None
    for part in fields(data, whole.start, whole.end):
        if part.number == TAG and part.wire == BYTES:
            tag = part
        elif part.number == SIMPLE_VALUE and part.wire == FIXED32:
            simple = part
        elif part.number == TENSOR and part.wire == BYTES:
            tensor = part
        elif part.number == METADATA and part.wire == BYTES:
            metadata = part
    if tag is None:
        return
    place = (tag.start, tag.end)
    if simple:
        event.scalars.append(Scalar(place, simple.start, simple.end, "<f4"))
    elif tensor:
        _tensor(data, tensor, place, event)
    if metadata and text(data, tag) == "_hparams_/session_start_info":
        event.config |= _hparams(data, metadata)


def _tensor(data: bytes, whole: Field, tag: tuple[int, int], event: Event) -> None:
    """A tensor of one number is a scalar, one text that is a JSON object a configuration."""
    kind = ""
    found: list[Scalar] = []
    for part in fields(data, whole.start, whole.end):
        size = part.end - part.start
        if part.number == DTYPE and part.wire == VARINT:
            kind = _TYPES.get(part.varint, "")
        elif part.number == CONTENT and size:
            found.append(Scalar(tag, part.start, part.end, ""))
        elif part.number in _FIXED and part.wire != VARINT and size:
            found.append(Scalar(tag, part.start, part.end, _FIXED[part.number]))
        elif part.number in _VARINTS and size:
            found.append(_counted(data, part, tag, kind))
        elif part.number == STRINGS and part.wire == BYTES and data[part.start : part.start + 1] == b"{":
            event.config |= _object(text(data, part))
    if len(found) == 1 and kind:
        only = found[0]._replace(kind=found[0].kind or kind)
        if only.value is not None or only.end - only.start == _size(only.kind):
            event.scalars.append(only)


def _size(kind: str) -> int:
    return 2 if kind == "bfloat16" else int(np.dtype(kind).itemsize)


def _counted(data: bytes, part: Field, tag: tuple[int, int], kind: str) -> Scalar:
    """An element that is coded as a varint, alone or as the only one of a packed field."""
    value = part.varint
    if part.wire == BYTES:
        inner = list(fields(b"\x08" + data[part.start : part.end])) if part.end - part.start <= 10 else []
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
    return float(np.frombuffer(data, dtype=kind)[0]) if len(data) == np.dtype(kind).itemsize else float("nan")


def _object(content: str) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return of_model(found) if "model_type" in found else found


def _hparams(data: bytes, metadata: Field) -> dict[str, Any]:
    """The hyperparameters that the plugin `hparams` keeps in the metadata of an empty value."""
    found: dict[str, Any] = {}
    # SummaryMetadata.plugin_data.content.session_start_info.hparams, a map of google.protobuf.Value.
    for entry in _at(data, metadata, (1, 2, 3, 1)):
        parts = {part.number: part for part in fields(data, entry.start, entry.end)}
        if 1 in parts and 2 in parts:
            for value in fields(data, parts[2].start, parts[2].end):
                if value.number == 2 and value.wire == FIXED64:
                    found[text(data, parts[1])] = struct.unpack_from("<d", data, value.start)[0]
                elif value.number == 3 and value.wire == BYTES:
                    found[text(data, parts[1])] = text(data, value)
                elif value.number == 4 and value.wire == VARINT:
                    found[text(data, parts[1])] = bool(value.varint)
    return found


def _at(data: bytes, whole: Field, path: tuple[int, ...]) -> Iterator[Field]:
    for part in fields(data, whole.start, whole.end):
        if part.number == path[0] and part.wire == BYTES:
            if len(path) == 1:
                yield part
            else:
                yield from _at(data, part, path[1:])
