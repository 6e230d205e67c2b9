"""One line at the foot of the terminal that is written over again and again; nothing where there is no terminal."""

from __future__ import annotations

import codecs
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from stabtree.cli.shell.console import takes_escapes, wants_color
from stabtree.report.options import RenderOptions

if TYPE_CHECKING:
    from collections.abc import Callable

NARROWEST, USUAL = 20, 80


class StatusLine:
    """The line, on standard error: results stay alone on standard output.

    Args:
        wanted: False where nothing may be shown.

    Attributes:
        wanted: whether there is a line at all.
    """

    def __init__(self, *, wanted: bool) -> None:
        self.wanted = wanted and takes_escapes() and sys.stderr is not None and sys.stderr.isatty()
        self._shown = False

    def show(self, text: Callable[[RenderOptions], str]) -> None:
        """Write the line anew, as a text that is as wide as the terminal is now."""
        if self.wanted:
            self._write(f"\r\x1b[2K{text(self._look())}")
            self._shown = True

    def clear(self) -> None:
        """Take the line away, so that something else can be printed."""
        if self._shown:
            self._write("\r\x1b[2K")
            self._shown = False

    def _write(self, text: str) -> None:
        # A terminal that takes no more, or not these letters, is no reason to fail.
        with suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()

    def _look(self) -> RenderOptions:
        try:
            width = os.get_terminal_size(sys.stderr.fileno()).columns or USUAL
        except (OSError, ValueError):
            width = USUAL
        ascii_ = codecs.lookup(sys.stderr.encoding or "utf-8").name not in ("utf-8", "utf-16", "utf-32")
        # The last column is left free: some terminals go on to the next line as soon as it is written.
        return RenderOptions(width=max(NARROWEST, width - 1), color=wants_color(), ascii=ascii_)
