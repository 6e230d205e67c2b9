"""Which command typed words mean: `stabtree run.csv` diagnoses, `stabtree help tree` is `stabtree tree --help`."""

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
ASK = "_complete"  # what a shell asks at each Tab
PATTERN = "*?["


def routed(words: Sequence[str], commands: Collection[str]) -> list[str]:
    """The words with the command that they mean in front.

    A command goes before a file of its name. Words that begin with a path, or with an option that is not the
    program's own, are of `diagnose`.

    Args:
        words: what stands after the program's name.
        commands: the names of the commands.

    Raises:
        StabtreeError: for a first word that is neither a command nor a path.
    """
    if not words or words[0] in commands or words[0] in ROOT_OPTIONS:
        return list(words)
    first = words[0]
    if first == "help":
        return [*words[1:], "--help"] if not words[1:] or words[1] in commands else routed(words[1:], commands)
    if (first.startswith("-") and first != STDIN) or _is_path(first):
        return [USUAL, *words]
    close = near(first, commands)
    hint = "`stabtree help` lists the commands; a log is diagnosed by `stabtree PATH`"
    if close:
        hint = f"type `stabtree {close.split(chr(39))[1]}`, or `stabtree help` for all commands"
    raise StabtreeError(f"no such command {clean(first, 60)!r}{close}", hint=hint)


def _is_path(word: str) -> bool:
    """Whether a word names something that exists, or looks as only a path or an address does."""
    if word == STDIN or any(char in word for char in ("/", os.sep, ".", *PATTERN)):
        return True
    try:
        return os.path.lexists(word)
    except ValueError:  # a NUL in it
        return False
