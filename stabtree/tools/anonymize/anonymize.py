"""A log without names: its bytes, and notes on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.loaders.json import manifest
from stabtree.loaders.source import open_source
from stabtree.tools.anonymize.formats import TEXTS, format_of, rewriting
from stabtree.tools.anonymize.pack import packed
from stabtree.tools.anonymize.pieces import encoded, texts
from stabtree.tools.anonymize.scalars import scalars
from stabtree.tools.anonymize.scrub import Scrub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stabtree.loaders.source import Source

SCALARS = ".jsonl"


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A file without its names.

    Attributes:
        format: the name of the file's loader.
        suffix: what to append to the file's name: empty unless the file holds no text.
        packing: its compression, as in `Source.packed`.
        pieces: its bytes, in order, made while they are consumed.
        notes: notes for a person, complete once all pieces are consumed.
        scrub: what was replaced and kept.
    """

    format: str
    suffix: str
    packing: str
    pieces: Iterator[bytes]
    notes: list[str]
    scrub: Scrub


def anonymized(
    path: str | Path, scrub: Scrub | None = None, *, format_: str | None = None, run: str | None = None
) -> Rewritten:
    """Take the names out of a file; nothing is written yet.

    Args:
        path: the file; `-` for standard input.
        scrub: what was replaced in other files of the run, so that the same names get the same stand-ins.
        format_: the name of a loader, if the user gave one.
        run: the run, if a file without text holds several.

    Raises:
        StabtreeError: if the file can't be read.
    """
    scrub = scrub or Scrub()
    source = open_source(path)
    found = format_ or format_of(source)
    if found in TEXTS:
        notes = list(_notes(source, found))
        pieces = packed(_bytes(source, found, notes, scrub), source.packed)
        return Rewritten(found, "", source.packed, pieces, notes, scrub)
    if source.file is None:
        raise StabtreeError(f"is of the format {found}, which is read from a file", hint="name the file")
    note = f"It holds no text to rewrite ({found}): the series that stabtree reads from it were written as JSON lines."
    return Rewritten(found, SCALARS, "", scalars(str(path), scrub, found, run), [note], scrub)


def _bytes(source: Source, format_: str, notes: list[str], scrub: Scrub) -> Iterator[bytes]:
    yield source.data[: source.bom]
    rewrite = rewriting(source, format_, scrub)
    for text in texts(source, notes):
        yield encoded(rewrite(text), source)


def _notes(source: Source, format_: str) -> Iterator[str]:
    """Yield a note if a manifest names files, which are not rewritten with it."""
    if format_ == "manifest":
        try:
            files = manifest.parse(source).files
        except StabtreeError:
            return
        if files:
            yield "It names files that hold the metrics: give its folder to include them."
