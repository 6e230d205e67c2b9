"""Weights & Biases: `.wandb` files, and the folders that its runs leave behind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.config import read_config
from stabtree.loaders.folder import entries, is_file, settings_file
from stabtree.loaders.json import lines as jsonl
from stabtree.loaders.json.rows import JsonRows, flatten
from stabtree.loaders.source import Sure, chunks
from stabtree.loaders.table import Table
from stabtree.loaders.text.messages import ended_in_error
from stabtree.loaders.text.reader import LogReader
from stabtree.loaders.wandb.records import MAGIC, Console, Log, Printed
from stabtree.metrics.final_values import NO_COURSE, nonfinite_losses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from stabtree.loaders.source import Source
    from stabtree.metrics.names import Names

# Beside its runs W&B links to its own messages about the newest.
_MESSAGES = re.compile(r"[^\n\[]{0,80}\[\w+\.py:[^\]\n]{0,80}\(\):\d+\]")
FINAL_VALUES = "the final values"
_HINT = "name the run's folder, or its run-*.wandb file"


def sniff(source: Source, _names: Names) -> Sure:
    """Return how surely this is a file of W&B; those without a history are recognised too, to be refused."""
    if source.data.startswith(MAGIC) or is_messages(source):
        return Sure.SURELY
    if _finals(source):
        return Sure.MAYBE
    return Sure.NO


def is_messages(source: Source) -> bool:
    """Return whether this is a `debug.log`, which holds W&B's own messages."""
    return source.name.startswith("debug") and source.name.endswith(".log") and bool(_MESSAGES.match(source.head))


def _finals(source: Source) -> str:
    """Return what a file of W&B that is no log of metrics holds; empty for any other file."""
    if is_messages(source):
        return "the messages"
    if source.head.startswith(("wandb_version:", "_wandb:")):
        return "the configuration"
    if not source.head.lstrip().startswith("{"):
        return ""
    if source.file and source.file.name.endswith("wandb-summary.json"):
        return FINAL_VALUES
    if {"_wandb", "_runtime"} <= _values(source).keys():
        return FINAL_VALUES
    return ""


def _values(source: Source) -> dict[str, Any]:
    """Return the cells of a file that is one JSON object; none of any other."""
    try:
        only = jsonl.parse(source.head)
    except ValueError:
        return {}
    if not isinstance(only, dict):
        return {}
    return dict(flatten(only))


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


class _Contents(Struct):
    """What a `.wandb` file holds, gathered while it is read once.

    Attributes:
        rows: the rows of its history.
        log: the rest.
        console: the streams that the program printed to.
        before: how many lines were printed before the last row.
    """

    rows: JsonRows
    log: Log = field(default_factory=Log)
    console: Console = field(default_factory=Console)
    before: int = 0

    def printed(self, parts: Iterable[bytes]) -> Iterator[str]:
        """Yield the lines that were printed, and keep the rows on the way."""
        for entry in self.log.entries(parts):
            if isinstance(entry, Printed):
                yield from self.console.lines(*entry)
            else:
                self.rows.add(entry, self.rows.count + 1)
                self.before = self.console.count
        yield from self.console.rest()


def _log(source: Source, names: Names) -> Table:
    notes: list[str] = []
    found = _Contents(JsonRows(names, source.path))
    reader = LogReader(names)
    reader.read(found.printed(chunks(source, notes)))
    rows, log = found.rows, found.log
    config, mistakes = read_config({"display_name": log.name or None, **log.config})
    kept = reader.chatter.errors.between(0, reader.rows.count)
    lines = tuple(replace(line, at_end=line.line > found.before) for line in kept)
    return Table(
        path=source.path,
        format=", ".join(filter(None, ("wandb", source.packed))),
        rows=rows.count,
        columns=rows.columns(),
        config=config,
        notes=(*notes, *log.notes(), *rows.notes, *mistakes),
        lines=(*lines, *log.ending()),
        ended_in_error=ended_in_error(lines),
    )


def of_one_run(folders: Sequence[str], files: Sequence[str]) -> bool:
    """Return whether a folder's `.wandb` files are of one run: there is one, or W&B's own `files` is beside them.

    If many runs were gathered in one folder, each file is a run.
    """
    logs = sum(name.endswith(".wandb") for name in files)
    return logs == 1 or (logs > 1 and "files" in folders)


def is_run(directory: Path) -> bool:
    """Return whether this is the folder that W&B keeps one run in."""
    folders, files = entries(directory)
    if of_one_run(folders, files):
        return True
    if "files" not in folders:
        return False
    inner = entries(directory / "files")[1]
    return any(name in inner for name in ("wandb-history.jsonl", "wandb-summary.json", "wandb-metadata.json"))


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
    for file in filter(is_file, (*logs, own / "wandb-history.jsonl", own / "output.log")):
        try:
            # What a run printed is in the trainer's own format.
            tables = read(file)
        except StabtreeError as error:
            problems.append(f"Not read: {clean(file.name, 80)} {clean(error.problem, 120)}.")
            continue
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
