"""Texts cut to the room that a line has."""

from __future__ import annotations

import re
import textwrap

LEAST_SHARE = 0.4  # of the room that a clause must fill to stand alone
_CLAUSE = re.compile(r"; | \(")
_ENDS = re.compile(r"[\s,;:(]+$")


def clipped(text: str, most: int) -> str:
    """A text in at most `most` characters: its first clauses where they fill the room, else cut behind a word."""
    if len(text) <= most:
        return text
    ends = [found.start() for found in _CLAUSE.finditer(text) if LEAST_SHARE * most <= found.start() <= most]
    if ends:
        return text[: ends[-1]]
    words = text[: max(most - 1, 1)].rsplit(" ", 1)[0]
    return f"{_ENDS.sub('', words)}…"


def in_lines(text: str, width: int, most: int) -> list[str]:
    """A text as at most `most` lines of `width` characters, its first clauses where all of it is too much."""
    lines = textwrap.wrap(text, width, break_long_words=True)
    if len(lines) <= most:
        return lines
    if most == 1:
        return [clipped(text, width)]
    return textwrap.wrap(clipped(text, width * most), width, max_lines=most, placeholder="…")
