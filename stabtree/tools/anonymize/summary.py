"""What is reported about a log without names: what was replaced, and what a person should check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.text import clean, in_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.tools.anonymize.scrub import Scrub

MAX_COLUMNS = 30
MAX_FILES = 8
KINDS = ("e-mail addresses", "URLs", "IP addresses", "paths", "ids", "secrets", "names", "words of texts")


def folder_summary(written: list[str], left: list[str], notes: list[str]) -> Iterator[str]:
    """Yield lines about the files of a folder.

    Args:
        written: the files that were written.
        left: the files that were left out.
        notes: notes on single files.
    """
    yield f"{len(written):,} file{'' if len(written) == 1 else 's'} written: {_listed(written, MAX_FILES)}."
    if left:
        yield f"{len(left):,} left out, which are no logs: {_listed(left, MAX_FILES)}."
    yield from notes


def _listed(names: list[str], limit: int) -> str:
    """Return the first names, and the number of the rest."""
    listed = ", ".join(names[:limit])
    if len(names) > limit:
        return f"{listed} and {len(names) - limit:,} more"
    return listed


def summary(scrub: Scrub, notes: list[str]) -> Iterator[str]:
    """Yield lines about what was replaced and kept.

    Args:
        scrub: what was replaced and kept.
        notes: notes on the file, such as damage; they come first.
    """
    yield from notes
    given = scrub.names.given
    counts = [f"{kind} ({given[kind]:,})" for kind in KINDS if given[kind]]
    if counts:
        yield f"Replaced, each word by the same stand-in throughout: {in_words(counts)}."
    else:
        yield "Nothing was replaced: all its words are common in logs."
    if scrub.names.left:
        yield f"Too many names: {scrub.names.left:,} words share one stand-in."
    if scrub.columns:
        columns = [clean(name, 60) for name in scrub.columns]
        yield f"Kept, as names of columns and keys; check that they may be shared: {_listed(columns, MAX_COLUMNS)}."
        yield "To replace a word in them, use --hide WORD."
    yield f"All {'other ' if scrub.zeroed else ''}numbers were kept{', dates and times too' if scrub.dated else ''}."
    yield "No program can recognise everything that is private: read the result before you send it."
