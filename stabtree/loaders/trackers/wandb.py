"""Weights & Biases: `.wandb` files, and the folders that its runs leave behind.

A `.wandb` file holds records of protocol buffers in the blocks of LevelDB's log format: the rows of the history, the
configuration, and what the run printed, in pieces of two streams that become lines again.
"""

from __future__ import annotations

import json
import os
import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.files import LogLine
from stabtree.common.text import clean, without_escapes
from stabtree.loaders.binary import BYTES, Field, RecordBlocks, fields, integer, messages, parts, text
from stabtree.loaders.config import read_config
from stabtree.loaders.folder import entries, is_file, settings_file
from stabtree.loaders.json import lines as jsonl
from stabtree.loaders.json.rows import JsonRows, flatten
from stabtree.loaders.source import Sure, chunks
from stabtree.loaders.table import Table
from stabtree.loaders.text.messages import ended_in_error
from stabtree.loaders.text.reader import LogReader
from stabtree.metrics.names import NO_COURSE, nonfinite_losses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from stabtree.loaders.source import Source
    from stabtree.metrics.names import Names

MAGIC = b":W&B"
# A longer line is a progress bar or a dump: no line of an error is.
MAX_LINE = 1 << 16
# Numbers of the fields in W&B's schema wandb_internal.proto.
HISTORY, OUTPUT, CONFIG, RAW_OUTPUT, RUN, EXIT = 2, 4, 5, 13, 17, 18
ITEM, STEP, STEP_NUMBER = 1, 2, 1
KEY, NESTED_KEY, VALUE_JSON = 1, 2, 16
RUN_CONFIG, DISPLAY_NAME = 4, 8
UPDATE = 1
EXIT_CODE = 1
STREAM, PRINTED = 1, 3
_LINE_ENDS = re.compile(r"\r\n|\n|\r")
# Beside its runs W&B links to its own messages about the newest.
_MESSAGES = re.compile(r"[^\n\[]{0,80}\[\w+\.py:[^\]\n]{0,80}\(\):\d+\]")
HISTORY_FILE, OUTPUT_FILE = "wandb-history.jsonl", "output.log"  # of a run, in its folder `files`
FINAL_VALUES, MESSAGES = "the final values", "the messages"
_HINT = "name the run's folder, or its run-*.wandb file"
# By itself W&B's library asks a server that is down again for many minutes, and asks for a key at a terminal.
_LIMITS = {
    "WANDB_SILENT": "true",
    "WANDB_HTTP_TIMEOUT": "20",
    "WANDB__GRAPHQL_RETRY_MAX": "2",
    "WANDB__FILE_TRANSFER_RETRY_MAX": "1",
    "WANDB__FILE_TRANSFER_TIMEOUT_SECONDS": "60",
}
PAGE_ROWS, MAX_PAGE = 1000, 2**31 - 1  # the service counts a page in 32 bits


def sniff(source: Source, _names: Names) -> Sure:
    """Return how surely this is a file of W&B; those without a history are recognised too, to be refused."""
    if source.data.startswith(MAGIC):
        return Sure.SURELY
    return {"": Sure.NO, MESSAGES: Sure.SURELY}.get(_finals(source), Sure.MAYBE)


def _finals(source: Source) -> str:
    """Return what a file of W&B that is no log of metrics holds; empty for any other file."""
    if source.name.startswith("debug") and source.name.endswith(".log") and _MESSAGES.match(source.head):
        return MESSAGES
    if source.head.startswith(("wandb_version:", "_wandb:")):
        return "the configuration"
    if not source.head.lstrip().startswith("{"):
        return ""
    named = source.file is not None and source.file.name.endswith("wandb-summary.json")
    if named or {"_wandb", "_runtime"} <= _values(source).keys():
        return FINAL_VALUES
    return ""


def _values(source: Source) -> dict[str, Any]:
    """Return the cells of a file that is one JSON object; none of any other."""
    return dict(flatten(jsonl.parse_object(source.head) or {}))


def read(source: Source, names: Names) -> Table:
    """Read the history of a `.wandb` file, and the lines about errors that the run printed.

    Raises:
        StabtreeError: if it holds no history, and the run ended in no error.
    """
    finals = _finals(source)
    if finals == FINAL_VALUES:
        lines = nonfinite_losses(_values(source))
        if lines:
            return Table(source.path, "wandb, final values", 0, {}, notes=(NO_COURSE,), lines=lines)
    if finals:
        raise StabtreeError(f"holds only {finals} of a W&B run, no history", where=source.path, hint=_HINT)
    table = _log(source, names)
    if table.rows:
        return table
    if table.ended_in_error:
        note = "It has no history: judged by what the run printed alone."
        return replace(table, columns={}, notes=(*table.notes, note))
    problem = "is a W&B run without a history: nothing was logged, or it is lost"
    raise StabtreeError(problem, where=source.path, hint=(*table.notes, "name another run")[0])


