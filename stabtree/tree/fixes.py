"""The placeholders of a fix: `{lr/2}` becomes the learning rate of the run with its value, and half of it.

`{KNOB}` names a knob in the framework's spelling, `{KNOB/2}` and `{KNOB*2}` change it by a factor, `{KNOB=VALUE}` sets
it, `{KNOB<VALUE}` lowers it to at most a value; `{batches}` are those of the onset. Each follows words that say the
same without a number, and is shown in parentheses: what is not known is left out. `{checkpoint}` shows nothing: a fix
with it is advised only if a checkpoint is older than the trouble.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.text import near
from stabtree.frameworks.load import knobs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BATCHES = "batches"
CHECKPOINT = "checkpoint"
_PLACEHOLDER = re.compile(r"\s?\{(\w+)(?:([/*=<])([^\s{}:]*))?\}")


class Placeholder(NamedTuple):
    """A part of a fix that the run fills.

    Attributes:
        knob: a knob of the table, `batches` or `checkpoint`.
        operator: `/`, `*`, `=`, `<`, or empty.
        value: what follows the operator.
    """

    knob: str
    operator: str = ""
    value: str = ""


def fill(fix: str, describe: Callable[[Placeholder], str]) -> str:
    """Replace each placeholder of a fix by its description in parentheses; an empty description is left out."""

    def described(found: re.Match[str]) -> str:
        text = describe(_placeholder(found))
        return f" ({text})" if text else ""

    return _PLACEHOLDER.sub(described, fix)


def placeholders(fix: str) -> tuple[Placeholder, ...]:
    """Return the placeholders of a fix, in order."""
    return tuple(map(_placeholder, _PLACEHOLDER.finditer(fix)))


def _placeholder(found: re.Match[str]) -> Placeholder:
    return Placeholder(found[1], found[2] or "", found[3] or "")


def plain(fix: str) -> str:
    """Return a fix without its placeholders, as it reads for any run."""
    return fill(fix, lambda _: "")


def mistakes(fix: str) -> Iterator[str]:
    """Yield what is wrong with the placeholders of a fix."""
    spelled = knobs()
    with_value = {knob for knob in spelled if "=" in knob}  # a knob with the one value that it is spelled for
    known = {*(knob.partition("=")[0] for knob in spelled), BATCHES, CHECKPOINT}
    for item in placeholders(fix):
        text = f"{item.knob}{item.operator}{item.value}"
        if item.knob not in known:
            yield f"names {{{text}}} in a fix; {item.knob!r} is not a knob{near(item.knob, known)}"
        elif item.knob not in (*spelled, BATCHES, CHECKPOINT) and text not in with_value:
            choices = ", ".join(sorted(word for word in with_value if word.startswith(f"{item.knob}=")))
            yield f"names {{{text}}} in a fix; what can be said of it is {choices}"
        elif item.knob in spelled and item.operator and not _is_positive(item.value):
            yield f"names {{{text}}} in a fix; a number must follow {item.operator!r}"


def _is_positive(text: str) -> bool:
    try:
        return float(text) > 0
    except ValueError:
        return False
