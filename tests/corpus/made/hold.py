"""What holds a threshold: runs close to it on either side, and what each of them is told."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stabtree.run import Run


@dataclass(frozen=True, slots=True)
class Hold:
    """A threshold and the runs that hold it.

    Attributes:
        threshold: the parameter, as `--set` spells it.
        make: makes a run from one number.
        told: for each number what the run must be told, in words: a leaf, a leaf and a cause that the log bears out,
            the verdict, `restart` or `precursor` and a step, or `no` and one of these that it must not be told.
        literal: whether the document's letter is asked.
    """

    threshold: str
    make: Callable[[float], Run]
    told: Mapping[float, str]
    literal: bool = False


@dataclass(frozen=True, slots=True)
class Pin:
    """One run of a `Hold`."""

    name: str
    make: Callable[[], Run]
    told: str
    literal: bool


def pins(holds: tuple[Hold, ...]) -> Iterator[Pin]:
    """The runs of all holds."""
    for hold in holds:
        for value, told in hold.told.items():
            name = f"{hold.threshold} {value:g} {told}"
            yield Pin(name, partial(hold.make, value), told, hold.literal)
