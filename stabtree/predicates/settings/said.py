"""What a configuration says, as evidence: each value with the place where it stands. Nothing is assumed."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from stabtree.common.answer import NO, YES, Answer, Evidence, inapplicable, unknown
from stabtree.common.stats import LARGEST
from stabtree.common.text import in_words

if TYPE_CHECKING:
    from stabtree.run import Run

ANY, UNSAID = "*", "?"  # among the values of a condition: any value, and none
_EXPONENT = re.compile(r"e([+-])0*(?=\d)")


def shown(value: object) -> str:
    """A value as one would type it.

    >>> shown(1e-08), shown(2000), shown(True), shown("adamw")
    ('1e-8', '2000', 'true', 'adamw')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return _EXPONENT.sub(r"e\1", f"{value:.6g}").replace("e+", "e") if isinstance(value, float) else str(value)


def quoted(run: Run, *keys: str) -> str:
    """The settings with their values and places: `lr = 0.003 (config.yaml:12, optimizer.lr)`."""
    known = [(key, run.config[key]) for key in keys if key in run.config]
    return ", ".join(f"{key} = {shown(item.value)} ({item.source})" for key, item in known)


def number(run: Run, key: str) -> float | None:
    """A setting that is a number; None where it is not said, or is none."""
    value = run.setting(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def word(run: Run, key: str) -> str:
    """A setting as a word in lower case, empty where it is not said."""
    value = run.setting(key)
    return "" if value is None else shown(value).lower()


def judged(
    run: Run,
    keys: tuple[str, ...],
    bar: str,
    *,
    found: bool | str,
    observed: float | None = None,
    limit: float | None = None,
) -> Answer:
    """An answer with what is said and what it was held against.

    Args:
        run: the configuration.
        keys: the settings that decide.
        bar: what they were held against, in words.
        found: whether it is a yes, or the verdict itself.
        observed: the number that was compared.
        limit: what it was compared with.
    """
    verdict = found if isinstance(found, str) else YES if found else NO
    text = "; ".join(filter(None, (quoted(run, *keys), bar)))
    return Answer(verdict, (Evidence(text, "", (), _fit(observed), _fit(limit)),))


def _fit(value: float | None) -> float | None:
    return None if value is None else max(-LARGEST, min(LARGEST, value))


def unsaid(run: Run, *keys: str) -> Answer:
    """The answer where settings are not said, or are no numbers where they must be: unknown, with their names."""
    lacking = tuple(key for key in keys if key not in run.config)
    if not lacking:
        return unknown(f"{quoted(run, *keys)}: a number is needed")
    return unknown(f"{in_words(lacking)} {'is' if len(lacking) == 1 else 'are'} not said", *lacking)


def stands_apart(run: Run, where: str, being: str) -> Answer | None:
    """Why a rule does not apply: the setting that it holds for has another value; None where it applies.

    Args:
        run: the configuration.
        where: the setting; empty where the rule holds for all.
        being: the values that it holds for, apart by blanks, with `*` for any letters; `?` where it is not said. A rule
            for any value at all is of no matter where there is none.
    """
    if not where:
        return None
    words, value = being.lower().split(), word(run, where)
    if not value and ANY in words:
        return inapplicable(f"{where} is not said")
    if not value:
        return None if UNSAID in words else unsaid(run, where)
    if any(fnmatchcase(value, pattern) for pattern in words):
        return None
    wanted = " or ".join(pattern for pattern in words if pattern != UNSAID)
    return inapplicable(f"{quoted(run, where)}: this is asked where it is {wanted}")
