"""The names of a run's columns, so that a few words of a long name are found."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct, field

from stabtree.common.text import clean
from stabtree.metrics.table import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stabtree.run import Run

MAX_WORDS = 4  # of the longest name that a sign asks for
MAX_COLUMNS = 2000  # a log of every layer repeats itself
MAX_NAME = 100  # no sign is that long; what is longer holds a message
SHOWN = 3
_WORD = re.compile(r"[a-z0-9]+")


class ColumnNames(Struct, frozen=True):
    """The columns of a run.

    Attributes:
        names: up to `MAX_WORDS` words in a row of each column, joined by `_` -> the first such column, as written.
    """

    names: Mapping[str, str]
    _known: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)

    def first(self, marks: tuple[str, ...]) -> tuple[str, ...]:
        """Return the columns of the first mark all of whose names are there; empty where none is.

        Args:
            marks: names of columns, or parts of them, separated by spaces.
        """
        if marks not in self._known:
            self._known[marks] = next(filter(None, map(self._found, marks)), ())
        return self._known[marks]

    def _found(self, mark: str) -> tuple[str, ...]:
        parts = mark.split()
        if all(part in self.names for part in parts):
            return tuple(self.names[part] for part in parts)
        return ()


def columns_of(run: Run) -> ColumnNames:
    """Return the columns of a run's files, ignored ones too."""
    written = dict.fromkeys(use.name for source in run.sources for use in source.columns)
    # A run that was made of values in memory has series alone.
    return _named(tuple(written or run.series)[:MAX_COLUMNS])


@lru_cache(maxsize=64)
def _named(names: tuple[str, ...]) -> ColumnNames:
    """Return the columns of these names; several rooms ask who one run is, and the runs of a scan are alike."""
    found: dict[str, str] = {}
    for name in names:
        for part in _parts(name):
            found.setdefault(part, name)
    return ColumnNames(found)


def shown(names: Iterable[str]) -> str:
    """Return the names of columns for a line of evidence."""
    kept = list(dict.fromkeys(names))
    return f"column{'s' if len(kept) > 1 else ''} {', '.join(clean(name, 40) for name in kept[:SHOWN])}"


def _parts(name: str) -> set[str]:
    """Return up to `MAX_WORDS` words in a row of a name, with `mAP50` as one word and as several."""
    if len(name) > MAX_NAME:
        return set()
    spellings = (_WORD.findall(name.lower()), words(name))
    return set(chain.from_iterable(map(_runs_of_words, spellings)))


def _runs_of_words(inner: list[str]) -> set[str]:
    spans = ((start, end) for start in range(len(inner)) for end in range(start + 1, start + MAX_WORDS + 1))
    return {"_".join(inner[start:end]) for start, end in spans}
