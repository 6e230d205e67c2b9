"""`check --fix`: write the one right value of a finding into its file, and leave every other byte as it was."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.text import inert
from stabtree.loaders.source import encoding_of, packing
from stabtree.tools.check.document import read_document
from stabtree.tree.fixes import placeholders

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.common.files import Place
    from stabtree.diagnosis.result import Diagnosis

    Edit = tuple[str, str, Place, str]
    """The finding that it settles, the key as the file spells it, where the value stands, and the value to write."""

_BREAK = re.compile("(\r\n|[\r\n])")


def edits(found: Diagnosis) -> Iterator[Edit]:
    """Yield what the findings have written: a value whose rule states the one right value, and that stands in a file.

    A value that was converted when it was read (a unit, a share of the steps) is not written.
    """
    for finding in found.findings:
        for part in placeholders(finding.leaf.fix):
            setting = found.run.config.get(part.knob)
            if part.only and setting and setting.place and _is_number(_value(setting.place), setting.value):
                yield finding.leaf.id, setting.spelled, setting.place, part.value


def told(edit: Edit) -> str:
    """Return an edit in words, as far as they are known safe to print."""
    leaf, spelled, place, new = edit
    return f"{leaf} ({Path(place.path).name}:{place.line}, {spelled} {_value(place)} → {new})"


def _is_number(text: str, value: object) -> bool:
    try:
        return float(text) == value
    except ValueError:
        return False


def _value(place: Place) -> str:
    """Return a value without its quotes."""
    return place.text[place.start : place.end].strip("\"'")


def repaired(file: Path, wanted: Iterable[Edit]) -> tuple[bytes, bytes, list[Edit]]:
    """Return the bytes of a file as they are and as they are to be, and the edits that make the difference.

    Raises:
        StabtreeError: if the file is not to be written: it is a link, read-only, or packed.
    """
    before = after = file.read_bytes()
    if file.is_symlink():
        raise StabtreeError("is a link, through which --fix does not write", hint="name the file that it leads to")
    if packing(before) or not file.stat().st_mode & 0o222:
        raise StabtreeError("is compressed or read-only", hint="change it by hand")
    done: list[Edit] = []
    # From the last to the first, so that the places of the others stay right.
    for edit in sorted(wanted, key=lambda edit: (-edit[2].line, -edit[2].start)):
        new = _edited(after, edit)
        if _changes_one(file, after, new):
            after = new
            done.append(edit)
        elif any(edit[2:] == other[2:] for other in done):  # another finding has the same value written
            done.append(edit)
    return before, after, done[::-1]


def _edited(data: bytes, edit: Edit) -> bytes:
    """Return a file with one value changed; the same where the line is not as it was read."""
    (encoding, mark), place = encoding_of(data), edit[2]
    try:
        parts = _BREAK.split(data[mark:].decode(encoding))
    except UnicodeDecodeError:
        return data
    index, old = 2 * (place.line - 1), place.text[place.start : place.end]
    if parts[index : index + 1] == [place.text]:
        new = old.replace(_value(place), edit[3])
        parts[index] = place.text[: place.start] + new + place.text[place.end :]
    return data[:mark] + "".join(parts).encode(encoding)


def _changes_one(file: Path, before: bytes, after: bytes) -> bool:
    """Return whether two texts of a file say the same, all keys in the same order, but for one value."""
    try:
        old, new = (list(_leaves(read_document(file, data).values, ())) for data in (before, after))
    except StabtreeError:
        return False
    same = [left == right for left, right in zip(old, new, strict=False)]
    return [key for key, _ in old] == [key for key, _ in new] and same.count(False) == 1


def _leaves(value: Any, path: tuple[object, ...]) -> Iterator[tuple[object, str]]:
    """Yield the scalars of a document with their paths; as texts, since no NaN equals itself."""
    if isinstance(value, Mapping | list):
        keys: Iterable[Any] = value
        if isinstance(value, list):
            keys = range(len(value))
        for key in keys:
            yield from _leaves(value[key], (*path, key))
    else:
        yield path, repr(value)


def diff(file: Path, before: bytes, after: bytes) -> str:
    """Return the unified diff of two texts of a file, safe to print."""
    encoding, mark = encoding_of(before)
    old, new = (_BREAK.sub("\n", data[mark:].decode(encoding)).splitlines() for data in (before, after))
    lines = unified_diff(old, new, str(file), str(file), lineterm="")
    return "".join(inert("".join(char for char in line if char.isprintable() or char == "\t")) + "\n" for line in lines)
