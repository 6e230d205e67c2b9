"""Text logs of any trainer: lines that name a step and some numbers, among chatter of every kind.

One reader for all: `parse` takes the first line of each shape apart with the grammar, so that of all others only the
numbers are read, `rows` joins the lines of a step, and `runs` gives each row its step and each run its table.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.loaders.json.lines import is_wrapped, unwrapped
from stabtree.loaders.source import NAME_METRICS, Sure, naming_a_loss
from stabtree.loaders.table import Table
from stabtree.loaders.text import grammar
from stabtree.loaders.text.messages import ended_in_error
from stabtree.loaders.text.parse import parse
from stabtree.loaders.text.reader import LogReader
from stabtree.loaders.text.runs import tables
from stabtree.loaders.text.shape import split
from stabtree.metrics.names import Names, likely_loss

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.loaders.source import Lines, Source
    from stabtree.loaders.text.rows import LogRows

# Enough to recognise a log by; more only if these lines hold no metrics yet, as after a dump of source code.
SNIFF_LINES = 2000
SNIFF_FURTHER = 200_000
ENOUGH_ROWS = 3
BLOCK_NAMES = 8
CODES_WITHIN, MIN_CODES = 20_000, 4
_JSON = re.compile(r"[\s\0]*(?:\{\s*\"|\[\s*[\[{\"])")
# What lines of metrics hold, and those of what comes before them seldom do.
_TRAINED = re.compile(r"loss|LOSS|Loss|reward|Reward|[Ee]poch|[Ss]tep|iter|nll|^(?:import|from|def|class) ")
# Colour codes that lost their escape character.
_LOST_CODES = re.compile(r"\[\d{0,3}(?:;\d{1,3})*m")
_MARKDOWN = re.compile(r"^(?:[^\S\n]*```|#{2,5} \w)", re.MULTILINE)


def _printed(source: Source, lines: Iterable[str]) -> Iterable[str]:
    """Return the lines as they were printed: out of a container's JSON, without colour codes that lost their escape."""
    if is_wrapped(source.head):
        lines = unwrapped(lines)
    if len(_LOST_CODES.findall(source.head[:CODES_WITHIN])) >= MIN_CODES:
        return (_LOST_CODES.sub("", line) for line in lines)
    return lines


@lru_cache(maxsize=2)
def _scan_head(source: Source, names: Names, *, kinds: bool = False) -> LogReader:
    """Return what the first lines hold, up to enough losses: what recognises a log reads it next."""
    reader = LogReader(names, kinds=kinds, enough=ENOUGH_ROWS)
    reader.read(_printed(source, source.head.split("\n", SNIFF_LINES)[:SNIFF_LINES]))
    return reader


def sniff(source: Source, names: Names) -> Sure:
    """Return how surely this is a text log."""
    if source.binary:
        return Sure.NO
    head = source.head
    # Documentation shows lines of logs as examples.
    if head.lstrip().startswith("# ") and _MARKDOWN.search(head):
        return Sure.NO
    reader = _scan_head(source, names)
    if not reader.losses and reader.rows.own < ENOUGH_ROWS:
        kinds = _scan_head(source, names, kinds=True)
        reader = max(reader, kinds, key=lambda found: (found.rows.own, found.rows.count))
    if reader.rows.count == len(reader.rows.asides):
        reader = LogReader(names, enough=ENOUGH_ROWS)
        reader.read(filter(_TRAINED.search, islice(_printed(source, source.lines()), SNIFF_FURTHER)))
    if _JSON.match(head) and not is_wrapped(head):
        # Broken JSON that no other format reads.
        return Sure.MAYBE.when(reader.losses)
    if reader.losses >= ENOUGH_ROWS:
        return Sure.SURELY
    likely = _likely(reader)
    first = _scan_head(source, names)
    if not likely and ended_in_error(first.errors.between(0, first.rows.count)):
        return Sure.HARDLY
    return likely


