"""Lines of a text log beside its metrics: errors, warnings, signals, saved checkpoints, and what was not read."""

from __future__ import annotations

import re
from collections import Counter, deque
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct, field

from stabtree.common import endings
from stabtree.common.files import UnreadKind
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.frameworks.load import frameworks
from stabtree.loaders.table import Save
from stabtree.loaders.text import grammar
from stabtree.run import LogLine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stabtree.common.lazy import Ints
    from stabtree.loaders.text.shape import Template


_DIGITS = re.compile(r"[\d.]+")
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


def is_message(text: str, line: Template) -> bool:
    """Return whether a line with values and words about an error reports one, around them or as an exception."""
    spoken = line.words > 1 or any(slot.name.count(" ") > MAX_BLANKS for slot in line.metrics)
    return spoken or endings.is_failure(endings.ending_of(text[:MAX_FORM]))


class ErrorLines(Struct):
    """Collects the lines of a log about errors: the first and the last of them.

    Attributes:
        dropped: how many were not kept.
    """

    dropped: int = 0
    _first: list[tuple[int, str, int]] = field(default_factory=list)
    _last: deque[tuple[int, str, int]] = field(default_factory=lambda: deque(maxlen=KEEP_LAST))
    _forms: Counter[str] = field(default_factory=Counter)

    def add(self, number: int, text: str, rows: int) -> None:
        """Keep a line, with the number of rows of metrics before it, unless there are many like it."""
        form = _DIGITS.sub("", text[:MAX_FORM])
        if form in self._forms or len(self._forms) < MAX_FORMS:
            self._forms[form] += 1
        if self._forms[form] > SAME:
            self.dropped += 1
        elif len(self._first) < KEEP_FIRST:
            self._first.append((number, text[: 4 * MAX_TEXT], rows))
        else:
            self.dropped += len(self._last) == KEEP_LAST
            self._last.append((number, text[: 4 * MAX_TEXT], rows))

    @staticmethod
    def is_source(text: str) -> bool:
        """Return whether a line of a traceback quotes the source."""
        return SOURCE.match(text) is not None

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


SHOWN = 20
MAX_EXAMPLE = 160

# What a line may count without saying anything of how the training goes.
HARMLESS = re.compile(
    r"time|(?<![a-z])(?:eta|elapsed|took|taken|dur(?:ation)?|secs?|seconds?|minutes?|min|ms|hours?|days?|left|remaining)"
    r"(?![a-z])|speed|throughput|it/s|s/it|(?:per|/)_?sec|/s\b|(?<![a-z])(?:mem(?:ory)?|gpus?|cpus?|cuda|vram|ram|[gmk]i?b"
    r"|tflops|mfu|fps|pid|port|version|v_num|seed)(?![a-z])|allocated|reserved|date(?!d)",
    re.IGNORECASE,
)
# A frame of a traceback; the next line quotes its source.
FRAME = re.compile(r"\s*File \"[^\"]{1,500}\", line \d+")
UNITS = re.compile(r"m?s|secs?|seconds?|minutes?|min|h(?:ours?)?|[gmk]i?b|it/s|s/it|/s(?:ec)?", re.IGNORECASE)


class Unread(Struct):
    """Collects the kinds of lines that hold numbers and were not read: those of one shape are one kind.

    Attributes:
        frame: the last line that was a frame of a traceback.
    """

    frame: int = -1
    _kinds: list[UnreadKind] = field(default_factory=list)

    def is_quoted(self, text: str, number: int) -> bool:
        """Return whether a line is a frame of a traceback, or the source quoted below it."""
        if "File" in text and FRAME.match(text, grammar.past_prefix(text)):
            self.frame = number
        return number in (self.frame, self.frame + 1)

    def add(self, count: int, line: int, text: str) -> None:
        """Add so many lines like the one of a number."""
        text = text[:MAX_FORM]
        if grammar.NUMBER.search(text, grammar.past_prefix(text)):
            harmless = bool(HARMLESS.search(text, grammar.past_prefix(text)))
            self._kinds.append(UnreadKind(count, line, clean(text.strip(), MAX_EXAMPLE), harmless))

    def kinds(self) -> tuple[UnreadKind, ...]:
        """Return the kinds, those that may matter and are frequent first; the last counts all that are not listed."""
        kinds = sorted(self._kinds, key=lambda kind: (kind.harmless, -kind.count, kind.line))
        rest = sum(kind.count for kind in kinds[SHOWN:])
        if rest:
            return (*kinds[:SHOWN], UnreadKind(rest, 0, "", harmless=False))
        return tuple(kinds)


_WHAT = r"(?:checkpoints?|ckpt|models?|weights|(?:training|train) state)\b"
_SAVED = re.compile(
    rf"\bsav(?:ing|ed)\b[^,;.=]{{0,40}}?\b{_WHAT}(?!/)|\b{_WHAT}[^,;.=]{{0,40}}?\b(?:was |is )?saved\b", re.IGNORECASE
)
# What is not written yet, is no checkpoint, is an exception's own text, or is only mentioned in source code.
_NOT = re.compile(
    r"\b(?:not|will|would|won't|don't|if|to be|no|skip\w*|fail\w*|\w*(?:error|exception)|unable|config\w*|tokenizer"
    r"|plots?|figures?|results?|tensors?|every|can|should)\b|[({]\s*[\"'f]",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d{1,12}")
MAX_SAVES = 100_000


class Saves:
    """Collects these lines while a log is read."""

    def __init__(self) -> None:
        self._found: list[tuple[int, int, tuple[int, ...]]] = []

    @staticmethod
    def is_save(text: str) -> bool:
        """Return whether a line reports a saved checkpoint."""
        # Looking for a word is far cheaper than for a pattern.
        return ("sav" in text or "Sav" in text) and bool(_SAVED.search(text)) and not _NOT.search(text)

    def add(self, text: str, number: int, row: int) -> None:
        """Keep a line that reports a checkpoint, saved after the first `row` rows."""
        if row and len(self._found) < MAX_SAVES:
            self._found.append((row, number, tuple(map(int, _NUMBER.findall(text)))))

    def within(self, begin: int, end: int, kept: Ints) -> tuple[Save, ...]:
        """Return those after the rows `begin` to `end`, with the indices of their rows among those kept."""
        return tuple(
            Save(int(np.searchsorted(kept, row - 1 - begin, side="right")) - 1, line, numbers)
            for row, line, numbers in self._found
            if begin < row <= end and len(kept) and kept[0] <= row - 1 - begin
        )
