"""The lines of a text log that hold numbers and were not read, counted by kind."""

from __future__ import annotations

import re

from msgspec import Struct, field

from stabtree.common.files import UnreadKind
from stabtree.common.text import clean
from stabtree.loaders.text.lines import grammar

MAX_KINDS = 500  # a log of more kinds of lines is prose, or source code
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
    """Collects the kinds while a log is read: lines of one kind differ in their digits alone.

    Attributes:
        others: the lines of kinds beyond the first ones.
    """

    others: int = 0
    _frame: int = -1
    _kinds: dict[str, list[int]] = field(default_factory=dict)
    _examples: dict[str, str] = field(default_factory=dict)

    def add(self, form: str, text: str, number: int) -> None:
        """Count a line of a form, its text without digits, if it holds a number."""
        if FRAME.match(text, grammar.past_prefix(text)):
            self._frame = number
        elif number == self._frame + 1:
            return
        elif form in self._kinds:
            self.count_again(form)
        elif grammar.NUMBER.search(text, grammar.past_prefix(text)):
            if len(self._kinds) < MAX_KINDS:
                self._kinds[form] = [1, number]
                self._examples[form] = text[: 2 * MAX_EXAMPLE]
            else:
                self.others += 1

    def count_again(self, form: str) -> None:
        """Count a line of a form that was counted before; others hold no number, or were kept as errors."""
        counted = self._kinds.get(form)
        if counted:
            counted[0] += 1

    def kinds(self) -> tuple[UnreadKind, ...]:
        """Return the kinds, those that may matter and are frequent first; the last counts all that are not listed."""
        found = []
        for form, (count, line) in self._kinds.items():
            text = self._examples[form]
            harmless = bool(HARMLESS.search(text, grammar.past_prefix(text)))
            found.append(UnreadKind(count, line, clean(text.strip(), MAX_EXAMPLE), harmless))
        found.sort(key=lambda kind: (kind.harmless, -kind.count, kind.line))
        rest = sum(kind.count for kind in found[SHOWN:]) + self.others
        if rest:
            return (*found[:SHOWN], UnreadKind(rest, 0, "", harmless=False))
        return tuple(found)
