"""`check --fix`: write the one right value of a finding into its file, and leave every other byte as it was."""

from __future__ import annotations

import re
from contextlib import suppress
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.text import inert
from stabtree.loaders.source import encoding_of, packing
from stabtree.tree.fixes import placeholders

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stabtree.common.files import Place
    from stabtree.diagnosis.result import Diagnosis

    Edit = tuple[str, str, Place, str]
    """The finding that it settles, the key as the file spells it, where the value stands, and the value to write."""

_BREAK = re.compile("(\r\n|[\r\n])")


def edits(found: Diagnosis) -> Iterator[Edit]:
    """Yield what the findings have written: a value whose rule states the one right value, and that stands in a file.

    A value that was converted when it was read (a unit, a share of the steps) is not written, nor one that stands
    elsewhere (an anchor of YAML): only a number by itself is, which no other value can depend on.
    """
    for finding in found.findings:
        for part in placeholders(finding.leaf.fix):
            setting = found.run.config.get(part.knob)
            if part.only and setting and setting.place:
                with suppress(ValueError):
                    if float(_value(setting.place)) == setting.value:
                        yield finding.leaf.id, setting.spelled, setting.place, part.value


def _value(place: Place) -> str:
    """Return a value without its quotes."""
    return place.text[place.start : place.end].strip("\"'")


def told(edit: Edit) -> str:
    """Return an edit in words."""
    leaf, spelled, place, new = edit
    return f"{leaf} ({Path(place.path).name}:{place.line}, {spelled} {_value(place)} → {new})"


def repaired(file: Path, wanted: Sequence[Edit]) -> tuple[bytes, bytes, list[Edit]]:
    """Return the bytes of a file as they are and as they are to be, and the edits that make the difference.

    An edit of a line that is not as it was read is left out.

    Raises:
        StabtreeError: if the file is not to be written: it is a link, read-only, or no plain text.
    """
    data = file.read_bytes()
    encoding, mark = encoding_of(data)
    if file.is_symlink() or file.stat().st_nlink > 1:  # written anew, it would part from its other names
        raise StabtreeError("it is a link, or has further names", hint="name the file that it leads to")
    if packing(data) or not file.stat().st_mode & 0o222:
        raise StabtreeError("it is compressed, or read-only", hint="change it by hand")
    try:
        lines = _BREAK.split(data[mark:].decode(encoding))
    except UnicodeDecodeError:
        raise StabtreeError(f"it is not {encoding} throughout", hint="change it by hand") from None
    done = [edit for edit in wanted if lines[2 * edit[2].line - 2 :][:1] == [edit[2].text]]
    # From the last to the first, so that the places of the others stay right; two findings may have one value written.
    values = {(place.line, place.start, place.end): new for _, _, place, new in reversed(done)}
    for (line, start, end), new in sorted(values.items(), reverse=True):
        text = lines[2 * line - 2]
        lines[2 * line - 2] = text[:start] + text[start:end].replace(text[start:end].strip("\"'"), new) + text[end:]
    return data, data[:mark] + "".join(lines).encode(encoding), done


def diff(file: Path, before: bytes, after: bytes) -> str:
    """Return the unified diff of two texts of a file, safe to print."""
    encoding, mark = encoding_of(before)
    old, new = (_BREAK.sub("\n", data[mark:].decode(encoding)).splitlines() for data in (before, after))
    lines = unified_diff(old, new, str(file), str(file), lineterm="")
    return "".join(inert("".join(char for char in line if char.isprintable() or char == "\t")) + "\n" for line in lines)
