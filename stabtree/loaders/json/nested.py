"""The course of a run somewhere inside an object: rows under any key, or lists of values by name."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.json.columns import columns_table, without_settings
from stabtree.loaders.json.rows import JsonRows
from stabtree.metrics.likely import guess

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names

MAX_DEPTH = 3
LEAST = 2  # values that make a list of them a course
_INDEX = re.compile(r"\d{1,9}")
_SIDES = frozenset(("train", "training", "val", "valid", "validation", "eval", "test", "dev"))
_JUDGED = ("loss", "eval_loss", "reward")


class _Course(NamedTuple):
    """What was logged of a run: rows, or lists of values by name; and the keys that lead to it."""

    at: tuple[str, ...]
    rows: list[dict[str, Any]]
    lists: dict[str, list[Any]]


def holds(content: Mapping[str, Any], names: Names) -> bool:
    """Whether the course of a run is inside an object, below its own columns."""
    return any(course.at or course.rows for course in _courses(content, names, ()))


def read(content: Mapping[str, Any], source: Source, names: Names) -> tuple[Table, ...]:
    """The course inside an object, several for several runs.

    Raises:
        StabtreeError: where there is none.
    """
    found = list(_courses(content, names, ()))
    if not found:
        raise StabtreeError(
            "is an object that holds no columns",
            where=source.path,
            hint="name the file that the trainer wrote its metrics to",
        )
    together = len({course.at[:-1] for course in found}) == 1 and all(course.rows for course in found)
    if together:  # by epoch and by step, say: of one run the longer one tells more
        found = [max(found, key=lambda course: len(course.rows))]
    runs = [clean("/".join(course.at), 60) for course in found] if len(found) > 1 else [""]
    return tuple(replace(_table(course, source, names), run=run) for course, run in zip(found, runs, strict=True))


def _courses(value: Mapping[str, Any], names: Names, at: tuple[str, ...]) -> Iterator[_Course]:
    lists = {str(key): cells for key, cells in value.items() if _is_list(cells)}
    sides = {key: inner for key, inner in value.items() if isinstance(inner, dict) and str(key).lower() in _SIDES}
    if len(sides) > 1:
        for side, inner in sides.items():
            lists |= {f"{side}/{key}": cells for key, cells in inner.items() if _is_list(cells)}
    if judged := {key for key in lists if _is_judged(key, names)}:
        yield _Course(at, [], without_settings(lists, judged))
        return
    if len(value) >= LEAST and all(_INDEX.fullmatch(str(key)) and isinstance(row, dict) for key, row in value.items()):
        rows = [value[key] for key in sorted(value, key=int)]
        if _is_course(rows, names, counted=True):
            yield _Course(at, rows, {})
        return
    for key, inner in value.items():
        if isinstance(inner, dict) and len(at) < MAX_DEPTH:
            yield from _courses(inner, names, (*at, str(key)))
        elif isinstance(inner, list) and _is_course(inner, names, counted=False):
            yield _Course((*at, str(key)), [row for row in inner if isinstance(row, dict)], {})


def _is_list(cells: object) -> bool:
    if not isinstance(cells, list) or len(cells) < LEAST:
        return False
    return all(isinstance(cell, int | float | None) for cell in cells) and any(cell is not None for cell in cells)


def _is_course(rows: list[Any], names: Names, *, counted: bool) -> bool:
    """Whether these are the rows of a log: objects that say where they are and hold what a run is judged by."""
    keys = dict.fromkeys(str(key) for row in rows[:100] if isinstance(row, dict) for key in row)
    judged = any(_is_judged(key, names) or isinstance(_first(rows, key), dict) for key in keys)
    return len(rows) >= LEAST and judged and (counted or any(names.counts(key) for key in keys))


def _first(rows: list[Any], key: str) -> object:
    return next((row[key] for row in rows if isinstance(row, dict) and key in row), None)


def _is_judged(key: str, names: Names) -> bool:
    found = guess(key)
    return names.metric(key) in _JUDGED or (found is not None and found.named)


def _table(course: _Course, source: Source, names: Names) -> Table:
    if course.lists:
        return columns_table(source, "json columns", course.lists, names, ())
    rows = JsonRows(names, source.path)
    rows.add_all(course.rows)
    return rows.table(source, "json records", tuple(rows.notes))
