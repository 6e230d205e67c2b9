"""The command that typed words mean: `stabtree run.csv` diagnoses, `stabtree help tree` is `stabtree tree --help`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean, near

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

USUAL = "diagnose"
HELP = ("-h", "--help")
ROOT_OPTIONS = (*HELP, "-V", "--version")
STDIN = "-"
ASK = "_complete"  # the command that a shell runs at each Tab
PATTERN = "*?["


def routed(words: Sequence[str], commands: Collection[str]) -> list[str]:
    """Return the words with the command they mean in front.

    A command wins over a file of its name. Words that begin with a path, or with an option that is not the
    program's own, are for `diagnose`.

    Args:
        words: what is typed after the program's name.
        commands: the names of the commands.

    Raises:
        StabtreeError: where the first word is neither a command nor a path.
    """
    if not words or words[0] in commands or words[0] in ROOT_OPTIONS:
        return list(words)
    first = words[0]
    if first == "help":
        if not words[1:] or words[1] in commands:
            return [*words[1:], "--help"]
        return routed(words[1:], commands)
    if (first.startswith("-") and first != STDIN) or _is_path(first):
        return [USUAL, *words]
    raise _unknown(first, commands)


def _unknown(word: str, commands: Collection[str]) -> StabtreeError:
    """Return the error for a word that is neither a command nor a path."""
    close = near(word, commands)
    hint = "`stabtree help` lists the commands; `stabtree PATH` diagnoses a log"
    if close:
        hint = f"type `stabtree {close.split(chr(39))[1]}`, or `stabtree help` for all commands"
    return StabtreeError(f"no such command {clean(word, 60)!r}{close}", hint=hint)


def _is_path(word: str) -> bool:
    """Return whether a word names something that exists, or looks like a path or an address."""
    if word == STDIN or any(char in word for char in ("/", os.sep, ".", *PATTERN)):
        return True
    try:
        return os.path.lexists(word)
    except ValueError:  # a NUL in it
        return False
