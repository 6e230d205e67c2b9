"""Settings against values, bounds and each other: what most rules of a team are made of.

Each may be asked of some configurations alone: `where: adapter, being: "lora qlora"`. `*` means any letters, and
`?` a setting that is not given.
"""

from __future__ import annotations

import math
import re
from difflib import get_close_matches
from fnmatch import fnmatchcase

from stabtree.common import shared
from stabtree.common.answer import NO, YES, Answer
from stabtree.predicates.registry import Pattern, predicate
from stabtree.predicates.settings.answers import decided, format_value, not_applicable, not_given, number, word
from stabtree.run import Run  # noqa: TC001 - the signature is the declaration

OUTSIDE = "outside"
NEARLY = 0.75  # no limit: of difflib, where 1 is the same word


@predicate(
    source="the documents that a tree names",
    rule="{key} is one of: {values}",
)
def setting_says(run: Run, *, key: str, values: str, where: str = "", being: str = "") -> Answer:
    """Does a setting have one of these values?

    `values` are separated by blanks, with `*` for any letters; numbers are compared as numbers.
    """
    refused = not_applicable(run, where, being)
    if refused or key not in run.config:
        return refused or not_given(run, key)
    value, known = number(run, key), word(run, key)
    found = any(_same(value, wanted) or fnmatchcase(known, wanted) for wanted in values.lower().split())
    return decided(run, _keys(key, where), "" if found else f"looked for: {values}", found=found, observed=value)


def _same(value: float | None, wanted: str) -> bool:
    try:
        return value is not None and value == float(wanted)
    except ValueError:
        return False


@predicate(
    source="the documents that a tree names",
    labels=(YES, OUTSIDE, NO),
    rule="{key} is not between {low:g} and {high:g}",
)
def setting_outside(
    run: Run, *, key: str, low: float = 0.0, high: float = 1e12, graded: bool = False, where: str = "", being: str = ""
) -> Answer:
    """Is a setting outside of its range?

    With `graded` it is `outside` up to ten times `high` or a tenth of `low`, and yes beyond. A `low` of 0 is no limit.
    """
    refused = not_applicable(run, where, being)
    value = number(run, key)
    if refused or value is None:
        return refused or not_given(run, key)
    least = low if low > 0 else -math.inf
    factor = shared.FACTOR_LARGE if graded else 1.0
    far = value > high * factor or value < least / factor
    near = value > high or value < least
    limit = high if value > high or low <= 0 else low
    if low > 0:
        bar = f"the range is {format_value(low)} to {format_value(high)}"
    else:
        bar = f"at most {format_value(high)} is usual"
    bar = f"at least {format_value(low)} is usual" if high >= 1e12 else bar
    if far:
        found = YES
    elif near:
        found = OUTSIDE
    else:
        found = NO
    return decided(run, _keys(key, where), bar, found=found, observed=value, limit=limit)


@predicate(source="the documents that a tree names", rule="{key} holds {pattern}")
def setting_matches(run: Run, *, key: str, pattern: Pattern, where: str = "", being: str = "") -> Answer:
    """Does a setting match a pattern?

    `pattern` is a regular expression, looked for anywhere in the value, whatever its case.
    """
    refused = not_applicable(run, where, being)
    if refused or key not in run.config:
        return refused or not_given(run, key)
    found = re.search(pattern, word(run, key), re.IGNORECASE) is not None
    return decided(run, _keys(key, where), "" if found else f"looked for: {pattern}", found=found)


@predicate(source="the documents that a tree names", rule="{key} is more than {other}, by a twentieth")
def setting_exceeds(run: Run, *, key: str, other: str, where: str = "", being: str = "") -> Answer:
    """Is a setting larger than another one?

    By more than a twentieth: a schedule may be a few steps longer than a run.
    """
    refused = not_applicable(run, where, being)
    value, against = number(run, key), number(run, other)
    if refused or value is None or against is None:
        return refused or not_given(run, key, other)
    limit = (1 + shared.SHARE_SOME) * against
    bar = f"more than {format_value(limit)} is too much"
    return decided(run, (key, other), bar, found=value > limit, observed=value, limit=limit)


@predicate(source="the documents that a tree names", rule="{key} is none of {values}, and nearly one of them")
def setting_misspelled(run: Run, *, key: str, values: str, where: str = "", being: str = "") -> Answer:
    """Is a setting nearly one of these values?

    `values` are separated by blanks. What resembles none of them may be a value that they lack, and is no mistake; what
    is made of their words alone is one more of them, as `linear_with_warmup`, and words may be joined in any way.
    """
    refused = not_applicable(run, where, being)
    if refused or key not in run.config:
        return refused or not_given(run, key)
    known, known_values = word(run, key), values.lower().split()
    close = get_close_matches(known, known_values, 1, NEARLY)
    words = {part for value in known_values for part in (value, *value.split("_"))}
    same = words.issuperset(known.split("_")) or _joined(known) in map(_joined, known_values)
    found = bool(close) and not same
    return decided(run, _keys(key, where), f"did you mean {close[0]}?" if found else "", found=found)


def _joined(name: str) -> str:
    """Return a name without what separates its words."""
    return re.sub(r"[\s_-]+", "", name)


def _keys(key: str, where: str) -> tuple[str, ...]:
    if where and where != key:
        return (key, where)
    return (key,)
