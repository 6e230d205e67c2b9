"""The placeholders of a fix: `{lr/2}` becomes the learning rate of the run with its value, and half of it.

`{KNOB}` names a knob in the framework's spelling, `{KNOB/2}` and `{KNOB*2}` change it by a factor, `{KNOB=VALUE}` sets
it, `{KNOB<VALUE}` lowers it to at most a value; `{batches}` are those of the onset. Each follows words that say the
same without a number, and is shown in parentheses: what is not known is left out. `{checkpoint}` shows nothing: a fix
with it is advised only if a checkpoint is older than the trouble.

`{=CLUE}` inserts what a clue worked out, without parentheses; the fix is left out where the log can't show the clue. A
fix may begin with tags, which are not shown: `{for task: a, b}` and `{not for task: a}` say which runs it is for, as
the `holds` of a cause does; `{when CLUE: > 20}` and `{unless CLUE: yes}` ask a clue. `for` and `when` need to be known
to hold, `not for` and `unless` not to.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.text import near

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BATCHES = "batches"
CHECKPOINT = "checkpoint"
_TAG = re.compile(r"\{(for|not for|when|unless) (\w+): ?([^{}]*)\}\s*")
_CLUE = re.compile(r"\{=(\w+)\}")
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


class Tag(NamedTuple):
    """What a fix needs of a run.

    Attributes:
        word: `for`, `not for`, `when` or `unless`.
        name: a circumstance, or the clue.
        text: the words of the circumstance, or the condition on the clue.
    """

    word: str
    name: str
    text: str


def tags(fix: str) -> tuple[Tag, ...]:
    """Return the tags of a fix, in order."""
    return tuple(Tag(*found.groups()) for found in _TAG.finditer(fix))


def untagged(fix: str) -> str:
    """Return a fix without its tags."""
    return _TAG.sub("", fix)


def clues_of(fix: str) -> tuple[str, ...]:
    """Return the clues that a fix inserts, in order."""
    return tuple(_CLUE.findall(fix))


def insert(fix: str, known: Callable[[str], str]) -> str:
    """Replace each clue that a fix inserts by what it shows."""
    return _CLUE.sub(lambda found: known(found[1]), fix)


def fill(fix: str, describe: Callable[[Placeholder], str]) -> str:
    """Replace each placeholder of a fix by its description in parentheses; an empty description is left out."""

    def described(found: re.Match[str]) -> str:
        text = describe(Placeholder(*found.groups("")))
        return f" ({text})" if text else ""

    return _PLACEHOLDER.sub(described, fix)


def placeholders(fix: str) -> tuple[Placeholder, ...]:
    """Return the placeholders of a fix, in order."""
    return tuple(Placeholder(*found.groups("")) for found in _PLACEHOLDER.finditer(fix))


def plain(fix: str) -> str:
    """Return a fix without its placeholders, as it reads for any run."""
    return insert(fill(untagged(fix), lambda _: ""), lambda _: "…")


def mistakes(fix: str) -> Iterator[str]:
    """Yield what is wrong with the placeholders and the tags of a fix."""
    yield from _tag_mistakes(fix)
    for item in placeholders(fix):
        text = f"{item.knob}{item.operator}{item.value}"
        if problem := _problem(item, text):
            yield f"names {{{text}}} in a fix; {problem}"


def _problem(item: Placeholder, text: str) -> str:
    """Return what is wrong with a placeholder, which is spelled so; empty if nothing is."""
    from stabtree.frameworks.load import knobs

    spelled = knobs()
    known = {*(knob.partition("=")[0] for knob in spelled), BATCHES, CHECKPOINT}
    choices = sorted(word for word in spelled if word.startswith(f"{item.knob}="))  # with the one value each is for
    if item.knob not in known:
        return f"{item.knob!r} is not a knob{near(item.knob, known)}"
    if item.knob not in (*spelled, BATCHES, CHECKPOINT) and text not in choices:
        return f"what can be said of it is {', '.join(choices)}"
    if item.knob in spelled and item.operator and not _is_positive(item.value):
        return f"a number must follow {item.operator!r}"
    return ""


def _tag_mistakes(fix: str) -> Iterator[str]:
    """Yield what is wrong with what a fix needs."""
    from stabtree.measures.clues import CLUES

    for name in clues_of(fix):
        if name not in CLUES:
            yield f"inserts {{={name}}} in a fix; there is no such clue{near(name, CLUES)}"
    for tag in tags(fix):
        if tag.word in ("for", "not for"):
            yield from circumstance_mistakes(tag.name, words_of(tag.text))
        else:
            yield from clue_mistakes(tag.name, tag.text)


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a tag."""
    return tuple(filter(None, (word.strip() for word in text.split(","))))


def circumstance_mistakes(key: str, words: tuple[str, ...]) -> Iterator[str]:
    """Yield the mistakes in which runs something is for."""
    from stabtree.context.find import known_words

    known = known_words()
    if key not in known:
        yield f"holds for {key!r}, which is not a circumstance{near(key, known)}; those are {', '.join(known)}"
        return
    for word in words:
        if word not in known[key]:
            yield f"holds for {key} {word!r}{near(word, known[key])}; known are {', '.join(known[key])}"
    if not words:
        yield f"holds for no {key} at all"


def clue_mistakes(name: str, text: str) -> Iterator[str]:
    """Yield the mistakes in a condition on a clue."""
    from stabtree.measures.clues import CLUES, condition

    if name not in CLUES:
        yield f"asks the clue {name!r}, which does not exist{near(name, CLUES)}"
    try:
        condition(text)
    except ValueError as error:
        yield f"asks the clue {name}: {error}"


def _is_positive(text: str) -> bool:
    try:
        return float(text) > 0
    except ValueError:
        return False
