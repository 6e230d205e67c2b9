"""JSON lines: one object a line, train, eval and config rows mixed; and printed text that a container kept so."""

from __future__ import annotations

import json
import math
import re
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.json.rows import JsonRows
from stabtree.loaders.source import HEAD_BYTES, NAME_METRICS, Sure, lines_of
from stabtree.loaders.table import Skips, Table
from stabtree.loaders.tables.collected import long_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.loaders.source import Source
    from stabtree.metrics.names import Names

# printf writes `nan` and `-inf`, which JSON does not know even in Python's dialect.
_BARE = re.compile(r"(?<=[:\[,\s])([+-]?)(nan|inf|infinity)(?=\s*[,}\]])", re.IGNORECASE)
# A cut pair whose value may be NaN, Infinity or null.
_BEGUN = re.compile(r'\s*"([^"]+)"\s*:\s*(-?(?:n(?:an?|ul?)?|i\w{0,6}))\s*', re.IGNORECASE)
# The stream of a piece of printed text in Docker's, Kaggle's and CloudWatch's spellings.
_STREAM = re.compile(r'"(?:stream|stream_name|fd|source)"\s*:\s*"std(?:out|err)"')
_BETWEEN = re.compile(r"[\s,]*")
_VALUE = re.compile(r'"(metric_|scalar_)?val(ue)?"\s*:')  # a record of a long table has one
LOOK_AT = 100  # records by which it is known
_TEXT = ("data", "log", "message", "msg", "line", "text")
# A longer piece without a line end is no line of a log.
_LONGEST = 1 << 20


def parse(text: str) -> Any:
    """Parse a JSON value, `nan` and `inf` in any spelling included.

    Raises:
        ValueError: if it is not JSON, with a reason fit to print.
    """
    try:
        try:
            return _loads(text)
        except ValueError:
            spelled = _BARE.sub(lambda m: m[1].strip("+") + ("NaN" if m[2][0] in "nN" else "Infinity"), text)
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


