"""A page of styled text for the terminal, built on rich: the look of every command in one place.

Everything goes through `Text`, never through markup, so nothing that a file holds can style the page.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from stabtree.common.text import clean, inert, to_ascii
from stabtree.render.verdicts import LOOKS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType
    from rich.text import Text

    from stabtree.render.look import Look
    from stabtree.render.plot import Line, Piece

QUIET = "color(244)"  # a grey of its own: SGR 2 all but vanishes in Solarized Dark, and ANSI 8 is its background
STYLES = {
    **{verdict: look.style for verdict, look in LOOKS.items()},
    "heading": "bold",
    "id": "cyan",
    "answer": "bold",
    "dim": QUIET,
    "title": "bold",
    "axis": QUIET,
    "curve": "cyan",
    "mark": "bold red",
    "parting": "bold red",
    "behind": "green",
    "restart": "bold green",
    "first": "bold red",
    "confirmed": "bold red",
    "likely": "yellow",
    "possible": "yellow",
    "not confirmed": QUIET,
    "not checkable": QUIET,
    "ruled out": "green",
    "number": "bold",
    "passed": "green",
    "failed": "bold red",
    "critical word": "bold red",
    "warning word": "yellow",
    "note word": "blue",
    "ok word": "green",
    "unknown word": "bold",
}
"""Readable on dark and light screens and in both Solarized palettes: of the 16 colours that a terminal may redefine
none that one of them makes its background, and badges in colours that it may not redefine."""


class Page:
    """Collects renderables and turns them into a string of a given width."""

    def __init__(self, *, width: int, color: bool, ascii: bool = False, links: bool = False) -> None:  # noqa: A002 - as in `Look`
        from rich.console import Console

        self.width = width
        self._ascii = ascii
        self._links = links and color
        self._out = io.StringIO()
        self._console = Console(
            file=self._out,
            width=width,
            color_system="256" if color else None,
            force_terminal=color,
            no_color=not color,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
            _environ={},
        )

    def add(self, item: RenderableType) -> None:
        """Add anything that rich can render."""
        self._console.print(item)

    def line(self, *pieces: Piece, indent: int = 0, hanging: int = 0) -> None:
        """Add a paragraph of (text, style) pieces, wrapped and indented."""
        from rich.padding import Padding

        text = self._styled(pieces)
        if not hanging:
            self.add(Padding(text, (0, 0, 0, indent)))
            return
        wrapped = text.wrap(self._console, max(20, self.width - indent - hanging))
        for place, part in enumerate(wrapped):
            part.rstrip()
            self.add(Padding(part, (0, 0, 0, indent + (hanging if place else 0))))

    def item(self, head: Piece, pieces: Iterable[Piece], *, indent: int, head_width: int) -> None:
        """Add a paragraph with a head of fixed width before it and the text wrapped beside the head."""
        label, text = self._styled([head]), self._styled(pieces)
        if label.cell_len > head_width or "\n" in label.plain:
            self._grid([(label, text)], indent, (head_width,))
            return
        # A grid of one row, laid out by hand: rich takes most of `explain` for making tables.
        label.pad_right(head_width - label.cell_len)
        label.pad_left(indent)
        wrapped = text.wrap(self._console, max(20, self.width - indent - head_width)) or [text]
        for place, part in enumerate(wrapped):
            part.rstrip()
            if place:
                part.pad_left(indent + head_width)
            line = part if place else label + part
            line.no_wrap, line.overflow = True, "crop"
            self.add(line)

    def rows(self, rows: Iterable[Iterable[Piece]], *, indent: int, widths: tuple[int, ...]) -> None:
        """Add rows of cells, the first columns of fixed widths, the last one wrapped in what is left."""
        self._grid([tuple(self._styled([cell]) for cell in row) for row in rows], indent, widths)

    def _grid(self, rows: Iterable[tuple[Text, ...]], indent: int, widths: tuple[int, ...]) -> None:
        from rich.padding import Padding
        from rich.table import Table

        grid = Table.grid(padding=0)
        for width in widths:
            grid.add_column(width=width)
        grid.add_column(width=max(20, self.width - indent - sum(widths)))
        for row in rows:
            grid.add_row(*row)
        self.add(Padding(grid, (0, 0, 0, indent)))

    def heading(self, text: str) -> None:
        """Add a section heading with space above."""
        self.blank()
        self.line((text, "heading"))

    def blank(self) -> None:
        """Add an empty line."""
        self._console.print()

    def lines(self, lines: Iterable[Line], indent: int = 0) -> None:
        """Add lines as they are, without wrapping."""
        for pieces in lines:
            text = self._styled([(" " * indent, ""), *pieces])
            text.truncate(self.width, overflow="crop")
            self.add(text)

    def plain(self, text: str) -> str:
        """A text as the page will show it, to be measured."""
        shown = text if text.isprintable() else clean(text, limit=2000)
        return to_ascii(shown) if self._ascii else shown

    def link(self, text: str, target: str) -> Piece:
        """A piece that leads to an address where the terminal can follow it."""
        web = self._links and target.startswith(("https://", "http://")) and target.isprintable() and " " not in target
        return text, f"link {target}" if web else ""

    def _styled(self, pieces: Iterable[Piece]) -> Text:
        return styled([(to_ascii(text), style) for text, style in pieces] if self._ascii else pieces)

    def text(self) -> str:
        """The page, without blanks at line ends."""
        return inert("\n".join(line.rstrip() for line in self._out.getvalue().splitlines()) + "\n")


def new_page(look: Look) -> Page:
    """An empty page of that look."""
    return Page(width=look.width, color=look.color, ascii=look.ascii, links=look.links)


def styled(pieces: Iterable[Piece]) -> Text:
    """Pieces as one rich text; control characters are removed."""
    from rich.text import Text

    text = Text()
    for piece, style in pieces:
        text.append(piece if piece.isprintable() else clean(piece, limit=2000), STYLES.get(style, style) or None)
    return text
