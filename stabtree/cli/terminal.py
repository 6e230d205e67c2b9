"""The terminal: its width and colours, messages and progress, and results written to their last byte."""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, hidden, inert, to_ascii

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_SECONDS = 2.0
PAUSE_SECONDS = 0.005
COLOURED = ("WT_SESSION", "TERM", "TERM_PROGRAM", "ANSICON", "ConEmuANSI")
"""Variables of the terminals that take escape sequences on Windows; its console of old has none of them."""
ERROR_LINES = ("error: ", " next: ")
COLOURS = {"error:": "1;38;5;131", " next:": "38;5;29", "note:": "38;5;63"}  # as `report.page` has them
FIRST_WORDS = re.compile("|".join(f"^{word}" for word in COLOURS), re.MULTILINE)


def screen() -> tuple[int, bool]:
    """Return the width in columns and whether to colour: of the terminal, else 100 columns without colour."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    color = (terminal and takes_escapes()) or bool(os.environ.get("FORCE_COLOR"))
    width = shutil.get_terminal_size((100, 24)).columns
    return max(40, min(width, 160)), color and not os.environ.get("NO_COLOR")


def takes_escapes() -> bool:
    """Return whether a terminal takes colour."""
    if os.environ.get("TERM") == "dumb":
        return False
    return os.name != "nt" or any(map(os.environ.get, COLOURED))


def notify(text: str) -> None:
    """Print a message to standard error; where that is closed, the exit code has to do.

    On a terminal long lines are wrapped to its width.
    """
    stream = sys.stderr
    if stream is None:
        return
    text = inert(hidden(text))
    if stream.isatty():
        text = "".join(f"{_wrapped(line)}\n" for line in text.splitlines())
        if takes_escapes() and not os.environ.get("NO_COLOR"):
            text = FIRST_WORDS.sub(lambda found: f"\x1b[{COLOURS[found[0]]}m{found[0]}\x1b[0m", text)
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
    return textwrap.fill(line, width, subsequent_indent=below, break_long_words=False, break_on_hyphens=False)


def emit(text: str) -> None:
    """Print a result to standard output, replacing what its encoding can't encode.

    Raises:
        StabtreeError: where it can't be written as a whole.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    text = hidden(text if text.endswith("\n") else f"{text}\n")
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
            # To the last byte: a file without a buffer takes what fits at once, one that does not block maybe none.
            raw, rest = getattr(stored, "raw", stored), memoryview(data)
            while rest:
                count: int | None = raw.write(rest)
                if count is None:
                    time.sleep(PAUSE_SECONDS)  # select knows no files on Windows
                else:
                    rest = rest[count:]
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StabtreeError(f"the output can't be written: {reason}", hint="redirect it elsewhere") from None


class Busy:
    """Shows what a command is doing, from two seconds after its start.

    Args:
        wanted: False where nothing may be shown: for machines, for one line, at a prompt.
    """

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted and sys.stderr is not None and sys.stderr.isatty()
        self._since = time.monotonic()

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Show one stage while it lasts; the line is gone when it ends."""
        if not self._wanted:
            yield
            return
        done = threading.Event()
        thread = threading.Thread(target=self._show, args=(clean(what, 60), done), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _show(self, what: str, done: threading.Event) -> None:
        left = self._since + PATIENCE_SECONDS - time.monotonic()
        if done.wait(max(0.0, left)):
            return
        from rich.console import Console  # only where there is something to show

        # A terminal that takes no more, or not these letters, is no reason to fail.
        with suppress(OSError, ValueError), Console(stderr=True).status(f"{hidden(what)} ...", spinner="line"):
            done.wait()
