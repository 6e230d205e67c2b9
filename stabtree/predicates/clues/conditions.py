"""Conditions on clues, as trees write them: `recovery_rows: "> 20"`, `precision: fp16, bf16`."""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from stabtree.predicates.clues.registry import Seen

_NUMBER = re.compile(r"(>=|<=|>|<)\s*(\S+)\Z")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


class Condition(NamedTuple):
    """What a clue must show.

    Attributes:
        words: the words of which it must be one; empty for a number.
        compare: `>`, `>=`, `<` or `<=`; empty for words.
        limit: what a number is compared with.
    """

    words: tuple[str, ...] = ()
    compare: str = ""
    limit: float = 0.0

    def met(self, seen: Seen | None) -> bool | None:
        """Return whether a clue shows it; None where the log can't show the clue."""
        if seen is None:
            return None
        if self.words:
            return str(seen.value) in self.words
        if isinstance(seen.value, str):
            return False
        return _COMPARE[self.compare](seen.value, self.limit)


def condition(text: str) -> Condition:
    """Read a condition.

    Raises:
        ValueError: for a comparison without a number, or an empty text.
    """
    found = _NUMBER.match(text.strip())
    if found:
        return Condition(compare=found[1], limit=float(found[2]))
    words = tuple(filter(None, (word.strip() for word in text.split(","))))
    if not words or text.strip()[:1] in "<>=":
        raise ValueError(f"{text!r} is no condition: write '> 20', '<= 2' or words")
    return Condition(words)
