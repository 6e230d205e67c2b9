"""How a program ended, as the lines of its log say: by the table and the grammar in `endings.yaml`."""

from __future__ import annotations

import re
from collections.abc import Mapping  # noqa: TC003 - read when a file is converted
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from stabtree.common.yaml12 import read, typed

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = Path(__file__).with_name("endings.yaml")
EXCEPTION, INTERRUPTED, FINISHED, NAN_STOP = "exception", "interrupted", "finished", "nan-stop"
EXIT_STATUS, UNCLEAR = "exit-status", "unclear"  # that the program failed, not how; that something did
NEVER = r"(?!)"
SPELLINGS = ("shell", "launched", "received")  # forms of a signal
FATAL, PBS = 128, 256  # a shell adds the one to the number of the signal, PBS the other
# A line of a traceback that names a file, but none of an installed package or of Python itself.
OWN_FRAME = re.compile(
    r"(?:\[?rank ?\d+\]?:)?\s*File \"(?!<)((?:(?!-packages[/\\]|/lib/python\d)[^\"]){1,200})\", line (\d+), in (\S+)",
    re.IGNORECASE,
)


class _Ending(Struct, frozen=True, forbid_unknown_fields=True):
    examples: tuple[str, ...]
    signals: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    about: str = ""


class _EndingsFile(Struct, frozen=True, forbid_unknown_fields=True):
    words: tuple[str, ...]
    forms: Mapping[str, str]
    endings: Mapping[str, _Ending]

    def form(self, name: str, **values: str) -> str:
        """Return a form as a pattern: what it names in braces is a value, or another form."""
        text = self.forms[name].replace("\n", " ").replace(" |", "|")
        return re.sub(r"\{([a-z]+)\}", lambda found: values.get(found[1]) or self.form(found[1]), text)


class Endings(NamedTuple):
    """What the file holds.

    Attributes:
        words: matches a line that may be about an error.
        patterns: what matches the lines of each ending, the specific ones first.
        codes: the same for exit codes and signals, which takes long: only where `coded` matches.
        coded: matches a line in lower case that may name one.
        forms: what finds failures in other words.
        about: what such a line was about, by ending.
        examples: lines as they are printed, by ending.
    """

    words: str
    patterns: Mapping[str, re.Pattern[str]]
    codes: Mapping[str, re.Pattern[str]]
    coded: re.Pattern[str]
    forms: Mapping[str, re.Pattern[str]]
    about: Mapping[str, re.Pattern[str]]
    examples: Mapping[str, tuple[str, ...]]


@cache
def table() -> Endings:
    """Return the endings that are known."""
    file = typed(read(FILE), _EndingsFile, FILE.name)
    lines = {name: "|".join(one.lines) for name, one in file.endings.items()}
    codes = {name: "|".join(_codes(file, name)) for name in file.endings}
    signals = chain.from_iterable(one.signals for one in file.endings.values())
    words = [signal.split(maxsplit=2)[2].lower() for signal in signals]
    return Endings(
        "|".join((*file.words, file.form("failed"), *words)),
        _compiled(lines),
        _compiled(codes),
        re.compile("|".join((r"signal|\bsig[a-z]|code|status|exit|\brc\b|\(failed|\s\d+:\d+\s*$", *words))),
        _compiled({name: file.form(name) for name in file.forms if name not in (*SPELLINGS, "code")}),
        _compiled({name: one.about for name, one in file.endings.items()}),
        {name: one.examples for name, one in file.endings.items()},
    )


def _compiled(patterns: Mapping[str, str]) -> Mapping[str, re.Pattern[str]]:
    """Compile patterns; what has none matches nothing."""
    return {name: re.compile(pattern or NEVER) for name, pattern in patterns.items()}


def _codes(file: _EndingsFile, name: str) -> Iterator[str]:
    """Yield the patterns of the exit codes and signals of an ending."""
    if name == EXIT_STATUS:
        yield file.form("code", codes=r"[1-9]\d*|-\d+")
    for signal in file.endings[name].signals:
        number, sig, word = signal.split(maxsplit=2)
        values = {"number": number, "sig": sig, "word": word, "lower": word.lower()}
        yield from (file.form(form, **values) for form in SPELLINGS)
        yield file.form("code", codes=f"-{number}|{FATAL + int(number)}|{PBS + int(number)}")


@lru_cache(maxsize=4096)
def endings_of(line: str) -> tuple[str, ...]:
    """Return all endings that a line reports wherever it stands, the most specific first."""
    known = table()
    if known.forms["source"].match(line):
        return ()
    coded = known.coded.search(line.lower())
    return tuple(
        name
        for name, pattern in known.patterns.items()
        if pattern.search(line) or (coded and known.codes[name].search(line))
    )


def ending_of(line: str, *, last: bool = False) -> str:
    """Return the ending that a line reports, empty where it reports none; of the `last` one any word of a failure."""
    found = next(iter(endings_of(line)), "")
    if not last or found not in ("", EXIT_STATUS, EXCEPTION):
        return found
    told = _failure(line)
    return told if not found or told not in ("", EXIT_STATUS, UNCLEAR) else found


@lru_cache(maxsize=4096)
def _failure(line: str) -> str:
    """Return what failed by the words of a line: what it was about, the program, or something; else empty."""
    forms = table().forms
    if forms["warns"].search(line) or forms["advice"].search(_plain(line)):
        return ""
    text = _plain(forms["pairs"].sub(" ", line))
    told = forms["denied"].sub(" ", text)
    whole = forms["whole"].search(told) is not None
    if forms["scores"].search(told) or not (whole or _some_failed(told, line)):
        return ""
    about = next((name for name, pattern in table().about.items() if pattern.search(told)), "")
    if about and (told == text or whole):
        return about
    return EXIT_STATUS if whole else UNCLEAR


def _some_failed(told: str, line: str) -> bool:
    """Return whether a line says, in words or by its level, that something failed; not of an ordinary message."""
    forms = table().forms
    if forms["calm"].search(line):
        return False
    return forms["failed"].search(told) is not None or forms["level"].search(line) is not None


def _plain(line: str) -> str:
    """Return a line in lower case, each word by itself, without the names of files."""
    forms = table().forms
    return forms["parts"].sub(" ", forms["files"].sub(" ", line)).lower()
