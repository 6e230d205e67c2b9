"""What a known metric is: its names, its unit, how to log it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """A known series, as `metrics.yaml` describes it.

    Attributes:
        name: the canonical name; a predicate's positional parameter of this name asks for it.
        meaning: what the series holds, with its unit.
        aliases: names seen in real logs, best first; the canonical name comes before them unless it is
            listed among them.
        role: `objective`, `outcome`, `time`, `label` or nothing.
        better: `lower`, `higher`, or nothing where it may go either way.
        alone: aliases that carry the metric only when the whole column is called so.
        grouped: whether `name/<group>` (per parameter group or layer) is a series of its own.
        flag: whether its cells may be true or false.
        log: how to log it, shown to the user if a question could not be answered without it.
    """

    name: str
    meaning: str
    aliases: tuple[str, ...] = ()
    role: str = ""
    better: str = ""
    alone: tuple[str, ...] = ()
    grouped: bool = False
    flag: bool = False
    log: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """All names, best first: the canonical one leads unless the aliases give it another place."""
        if self.name in self.aliases:
            return self.aliases
        return (self.name, *self.aliases)


def names(words: str) -> tuple[str, ...]:
    """Return the names in a line of text."""
    return tuple(words.split())
