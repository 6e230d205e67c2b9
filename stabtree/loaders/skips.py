"""The lines of a file that could not be read: counted all, named the first ones."""

from __future__ import annotations

from dataclasses import dataclass, field

from stabtree.run import Skipped

KEEP = 20


@dataclass(slots=True)
class Skips:
    """Collects skipped lines while a file is read.

    Attributes:
        first: the first lines that were skipped.
        count: how many there were.
        short: rows that were read although they have too few fields.
    """

    first: list[Skipped] = field(default_factory=list)
    count: int = 0
    short: int = 0

    def add(self, line: int, reason: str) -> None:
        """Count a line, and remember it if it is among the first."""
        self.count += 1
        if len(self.first) < KEEP:
            self.first.append(Skipped(line, reason))
