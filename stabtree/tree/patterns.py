r"""Checks that a pattern of a tree may be tried on the lines of a log, which anyone may have written.

Python's engine goes back wherever it could have matched in another way, so that what matters is in how many ways a
pattern can match a line. A repeat has one way where what follows can't begin with what it repeats (`\S+\s`), and else
as many as it has lengths; the ways of items in a row multiply, and a repeat of something with two ways doubles them
each time. `(a+)+$` has more ways than a line has letters, by far; `.*` has as many as there are letters.
"""

from __future__ import annotations

import re
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

from stabtree.predicates.lines import LINE

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_WAYS = 1_000_000
_TOO_MANY = float(2 * MAX_WAYS)
# Enough to see whether two classes of characters overlap; the last one represents all letters beyond.
_BEYOND = chr(0x250)
_LETTERS = frozenset(map(chr, range(0x251)))
_CATEGORIES = {"DIGIT": str.isdigit, "SPACE": str.isspace, "WORD": lambda char: char.isalnum() or char == "_"}

Chars = frozenset[str]


def problem(pattern: str) -> str:
    """Return what is wrong with a pattern; empty if it may be tried on any line."""
    try:
        re.compile(pattern)
        parsed = import_module("re._parser").parse(pattern)
        ways = _sequence(list(parsed), frozenset())[0]
    except (re.error, RecursionError, OverflowError) as error:
        return f"is not a regular expression: {error}"
    if ways <= MAX_WAYS:
        return ""
    return "could take forever on a long line: put no repeat into a repeat, and bound them, such as .{0,80} for .*"


def _sequence(items: list[Any], after: Chars) -> tuple[float, Chars, bool]:
    """Return in how many ways items in a row match, with what they begin, and whether they may match nothing.

    Args:
        items: as the parser of `re` gives them.
        after: with what the text after them may begin.
    """
    ways, begin, empty = 1.0, after, True
    for operator, argument in reversed(items):
        own, first, nothing = _item(str(operator), argument, begin)
        ways = min(_TOO_MANY, ways * own)
        if nothing:
            begin = first | begin
        else:
            begin, empty = first, False
    return ways, begin, empty


def _item(operator: str, argument: Any, after: Chars) -> tuple[float, Chars, bool]:
    if operator.endswith("_REPEAT"):
        return _repeat(operator, argument, after)
    if operator == "SUBPATTERN":
        return _sequence(list(argument[-1]), after)
    if operator == "ATOMIC_GROUP":
        return _sequence(list(argument), after)
    if operator == "BRANCH":
        return _branch([list(items) for items in argument[1]], after)
    if operator in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
        return 1.0, _chars(operator, argument), False
    if operator in ("ASSERT", "ASSERT_NOT"):
        return _sequence(list(argument[1]), _LETTERS)[0], _LETTERS, True
    # Anchors and references to groups: whatever comes before may be asked for another way.
    if operator == "AT":
        return 1.0, _LETTERS, True
    return float(LINE), _LETTERS, True


def _repeat(operator: str, argument: Any, after: Chars) -> tuple[float, Chars, bool]:
    fewest, most, body = argument
    begin = _sequence(list(body), frozenset())[1]
    ways, _, empty = _sequence(list(body), begin | after)
    most = min(int(most), LINE)
    if operator.startswith("POSSESSIVE"):
        return ways, begin, fewest == 0 or empty
    if begin.isdisjoint(after) and not empty:
        lengths = 1.0
    else:
        lengths = max(1.0, most - int(fewest) + 1.0)
    inside = _TOO_MANY if ways > 1.0 and most > 50 else ways**most
    return min(_TOO_MANY, lengths * inside), begin, fewest == 0 or empty


def _branch(choices: list[list[Any]], after: Chars) -> tuple[float, Chars, bool]:
    """Add up the ways of choices that begin alike; of others only one is left after a letter."""
    found = [_sequence(items, after) for items in choices]
    begin = frozenset[str]().union(*(first for _, first, _ in found))
    ways = [sum(own for own, first, _ in found if char in first) for char in begin]
    return min(_TOO_MANY, max(ways, default=1.0)), begin, any(empty for _, _, empty in found)


def _chars(operator: str, argument: Any) -> Chars:
    """Return the characters of a class, in either case, since lines are searched without regard to it."""
    if operator == "ANY":
        return _LETTERS
    if operator == "IN":
        return _chars_in([(str(kind), value) for kind, value in argument])
    if operator == "RANGE":
        return _either_case(range(argument[0], min(argument[1], ord(_BEYOND)) + 1) or (argument[0],))
    if operator == "CATEGORY":
        return _category(str(argument).removeprefix("CATEGORY_"))
    if operator == "NOT_LITERAL":
        return _others(_either_case((argument,)))
    return _either_case((argument,))


def _chars_in(items: list[tuple[str, Any]]) -> Chars:
    """Return the characters of a class in brackets."""
    found = frozenset[str]().union(*(_chars(kind, value) for kind, value in items if kind != "NEGATE"))
    if items[0][0] == "NEGATE":
        return _others(found)
    return found


def _category(name: str) -> Chars:
    found = frozenset(filter(_CATEGORIES[name.removeprefix("NOT_")], _LETTERS))
    if name.startswith("NOT_"):
        return _LETTERS - found
    return found


def _others(chars: Chars) -> Chars:
    return (_LETTERS - chars) | {_BEYOND}


def _either_case(codes: Iterable[int]) -> Chars:
    chars = [min(chr(code), _BEYOND) for code in codes]
    return frozenset(chain(chars, map(str.lower, chars), map(str.upper, chars)))
