"""How a program ended, as the lines of its log say: `endings.yaml`, read when a line is first asked about."""

from __future__ import annotations

import re
from collections.abc import Mapping  # noqa: TC003 - read when a file is converted
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from stabtree.common.yaml12 import read, typed

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = Path(__file__).with_name("endings.yaml")
EXCEPTION, INTERRUPTED, EXIT_STATUS, FINISHED = "exception", "interrupted", "exit-status", "finished"
FATAL = 128  # a shell adds this to the number of the signal
# Signals are listed as `9 SIGKILL Killed`. A shell names the script and the line, or the job:
# `./train.sh: line 12: 4711 Killed`, `[1]+  Killed`.
_SHELL = (
    r"^[^\S\n]{{0,40}}(?:(?:.{{0,120}}: line \d+:\s+\d+ |\[\d+\][-+]?\s+(?:\d+ )?)?{word}"
    r"|\[\d+\]\s+[-+]?\s*\d+ {lower})"
    r"(?:\s*$|\s\s+\S|\s+\(core dumped\))"
)
# A launcher of many processes names the task, and `make` the target.
_LAUNCHED = r"\btasks? [\d,-]+: {word}\b|^make(?:\[\d+\])?: \*\*\* .{{0,200}}\] {word}\b|\bby signal:? {word}\b"
_RECEIVED = (
    r"\bSignals\.{name}\b|\({name}\)"
    r"|(?i:\b(?:received|caught|got|by|with|closing|due to)\b.{{0,40}})\b(?:{name}\b|(?i:signal:? {number})\b(?!\.\d))"
)
_CODE = (
    r"(?i:\bexit ?(?:code|status)|\b(?:exited|exits|failed|terminated|completed|finished) with(?: (?:a )?non-?zero)?"
    r"(?: (?:exit|return))? (?:code|status)|non-?zero exit (?:code|status)|\breturn ?code)"
    r"\s*(?:[:=]\s*)?(?:{codes})\b(?![.,]?\d)"
)

# A line of a traceback that names a file, but none of an installed package or of Python itself.
OWN_FRAME = re.compile(
    r"(?:\[?rank ?\d+\]?:)?\s*File \"(?!<)((?:(?!-packages[/\\]|/lib/python\d)[^\"]){1,200})\", line (\d+), in (\S+)",
    re.IGNORECASE,
)


class Endings(NamedTuple):
    """What the file holds.

    Attributes:
        words: matches a line that may be about an error.
        patterns: what matches the lines of each ending, the specific ones first.
        any: matches a text in which a line reports an ending that was not planned.
        examples: lines as they are printed, by ending.
    """

    words: str
    patterns: Mapping[str, re.Pattern[str]]
    any: re.Pattern[str]
    examples: Mapping[str, tuple[str, ...]]


class _Ending(Struct, frozen=True, forbid_unknown_fields=True):
    examples: tuple[str, ...]
    signals: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


class _EndingsFile(Struct, frozen=True, forbid_unknown_fields=True):
    words: tuple[str, ...]
    endings: Mapping[str, _Ending]


@cache
def table() -> Endings:
    """Return the endings that are known."""
    file = typed(read(FILE), _EndingsFile, FILE.name)
    lines = {name: "|".join(_patterns(name, one)) for name, one in file.endings.items()}
    return Endings(
        "|".join(file.words),
        {name: re.compile(pattern) for name, pattern in lines.items()},
        re.compile("|".join(pattern for name, pattern in lines.items() if name != FINISHED), re.MULTILINE),
        {name: one.examples for name, one in file.endings.items()},
    )


def _patterns(name: str, ending: _Ending) -> Iterator[str]:
    """Yield the patterns of an ending: those that are listed, and those of its exit codes and signals."""
    if name == EXIT_STATUS:
        yield _CODE.format(codes=r"[1-9]\d{0,2}|-\d{1,2}")
    yield from ending.lines
    for signal in ending.signals:
        number, name, word = signal.split(maxsplit=2)
        yield _SHELL.format(word=word, lower=word.lower())
        yield _LAUNCHED.format(word=word)
        yield _RECEIVED.format(name=name, number=number)
        yield _CODE.format(codes=f"-{number}|{FATAL + int(number)}")


@lru_cache(maxsize=4096)
def endings_of(line: str) -> tuple[str, ...]:
    """Return all endings that a line reports, the most specific first; nothing where it reports none."""
    return tuple(name for name, pattern in table().patterns.items() if pattern.search(line))


def ending_of(line: str) -> str:
    """Return the ending that a line reports; empty where it reports none."""
    return next(iter(endings_of(line)), "")


def is_failure(ending: str) -> bool:
    """Return whether an ending was not planned."""
    return ending not in ("", FINISHED)
