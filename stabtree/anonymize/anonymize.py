"""A log without names: what is written, and what there is to say of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stabtree.anonymize.formats import TEXTS, format_of, rewriting
from stabtree.anonymize.pieces import encoded, texts
from stabtree.anonymize.scrub import Scrub
from stabtree.common.errors import StabtreeError
from stabtree.loaders.source import open_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stabtree.loaders.source import Source


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A source without its names.

    Attributes:
        source: what was read.
        format: the loader's name of it.
        notes: what was damaged, complete when the bytes are.
        scrub: what was replaced and kept.
    """

    source: Source
    format: str
    notes: list[str]
    scrub: Scrub

    def bytes(self) -> Iterator[bytes]:
        """The bytes of the new file, decompressed, in order."""
        if self.source.bom:
            yield self.source.data[: self.source.bom]
        rewrite = rewriting(self.source, self.format, self.scrub)
        for text in texts(self.source, self.notes):
            yield encoded(rewrite(text), self.source)


def anonymized(path: str | Path, scrub: Scrub | None = None, format_: str | None = None) -> Rewritten:
    """A file without its names, yet to be written.

    Args:
        path: the file; `-` for standard input.
        scrub: what was replaced in other files of the run, so that the same names get the same stand-ins.
        format_: the name of a loader, where the user said so.

    Raises:
        StabtreeError: where the file can't be read, or holds no text.
    """
    source = open_source(path)
    found = format_ or format_of(source)
    if found not in TEXTS:
        raise StabtreeError(
            f"is of the format {found}, of which there is no text to rewrite",
            where=source.path,
            hint="export it as CSV",
        )
    return Rewritten(source, found, [], scrub or Scrub())
