"""Questions to settings: their values, and what a run was told."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from stabtree.common.answer import NO, YES, Answer, Evidence, inapplicable, unknown
from stabtree.common.stats import LARGEST
from stabtree.common.text import in_words
from stabtree.measures.registry import measure, number

if TYPE_CHECKING:
    from stabtree.run import Run

DEFAULT = "default"  # how the source of a value begins that the configuration does not say
ANY, NOT_GIVEN = "*", "?"  # among the values of a condition: any value, and none
_EXPONENT = re.compile(r"e([+-])0*(?=\d)")


def format_value(value: object) -> str:
    """Return a value as one would type it.

    >>> format_value(1e-08), format_value(2000), format_value(True), format_value("adamw")
    ('1e-8', '2000', 'true', 'adamw')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return _EXPONENT.sub(r"e\1", f"{value:.6g}").replace("e+", "e")
    return str(value)


def describe(run: Run, *keys: str) -> str:
    """Describe the settings with their values and sources: `lr = 0.003 (config.yaml:12, optimizer.lr)`."""
    known = [(key, run.config[key]) for key in dict.fromkeys(keys) if key in run.config]
    return ", ".join(f"{key} = {format_value(item.value)} ({item.source})" for key, item in known)


def word(run: Run, key: str) -> str:
    """Return a setting as a word in lower case, empty where it is not given."""
    value = run.setting(key)
    if value is None:
        return ""
    return format_value(value).lower()


def is_default(run: Run, key: str) -> bool:
    """Return whether a setting is the trainer's default, which nobody chose."""
    return key in run.config and run.config[key].source.startswith(f"{DEFAULT} of ")


def decided(
    run: Run,
    keys: tuple[str, ...],
    bar: str,
    *,
    found: bool | str,
    observed: float | None = None,
    limit: float | None = None,
) -> Answer:
    """Return an answer that quotes the settings and what they were compared with.

    Args:
        run: the configuration.
        keys: the settings that decide.
        bar: what they were compared with, in words.
        found: whether it is a yes, or the verdict itself.
        observed: the number that was compared.
        limit: what it was compared with.
    """
    if isinstance(found, str):
        verdict = found
    elif found:
        verdict = YES
    else:
        verdict = NO
    text = "; ".join(filter(None, (describe(run, *keys), bar)))
    observed, limit = (None if x is None else max(-LARGEST, min(LARGEST, x)) for x in (observed, limit))
    return Answer(verdict, (Evidence(text, "", (), observed, limit),))


def not_given(run: Run, *keys: str) -> Answer:
    """Answer unknown where settings are not given, or are not numbers where they must be, and name them."""
    lacking = tuple(key for key in keys if key not in run.config)
    if not lacking:
        return unknown(f"{describe(run, *keys)}: a number is needed")
    return unknown(f"{in_words(lacking)} {'is' if len(lacking) == 1 else 'are'} not said", *lacking)


def not_applicable(run: Run, where: str, being: str) -> Answer | None:
    """Return why a rule does not apply: the setting that it depends on has another value; None where it applies.

    Args:
        run: the configuration.
        where: the setting; empty where the rule holds for all.
        being: the values that the rule is for, separated by blanks, with `*` for any letters; `?` where it is not
            given. A rule for any value does not apply where there is none.
    """
    if not where:
        return None
    words, value = being.lower().split(), word(run, where)
    if not value and ANY in words:
        return inapplicable(f"{where} is not said")
    if not value:
        if NOT_GIVEN in words:
            return None
        return not_given(run, where)
    if any(fnmatchcase(value, pattern) for pattern in words):
        return None
    wanted = " or ".join(pattern for pattern in words if pattern != NOT_GIVEN)
    return inapplicable(f"{describe(run, where)}: this is asked where it is {wanted}")


OUTSIDE = "outside"


@measure(source="the documents that a tree names", rule="{key} is one of: {values}")
def setting_says(run: Run, *, key: str, values: str, where: str = "", being: str = "") -> Answer:
    """Does a setting have one of these values?

    `values` are separated by blanks, with `*` for any letters; numbers are compared as numbers.
    """
    refused = not_applicable(run, where, being)
    if refused or key not in run.config:
        return refused or not_given(run, key)
    value, known = number(run, key), word(run, key)
    found = any(_same(value, wanted) or fnmatchcase(known, wanted) for wanted in values.lower().split())
    return decided(run, (key, where), "" if found else f"looked for: {values}", found=found, observed=value)


def _same(value: float | None, wanted: str) -> bool:
    try:
        return value is not None and value == float(wanted)
    except ValueError:
        return False
