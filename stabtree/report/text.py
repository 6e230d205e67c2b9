"""Styled text, and text cut to the room that a line has."""

from __future__ import annotations

import re
import textwrap

Piece = tuple[str, str]
"""A text and its style: one of `page.STYLES`, or what rich understands."""
Line = list[Piece]

MIN_SHARE = 0.4  # of the room that a clause must fill to be shown alone
_CLAUSE = re.compile(r"; | \(")
_PART = re.compile(r"; | \(|(?<=[.!?]) (?=[A-Z0-9`])")
_ENDS = re.compile(r"[\s,;:(]+$")


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
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun}s"


def uncut(text: str, width: int, max_lines: int, *, needed: bool = False) -> list[str]:
    """Wrap a text to at most so many lines: all of it, else its first sentences or clauses.

    Where not even the first clause fits it is left out, or, where it is `needed`, takes more lines.
    """
    ends = [len(text), *(found.start() for found in reversed([*_PART.finditer(text)]))]
    wrapped = [textwrap.wrap(text[:end], width) for end in ends]
    shortest = wrapped[-1] if needed else []
    return next((lines for lines in wrapped if len(lines) <= max_lines), shortest)
