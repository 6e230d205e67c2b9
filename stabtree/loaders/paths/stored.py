"""The stored files of a run, read once more: what identifies them, and the lines in which steps were logged."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.files import Input
from stabtree.loaders.source import open_source
from stabtree.loaders.tables.delimited import find_layout, split

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.run import FileUse, Run

MAX_HASHED = 1 << 30  # bytes: a second's work, where reading as much takes half a minute
BLOCK, GLANCE = 1 << 20, 1 << 12
FORMATS = ("csv", "jsonl", "text", "trainer_state")  # those with a line for each row
MAX_LENGTH = 100_000  # characters of a line that is searched


def with_inputs(run: Run) -> Run:
    """Return the run with its files, each hashed as it is stored now; one that has them keeps them."""
    return run if run.inputs else replace(run, inputs=tuple(hashed(source.path) for source in run.sources))


def hashed(path: str) -> Input:
    """Return a file with its size and hash, or why it has none."""
    file = Path(path)
    try:
        if not file.is_file():
            return Input(path, reason="a folder" if file.is_dir() else "not a file")
        digest, size = hashlib.sha256(), 0
        with file.open("rb", buffering=0) as stream:
            at_once = min(BLOCK, max(os.fstat(stream.fileno()).st_size, GLANCE) + 1)
            while size <= MAX_HASHED and (block := stream.read(at_once)):
                digest.update(block)
                size += len(block)
    except (OSError, ValueError) as error:
        return Input(path, reason=f"can't be read again: {getattr(error, 'strerror', None) or error}")
    if size > MAX_HASHED:
        return Input(path, reason=f"larger than {MAX_HASHED:,} bytes")
    return Input(path, size, digest.hexdigest())


def with_places(run: Run, steps: Iterable[int]) -> Run:
    """Return the run with the lines in which some of its steps were logged, found by reading the log once more.

    Where a step was logged again after a resume, it is the later line, whose values counted.
    """
    source = next(iter(run.sources), None)
    if source is None or run.by_row or not source.format.startswith(FORMATS):
        return run
    try:
        return replace(run, places=_lines_of(source, {str(step): step for step in steps}))
    except (StabtreeError, OSError, ValueError):  # gone since, or standard input
        return run


def _lines_of(used: FileUse, wanted: dict[str, int]) -> dict[int, int]:
    """Return step -> line number, for the steps that are wanted by their texts."""
    source = open_source(used.path)
    layout = find_layout(source.head) if used.format.startswith("csv") else None
    column = layout.names.index(used.steps_from) if layout and used.steps_from in layout.names else None
    # After its name: `"step": 12`, `step=12`, `step 12/100`.
    name = re.escape(used.steps_from)
    pattern = re.compile(rf"(?<!\w){name}\W{{1,4}}(\d{{1,19}})(?![\d.]{{0,20}}[1-9])", re.IGNORECASE)
    found: dict[int, int] = {}
    for number, line in enumerate(source.lines() if wanted else (), 1):
        texts = [text for text in wanted if text in line] if len(line) <= MAX_LENGTH else []
        if texts and used.format.startswith("csv"):
            cells = split(line, layout.delimiter) if layout and column is not None else []
            held = [cell.strip(' "').removesuffix(".0") for cell in cells[column : (column or 0) + 1]]
        else:
            held = pattern.findall(line) if texts else []
        found.update({wanted[text]: number for text in texts if text in held})
    return found
