"""Settings against values, bounds and each other: what most rules of a team are made of.

Each may be asked of some configurations alone: `where: adapter, being: "lora qlora"`. `*` stands for any letters, and
`?` for a setting that is not said.
"""

from __future__ import annotations

import math
import re
from fnmatch import fnmatchcase

from stabtree.common.answer import NO, YES, Answer
from stabtree.predicates.registry import Pattern, predicate
from stabtree.predicates.settings.said import judged, number, shown, stands_apart, unsaid, word
from stabtree.run import Run  # noqa: TC001 - the signature is the declaration

OUTSIDE = "outside"


@predicate(
    source="the documents that a tree names",
    rule="{key} is one of: {values}",
)
def setting_says(run: Run, *, key: str, values: str, where: str = "", being: str = "") -> Answer:
    """Does a setting have one of these values?

    `values` stand apart by blanks, with `*` for any letters; numbers are compared as numbers.
    """
    apart = stands_apart(run, where, being)
    if apart or key not in run.config:
        return apart or unsaid(run, key)
    value, known = number(run, key), word(run, key)
    found = any(_same(value, wanted) or fnmatchcase(known, wanted) for wanted in values.lower().split())
    return judged(run, _keys(key, where), "" if found else f"looked for: {values}", found=found, observed=value)


def _same(value: float | None, wanted: str) -> bool:
    try:
        return value is not None and value == float(wanted)
    except ValueError:
        return False


@predicate(source="the documents that a tree names", rule="{key} is said")
def setting_is_said(run: Run, *, key: str) -> Answer:
    """Is a setting said at all?

    It tells one kind of configuration from another: where it is not said the answer is no.
    """
    found = key in run.config
    return judged(run, (key,), "" if found else f"{key} is not said", found=found)


@predicate(
    source="the documents that a tree names",
    labels=(YES, OUTSIDE, NO),
    rule="{key} is not between {low:g} and {high:g}; it is far off beyond {factor:g} times either",
)
def setting_outside(
    run: Run, *, key: str, low: float = 0.0, high: float = 1e12, factor: float = 1.0, where: str = "", being: str = ""
) -> Answer:
    """Is a setting outside of its range?

    Yes from `factor` times `high` or a `factor`th of `low` on; `outside` where it is outside by less. A `low` of 0
    is no limit.
    """
    apart = stands_apart(run, where, being)
    value = number(run, key)
    if apart or value is None:
        return apart or unsaid(run, key)
    least = low if low > 0 else -math.inf
    far = value > high * factor or value < least / max(factor, 1.0)
    near = value > high or value < least
    limit = high if value > high or low <= 0 else low
    bar = f"the range is {shown(low)} to {shown(high)}" if low > 0 else f"at most {shown(high)} is usual"
    bar = f"at least {shown(low)} is usual" if high >= 1e12 else bar
    found = YES if far else OUTSIDE if near else NO
    return judged(run, _keys(key, where), bar, found=found, observed=value, limit=limit)


@predicate(source="the documents that a tree names", rule="{key} holds {pattern}")
def setting_matches(run: Run, *, key: str, pattern: Pattern, where: str = "", being: str = "") -> Answer:
    """Does a setting match a pattern?

    `pattern` is a regular expression, looked for anywhere in the value, whatever its case.
    """
    apart = stands_apart(run, where, being)
    if apart or key not in run.config:
        return apart or unsaid(run, key)
    found = re.search(pattern, word(run, key), re.IGNORECASE) is not None
    return judged(run, _keys(key, where), "" if found else f"looked for: {pattern}", found=found)


@predicate(source="the documents that a tree names", rule="{key} is more than {factor:g} times {other}")
def setting_exceeds(run: Run, *, key: str, other: str, factor: float = 1.0, where: str = "", being: str = "") -> Answer:
    """Is a setting larger than another one?

    More than `factor` times it.
    """
    apart = stands_apart(run, where, being)
    value, against = number(run, key), number(run, other)
    if apart or value is None or against is None:
        return apart or unsaid(run, key, other)
    limit = factor * against
    bar = f"more than {shown(limit)} is too much"
    return judged(run, (key, other), bar, found=value > limit, observed=value, limit=limit)


def _keys(key: str, where: str) -> tuple[str, ...]:
    return (key, where) if where else (key,)
