"""Text logs of any trainer: lines that name a step and some numbers, among chatter of every kind.

One reader for all: `textlog_line` takes a line apart with the grammar, `textlog_rows` joins the lines of a step,
`textlog_layout` learns how the most frequent lines look so that a long log is read at the speed of one pattern,
and `textlog_runs` gives each row its step and each run its table.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from stabtree.errors import StabtreeError
from stabtree.loaders.json import lines as jsonl
from stabtree.loaders.table import Table
from stabtree.loaders.tables import delimited
from stabtree.loaders.text.messages import ENDING
from stabtree.loaders.text.reader import Reader
from stabtree.loaders.text.runs import tables
from stabtree.metrics.table import match, normalize

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.loaders.source import Lines, Source
    from stabtree.loaders.table import Select

# Enough to tell a log by; further only where these lines hold no metrics yet, as after a dump of source code.
SNIFF_LINES = 2000
SNIFF_FURTHER = 200_000
# What a table scores whose rows all agree; no text log does.
TABLE = 60
ENOUGH_ROWS = 3
_JSON = re.compile(r"\s*(?:\{\s*\"|\[\s*[\[{\"])")
_MARKDOWN = re.compile(r"^(?:\s*```|#{2,5} \w)", re.MULTILINE)


def _scan(lines: Iterable[str], select: Select) -> Reader:
    reader = Reader(select)
    reader.read(lines)
    return reader


def _known(name: str) -> bool:
    return match(name) is not None


def _notes(lines: Lines, reader: Reader) -> tuple[str, ...]:
    left = reader.telling.left
    more = (f"{left:,} more lines like its warnings and errors were not kept.",) if left else ()
    return (*lines.notes, *more)


def sniff(source: Source) -> int:
    """How surely this is a text log, 0 to 100."""
    if source.binary or jsonl.sniff(source) or delimited.sniff(source) >= TABLE:
        return 0
    head = source.head
    # Documentation shows lines of logs as examples.
    if head.lstrip().startswith("# ") and _MARKDOWN.search(head):
        return 0
    reader = _scan(head.split("\n", SNIFF_LINES)[:SNIFF_LINES], _known)
    if not reader.losses and not reader.rows.count:
        reader = _scan(islice(source.lines(), SNIFF_FURTHER), _known)
    if _JSON.match(head):
        # Broken JSON of which nobody else makes anything.
        return 15 if reader.losses else 0
    if reader.losses >= ENOUGH_ROWS:
        return 70
    named = any("loss" in name for name in reader.rows.names) or len(reader.rows.events) > 1
    if reader.losses or named or reader.rows.count >= ENOUGH_ROWS:
        return 40
    return 5 if ENDING.search(head) else 0


def read(source: Source, select: Select) -> Table | tuple[Table, ...]:
    """The columns that `select` wants; one table for each run that the log holds.

    Raises:
        StabtreeError: where no line holds a metric.
    """
    lines = source.lines()

    def wanted(name: str) -> bool:
        return select(name) or normalize(name) in ("loss_scale", "grad_norm")

    reader = Reader(wanted)
    reader.read(lines)
    if not reader.rows.count and ENDING.search("\n".join(line.text for line in reader.telling.between(0, 0))):
        kept = reader.telling.between(0, 0)
        notes = (*_notes(lines, reader), "No line of it names a step and a metric: judged by its error lines alone.")
        return Table(source.path, source.describe("text"), 0, {}, notes=notes, lines=kept)
    if not reader.rows.count:
        raise StabtreeError(
            "no line of it names a step and a metric",
            where=source.path,
            hint="check the file, or name its format with --format",
        )
    return tables(source, reader.rows, reader.skips, reader.config, reader.telling, _notes(lines, reader))
