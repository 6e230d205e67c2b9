"""Many runs as a table for spreadsheets and scripts."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from stabtree.common.text import clean, inert
from stabtree.judging.outcome import UNREAD
from stabtree.report.options import DEFAULT_OPTIONS, RenderOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stabtree.tools.fleet.record import Record

COLUMNS = (
    *("path", "run", "verdict", "leaf", "section", "title", "onset_step", "restart_step"),
    *("rows", "last_step", "more", "seconds", "problem", "badge"),
)
"""The columns; new ones are only added behind them. The exit code is that of `verdict`; the screen counts `badge`."""
LONGEST_CELL = 4000
_BEGINS_A_FORMULA = tuple(
    "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"
)  # the last four are the wide forms, which some take for the first


def row(record: Record) -> dict[str, str | int | float | None]:
    """Return a run by columns."""
    values = {name: getattr(record, name) for name in COLUMNS if name != "problem"}
    values |= {"seconds": round(record.seconds, 4), "problem": ""}
    if record.verdict == UNREAD:
        values |= {"title": "", "rows": None, "more": None, "problem": record.title}
    return {name: values[name] for name in COLUMNS}


def csv_lines(records: Iterable[Record], _look: RenderOptions = DEFAULT_OPTIONS) -> Iterator[str]:
    """Yield a line a run below a line of heads; no cell is a formula, none holds a line break."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for record in records:
        writer.writerow([_cell(value) for value in row(record).values()])
        yield stream.getvalue()
        stream.seek(0)
        stream.truncate()
    yield stream.getvalue()


def _cell(value: str | float | None) -> str | float | None:
    """Return text that spreadsheets show as text: what would begin a formula gets an apostrophe before it."""
    if not isinstance(value, str):
        return value
    text = inert(clean(value, LONGEST_CELL))
    if value.startswith(_BEGINS_A_FORMULA) or text.startswith(_BEGINS_A_FORMULA):
        return f"'{text}"
    return text
