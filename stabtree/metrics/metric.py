"""What a known metric is: its names, its unit, how to log it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """A known series.

    Attributes:
        name: the canonical name; a predicate's positional parameter of this name asks for it.
        meaning: what the series holds, with its unit.
        aliases: names seen in real logs, best first; the canonical name stands before them unless it is
            given a place among them.
        grouped: whether `name/<group>` (per parameter group or layer) is a series of its own.
        log: how to log it, told to the user where a question could not be answered without it.
    """

    name: str
    meaning: str
    aliases: tuple[str, ...] = ()
    grouped: bool = False
    log: str = ""


def names(words: str) -> tuple[str, ...]:
    """The names in a line of text."""
    return tuple(words.split())


def trained(words: str) -> tuple[str, ...]:
    """The names, then each as trackers show it with the trainer's `train/` before it."""
    found = names(words)
    return (*found, *(f"train_{name}" for name in found))
