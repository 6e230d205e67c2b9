"""The placeholders of an action: `{lr/2}` becomes the learning rate of the run with its value, and half of it.

`{KNOB}` names a knob in the framework's spelling, `{KNOB/2}` and `{KNOB*2}` change it by a factor, `{KNOB=VALUE}` sets
it, `{KNOB<VALUE}` lowers it to at most a value; `{batches}` are those of the onset. `{SETTING==VALUE}` sets it as well,
and `check --fix` writes the value into the file. Each follows words that say the same without a number, and is shown in
parentheses: what is not known is left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.text import near

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BATCHES = "batches"
_PLACEHOLDER = re.compile(r"\s?\{(\w+)(?:([/*=<])(=?)([^\s{}:]*))?\}")


class Placeholder(NamedTuple):
    """A part of an action that the run fills.

    Attributes:
        knob: a knob of the table, or `batches`.
        operator: `/`, `*`, `=`, `<`, or empty.
        only: `=` where the value is the one right one, which `check --fix` writes.
        value: what follows the operator.
    """

    knob: str
    operator: str = ""
    only: str = ""
    value: str = ""


def fill(text: str, describe: Callable[[Placeholder], str]) -> str:
    """Replace each placeholder by its description in parentheses; an empty description is left out."""

    def described(found: re.Match[str]) -> str:
        shown = describe(Placeholder(*found.groups("")))
        return f" ({shown})" if shown else ""

    return _PLACEHOLDER.sub(described, text)


def placeholders(text: str) -> tuple[Placeholder, ...]:
    """Return the placeholders of a text, in order."""
    return tuple(Placeholder(*found.groups("")) for found in _PLACEHOLDER.finditer(text))


def plain(text: str) -> str:
    """Return a text without its placeholders, as it reads for any run."""
    return fill(text, lambda _: "")


def mistakes(text: str) -> Iterator[str]:
    """Yield what is wrong with the placeholders of a text."""
    for item in placeholders(text):
        if problem := _problem(item, "".join(item)):
            yield f"names {{{''.join(item)}}}; {problem}"


def _problem(item: Placeholder, text: str) -> str:
    """Return what is wrong with a placeholder, which is spelled so; empty if nothing is."""
    from stabtree.frameworks.load import knobs
    from stabtree.loaders.config import KEYS

    spelled = knobs()
    if item.only:
        spelled = {**dict.fromkeys(KEYS, ""), **spelled}
    known = {*(knob.partition("=")[0] for knob in spelled), BATCHES}
    choices = sorted(word for word in spelled if word.startswith(f"{item.knob}="))  # with the one value each is for
    if item.knob not in known:
        return f"{item.knob!r} is not a knob{near(item.knob, known)}"
    if item.knob not in (*spelled, BATCHES) and text not in choices:
        return f"what can be said of it is {', '.join(choices)}"
    if item.knob in spelled and item.operator and not _is_positive(item.value):
        return f"a number must follow {item.operator!r}"
    return ""


def _is_positive(text: str) -> bool:
    try:
        return float(text) > 0
    except ValueError:
        return False
