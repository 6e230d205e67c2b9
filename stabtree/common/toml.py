"""TOML, within bounds: the parser of Python takes memory by the square of the length of a dotted key."""

from __future__ import annotations

import re
from typing import Any

DEEPEST = 32
"""The parts of a dotted key; no configuration has a tenth of them."""
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+"""
_TOO_DEEP = re.compile(rf"""(?:(?<![\w-])|(?=["'])){_PART}(?:\.[ \t]*+{_PART}){{{DEEPEST},}}""")


def parse(text: str) -> dict[str, Any]:
    """Return the top-level table of a TOML document.

    Raises:
        ValueError: where it is no TOML, or a key of it has more than `DEEPEST` parts.
    """
    import tomllib  # only where there is a file

    if found := _TOO_DEEP.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise ValueError(f"a key of more than {DEEPEST} parts (at line {line})")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it nests too deeply") from None
