"""The lines of a text log that hold no metrics but may say what went wrong: errors, warnings, signals."""

from __future__ import annotations

import re
from collections import Counter, deque
from dataclasses import dataclass, field

from stabtree.common.text import clean
from stabtree.loaders.text.grammar import DIGITS
from stabtree.run import LogLine

KEEP_FIRST = 200
KEEP_LAST = 300
# Ranks repeat each other and so do warnings: of lines that differ in their digits alone the first ones are kept.
SAME = 5
MAX_FORMS = 2000
MAX_TEXT = 300
MAX_FORM = 400

# Words without digits, so that a line is judged as well by its form.
TELLING = re.compile(
    r"error|exception|traceback|killed|signal|sig(?:term|kill|abrt|segv)|\bnan\b|\binf\b|oom\b|memory|nccl|exit ?code"
    r"|assert|overflow|warning|no space|preempt|abort|timed? ?out|time limit|too many open|connection|mismatch"
    r"|segmentation|bus error|core dumped|cancelled|terminat|quota|loss scale|not callable|unable to|diverg|must be"
    r"|boundary|watchdog|no kernel image|insufficient|deprecated|interrupt|gradscaler|anomaly|padding token|broken pipe"
    r"|divisible|lr_scheduler",
    re.IGNORECASE,
)
# A log without any metrics is one all the same where its lines say how a program ended.
ENDING = re.compile(
    r"^[^\S\n]*(?:\S+\s){0,8}?Traceback \(most recent call last\)"
    r"|^(?:\S+\s){0,4}?[\w.]*(?:Error|Exception|Interrupt):\s"
    r"|\bexit ?code ?:\s*-?\d|Signal \d+ \(SIG|^slurmstepd: error|CUDA out of memory|oom-kill|Segmentation fault"
    r"|No space left on device|DUE TO TIME LIMIT|NCCL communicator was aborted|^[^\S\n]*Killed\s*$",
    re.MULTILINE,
)

# A line of a traceback that quotes the source stands further in than what was raised; a group of exceptions has bars.
SOURCE = re.compile(r"(?:\[?rank ?\d+\]?:)?[ \t]{2,}(?![|+ \t])", re.IGNORECASE)


class Chatter:
    """Lines without metrics, told by their words once they were looked at: chatter, or lines that tell of errors.

    Attributes:
        telling: the lines that tell.
    """

    def __init__(self) -> None:
        self.telling = Telling()
        self._chatter: set[str] = set()
        self._told: set[str] = set()

    def knows(self, form: str, text: str, place: int, rows: int) -> bool:
        """Whether a line's form, its text without digits, is that of a line without metrics; keeps one that tells."""
        if form in self._told:
            self.telling.add(place, text, form, rows)
            return True
        return form in self._chatter

    def tell(self, text: str, place: int, form: str, rows: int) -> bool:
        """Keep a line without metrics if its words may tell of an error; with a form, remember what was found."""
        tells = TELLING.search(text[:MAX_FORM]) is not None
        if tells:
            self.telling.add(place, text, form or DIGITS.sub("", text[:MAX_FORM]), rows)
            if form and len(self._told) < MAX_FORMS:
                self._told.add(form)
        return tells

    def ignore(self, form: str) -> None:
        """Remember the form of a line that holds nothing."""
        if len(self._chatter) < MAX_FORMS:
            self._chatter.add(form)


@dataclass(slots=True)
class Telling:
    """Collects the telling lines of a log: the first and the last of them.

    Attributes:
        left: how many were not kept.
    """

    left: int = 0
    _first: list[tuple[int, str, int]] = field(default_factory=list)
    _last: deque[tuple[int, str, int]] = field(default_factory=lambda: deque(maxlen=KEEP_LAST))
    _forms: Counter[str] = field(default_factory=Counter)

    def add(self, place: int, text: str, form: str, rows: int) -> None:
        """Keep a line, with the number of rows of metrics before it, unless there are many like it."""
        if form in self._forms or len(self._forms) < MAX_FORMS:
            self._forms[form] += 1
        if self._forms[form] > SAME:
            self.left += 1
        elif len(self._first) < KEEP_FIRST:
            self._first.append((place, text[: 4 * MAX_TEXT], rows))
        else:
            self.left += len(self._last) == KEEP_LAST
            self._last.append((place, text[: 4 * MAX_TEXT], rows))

    def ended_in_error(self, begin: int, end: int) -> bool:
        """Whether the lines of a stretch say how a program ended."""
        return any(ENDING.search(line.text) for line in self.between(begin, end))

    def between(self, begin: int, end: int) -> tuple[LogLine, ...]:
        """The lines after row `begin`, up to the rows that come after row `end`; with none begun, those before too."""
        kept = [*self._first, *self._last]
        inside = [item for item in kept if begin < item[2] <= end or (not begin and not item[2])]
        return tuple(
            LogLine(place, clean(text, MAX_TEXT), rows >= end, SOURCE.match(text) is not None)
            for place, text, rows in inside
        )