def parse_fast(text: str) -> Any:
    """Parse a JSON value as `parse` does; a faster parser reads what is strict JSON."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return parse(text)


def values(lines: Iterable[str], skips: Skips) -> Iterator[Any]:
    """Yield the value of each line that is not blank; one that is no JSON is skipped."""
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                yield parse_fast(line)
        except ValueError as error:
            skips.add(number, clean(error, 120))


def parse_object(text: str) -> dict[str, Any] | None:
    """Return the object that a text is, None if it is none."""
    try:
        value = parse(text) if "{" in text else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def sniff(source: Source, _names: Names) -> Sure:
    """Return how surely this is JSON lines."""
    if source.binary or is_wrapped(source.head):
        return Sure.NO
    lines = [line for line in first_lines(source, 50) if line.strip(" \r\0")]
    objects = sum(parse_object(line) is not None for line in lines)
    # One broken line in the middle of a log is common; a lone cut line may be all there is.
    if objects and objects >= 0.5 * (len(lines) - 1):
        return Sure.SURELY
    begun = "".join(lines[:1]).lstrip().startswith('{"')
    return Sure.HARDLY.when(begun and len(source.data) < 1 << 20)


def first_lines(source: Source, count: int) -> list[str]:
    """Return the first lines of the head; of the file itself if the head ends inside the first or second line.

    A run that writes its whole configuration first has a first line longer than any head.
    """
    lines = source.head.split("\n", count)[:count]
    if len(lines) <= 2 and len(source.data) >= HEAD_BYTES and lines[0].lstrip().startswith("{"):
        return [line for line, _ in zip(source.lines(), range(3), strict=False)]
    return lines


def objects(text: str, start: int = 0) -> list[dict[str, Any]]:
    """Return the objects that follow each other from `start` on, up to the first thing that is none."""
    decoder = json.JSONDecoder()
    complete: list[dict[str, Any]] = []
    while True:
        start = _BETWEEN.match(text, start).end()  # type: ignore[union-attr]
        if not text.startswith("{", start):
            return complete
        try:
            value, start = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            return complete
        complete.append(value)


def rows_of(source: Source, names: Names) -> JsonRows:
    """Return what collects the records of a source, which may hold a name and a value each."""
    rows = JsonRows(names, source.path)
    if _VALUE.search(source.head[:1000]):
        head = "\n".join(source.head.split("\n", LOOK_AT)[:LOOK_AT])
        first = objects(head, head.find("{"))[:LOOK_AT]
        keys = list(dict.fromkeys(chain.from_iterable(first)))
        rows.long = long_table(keys, names, ([record.get(key) for key in keys] for record in first))
    return rows


def read(source: Source, names: Names) -> tuple[Table, ...]:
    """Read the columns that hold numbers, and those that are known.

    Raises:
        StabtreeError: if no line is a JSON object.
    """
    lines = source.lines()
    rows, skips = rows_of(source, names), Skips()
    first = 1
    for block in lines.blocks():
        if objects := _block_of_objects(block):
            rows.add_all(objects, range(first, first + len(objects)))
        else:
            _add_lines(block, first, rows, skips)
        first += block.count("\n")
    if not (rows.keys or rows.runs.config or rows.long):
        empty = "its objects hold no metrics, only lists or nothing"
        problem = empty if rows.count else "no line of it is a JSON object"
        raise StabtreeError(problem, where=source.path, hint=NAME_METRICS)
    table, *others = rows.tables(source, "jsonl", lines.notes)
    return (replace(table, skipped=tuple(skips.first), skipped_count=skips.count), *others)


def _add_lines(block: str, number: int, rows: JsonRows, skips: Skips) -> None:
    """Add the object of each line, the first of which has this number; count those that hold none."""
    objects, places = list[Any](), list[int]()
    for line in lines_of(block):
        text = line.strip(" \t\n\0")
        if text[:1] == "{":
            try:
                objects.append(parse_fast(line))
            except ValueError as error:
                skips.add(number, clean(error, 120))
                objects.append(_begun(line))
            places.append(number)
        elif text:
            skips.add(number, "is no JSON object", line)
        number += 1 + line.count("\n")
    rows.add_all(objects, places)


def _begun(line: str) -> dict[str, Any] | None:
    """Return what a cut line holds of an object, if that is not finite, or cut where it may be; None otherwise."""
    whole, _, last = line.rpartition(",")
    for text in (line, whole):
        if (found := parse_object(f"{text}}}")) is None:
            continue
        if text is whole and (cut := _BEGUN.fullmatch(last)):
            found[cut[1]] = f"{cut[2]}…"
            return found
        return found if any(isinstance(cell, float) and not math.isfinite(cell) for cell in found.values()) else None
    return None


def _block_of_objects(block: str) -> list[Any]:
    """Return the objects of a block that holds one in each line; none if a line may hold anything else.

    If each line begins with a brace, ends with one and has no opening one between, then as many objects as lines can
    only be the lines' own.
    """
    count = block.count("\n")
    if not block.endswith("}\n") or block.count("{") != count or f"\n{block}".count("\n{") != count:
        return []
    try:
        text = block[:-1].replace("\n", ",")
        objects = msgspec.json.decode(f"[{text}]", type=list[Any])
    except (msgspec.MsgspecError, UnicodeError):
        return []
    return objects if len(objects) == count else []


def is_wrapped(head: str) -> bool:
    """Return whether a file holds printed text wrapped in JSON, by its first lines."""
    pieces = [_piece(line) for line in head.split("\n", 5)[:5] if line.strip(" \r,[]")]
    return bool(pieces) and all(piece is not None for piece in pieces[:-1] or pieces)


def unwrapped(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of the text inside; lines that hold no such object are left out."""
    begun = ""
    for piece in map(_piece, lines):
        if piece is None:
            continue
        *whole, rest = piece.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        if whole:
            yield begun + whole[0]
            yield from whole[1:]
            begun = ""
        if len(begun) < _LONGEST:
            begun += rest
    if begun:
        yield begun


def _piece(line: str) -> str | None:
    """Return the text in a line that holds one object; None if it holds none."""
    if not _STREAM.search(line[:300]) and not _STREAM.search(line[-300:]):
        return None
    value = parse_object(line.strip(" \r,[]\t")) or {}
    return next((value[key] for key in _TEXT if isinstance(value.get(key), str)), None)
