"""Broken copies of files: what a full disk, a killed process, a bad editor or an attacker leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

LARGEST_SEED = 300_000
HOSTILE = (
    b"\x00" * 64,
    b"\xff\xfe",
    b"nan",
    b"1e999",
    b"-" * 50,
    b'"' * 33,
    b"{" * 500,
    b"[" * 500,
    b"\x1b[31m",
    b"\r",
    b"\n\n\n",
    b",,,,,,,",
    b"9" * 400,
    b"loss: nan",
    b"step",
    b"<script>",
    b"\xe2\x80\xae",
)


def mutate(data: bytes, other: bytes, dice: random.Random) -> bytes:
    """One to four changes of a file: cut, flip, splice, repeat, insert, swap."""
    for _ in range(dice.randint(1, 4)):
        if not data:
            return data
        at, to = sorted((dice.randrange(len(data) + 1), dice.randrange(len(data) + 1)))
        kind = dice.randrange(8)
        if kind == 0:
            data = data[:at]
        elif kind == 1:
            data = data[at:]
        elif kind == 2:
            data = data[:at] + data[to:]
        elif kind == 3:
            flipped = bytearray(data)
            for _ in range(dice.randint(1, 20)):
                flipped[dice.randrange(len(flipped))] = dice.randrange(256)
            data = bytes(flipped)
        elif kind == 4:
            data = data[:at] + dice.choice(HOSTILE) + data[at:]
        elif kind == 5:
            start = dice.randrange(len(other) + 1)
            data = data[:at] + other[start : start + dice.randrange(2000)] + data[at:]
        elif kind == 6:
            data = data[:to] + data[at : at + 5000] * dice.randint(1, 5) + data[to:]
        else:
            data = data.replace(dice.choice((b",", b":", b"\n", b" ", b"=")), dice.choice((b"", b";", b"\t", b"\n")), 3)
    return data[: 4 * LARGEST_SEED]
