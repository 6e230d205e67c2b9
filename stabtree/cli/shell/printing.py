"""How a command prints: the width and colours of the terminal, messages, and results written to their last byte."""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import suppress
from typing import IO

from stabtree.cli.shell.console import takes_escapes, wants_color
from stabtree.common.errors import StabtreeError
from stabtree.common.text import inert, to_ascii

PAUSE_SECONDS = 0.005
ERROR_LINES = ("error: ", " next: ")


def screen() -> tuple[int, bool]:
    """Return the width in columns and whether to colour: of the terminal, else 100 columns without colour."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    color = (terminal and takes_escapes()) or bool(os.environ.get("FORCE_COLOR"))
    width = shutil.get_terminal_size((100, 24)).columns
    return max(40, min(width, 160)), color and wants_color()


def notify(text: str) -> None:
    """Print a message to standard error; where that is closed, the exit code has to do.

    On a terminal long lines are wrapped to its width.
    """
    stream = sys.stderr
    if stream is None:
        return
    text = inert(text)
    if stream.isatty():
        text = "".join(f"{_wrapped(line)}\n" for line in text.splitlines())
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        text = to_ascii(text)
    with suppress(OSError):
        stream.write(text if text.endswith("\n") else f"{text}\n")


def _wrapped(line: str) -> str:
    """Return a line wrapped to the terminal, the further lines below its words."""
    import textwrap

    width, _ = screen()
    if len(line) <= width or "\x1b" in line:
        return line
    below = " " * (len(ERROR_LINES[0]) if line.startswith(ERROR_LINES) else len(line) - len(line.lstrip()))
    return textwrap.fill(
        line,
        width,
        subsequent_indent=below,
        break_long_words=False,
        break_on_hyphens=False,
    )


def emit(text: str) -> None:
    """Print a result to standard output, replacing what its encoding can't encode.

    Raises:
        StabtreeError: where it can't be written as a whole.
    """
    encoding = (sys.stdout.encoding if sys.stdout is not None else None) or "utf-8"
    text = text if text.endswith("\n") else f"{text}\n"
    try:
        data = text.encode(encoding)
    except UnicodeEncodeError:
        data = "".join(f"{to_ascii(line)}\n" for line in text.splitlines()).encode(encoding, "replace")
    emit_bytes(data, encoding)


def emit_bytes(data: bytes, encoding: str = "utf-8") -> None:
    """Print bytes to standard output; decoded where the stream takes text alone.

    Raises:
        StabtreeError: where they can't be written as a whole.
    """
    if sys.stdout is None:
        raise StabtreeError("standard output is closed", hint="redirect it to a file")
    try:
        sys.stdout.flush()
        stored = getattr(sys.stdout, "buffer", None)
        if stored is None:  # a stream of text alone, such as io.StringIO
            sys.stdout.write(data.decode(encoding, "replace"))
        else:
            _write_whole(getattr(stored, "raw", stored), data)
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StabtreeError(f"the output can't be written: {reason}", hint="redirect it elsewhere") from None


def _write_whole(stream: IO[bytes], data: bytes) -> None:
    """Write to the last byte: a file without a buffer takes what fits at once, one that does not block maybe none."""
    rest = memoryview(data)
    while rest:
        count: int | None = stream.write(rest)
        if count is None:
            time.sleep(PAUSE_SECONDS)  # select knows no files on Windows
        else:
            rest = rest[count:]
