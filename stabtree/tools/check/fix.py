"""`check --fix`: write the one right value of a finding into its file, and leave every other byte as it was."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stabtree.common.errors import StabtreeError
from stabtree.common.files import Place
from stabtree.common.text import visible
from stabtree.loaders.source import encoding_of, packing
from stabtree.tools.check.document import read_document
from stabtree.tree.fixes import placeholders

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import ConfigScalar

_BREAK = re.compile("(\r\n|[\r\n])")
_QUOTES = ("'", '"')


class Edit(NamedTuple):
    """A value to write.

    Attributes:
        leaf: the finding that it settles.
        place: where the value stands.
        spelled: its key as the file spells it.
        old: the value as it was read.
        new: the value to write, as it is typed.
    """

    leaf: str
    place: Place
    spelled: str
    old: ConfigScalar
    new: str

    def __str__(self) -> str:
        old = self.place.text[self.place.start : self.place.end]
        return f"{self.leaf} ({Path(self.place.path).name}:{self.place.line}, {self.spelled} {old} → {self.new})"


def edits(found: Diagnosis) -> Iterator[Edit]:
    """Yield what the findings have written: a value whose rule states the one right value, and that stands in a file.

    A value that was converted when it was read (a unit, a share of the steps) is not written.
    """
    for finding in found.findings:
        for part in placeholders(finding.leaf.fix):
            setting = found.run.config.get(part.knob)
            if part.only and setting and setting.place:
                edit = Edit(finding.leaf.id, setting.place, setting.spelled, setting.value, part.value)
                if _is_number(_unquoted(setting.place)[1], setting.value):
                    yield edit


def _is_number(text: str, value: object) -> bool:
    try:
        return float(text) == value
    except ValueError:
        return False


def _unquoted(place: Place) -> tuple[str, str]:
    """Return the quote around a value, if it has one, and the value."""
    text = place.text[place.start : place.end]
    if text.startswith(_QUOTES) and len(text) > 1 and text[0] == text[-1]:
        return text[0], text[1:-1]
    return "", text


def repaired(file: Path, wanted: Iterable[Edit]) -> tuple[bytes, bytes, list[Edit]]:
    """Return the bytes of a file as they are and as they are to be, and the edits that make the difference.

    Raises:
        StabtreeError: if the file is not to be written: it is a link, read-only, or packed.
    """
    _refuse(file)
    before = after = file.read_bytes()
    done: list[Edit] = []
    # From the last to the first, so that the places of the others stay right; of two for one value that of the worse.
    first = {(edit.place.line, edit.place.start): edit for edit in reversed([*wanted])}
    for _, edit in sorted(first.items(), reverse=True):
        new = _edited(after, edit)
        if new and _changes_one(file, after, new):
            after = new
            done.insert(0, edit)
    return before, after, done


def _refuse(file: Path) -> None:
    """Refuse what replacing the file would change besides its text, or what its owner does not want changed."""
    problem, hint = "", "change it by hand"
    if file.is_symlink():
        problem, hint = "is a link, which --fix does not write through", f"name the file itself: {file.resolve()}"
    elif not file.stat().st_mode & 0o222:
        problem, hint = "is read-only", "make it writable, or change it by hand"
    elif packing(file.read_bytes()[:8]):
        problem = "is compressed"
    if problem:
        raise StabtreeError(problem, where=str(file), hint=hint)


def _edited(data: bytes, edit: Edit) -> bytes | None:
    """Return a file with one value changed; None where the line is not as it was read."""
    encoding, mark = encoding_of(data)
    try:
        parts = _BREAK.split(data[mark:].decode(encoding))
    except UnicodeDecodeError:
        return None
    place, index = edit.place, 2 * (edit.place.line - 1)
    if index >= len(parts) or parts[index] != place.text:
        return None
    quote, _ = _unquoted(place)
    parts[index] = place.text[: place.start] + quote + edit.new + quote + place.text[place.end :]
    return data[:mark] + "".join(parts).encode(encoding)


def _changes_one(file: Path, before: bytes, after: bytes) -> bool:
    """Return whether two texts of a file say the same, all keys in the same order, but for one value."""
    try:
        old, new = (list(_leaves(read_document(file, data).values, ())) for data in (before, after))
    except StabtreeError:
        return False
    keys = [key for key, _ in old] == [key for key, _ in new]
    return keys and sum(left != right for left, right in zip(old, new, strict=True)) == 1


def _leaves(value: Any, path: tuple[object, ...]) -> Iterator[tuple[object, str]]:
    """Yield the scalars of a document with their paths; as texts, since no NaN equals itself."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))
    else:
        yield path, repr(value)


def diff(file: Path, before: bytes, after: bytes) -> str:
    """Return the unified diff of two texts of a file, safe to print."""
    encoding, mark = encoding_of(before)
    old, new = (_BREAK.sub("\n", data[mark:].decode(encoding)).splitlines() for data in (before, after))
    lines = unified_diff(old, new, str(file), str(file), lineterm="")
    return "".join(f"{visible(line)}\n" for line in lines)
