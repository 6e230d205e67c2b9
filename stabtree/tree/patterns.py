r"""Whether a pattern of a tree may be tried on the lines of a log, which anyone may have written.

Python's engine goes back wherever it could have matched in another way, so that what matters is in how many ways a
pattern can match a line. A repeat has one way where what follows can't begin with what it repeats (`\S+\s`), and else
as many as it has lengths; ways of what stands in a row multiply, and a repeat of something with two ways doubles them
each time. `(a+)+$` has more ways than a line has letters, by far; `.*` has as many as there are letters.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from stabtree.predicates.log import LINE

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_WAYS = 1_000_000
_TOO_MANY = float(2 * MAX_WAYS)
# Enough to tell whether two classes of characters meet; the last one stands for all letters beyond.
_BEYOND = chr(0x250)
_LETTERS = frozenset(map(chr, range(0x251)))
_CATEGORIES = {"DIGIT": str.isdigit, "SPACE": str.isspace, "WORD": lambda char: char.isalnum() or char == "_"}

Chars = frozenset[str]


def problem(pattern: str) -> str:
    """What is wrong with a pattern; empty where it may be tried on any line."""
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
    """In how many ways items in a row match, with what they begin, and whether they may match nothing.

    Args:
        items: as the parser of `re` gives them.
        after: with what the text behind them may begin.
    """
    ways, begin, empty = 1.0, after, True
    for operator, argument in reversed(items):
        own, first, nothing = _item(str(operator), argument, begin)
        ways = min(_TOO_MANY, ways * own)
        begin, empty = (first | begin, empty) if nothing else (first, False)
    return ways, begin, empty


def _item(operator: str, argument: Any, after: Chars) -> tuple[float, Chars, bool]:
    if operator.endswith("_REPEAT"):
        return _repeat(operator, argument, after)
    if operator in ("SUBPATTERN", "ATOMIC_GROUP"):
        return _sequence(list(argument[-1] if operator == "SUBPATTERN" else argument), after)
    if operator == "BRANCH":
        return _branch([list(items) for items in argument[1]], after)
    if operator in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
        return 1.0, _chars(operator, argument), False
    if operator in ("ASSERT", "ASSERT_NOT"):
        return _sequence(list(argument[1]), _LETTERS)[0], _LETTERS, True
    # Anchors and references to groups: whatever stands before may be asked for another way.
    return 1.0 if operator == "AT" else float(LINE), _LETTERS, True


def _repeat(operator: str, argument: Any, after: Chars) -> tuple[float, Chars, bool]:
    least, most, body = argument
    begin = _sequence(list(body), frozenset())[1]
    ways, _, empty = _sequence(list(body), begin | after)
    most = min(int(most), LINE)
    if operator.startswith("POSSESSIVE"):
        return ways, begin, least == 0 or empty
    lengths = 1.0 if begin.isdisjoint(after) and not empty else max(1.0, most - int(least) + 1.0)
    inside = _TOO_MANY if ways > 1.0 and most > 50 else ways**most
    return min(_TOO_MANY, lengths * inside), begin, least == 0 or empty


def _branch(choices: list[list[Any]], after: Chars) -> tuple[float, Chars, bool]:
    """Ways add up where two choices begin alike; else only one of them is left after a letter."""
    found = [_sequence(items, after) for items in choices]
    begin = frozenset[str]().union(*(first for _, first, _ in found))
    ways = max((sum(own for own, first, _ in found if char in first) for char in begin), default=1.0)
    return min(_TOO_MANY, max(ways, 1.0)), begin, any(empty for _, _, empty in found)


def _chars(operator: str, argument: Any) -> Chars:
    """The characters of a class, in either case, since lines are searched without regard to it."""
    if operator == "ANY":
        return _LETTERS
    if operator == "IN":
        negated = str(argument[0][0]) == "NEGATE"
        held = frozenset[str]().union(*(_chars(str(kind), value) for kind, value in argument if str(kind) != "NEGATE"))
        return _others(held) if negated else held
    if operator == "RANGE":
        return _either_case(range(argument[0], min(argument[1], ord(_BEYOND)) + 1) or (argument[0],))
    if operator == "CATEGORY":
        name = str(argument).removeprefix("CATEGORY_")
        held = frozenset(filter(_CATEGORIES[name.removeprefix("NOT_")], _LETTERS))
        return _LETTERS - held if name.startswith("NOT_") else held
    return _others(_either_case((argument,))) if operator == "NOT_LITERAL" else _either_case((argument,))


def _others(chars: Chars) -> Chars:
    return (_LETTERS - chars) | {_BEYOND}


def _either_case(codes: Iterable[int]) -> Chars:
    chars = [min(chr(code), _BEYOND) for code in codes]
    return frozenset(other for char in chars for other in (char, char.lower(), char.upper()))
