"""The course of a run somewhere inside an object: rows under any key, or lists of values by name."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.json.columns import columns_table, without_settings
from stabtree.loaders.json.rows import JsonRows
from stabtree.loaders.json.whole import records
from stabtree.metrics.role import describe_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names

MAX_DEPTH = 3
MIN_VALUES = 2  # values that make a list of them a course
_INDEX = re.compile(r"\d{1,9}")
_SPLITS = frozenset(("train", "training", "val", "valid", "validation", "eval", "test", "dev"))
_JUDGED = ("loss", "eval_loss", "reward")


class _Course(NamedTuple):
    """What was logged of a run: rows, or lists of values by name; and the keys that lead to it."""

    path: tuple[str, ...]
    rows: list[dict[str, Any]]
    lists: dict[str, list[Any]]


def holds(content: Mapping[str, Any], names: Names) -> bool:
    """Return whether the course of a run is inside an object, below its own columns."""
    return any(course.path or course.rows for course in _courses(content, names, ()))


def read(content: Mapping[str, Any], source: Source, names: Names) -> tuple[Table, ...]:
    """Read the course inside an object, several for several runs.

    Raises:
        StabtreeError: if there is none.
    """
    found = list(_courses(content, names, ()))
    if not found:
        raise StabtreeError(
            "is an object that holds no columns",
            where=source.path,
            hint="name the file that the trainer wrote its metrics to",
        )
    together = len({course.path[:-1] for course in found}) == 1 and all(course.rows for course in found)
    if together:  # by epoch and by step, say: of one run the longer one shows more
        found = [max(found, key=lambda course: len(course.rows))]
    if len(found) == 1:
        return (_table(found[0], source, names),)
    return tuple(replace(_table(course, source, names), run=clean("/".join(course.path), 60)) for course in found)


def _courses(value: Mapping[str, Any], names: Names, path: tuple[str, ...]) -> Iterator[_Course]:
    lists = _lists(value)
    if judged := {key for key in lists if _is_judged(key, names)}:
        yield _Course(path, [], without_settings(lists, judged))
    elif _is_indexed(value):
        rows = [value[key] for key in sorted(value, key=int)]
        if _is_course(rows, names, counted=True):
            yield _Course(path, rows, {})
    else:
        for key, inner in value.items():
            if isinstance(inner, dict) and len(path) < MAX_DEPTH:
                yield from _courses(inner, names, (*path, str(key)))
            elif isinstance(inner, list) and _is_course(inner, names, counted=False):
                yield _Course((*path, str(key)), records(inner), {})


def _lists(value: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the lists of values in an object; those inside of `train` and `val` too, if there are two such keys."""
    lists = {str(key): cells for key, cells in value.items() if _is_list(cells)}
    splits = {key: inner for key, inner in value.items() if isinstance(inner, dict) and str(key).lower() in _SPLITS}
    if len(splits) > 1:
        for split, inner in splits.items():
            lists |= {f"{split}/{key}": cells for key, cells in inner.items() if _is_list(cells)}
    return lists


def _is_indexed(value: Mapping[str, Any]) -> bool:
    """Return whether an object holds rows by their index."""
    if len(value) < MIN_VALUES:
        return False
    return all(_INDEX.fullmatch(str(key)) and isinstance(row, dict) for key, row in value.items())


def _is_list(cells: object) -> bool:
    if not isinstance(cells, list) or len(cells) < MIN_VALUES:
        return False
    return all(isinstance(cell, int | float | None) for cell in cells) and any(cell is not None for cell in cells)


def _is_course(rows: list[Any], names: Names, *, counted: bool) -> bool:
    """Return whether these are the rows of a log: objects with a step and with what a run is judged by."""
    keys = dict.fromkeys(map(str, chain.from_iterable(records(rows[:100]))))
    judged = any(_is_judged(key, names) or isinstance(_first(rows, key), dict) for key in keys)
    return len(rows) >= MIN_VALUES and judged and (counted or any(names.counts(key) for key in keys))


def _first(rows: list[Any], key: str) -> object:
    return next((row[key] for row in rows if isinstance(row, dict) and key in row), None)


def _is_judged(key: str, names: Names) -> bool:
    return names.metric(key) in _JUDGED or describe_name(key).named


def _table(course: _Course, source: Source, names: Names) -> Table:
    if course.lists:
        return columns_table(source, "json columns", course.lists, names, ())
    rows = JsonRows(names, source.path)
    rows.add_all(course.rows)
    return rows.table(source, "json records", tuple(rows.notes))