class _File(Struct):
    """What a `.wandb` file holds, gathered while it is read once."""

    rows: JsonRows  # of its history
    config: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    exit_codes: list[int] = field(default_factory=list)  # the last counts; none of a program that was killed
    blocks: RecordBlocks = field(default_factory=RecordBlocks)
    printed: int = 0  # lines so far
    before: int = 0  # lines before the last row
    _open: dict[int, str] = field(default_factory=dict)

    def lines(self, parts: Iterable[bytes]) -> Iterator[str]:
        """Yield the lines that were printed, and keep everything else on the way."""
        for record in self.blocks.records(parts):
            try:
                printed = self._entry(record)
            except ValueError:
                self.blocks.damaged += 1
                continue
            yield from printed
        yield from [self._line(begun) for begun in self._open.values() if begun]

    def _entry(self, data: bytes) -> list[str]:
        """Keep what a record holds; return the lines that it completes."""
        row: dict[str, Any] = {}
        for part in fields(data):
            if part.wire != BYTES:
                continue
            own = parts(data, part) if part.number in (OUTPUT, RAW_OUTPUT, EXIT) else {}
            if part.number in (OUTPUT, RAW_OUTPUT):
                piece = own.get((PRINTED, BYTES))
                return self._completed(integer(own, STREAM), text(data, piece) if piece else "")
            if part.number == HISTORY:
                row |= _history(data, part)
            elif part.number == CONFIG:
                self.config |= _items(data, part, UPDATE)
            elif part.number == EXIT:
                self.exit_codes.append(integer(own, EXIT_CODE))
            elif part.number == RUN:
                self.config |= _items(data, part, RUN_CONFIG, UPDATE)
                self.name = next((text(data, name) for name in messages(data, part, DISPLAY_NAME)), self.name)
        if row:
            self.rows.add(row, self.rows.count + 1)
            self.before = self.printed
        return []

    def _completed(self, stream: int, piece: str) -> list[str]:
        """Return the lines that a piece of a stream completes; of a very long line its beginning is kept."""
        first, *others = _LINE_ENDS.split(piece)
        *whole, rest = self._open.get(stream, "") + first, *others
        self._open[stream] = rest[:MAX_LINE]
        return [self._line(line) for line in whole]

    def _line(self, line: str) -> str:
        self.printed += 1
        return without_escapes(line[:MAX_LINE])


def _history(data: bytes, whole: Field) -> dict[str, Any]:
    """Return a row; its step may stand beside its items."""
    row = _items(data, whole, ITEM)
    for step in messages(data, whole, STEP):
        row.setdefault("_step", integer(parts(data, step), STEP_NUMBER))
    return row


def _items(data: bytes, whole: Field, *path: int) -> dict[str, Any]:
    """Return the keys and values at a path in a history or configuration; nested keys are joined with `/`."""
    found: dict[str, Any] = {}
    for item in messages(data, whole, *path):
        own = [part for part in fields(data, item) if part.wire == BYTES]
        name = "/".join(filter(None, (text(data, part) for part in own if part.number in (KEY, NESTED_KEY))))
        values = [text(data, part) for part in own if part.number == VALUE_JSON]
        if name:
            found[name] = _value("".join(values[-1:]))
    return found


def _value(content: str) -> Any:
    """Return the value of an item; text that is no JSON stays text, which no number is read from."""
    try:
        return jsonl.parse(content or "null")
    except ValueError:
        return content


def _log(source: Source, names: Names) -> Table:
    notes: list[str] = []
    found = _File(JsonRows(names, source.path))
    reader = LogReader(names)
    reader.read(found.lines(chunks(source, notes)))
    rows = found.rows
    config, mistakes = read_config({"display_name": found.name or None, **found.config})
    kept = reader.errors.between(0, reader.rows.count)
    lines = tuple(replace(line, at_end=line.line > found.before) for line in kept)
    return Table(
        path=source.path,
        format=", ".join(filter(None, ("wandb", source.packed))),
        rows=rows.count,
        columns=rows.columns(),
        config=config,
        notes=(*notes, *found.blocks.notes(), *rows.notes, *mistakes),
        lines=(*lines, *(LogLine(0, f"exit code: {code} (W&B)", at_end=True) for code in found.exit_codes[-1:])),
        ended_in_error=ended_in_error(lines),
    )