def _likely(reader: LogReader) -> Sure:
    """Return how surely a few rows are a log."""
    rows = reader.rows
    if rows.own == 1 and not rows.events and not rows.located:
        # A word in prose may happen to be a metric; the names of a whole block don't.
        return Sure.MAYBE.when(len(rows.columns) >= BLOCK_NAMES)
    if rows.own == 1 and rows.below_bar_head:
        return Sure.MAYBE  # the last state of a bar: other files of a folder hold more
    if not rows.own and not rows.events:
        return _likely_aside(rows)
    if reader.losses or rows.own + len(rows.events) >= ENOUGH_ROWS or len(rows.events) > 1:
        return Sure.LIKELY
    if any("loss" in name.lower() for name in rows.columns):
        return Sure.LIKELY
    return Sure.NO


def _likely_aside(rows: LogRows) -> Sure:
    """Return how surely rows of unknown names alone are a log: where each has its step, more so if they are scores."""
    if len(rows.asides) < ENOUGH_ROWS or len(rows.roles["epoch"].rows) + len(rows.aside_steps) < 1:
        return Sure.NO
    if any(grammar.QUALITY.search(name) or rows.names.wanted(name) for name in rows.columns):
        return Sure.MAYBE
    return Sure.HARDLY


def hint(source: Source, names: Names) -> str:
    """Return the option that reads a name beside a step as the loss; nothing where that would not help."""
    values: dict[str, set[float]] = {}
    for line in source.head.split("\n", SNIFF_LINES)[:SNIFF_LINES]:
        shape, numbers = split(line[: grammar.MAX_LINE])
        template = parse(shape, numbers, names)
        for slot in filter(lambda slot: template.is_located and not slot.role, template.metrics):
            values.setdefault(slot.name, set()).add(slot.value(numbers))
    likely = likely_loss(name for name, seen in values.items() if len(seen) > 1)  # a setting never changes
    is_read = likely and _scan_head(source, names.with_column("loss", likely)).losses
    return naming_a_loss([likely] * bool(is_read), names)


def read(source: Source, names: Names) -> tuple[Table, ...]:
    """Read the columns that hold numbers; one table for each run that the log holds.

    A column that the user names and no line spells so is one that reading made, as `epoch` or `valid/loss`: then the
    log is read as if the user had named none.

    Raises:
        StabtreeError: if no line holds a metric.
    """
    found, wanted = _read(source, names), set(names.asked.values())
    if wanted.difference(*(table.columns for table in found)):
        made = _read(source, Names())
        if not wanted.difference(*(table.columns for table in made)):
            return made
    return found


def _scan(source: Source, names: Names, *, kinds: bool, enough: int = sys.maxsize) -> tuple[LogReader, Lines]:
    """Return what the lines up to enough losses hold, and the lines with the notes on them."""
    reader, lines = LogReader(names, kinds=kinds, enough=enough), source.lines()
    reader.read(_printed(source, lines), lines)
    return reader, lines


def _read(source: Source, names: Names) -> tuple[Table, ...]:
    # Losses that go by their kind alone count where no other is found; the first lines show which a log has.
    kinds = not _scan_head(source, names).losses
    reader, lines = _scan(source, names, kinds=kinds, enough=1 if kinds else sys.maxsize)
    if kinds and reader.losses:
        kinds = False
        reader, lines = _scan(source, names, kinds=False)
    if not kinds and not reader.losses:
        reader, lines = _scan(source, names, kinds=True)
    errors = reader.errors
    notes = tuple(lines.notes)
    if errors.dropped:
        notes = (*notes, f"{errors.dropped:,} more lines that look like warnings or errors were not kept.")
    if reader.rows.count:
        return tables(source, reader, notes)
    kept = errors.between(0, 0)
    if ended_in_error(kept):
        notes = (*notes, "No line of it names a step and a metric: judged by its error lines alone.")
        ending = Table(source.path, source.describe("text"), 0, {}, notes=notes, lines=kept, ended_in_error=True)
        return (ending,)
    raise StabtreeError(
        "no line of it names a step and a metric",
        where=source.path,
        hint=hint(source, names) or NAME_METRICS,
    )
