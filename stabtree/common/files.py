"""How files were read: their columns, what was skipped, what may be an error, how to recognise them; words in them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct, field


class Place(Struct, frozen=True):
    """A word in a line of a file, from its character `start`, counted from 0, to before the character `end`."""

    line: int
    text: str
    start: int
    end: int
    path: str = ""


class Skipped(Struct, frozen=True):
    """A line of a file that could not be read, and why."""

    line: int
    reason: str


class ColumnUse(Struct, frozen=True):
    """How one column of a file was used.

    Attributes:
        name: the column as the file spells it.
        metric: the metric, `step`, `epoch` or `rank` that it was read as; None when ignored.
        why: for an ignored column the reason, for a used one what was special about it.
        logged: cells that hold a value; None for a column that was not read.
        first: first finite value.
        last: last finite value.
        nonfinite: cells that hold a NaN or an infinity.
        misread: cells that hold no number, or one that is not what was logged: its point or its sign is lost.
        misread_last: those of them behind its last value, where they are more than ever before.
        filled: cells that hold anything.
        role: what it holds, in one of the words of `stabtree.metrics.metric.Role`.
    """

    name: str
    metric: str | None
    why: str = ""
    logged: int | None = None
    first: float | None = None
    last: float | None = None
    nonfinite: int = 0
    misread: int = 0
    misread_last: int = 0
    filled: int = 0
    role: str = "other"


class UnreadKind(Struct, frozen=True):
    """Lines of a text log that hold numbers, were not read, and differ in their digits alone.

    Attributes:
        count: how many there are.
        line: the 1-based number of the first of them; 0 for those of all kinds that are not listed.
        example: the first of them, made safe to print and cut.
        harmless: whether they say nothing of the training: a time, a speed, a size of memory, or source code.
    """

    count: int
    line: int
    example: str
    harmless: bool


class FileUse(Struct, frozen=True):
    """How one file was read.

    Attributes:
        path: the file as it was named.
        format: the loader's name, with what it found (`csv, ';' separated, utf-16`).
        rows: data rows read.
        columns: every column of the file, in its order.
        skipped: the first lines that could not be read (at most 20).
        skipped_count: the number of all such lines.
        steps_from: what the steps were read from.
        restarts: what it means where that starts again, how sure this is, and what was rejected.
        lost_share: the share of its bytes that are damaged, of a file that is read in records.
        unread: the lines of a text log that hold numbers and were not read, by kind.
    """

    path: str
    format: str
    rows: int
    columns: tuple[ColumnUse, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    skipped_count: int = 0
    steps_from: str = ""
    restarts: str = ""
    lost_share: float = 0.0
    unread: tuple[UnreadKind, ...] = ()


class Input(Struct, frozen=True):
    """A file that was read, as it can be recognised again."""

    path: Annotated[str, "The file, as it was named."]
    size: Annotated[int | None, "Its size when it was hashed; null where it was not."] = field(
        default=None, name="bytes"
    )
    sha256: Annotated[str | None, "The hash of the file as it is stored; null where it was not hashed."] = None
    reason: Annotated[str, "Why it was not hashed; empty where it was."] = ""


class LogLine(Struct, frozen=True):
    """A line of a text log that holds no metrics but may report an error or a warning.

    Attributes:
        line: its 1-based number in the file; 0 for what a tracker recorded elsewhere.
        text: the line, made safe to print and cut.
        at_end: whether no row of metrics came after it.
        source: whether it is indented, as source code quoted by a traceback is.
    """

    line: int
    text: str
    at_end: bool = False
    source: bool = False
