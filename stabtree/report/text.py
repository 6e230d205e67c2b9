"""Styled text, and text cut to the room that a line has."""

from __future__ import annotations

import math
import re
import textwrap

Piece = tuple[str, str]
"""A text and its style: one of `page.STYLES`, or what rich understands."""
Line = list[Piece]

MIN_SHARE = 0.4  # of the room that a clause must fill to be shown alone
_CLAUSE = re.compile(r"; | \(")
_ENDS = re.compile(r"[\s,;:(]+$")
_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z0-9`])")
_POWER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]?\d+)(?![0-9A-Za-z_])")
PLAIN = (1e-4, 1e6)  # sizes between which people write a number out


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


def figure(value: float) -> str:
    """Return a logged number in four digits, as people write it.

    >>> [figure(value) for value in (281.6934, 0.0653, 119_800.4, 1.1e15, float("nan"))]
    ['281.7', '0.0653', '119,800', '1.1e15', 'nan']
    """
    if not math.isfinite(value):
        return f"{value}"
    size = abs(value)
    if value and not PLAIN[0] <= size < PLAIN[1]:
        return _power(value)
    if size >= 1000:
        return f"{float(f'{value:.4g}'):,.0f}"
    return f"{value:.4g}"


def plain_numbers(text: str) -> str:
    """Return a text with its powers of ten as people write them.

    >>> plain_numbers("jumps by 1.06e+04σ to 2.947e+21, lr 1e-05")
    'jumps by 10,600σ to 2.95e21, lr 1e-5'
    """

    def written(found: re.Match[str]) -> str:
        value = float(found[0])
        if found[2].startswith("+") and value < PLAIN[1]:
            return figure(value)
        return _power(value) if math.isfinite(value) else found[0]

    return _POWER.sub(written, text)


def _power(value: float) -> str:
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    return f"{mantissa.rstrip('0').removesuffix('.')}e{int(exponent)}"


def in_sentences(text: str, width: int, max_lines: int) -> list[str]:
    """Return the first sentences that fit in so many lines; of a first one that does not, the first clauses.

    In one line nothing is cut: what does not fit is left out.
    """
    kept = ""
    for sentence in _SENTENCE.split(text):
        longer = f"{kept} {sentence}".lstrip()
        if len(textwrap.wrap(longer, width)) > max_lines:
            break
        kept = longer
    if not kept and max_lines < 2:
        return []
    return in_lines(kept or text, width, max_lines)
