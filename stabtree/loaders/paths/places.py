"""The lines of a log in which steps were logged, to show a finding beside its line."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.loaders.source import open_source
from stabtree.loaders.tables.delimited import find_layout, split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stabtree.loaders.source import Source
    from stabtree.run import FileUse, Run

FORMATS = ("csv", "jsonl", "text", "trainer_state")  # those with a line for each row
MAX_LENGTH = 100_000  # characters of a line that is searched


def with_places(run: Run, steps: Iterable[int]) -> Run:
    """Return the run with the lines in which some of its steps were logged, found by reading the log once more.

    Where a step was logged again after a resume, it is the later line, whose values counted.
    """
    source = next(iter(run.sources), None)
    if source is None or run.by_row:
        return run
    try:
        return replace(run, places=_lines_of(source, {str(step): step for step in steps}))
    except (StabtreeError, OSError, ValueError):  # gone since, or standard input
        return run


def _lines_of(used: FileUse, wanted: dict[str, int]) -> dict[int, int]:
    """Return step -> line number, for the steps that are wanted by their texts."""
    kind = next((name for name in FORMATS if used.format.startswith(name)), None)
    if kind is None or not wanted:
        return {}
    source = open_source(used.path)
    holds = _in_column(source, used.steps_from) if kind == "csv" else _after_name(used.steps_from)
    found: dict[int, int] = {}
    for number, line in enumerate(source.lines(), 1):
        if len(line) > MAX_LENGTH:
            continue
        for text, step in wanted.items():
            if text in line and holds(line, text):
                found[step] = number
    return found


def _in_column(source: Source, column: str) -> Callable[[str, str], bool]:
    """Return a function that says whether a line has a step in the column of steps."""
    layout = find_layout(source.head)
    if layout is None or column not in layout.names:
        return lambda _line, _text: False
    index, delimiter = layout.names.index(column), layout.delimiter

    def holds(line: str, text: str) -> bool:
        cells = split(line, delimiter)
        return len(cells) > index and cells[index].strip(' "').removesuffix(".0") == text

    return holds


def _after_name(name: str) -> Callable[[str, str], bool]:
    """Return a function that says whether a line has a step after its name: `"step": 12`, `step=12`, `step 12/100`."""
    pattern = re.compile(rf"(?<!\w){re.escape(name)}\W{{1,4}}(\d{{1,19}})(?![\d.]{{0,20}}[1-9])", re.IGNORECASE)
    return lambda line, text: text in pattern.findall(line)
