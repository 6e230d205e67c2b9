"""What a fix may say of the run at hand: `{lr/2}` is the learning rate with its value, and the half of it.

`{KNOB}` names a knob in the framework's spelling, `{KNOB/2}` and `{KNOB*2}` change it by a factor, `{KNOB=VALUE}` sets
it, `{KNOB<VALUE}` lowers it to at most a value; `{batches}` are those of the onset. Each stands behind words that say
the same without a number, and is told in parentheses: what is not known is left out. `{checkpoint}` tells nothing: a
fix that holds it is advised only where a checkpoint is older than the trouble.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.text import near
from stabtree.tree.knobs import KNOBS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BATCHES = "batches"
CHECKPOINT = "checkpoint"
_PLACE = re.compile(r"\s?\{(\w+)(?:([/*=<])([^\s{}:]*))?\}")
_WORDS = frozenset(knob for knob in KNOBS if "=" in knob)  # a knob with the one value that it is spelled for


class Place(NamedTuple):
    """A place of a fix that the run at hand fills.

    Attributes:
        knob: a knob of the table, `batches` or `checkpoint`.
        how: `/`, `*`, `=`, `<`, or empty.
        value: what stands behind that.
    """

    knob: str
    how: str = ""
    value: str = ""


def filled(fix: str, told: Callable[[Place], str]) -> str:
    """A fix with what is told of each of its places in parentheses, empty texts left out."""

    def one(found: re.Match[str]) -> str:
        text = told(Place(found[1], found[2] or "", found[3] or ""))
        return f" ({text})" if text else ""

    return _PLACE.sub(one, fix)


def places(fix: str) -> tuple[Place, ...]:
    """The places of a fix, in order."""
    return tuple(Place(found[1], found[2] or "", found[3] or "") for found in _PLACE.finditer(fix))


def plain(fix: str) -> str:
    """A fix as it is told of no run in particular."""
    return filled(fix, lambda _place: "")


def mistakes(fix: str) -> Iterator[str]:
    """What is wrong with the places of a fix."""
    known = {*(knob.partition("=")[0] for knob in KNOBS), BATCHES, CHECKPOINT}
    for place in places(fix):
        shown = f"{{{place.knob}{place.how}{place.value}}}"
        if place.knob not in known:
            yield f"names {shown} in a fix; {place.knob!r} is not a knob{near(place.knob, known)}"
        elif place.knob not in (*KNOBS, BATCHES, CHECKPOINT) and f"{place.knob}{place.how}{place.value}" not in _WORDS:
            able = ", ".join(sorted(word for word in _WORDS if word.startswith(f"{place.knob}=")))
            yield f"names {shown} in a fix; what can be said of it is {able}"
        elif place.knob in KNOBS and place.how and not _is_number(place.value):
            yield f"names {shown} in a fix; a number must follow {place.how!r}"


def _is_number(text: str) -> bool:
    try:
        return float(text) > 0
    except ValueError:
        return False
