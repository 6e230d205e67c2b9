"""What a report is drawn with: badges, text cut to its room, and a page of styled text for the terminal.

Everything goes through `Text` of rich, never through markup, so nothing that a file holds can style the page.
"""

from __future__ import annotations

import io
import re
import textwrap
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.answer import UNKNOWN
from stabtree.common.text import clean, inert, to_ascii
from stabtree.diagnosis.result import CauseState
from stabtree.judging.verdict import UNREAD
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType
    from rich.text import Text

    from stabtree.report.outputs import RenderOptions


class Badge(NamedTuple):
    """How a verdict is shown: what a report calls it, and how rich writes the word."""

    word: str
    style: str


BADGES: dict[str, Badge] = {
    Severity.OK: Badge("OK", "bold color(231) on color(28)"),
    Severity.NOTE: Badge("NOTE", "bold color(231) on color(25)"),
    Severity.WARNING: Badge("WARNING", "bold color(16) on color(178)"),
    Severity.CRITICAL: Badge("CRITICAL", "bold color(231) on color(160)"),
    UNKNOWN: Badge("NOT JUDGED", "bold color(231) on color(240)"),
    UNREAD: Badge("NOT READ", "bold color(231) on color(90)"),
}

CAUSE_SIGNS = {
    CauseState.CONFIRMED: "●",
    CauseState.LIKELY: "◐",
    CauseState.POSSIBLE: "○",
    CauseState.RULED_OUT: "–",
}


class Tick(StrEnum):
    """What became of a section of the tree."""

    PASSED = "passed"
    FOUND = "found"
    OPEN = "open"  # it applies, and its entry question has no answer
    SKIPPED = "skipped"  # it does not apply to this run


TICK_WORDS = {Tick.FOUND: "found", Tick.PASSED: "not found", Tick.OPEN: "not judged", Tick.SKIPPED: "not asked"}

Piece = tuple[str, str]
"""A text and its style: one of `page.STYLES`, or what rich understands."""
Line = list[Piece]

MIN_SHARE = 0.4  # of the room that a clause must fill to be shown alone
_CLAUSE = re.compile(r"; | \(")
_PART = re.compile(r"; | \(|(?<=[.!?]) (?=[A-Z0-9`])")
_ENDS = re.compile(r"[\s,;:(]+$")


def asset(name: str, package: str = "stabtree.report") -> str:
    """Return a file that ships with the reports of a package."""
    from importlib.resources import files  # no screen needs it

    return files(package).joinpath(name).read_text("utf-8")


def clipped(text: str, width: int) -> str:
    """Cut a text to `width` characters: to its first clauses where they fill the room, else behind a word."""
    if len(text) <= width:
        return text
    ends = [found.start() for found in _CLAUSE.finditer(text) if MIN_SHARE * width <= found.start() <= width]
    if ends:
        return text[: ends[-1]]
    words = text[: max(width - 1, 1)].rsplit(" ", 1)[0]
    return f"{_ENDS.sub('', words)}…"


def in_lines(text: str, width: int, max_lines: int) -> list[str]:
    """Wrap a text to at most `max_lines` lines; a longer one is cut to its first clauses."""
    lines = textwrap.wrap(text, width, break_long_words=True)
    if len(lines) <= max_lines:
        return lines
    if max_lines == 1:
        return [clipped(text, width)]
    return textwrap.wrap(clipped(text, width * max_lines), width, max_lines=max_lines, placeholder="…")


