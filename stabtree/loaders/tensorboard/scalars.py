"""The scalars of TensorBoard's events.

Events of one length mostly differ in nothing but time, step, tag and value. So one of them is parsed, which
gives a template, and all that fit it are read as columns of the matrix of their bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field

from stabtree.common.lazy import np
from stabtree.loaders.points import Points
from stabtree.loaders.tensorboard.event import Event, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from stabtree.common.lazy import Bools, Ints
    from stabtree.loaders.tensorboard.records import Damage, Records

# A file with more names than this logs something other than metrics.
MAX_TAGS = 20_000
# Groups of records that fit no template are parsed one by one once so many templates were tried.
MAX_TEMPLATES = 12
# Several tags of one length are distinguished by comparing with the first one left; this often.
MAX_PEELED = 16


class Template(NamedTuple):
    """Events that differ in time, step, tags and values only.

    Attributes:
        event: one of them, taken apart.
        mask: uint8 (length,), zero where they may differ.
        expected: uint8 (length,), the bytes under the mask.
    """

    event: Event
    mask: NDArray[np.uint8]
    expected: NDArray[np.uint8]

    def fits(self, data: NDArray[np.uint8]) -> Bools:
        """Return which rows of the matrix of bytes are such events, bool (n,)."""
        return np.asarray(~((data ^ self.expected) & self.mask).any(axis=1))


def _template(event: Event, data: NDArray[np.uint8]) -> Template | None:
    """Return the template of an event; None if events like it must be parsed one by one."""
    if event.config or any(scalar.value is not None for scalar in event.scalars):
        return None
    mask = np.full(len(data), 255, dtype=np.uint8)
    if event.time >= 0:
        mask[event.time : event.time + 8] = 0
    first, end = event.step
    # All but the last byte of a varint have their high bit set; the others are the number.
    mask[first:end] = 128
    for scalar in event.scalars:
        mask[slice(*scalar.tag)] = mask[scalar.start : scalar.end] = 0
    return Template(event, mask, data & mask)


class Scalars(Struct):
    """Collects the scalars of a file.

    Attributes:
        damage: counts the events that can't be parsed.
        names: the tags that were met, each with its number.
        config: hyperparameters that were met.
        crowded: values of tags beyond `MAX_TAGS`, which were left out.
    """

    damage: Damage
    names: dict[str, int] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    crowded: int = 0
    _tags: dict[bytes, int] = field(default_factory=dict)
    _templates: dict[int, list[Template]] = field(default_factory=dict)
    _parts: list[Mapping[str, Any]] = field(default_factory=list)
    _block: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, block: list[Records]) -> None:
        """Read the records of one block of the file."""
        for data, offsets in block:
            self._group(data, offsets)
        if self._block:
            whole = {key: np.concatenate([part[key] for part in self._block]) for key in self._block[0]}
            order = np.argsort(whole.pop("offset"), kind="stable")
            self._parts.append({key: values[order] for key, values in whole.items()})
            self._block.clear()

    def points(self) -> Points:
        """Return all scalars in the order of the file."""
        if not self._parts:
            return Points.nothing()
        whole = {key: np.concatenate([part[key] for part in self._parts]) for key in self._parts[0]}
        return Points(tuple(self.names), whole["tag"], whole["step"], whole["time"], whole["value"])

    def _group(self, data: NDArray[np.uint8], offsets: Ints) -> None:
        """Read records of one length."""
        templates = self._templates.setdefault(data.shape[1], []) if data.shape[1] else []
        for known in templates:
            data, offsets = self._fitting(known, data, offsets)
        while len(data):
            event = self._parsed(data[0])
            template = None
            if event and len(templates) < MAX_TEMPLATES:
                template = _template(event, data[0])
            if template:
                templates.append(template)
                data, offsets = self._fitting(template, data, offsets)
                continue
            if event:
                self.config |= event.config
                self._columns(event, data[:1], offsets[:1])
            data, offsets = data[1:], offsets[1:]

    def _fitting(self, template: Template, data: NDArray[np.uint8], offsets: Ints) -> tuple[NDArray[np.uint8], Ints]:
        """Read the records that fit a template; return the others."""
        fits = template.fits(data)
        if fits.any():
            self._columns(template.event, data[fits], offsets[fits])
            return data[~fits], offsets[~fits]
        return data, offsets

    def _parsed(self, row: NDArray[np.uint8]) -> Event | None:
        try:
            return parse(row.tobytes())
        except ValueError:
            self.damage.records += 1
            return None

    def _columns(self, event: Event, data: NDArray[np.uint8], offsets: Ints) -> None:
        """Read the scalars of events that are laid out like `event`."""
        if not event.scalars:
            return
        count = len(data)
        step = np.zeros(count, dtype=np.int64)
        for index, column in enumerate(range(*event.step)):
            step |= (data[:, column] & 127).astype(np.int64) << (7 * index)
        if event.time >= 0:
            time = _numbers(data, event.time, event.time + 8, "<f8")
        else:
            time = np.zeros(count)
        for scalar in event.scalars:
            tag = self._numbered(data[:, slice(*scalar.tag)])
            if scalar.value is None:
                value = _numbers(data, scalar.start, scalar.end, scalar.kind)
            else:
                value = np.full(count, scalar.value)
            known = tag >= 0
            self.crowded += count - int(np.count_nonzero(known))
            part = {"offset": offsets + scalar.tag[0], "tag": tag, "step": step, "time": time, "value": value}
            self._block.append({key: values[known] for key, values in part.items()})

    def _numbered(self, tags: NDArray[np.uint8]) -> Ints:
        """Return the number of each row's tag; -1 for tags beyond `MAX_TAGS`."""
        numbers = np.full(len(tags), -1, dtype=np.int64)
        left = np.arange(len(tags))
        for _ in range(MAX_PEELED):
            if not len(left):
                return numbers
            same = (tags[left] == tags[left[0]]).all(axis=1)
            numbers[left[same]] = self._number(tags[left[0]].tobytes())
            left = left[~same]
        for row in left.tolist():
            numbers[row] = self._number(tags[row].tobytes())
        return numbers

    def _number(self, tag: bytes) -> int:
        number = self._tags.get(tag)
        if number is None:
            if len(self._tags) >= MAX_TAGS:
                return -1
            number = self._tags[tag] = self.names.setdefault(tag.decode("utf-8", "replace"), len(self.names))
        return number


def _numbers(data: NDArray[np.uint8], start: int, end: int, kind: str) -> NDArray[np.float64]:
    raw: Any = np.ascontiguousarray(data[:, start:end])
    if kind == "bfloat16":
        return np.asarray((raw.view("<u2").astype("<u4") << 16).view("<f4").ravel(), dtype=np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray(raw.view(kind).ravel(), dtype=np.float64)
