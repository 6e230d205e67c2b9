"""What speaks for and against a cause, in words: what its clues are, and who usually has it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stabtree.common.text import docstring, in_words
from stabtree.predicates import predicate_named
from stabtree.tree.fixes import insert, plain, tags

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.tree.document import Cause

# How the docstring of a clue begins -> how a sentence goes on with it.
_VERBS = {"Return ": "", "Count ": "the number of ", "Say ": "", "Measure ": "", "Find ": "", "Compare ": "how "}
_COMPARED = re.compile(r"(>=|<=|>|<|=)\s*(.+)")
_SIGNS = {">": "above", ">=": "at least", "<": "below", "<=": "at most", "=": "exactly"}
# What only the log of a run can fill, and a sentence can do without.
_UNREAD = re.compile(r"\s*\(\{=\w+\}\)|: \{=\w+\}(?=[.;,]|$)")
FEW = 3  # clues that are named where a cause has no test
_ARTICLES = re.compile(r"^the number of the ")


def clue_in_words(name: str) -> str:
    """Return what a clue looks at, from the first line of its docstring."""
    from stabtree.predicates.clues import CLUES

    item = CLUES.get(name)
    about = docstring(item.func).partition("\n")[0].rstrip(".") if item else ""
    for verb, words in _VERBS.items():
        if about.startswith(verb):
            return _ARTICLES.sub("the number of ", words + about.removeprefix(verb))
    return about or name.replace("_", " ")


def condition_in_words(text: str) -> str:
    """Return the condition on a clue in words.

    >>> condition_in_words("> 20"), condition_in_words("fp16, bf16")
    ('above 20', 'fp16 or bf16')
    """
    found = _COMPARED.fullmatch(text.strip())
    if found:
        return f"{_SIGNS[found[1]]} {found[2]}"
    return " or ".join(word.strip() for word in text.split(","))


def tested_by(cause: Cause) -> str:
    """Return what looks for a cause in a log."""
    predicate = predicate_named(cause.test)
    if predicate:
        return predicate.question
    clues = dict.fromkeys(map(clue_in_words, (*(item.clue for item in cause.expects), *cause.refuted_by)))
    return "; ".join(list(clues)[:FEW]) or "nothing: no log shows it"


def evidence_of(cause: Cause) -> Iterator[tuple[str, str]]:
    """Yield what decides whether a cause holds, each with what it is."""
    for item in cause.expects:
        what = f"{clue_in_words(item.clue)}: {condition_in_words(item.when)}"
        yield "speaks for it", f"{what} ({item.weight:g} times likelier; {item.source})"
    for name, when in cause.refuted_by.items():
        yield "rules it out", f"{clue_in_words(name)}: {condition_in_words(when)}"
    for how, runs in cause.usual.items():
        yield how, in_words(["any run" if word == "any" else word for word in runs])
    if cause.ask:
        yield "ask", plain(cause.ask)


def fix_in_words(fix: str) -> str:
    """Return a fix as it reads for any run, with the runs that it is for.

    >>> fix_in_words("{for task: gan}Lower the rate of the discriminator.")
    'For gan: Lower the rate of the discriminator.'
    >>> fix_in_words("Train less: {=epochs}. Stop at {=best_step} ({=best_eval}).")
    'Train less. Stop at [best step].'
    """
    runs = [f"{tag.word} {' or '.join(tag.text.split(', '))}" for tag in tags(fix) if tag.word in ("for", "not for")]
    text = plain(insert(_UNREAD.sub("", fix), lambda clue: f"[{clue.replace('_', ' ')}]"))
    if not runs:
        return text
    who = ", ".join(runs)
    return f"{who[0].upper()}{who[1:]}: {text}"