def counted(count: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "note"), counted(2, "note")
    ('1 note', '2 notes')
    """
    return f"{count:,} {noun}" + "s" * (count != 1)


def uncut(text: str, width: int, max_lines: int, *, needed: bool = False) -> list[str]:
    """Wrap a text to at most so many lines: all of it, else its first sentences or clauses.

    Where not even the first clause fits it is left out, or, where it is `needed`, takes more lines.
    """
    ends = [len(text), *(found.start() for found in reversed([*_PART.finditer(text)]))]
    wrapped = [textwrap.wrap(text[:end], width) for end in ends]
    shortest = wrapped[-1] if needed else []
    return next((lines for lines in wrapped if len(lines) <= max_lines), shortest)


QUIET = "color(243)"  # a grey of its own: SGR 2 all but vanishes in Solarized Dark, and ANSI 8 is its background
# Four of the six colours of 256 that have 4.5 : 1 on black and on white; no orange has: compilers warn in magenta, too.
BLUE, MAGENTA, GREEN, RED = "color(63)", "color(163)", "color(29)", "color(131)"
STYLES = {
    **{verdict: badge.style for verdict, badge in BADGES.items()},
    "heading": "bold",
    "id": BLUE,
    "answer": "bold",
    "dim": QUIET,
    "title": "bold",
    "axis": QUIET,
    "curve": BLUE,
    "mark": f"bold {RED}",
    **dict.fromkeys(("worse", "differs"), f"bold {RED}"),
    "behind": GREEN,
    "restart": f"bold {GREEN}",
    "first": f"bold {RED}",
    "confirmed": f"bold {RED}",
    "likely": MAGENTA,
    "possible": "",
    "ruled out": GREEN,
    "number": "bold",
    "passed": GREEN,
    "failed": f"bold {RED}",
    "critical word": f"bold {RED}",
    "warning word": MAGENTA,
    "note word": BLUE,
    "ok word": GREEN,
    "unknown word": "bold",
}
"""Readable on dark and light screens and in both Solarized palettes: of the 16 colours that a terminal may redefine
none that one of them makes its background, and badges in colours that it may not redefine."""


class Page:
    """Collects renderables and turns them into a string of a given width."""

    def __init__(self, *, width: int, color: bool, ascii: bool = False) -> None:  # noqa: A002 - as in `RenderOptions`
        from rich.console import Console

        self.width = width
        self._ascii = ascii
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
        margin = indent + hanging
        wrapped = text.wrap(self._console, max(20, self.width - margin))
        for part in wrapped:
            part.rstrip()
            self.add(Padding(part, (0, 0, 0, indent)))
            indent = margin

    def item(self, head: Piece, pieces: Iterable[Piece], *, indent: int, head_width: int) -> None:
        """Add a paragraph with a head of fixed width before it and the text wrapped beside the head."""
        from rich.text import Text

        label, text = self._styled([head]), self._styled(pieces)
        # A grid of one row, laid out by hand: rich takes most of `explain` for making tables.
        label.pad_right(head_width - label.cell_len)
        label.pad_left(indent)
        wrapped = text.wrap(self._console, max(20, self.width - indent - head_width)) or [text]
        for part in wrapped:
            part.rstrip()
            line = label + part
            line.no_wrap, line.overflow = True, "crop"
            self.add(line)
            label = Text(" " * (indent + head_width))

    def rows(self, rows: Iterable[Iterable[Piece]], *, indent: int, widths: tuple[int, ...]) -> None:
        """Add rows of cells, the first columns of fixed widths, the last one wrapped in what is left."""
        from rich.padding import Padding
        from rich.table import Table

        grid = Table.grid(padding=0)
        for width in (*widths, max(20, self.width - indent - sum(widths))):
            grid.add_column(width=width)
        for row in rows:
            grid.add_row(*(self._styled([cell]) for cell in row))
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

    def listed(self, head: str, items: Iterable[Iterable[Piece]], *, indent: int, head_width: int) -> None:
        """Add paragraphs beside one head, shown beside the first of them."""
        for pieces in items:
            self.item((head, "dim"), pieces, indent=indent, head_width=head_width)
            head = ""

    def plain(self, text: str) -> str:
        """Return a text as the page will show it, to be measured."""
        shown = text if text.isprintable() else clean(text, limit=2000)
        return to_ascii(shown) if self._ascii else shown

    def _styled(self, pieces: Iterable[Piece]) -> Text:
        if self._ascii:
            pieces = [(to_ascii(text), style) for text, style in pieces]
        return styled(pieces)

    def text(self) -> str:
        """Return the page, without blanks at line ends."""
        return inert("\n".join(line.rstrip() for line in self._out.getvalue().splitlines()) + "\n")


def new_page(options: RenderOptions) -> Page:
    """Return an empty page."""
    return Page(width=options.width, color=options.color, ascii=options.ascii)


def styled(pieces: Iterable[Piece]) -> Text:
    """Return pieces as one rich text; control characters are removed."""
    from rich.text import Text

    text = Text()
    for piece, style in pieces:
        text.append(piece if piece.isprintable() else clean(piece, limit=2000), STYLES.get(style, style) or None)
    return text
