r"""Checks that a pattern of a tree may be tried on the lines of a log, which anyone may have written.

Python's engine goes back wherever it could have matched in another way, so that what matters is in how many ways a
pattern can match a line. A repeat has one way where what follows can't begin with what it repeats (`\S+\s`), and else
as many as it has lengths; the ways of items in a row multiply, and a repeat of something with two ways doubles them
each time. `(a+)+$` has more ways than a line has letters, by far; `.*` has as many as there are letters.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from stabtree.predicates.lines import LINE

MAX_WAYS = 1_000_000
_TOO_MANY = float(2 * MAX_WAYS)

Chars = frozenset[str]


def problem(pattern: str) -> str:
    """Return what is wrong with a pattern; empty if it may be tried on any line."""
    try:
        re.compile(pattern)
        parsed = import_module("re._parser").parse(pattern)
        ways = _Counter(pattern, parsed.state).sequence(list(parsed), frozenset())[0]
    except (re.error, RecursionError, OverflowError) as error:
        return f"is not a regular expression: {error}"
    if ways <= MAX_WAYS:
        return ""
    return "could take forever on a long line: put no repeat into a repeat, and bound them, such as .{0,80} for .*"


class _Counter:
    """Counts in how many ways parts of a pattern match, with how a match may begin and whether it may be empty.

    Args:
        pattern: the pattern; its own letters and the first few hundred show whether two classes overlap.
        state: what the parser of `re` knows of it.
    """

    def __init__(self, pattern: str, state: Any) -> None:
        self._letters = frozenset(map(chr, range(0x250))).union(pattern, pattern.lower(), pattern.upper())
        self._state = state

    def sequence(self, items: list[Any], after: Chars) -> tuple[float, Chars, bool]:
        """Count the ways of items in a row, after which a text may begin with some letters."""
        ways, begin, empty = 1.0, after, True
        for operator, argument in reversed(items):
            own, first, nothing = self._item(operator, argument, begin)
            ways = min(_TOO_MANY, ways * own)
            begin = first | begin if nothing else first
            empty = empty and nothing
        return ways, begin, empty

    def _item(self, operator: Any, argument: Any, after: Chars) -> tuple[float, Chars, bool]:
        name = str(operator)
        if name.endswith("_REPEAT"):
            return self._repeat(name, argument, after)
        if name in ("SUBPATTERN", "ATOMIC_GROUP"):
            return self.sequence(list(argument[-1] if name == "SUBPATTERN" else argument), after)
        if name == "BRANCH":
            return self._branch(argument[1], after)
        if name in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            return 1.0, self._chars(operator, argument), False
        if name in ("ASSERT", "ASSERT_NOT"):
            return self.sequence(list(argument[1]), self._letters)[0], self._letters, True
        # Anchors and references to groups: whatever comes before may be asked for another way.
        return 1.0 if name == "AT" else float(LINE), self._letters, True

    def _repeat(self, name: str, argument: Any, after: Chars) -> tuple[float, Chars, bool]:
        fewest, most, body = argument
        begin = self.sequence(list(body), frozenset())[1]
        ways, _, empty = self.sequence(list(body), begin | after)
        most = min(int(most), LINE)
        if name.startswith("POSSESSIVE"):
            return ways, begin, fewest == 0 or empty
        lengths = 1.0 if begin.isdisjoint(after) and not empty else max(1.0, most - int(fewest) + 1.0)
        inside = _TOO_MANY if ways > 1.0 and most > 50 else ways**most
        return min(_TOO_MANY, lengths * inside), begin, fewest == 0 or empty

    def _branch(self, choices: list[Any], after: Chars) -> tuple[float, Chars, bool]:
        """Add up the ways of choices that begin alike; of others only one is left after a letter."""
        found = [self.sequence(list(items), after) for items in choices]
        begin = frozenset[str]().union(*(first for _, first, _ in found))
        ways = [sum(own for own, first, _ in found if char in first) for char in begin]
        return min(_TOO_MANY, max(ways, default=1.0)), begin, any(empty for _, _, empty in found)

    def _chars(self, operator: Any, argument: Any) -> Chars:
        """Return the letters that one item matches, in either case, since lines are searched without regard to it."""
        item = import_module("re._parser").SubPattern(self._state, [(operator, argument)])
        match = import_module("re._compiler").compile(item, re.IGNORECASE | re.DOTALL).fullmatch
        return frozenset(filter(match, self._letters))
