"""JSON lines: one object a line, train, eval and config rows mixed."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.json.rows import JsonRows
from stabtree.loaders.json.wrapped import is_wrapped
from stabtree.loaders.source import HEAD_BYTES, NAME_METRICS, Sure
from stabtree.loaders.table import Skips, Table

if TYPE_CHECKING:
    from stabtree.loaders.source import Source
    from stabtree.metrics.names import Names

_END = "\n"
LISTED = 5
# printf writes `nan` and `-inf`, which JSON does not know even in Python's dialect.
_BARE = re.compile(r"(?<=[:\[,\s])([+-]?)(nan|inf|infinity)(?=\s*[,}\]])", re.IGNORECASE)


def parse(line: str) -> Any:
    """Parse the JSON value of a line, `nan` and `inf` in any spelling included.

    Raises:
        ValueError: if it is not JSON, with a reason fit to print.
    """
    try:
        try:
            return _loads(line)
        except ValueError:
            spelled = _BARE.sub(lambda m: m[1].strip("+") + ("NaN" if m[2][0] in "nN" else "Infinity"), line)
            return _loads(spelled.replace("-NaN", "NaN"))
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"is not valid JSON ({error.msg} at column {error.colno})") from None


def _loads(text: str) -> Any:
    if "NaN" in text or "Infinity" in text:
        return json.loads(text, object_pairs_hook=_with_broken)
    return json.loads(text)


def _with_broken(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; of a key that occurs twice the value that is not finite, which must not be hidden."""
    kept = dict(pairs)
    if len(kept) < len(pairs):
        kept.update((name, value) for name, value in pairs if isinstance(value, float) and not math.isfinite(value))
    return kept


def parse_object(text: str) -> dict[str, Any] | None:
    """Return the object that a text is, None if it is none."""
    if "{" not in text:
        return None
    try:
        value = parse(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def repeated_keys(text: str, line: int) -> tuple[str, ...]:
    """Return a note on keys that occur twice in the first object of a JSON text, of which parsers keep the last."""
    found: dict[str, None] = {}

    def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        kept = dict(pairs)
        if len(kept) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            found.update((name, None) for name, times in counts.items() if times > 1)
        return kept

    try:
        json.JSONDecoder(object_pairs_hook=keep).raw_decode(text, max(0, text.find("{")))
    except (ValueError, RecursionError):
        return ()
    shown = ", ".join(clean(name, 40) for name in [*found][:LISTED])
    if found:
        return (f"Keys that occur twice in one object, of which the last is read: {shown} (line {line}).",)
    return ()


def sniff(source: Source, _names: Names) -> Sure:
    """Return how surely this is JSON lines."""
    if source.binary or is_wrapped(source.head):
        return Sure.NO
    lines = [line for line in first_lines(source, 50) if line.strip(" \r\0")]
    objects = sum(parse_object(line) is not None for line in lines)
    # One broken line in the middle of a log is common; a lone cut line may be all there is.
    if objects and objects >= 0.5 * (len(lines) - 1):
        return Sure.SURELY
    return Sure.HARDLY if _begins_object(source, lines) else Sure.NO


def _begins_object(source: Source, lines: list[str]) -> bool:
    """Return whether a small file begins as an object does."""
    return bool(lines) and len(source.data) < 1 << 20 and lines[0].lstrip().startswith('{"')


def first_lines(source: Source, count: int) -> list[str]:
    """Return the first lines of the head; of the file itself if the head ends inside the first or second line.

    A run that writes its whole configuration first has a first line longer than any head.
    """
    lines = source.head.split("\n", count)[:count]
    long = len(lines) <= 2 and len(source.data) >= HEAD_BYTES and lines[0].lstrip().startswith("{")
    if long:
        return [line for line, _ in zip(source.lines(), range(3), strict=False)]
    return lines


def read(source: Source, names: Names) -> Table:
    """Read the columns that hold numbers, and those that are known.

    Raises:
        StabtreeError: if no line is a JSON object.
    """
    lines = source.lines()
    rows, skips = JsonRows(names, source.path), Skips()
    twice: tuple[str, ...] = ()
    first = 1
    for block in lines.blocks():
        count = block.count("\n")
        # A logger that writes a key twice does so in every line.
        twice = twice or repeated_keys(block.partition(_END)[0], first)
        if not _add_plain_block(block, count, rows):
            for line_number, line in enumerate(block.split("\n"), first):
                if reason := _add_line(line, line_number, rows):
                    skips.add(line_number, reason)
        first += count
    if not rows.keys and not rows.runs.config:
        raise StabtreeError(
            "its objects hold no metrics, only lists or nothing" if rows.count else "no line of it is a JSON object",
            where=source.path,
            hint=NAME_METRICS,
        )
    table = rows.table(source, "jsonl", (*lines.notes, *rows.notes, *twice))
    return replace(table, skipped=tuple(skips.first), skipped_count=skips.count)


def _add_plain_block(block: str, count: int, rows: JsonRows) -> bool:
    """Add a block of `count` lines at once if that gives the same as line by line; return False if it may not.

    It does if each line begins with a brace, ends with one and has no opening one between: then as many
    objects as lines can only be the lines' own. Anything else, and all that strict JSON does not know, is left.
    """
    if not block.startswith("{") or not block.endswith("}\n"):
        return False
    if block.count("}\n{") != count - 1 or block.count("{") != count:
        return False
    import orjson

    try:
        objects = orjson.loads(f"[{block[:-1].replace(_END, ',')}]")
    except ValueError:
        return False
    texts = block.count('"') > 2 * sum(map(len, objects))
    return len(objects) == count and rows.add_plain(objects, texts=texts)


def _add_line(line: str, line_number: int, rows: JsonRows) -> str:
    """Add a line to the rows, unless it is blank; return the reason if it can't be read."""
    if not line.strip(" \t\0"):
        return ""
    try:
        row = parse(line)
    except ValueError as error:
        return clean(error, 120)
    if not isinstance(row, dict):
        return f"is no JSON object: {clean(line, 40)!r}"
    rows.add(row, line_number)
    return ""