def is_run(directory: Path) -> bool:
    """Return whether this is the folder that W&B keeps one run in: with one log, or with W&B's own `files`.

    If many runs were gathered in one folder, each log is a run.
    """
    folders, files = entries(directory)
    logs = sum(name.endswith(".wandb") for name in files)
    if logs == 1 or "files" not in folders:
        return logs == 1
    inner = entries(directory / "files")[1]
    own = {HISTORY_FILE, "wandb-summary.json", "wandb-metadata.json"}
    return logs > 1 or not own.isdisjoint(inner)


def run_in(directory: Path, read: Callable[[Path], tuple[Table, ...]]) -> tuple[Table, ...]:
    """Read the history of one run, from the first of its files that holds one, with its configuration.

    Args:
        directory: the folder of the run.
        read: reads a file of whatever format.

    Raises:
        StabtreeError: if none does.
    """
    logs = [directory / name for name in entries(directory)[1] if name.endswith(".wandb")]
    own = directory / "files"
    problems: list[str] = []
    finals, _ = settings_file(own / "wandb-summary.json")
    lines = nonfinite_losses(dict(flatten(finals)))
    for file in filter(is_file, (*logs, own / HISTORY_FILE, own / OUTPUT_FILE)):
        try:
            # What a run printed is in the trainer's own format.
            tables = read(file)
        except StabtreeError as error:
            problems.append(f"Not read: {clean(file.name, 80)} {clean(error.problem, 120)}.")
            continue
        if file.name == HISTORY_FILE:
            lines = (*_printed(own / OUTPUT_FILE, read), *lines)
        values, notes = settings_file(own / "config.yaml")
        config, mistakes = read_config(values)
        return tuple(
            replace(
                table,
                lines=(*table.lines, *lines),
                config={**table.config, **config},
                notes=(*problems, *notes, *mistakes, *table.notes),
            )
            for table in tables
        )
    if lines:
        return (Table(clean(directory), "wandb, final values", 0, {}, notes=(NO_COURSE,), lines=lines),)
    raise StabtreeError(
        "is a W&B run whose history is not here: its files hold only settings and final values",
        where=clean(directory),
        hint="look for its run-*.wandb, or export the run's history as CSV",
    )


def _printed(file: Path, read: Callable[[Path], tuple[Table, ...]]) -> tuple[LogLine, ...]:
    """Return the lines about errors of what a run printed, where that was kept."""
    try:
        return read(file)[-1].lines
    except StabtreeError:
        return ()


def fetch(library: Any, path: str, home: Path) -> Path | None:
    """Write what W&B's own library says of a run into a folder as W&B's; None if nothing was logged.

    Raises:
        StabtreeError: where the service has rows, and the library returns none of them.
    """
    run, own, rows = _service(library).run(path), home / "files", 0
    own.mkdir()
    logged, last = run.historyLineCount or 0, run.lastHistoryStep
    # A page is so many steps, not rows: of steps that count tokens, a million pages would be empty.
    page = min(max(PAGE_ROWS, PAGE_ROWS * last // max(logged, 1)), MAX_PAGE)
    with (own / HISTORY_FILE).open("w", encoding="utf-8") as stream:
        for rows, row in enumerate(run.scan_history(page_size=page), 1):  # noqa: B007 - it counts them
            stream.write(json.dumps(dict(_dotted(row)), default=str) + "\n")
    if logged and not rows:
        problem = f"has {logged:,} rows, of which wandb {library.__version__} returned none"
        raise StabtreeError(problem, where=f"wandb://{path}", hint="type `pip install -U wandb`")
    for file in run.files(names=[OUTPUT_FILE]):
        if file.size:
            file.download(str(own), replace=True).close()
    config = {"display_name": run.name, **run.config}
    for name, values in (("config.yaml", config), ("wandb-metadata.json", {"state": run.state})):
        (own / name).write_text(json.dumps(values, default=str), encoding="utf-8")
    return home if rows or (own / OUTPUT_FILE).exists() else None


def _dotted(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a row by the names that the service has for them: rows it has packed away lie flat."""
    for key, value in row.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def listed(library: Any, path: str, most: int) -> list[str]:
    """Return the addresses of the newest runs of a project or a sweep."""
    project, _, sweep = path.partition("/sweeps/")
    filters = {"sweep": sweep} if sweep else {}
    runs = _service(library).runs(project, filters=filters, order="-created_at", per_page=100)
    return [f"wandb://{project}/{run.id}" for run in islice(runs, most)]


def _service(library: Any) -> Any:
    """Return the interface of W&B's own library, which is to give up on a server that does not answer."""
    for name, limit in _LIMITS.items():
        os.environ.setdefault(name, limit)
    return library.Api()
