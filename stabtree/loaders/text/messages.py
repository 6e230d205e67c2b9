"""The lines of a text log that hold no metrics but may say what went wrong: errors, warnings, signals."""

from __future__ import annotations

import re
from collections import Counter, deque
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct, field

from stabtree.common import endings
from stabtree.common.text import clean
from stabtree.frameworks.load import frameworks
from stabtree.loaders.text.lines.grammar import DIGITS
from stabtree.run import LogLine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.loaders.text.lines.line import Line

KEEP_FIRST = 200
KEEP_LAST = 300
# Ranks repeat each other and so do warnings: of lines that differ only in digits the first ones are kept.
SAME = 5
MAX_FORMS = 2000
MAX_TEXT = 300
MAX_FORM = 400
MAX_BLANKS = 2  # of the name of a value, as `Mean Squared Error`; a longer one is a sentence

# A line of a traceback that quotes the source is indented further than the exception; a group of exceptions has bars.
SOURCE = re.compile(r"(?:\[?rank ?\d+\]?:)?[ \t]{2,}(?![|+ \t])", re.IGNORECASE)


@cache
def error_words() -> re.Pattern[str]:
    """Return what finds the words of lines that may be about an error."""
    return re.compile(_words(), re.IGNORECASE)


@cache
def _in_lower_case() -> re.Pattern[str]:
    """Return what finds these words in a text in lower case, which is several times as fast."""
    return re.compile(_words())


def _words() -> str:
    errors = [one.log.errors for one in frameworks().values() if one.log.errors]
    return "|".join((endings.table().words, *errors))


def may_report_error(text: str) -> bool:
    """Return whether the beginning of a line holds a word of those about errors."""
    return _in_lower_case().search(text[:MAX_FORM].lower()) is not None


def is_message(text: str, line: Line) -> bool:
    """Return whether a line with values reports an error, in words around them or as an exception."""
    if not may_report_error(text):
        return False
    spoken = line.words > 1 or any(pair.name.count(" ") > MAX_BLANKS for pair in line.metrics)
    return spoken or endings.is_failure(endings.ending_of(text[:MAX_FORM]))


class Chatter:
    """Lines without metrics, recognised by their form once they were read: chatter, or lines about errors.

    Attributes:
        errors: the lines about errors, and of each traceback the last line of the user's own code.
    """

    def __init__(self) -> None:
        self.errors = ErrorLines()
        self._frame: tuple[int, str, int] | None = None
        self._chatter: set[str] = set()
        self._error_forms: set[str] = set()

    def knows(self, form: str, text: str, number: int, rows: int) -> bool:
        """Return whether lines of a form, their text without digits, hold no metrics; keep the line if of an error."""
        if form in self._error_forms:
            self.errors.add(number, text, form, rows)
            return True
        return form in self._chatter

    def keep_error(self, text: str, number: int, form: str, rows: int) -> bool:
        """Keep a line without metrics, and its form if given, if its words may be about an error."""
        if endings.OWN_FRAME.match(text[:MAX_TEXT]):
            self._frame = number, text, rows
            return True
        about_error = may_report_error(text)
        if about_error and self._frame and not SOURCE.match(text):
            self.errors.add(*self._frame[:2], self._frame[1][:MAX_FORM], self._frame[2])
            self._frame = None
        if about_error:
            self.errors.add(number, text, form or DIGITS.sub("", text[:MAX_FORM]), rows)
            if form and len(self._error_forms) < MAX_FORMS:
                self._error_forms.add(form)
        return about_error

    def ignore(self, form: str) -> None:
        """Remember the form of a line that holds nothing."""
        if len(self._chatter) < MAX_FORMS:
            self._chatter.add(form)


class ErrorLines(Struct):
    """Collects the lines of a log about errors: the first and the last of them.

    Attributes:
        dropped: how many were not kept.
    """

    dropped: int = 0
    _first: list[tuple[int, str, int]] = field(default_factory=list)
    _last: deque[tuple[int, str, int]] = field(default_factory=lambda: deque(maxlen=KEEP_LAST))
    _forms: Counter[str] = field(default_factory=Counter)

    def add(self, number: int, text: str, form: str, rows: int) -> None:
        """Keep a line, with the number of rows of metrics before it, unless there are many like it."""
        if form in self._forms or len(self._forms) < MAX_FORMS:
            self._forms[form] += 1
        if self._forms[form] > SAME:
            self.dropped += 1
        elif len(self._first) < KEEP_FIRST:
            self._first.append((number, text[: 4 * MAX_TEXT], rows))
        else:
            self.dropped += len(self._last) == KEEP_LAST
            self._last.append((number, text[: 4 * MAX_TEXT], rows))

    def between(self, begin: int, end: int, last: int | None = None) -> tuple[LogLine, ...]:
        """Return the lines after the first `begin` rows, up to row `end`; for `begin` 0 those before all rows too.

        Args:
            begin: the first row of a run.
            end: the row after it.
            last: the row after its last one that counts; None for `end`.
        """
        over = end if last is None else last
        return tuple(
            LogLine(number, clean(text, MAX_TEXT), rows >= over, SOURCE.match(text) is not None)
            for number, text, rows in (*self._first, *self._last)
            if begin < rows <= end or rows == begin == 0
        )


def ended_in_error(lines: Iterable[LogLine]) -> bool:
    """Return whether lines after the last row report that the program failed or was ended."""
    return any(line.at_end and endings.is_failure(endings.ending_of(line.text)) for line in lines)
