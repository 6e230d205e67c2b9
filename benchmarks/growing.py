"""A finished log as it stood while it grew: in pieces, each about a row."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_runs
from stabtree.tools.live.events import row_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stabtree.run import Run


@dataclass(frozen=True, slots=True)
class Growing:
    """A log in pieces.

    Attributes:
        file: the log.
        pieces: what was written, one after the other; of a document of JSON the entries of its history.
        document: the rest of a document of JSON.
        beside: the file that says how the run was set up, which is there from the start.
    """

    file: Path
    pieces: tuple[bytes, ...]
    document: Mapping[str, Any] = field(default_factory=dict)
    beside: Path | None = None

    def grow(self, folder: Path) -> Iterator[tuple[Path, bytes]]:
        """Write it piece by piece into a folder: after each what to judge, and the piece."""
        log = folder / self.file.name
        if self.beside:
            shutil.copy(self.beside, folder)
        written: list[Any] = []
        with log.open("wb") as stream:
            for piece in self.pieces:
                if self.document:
                    written.append(json.loads(piece))
                    last = {"global_step": written[-1].get("step", 0), "log_history": written}
                    stream.seek(0)
                    stream.truncate()
                    stream.write(json.dumps({**self.document, **last}).encode())
                else:
                    stream.write(piece)
                stream.flush()
                yield folder if self.beside else log, piece


def growing(path: Path) -> Growing:
    """A log in pieces.

    Args:
        path: a file, or a folder of which one file is read.

    Raises:
        StabtreeError: where nothing of it can be read, or it is read from several files.
    """
    runs = [item.run for item in load_runs(path)]
    read = [run for run in runs if not isinstance(run, StabtreeError)]
    if not read:
        raise next(run for run in runs if isinstance(run, StabtreeError))
    file = _written_to(path, read)
    beside = manifest if path.is_dir() and (manifest := path / "manifest.json").is_file() else None
    data = file.read_bytes()
    if file.name == "trainer_state.json" or b'"log_history"' in data[:2000]:
        document = json.loads(data)
        history = document.pop("log_history")
        pieces = tuple(json.dumps(entry).encode() for entry in history)
        return Growing(file, pieces, document, beside)
    lines = data.splitlines(keepends=True)
    formats = {source.format for run in read for source in run.sources}
    if all(name.startswith("csv") for name in formats):
        return Growing(file, (b"".join(lines[:2]), *lines[2:]), {}, beside)
    if file.suffix == ".jsonl":
        return Growing(file, tuple(lines), {}, beside)
    return Growing(file, tuple(_parts(data, lines, max(1, sum(map(row_count, read))))), {}, beside)


def _written_to(path: Path, runs: list[Run]) -> Path:
    """The one file that a log is written to."""
    if path.is_file():
        return path
    files = {Path(source.path) for run in runs for source in run.sources}
    # Of TensorBoard the folder is named; what lies below it are the settings.
    files = {inner for file in files for inner in ([file] if file.is_file() else file.glob("*tfevents*"))}
    if len(files) != 1:
        raise StabtreeError("it is read from several files", where=str(path), hint="name one of them")
    return files.pop()


def _parts(data: bytes, lines: list[bytes], count: int) -> Iterator[bytes]:
    """A log in about so many parts: at ends of lines, of what has no lines anywhere, as a writer flushes it."""
    size = -(-len(data) // count)
    if b"\0" in data[:4096]:
        yield from (data[at : at + size] for at in range(0, len(data), size))
        return
    part, done = b"", 0
    for line in lines:
        part += line
        if done + len(part) >= size * (done // size + 1):
            yield part
            done += len(part)
            part = b""
    if part:
        yield part


def step_rows(run: Run, step: int) -> int:
    """How many rows a run has up to a step: those of its longest series."""
    longest = max(run.series.values(), key=len)
    return int((longest.steps < step).sum()) + 1
