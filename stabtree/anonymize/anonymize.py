"""A log without names: what is written, and what there is to say of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stabtree.anonymize.formats import TEXTS, format_of, rewriting
from stabtree.anonymize.pack import packed
from stabtree.anonymize.pieces import encoded, texts
from stabtree.anonymize.scalars import scalars
from stabtree.anonymize.scrub import Scrub
from stabtree.common.errors import StabtreeError
from stabtree.loaders.json import manifest
from stabtree.loaders.source import open_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stabtree.loaders.source import Source

SCALARS = ".jsonl"


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A file without its names.

    Attributes:
        format: the loader's name of the file.
        ending: what the new file's name ends in beyond the old one's: nothing but for a file that holds no text.
        packing: its compression, as in `Source.packed`.
        pieces: its bytes, in order, which are made while they are taken.
        notes: what a person should know of them, complete when all are taken.
        scrub: what was replaced and kept.
    """

    format: str
    ending: str
    packing: str
    pieces: Iterator[bytes]
    notes: list[str]
    scrub: Scrub


def anonymized(
    path: str | Path, scrub: Scrub | None = None, *, format_: str | None = None, run: str | None = None
) -> Rewritten:
    """A file without its names, yet to be written.

    Args:
        path: the file; `-` for standard input.
        scrub: what was replaced in other files of the run, so that the same names get the same stand-ins.
        format_: the name of a loader, where the user said so.
        run: the run, of a file without text that holds several.

    Raises:
        StabtreeError: where the file can't be read.
    """
    scrub = scrub or Scrub()
    source = open_source(path)
    found = format_ or format_of(source)
    if found not in TEXTS:
        if source.file is None:
            raise StabtreeError(f"is of the format {found}, which is read from a file", hint="name the file")
        note = (
            f"It holds no text to rewrite ({found}): the series that stabtree reads of it were written as JSON lines."
        )
        return Rewritten(found, SCALARS, "", scalars(str(path), scrub, found, run), [note], scrub)
    notes = [*_named(source, found)]
    return Rewritten(found, "", source.packed, packed(_bytes(source, found, notes, scrub), source.packed), notes, scrub)


def _bytes(source: Source, format_: str, notes: list[str], scrub: Scrub) -> Iterator[bytes]:
    yield source.data[: source.bom]
    rewrite = rewriting(source, format_, scrub)
    for text in texts(source, notes):
        yield encoded(rewrite(text), source)


def _named(source: Source, format_: str) -> Iterator[str]:
    """A word on the files that a manifest names."""
    if format_ == "manifest":
        try:
            files = manifest.parse(source).files
        except StabtreeError:
            return
        if files:
            yield "It names files that hold the metrics: give its folder, to take them along."
