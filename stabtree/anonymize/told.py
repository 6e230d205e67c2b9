"""What to say of a log without names: what was replaced, and what a person should look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.text import clean, in_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.anonymize.scrub import Scrub

# Names of columns that are listed; the rest is counted.
LISTED = 30
KINDS = ("e-mail addresses", "URLs", "IP addresses", "paths", "ids", "secrets", "names", "words of texts")
SHOWN = 8  # files that are listed


def told_of_folder(written: list[str], left: list[str], notes: list[str]) -> Iterator[str]:
    """Lines on the files of a folder.

    Args:
        written: those that were written.
        left: those that were not.
        notes: on single ones.
    """
    yield f"{len(written):,} file{'' if len(written) == 1 else 's'} written: {_listed(written)}."
    if left:
        yield f"{len(left):,} left out, which are no logs: {_listed(left)}."
    yield from notes


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def told(scrub: Scrub, notes: list[str]) -> Iterator[str]:
    """Lines for a person, in order.

    Args:
        scrub: what was replaced and kept.
        notes: what was damaged in the file.
    """
    yield from notes
    given = scrub.names.given
    counts = [f"{kind} ({given[kind]:,})" for kind in KINDS if given[kind]]
    if counts:
        yield f"Replaced, each word by the same stand-in throughout: {in_words(counts)}."
    else:
        yield "Nothing was replaced: every word of it is a common one of logs."
    if scrub.names.left:
        yield f"More names than can be told apart: {scrub.names.left:,} words share one stand-in."
    if scrub.columns:
        shown = ", ".join(clean(name, 60) for name in [*scrub.columns][:LISTED])
        more = f" and {len(scrub.columns) - LISTED:,} more" if len(scrub.columns) > LISTED else ""
        yield f"Kept, as names of columns and keys; look whether they may be seen: {shown}{more}."
        yield "What of them may not be seen goes with --hide WORD."
    yield f"All {'other ' if scrub.zeroed else ''}numbers were kept{', dates and times too' if scrub.dated else ''}."
    yield "No program knows all that is private: read the result before you send it."
