"""One run of many in plain values: what a table, a cache or another machine needs to know of it."""

from __future__ import annotations

import json
import zlib
from dataclasses import fields
from pathlib import Path
from typing import Any

from stabtree.common.dataclass import dataclass
from stabtree.tools.fleet.remote.addresses import is_address

Row = tuple[Any, ...]
"""A record as it is kept: the columns of `cache.COLUMNS`."""


@dataclass(frozen=True, slots=True)
class Record:
    """What became of a run.

    Attributes:
        path: what to type to diagnose it alone; with `run` where the path holds several.
        run: its name within the path; empty where the path holds one.
        verdict: a severity, `unknown`, or `unread` for a log that can't be read.
        badge: the verdict that is shown, `ok` where what was found are notes that call for nothing.
        partial: whether what could be judged of a run that was not judged as a whole is in order.
        leaf: the main finding; empty where there is none.
        section: the section that it was found in.
        title: what was found, or why it can't be read.
        onset_step: the first step of the main finding.
        unit: what its steps count.
        more: how many further findings there are.
        rows: rows of its log.
        last_step: the last logged step.
        restart_step: the checkpoint to go back to.
        first: what to do about it first, besides going back; of a run that can't be judged what to log.
        notes: what loading it changed or ignored.
        spark: the loss in a few values for a small line, lowest and highest of each stretch kept; None where a stretch
            holds none that is finite.
        mark: the place in `spark` at which the main finding begins.
        data: the object of `diagnose --json` as compact JSON; of a log that can't be read its error.
        seconds: how long reading and judging took.
    """

    path: str
    run: str = ""
    verdict: str = "unknown"
    badge: str = "unknown"
    partial: bool = False
    leaf: str = ""
    section: str = ""
    title: str = ""
    onset_step: int | None = None
    unit: str = "step"
    more: int = 0
    rows: int = 0
    last_step: int | None = None
    restart_step: int | None = None
    first: str = ""
    notes: tuple[str, ...] = ()
    spark: tuple[float | None, ...] = ()
    mark: int | None = None
    data: bytes = b""
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """The path, and the run's name where the path holds several."""
        if self.run:
            return f"{self.path} {self.run}"
        return self.path


def _folder(path: str) -> str:
    if is_address(path):
        return path.rpartition("/")[0]
    return str(Path(path).parent)


def row_of(record: Record) -> Row:
    """Return a record as it is kept: what runs are ordered and grouped by, the rest as JSON, and its data compressed.

    Whoever examined the run does so, since the process that keeps the results serves all others.
    """
    outline = {item.name: getattr(record, item.name) for item in fields(record) if item.name != "data"}
    return (
        *(record.badge, record.verdict, int(record.partial), record.leaf, _folder(record.path), record.path),
        *(record.run, dumps(outline), zlib.compress(record.data, 1)),
    )


def record_of(outline: bytes, data: bytes) -> Record:
    """Return the record of the last two columns of its row."""
    held = loads(outline)
    held |= {"notes": tuple(held["notes"]), "spark": tuple(held["spark"])}
    return Record(**held, data=zlib.decompress(data))


def dumps(value: Any) -> bytes:
    """Return a value as JSON."""
    import orjson

    try:
        return orjson.dumps(value)
    except TypeError:  # names of files that are no text
        return json.dumps(value).encode()


def loads(text: bytes) -> Any:
    """Return the value of a JSON text."""
    import orjson

    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)
