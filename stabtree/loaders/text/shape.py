"""The shape of a line: the line with its numbers masked, and what each number of a shape is."""

from __future__ import annotations

import re
from array import array
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

from stabtree.common.lazy import np
from stabtree.loaders.counters import GARBLED
from stabtree.loaders.tables.cells import number
from stabtree.loaders.text import grammar
from stabtree.loaders.text.grammar import MASK, role

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stabtree.common.lazy import Floats
    from stabtree.metrics.names import Names

MAX_STEP = 2.0**53
# No count of steps is longer.
MAX_DIGITS = 16
NOWHERE = -1
FLUSH_ROWS = 8192
_DIGIT = re.compile("[0-9]")


class Slot(NamedTuple):
    """A named number of a line."""

    name: str  # as the line spells it, with `valid/` in front where the line marks it as evaluated
    place: int  # its index among the numbers of the line; negative where the line holds none, as for a NaN in words
    text: str  # the number in the first line of the shape, or the constant where there is no place
    start: int = 0  # where it begins in that line
    role: str = ""  # what the name means, as `grammar.role` has it
    preference: int = 0  # the index among the names of the role, 0 best
    power: int = 0  # the power of ten that a suffix multiplies the number by: 3 for `1K`
    whole: int = NOWHERE  # the place of the number that it is a part of, as of an accuracy of `9800/10000`
    of: int = NOWHERE  # the place of the number that says how far a counter goes: 600 for the step of `399/600`
    unit: str = ""  # what directly follows the number
    blank: bool = False  # whether a blank alone separates the name from the number
    garbled: bool = False  # whether `text` is a word that can't be read as a number

    def value(self, numbers: Sequence[str]) -> float:
        """Return the number as a float."""
        if self.place >= 0 and not self.power and self.whole < 0:
            text = numbers[self.place]
            return float(text) if text.isdigit() else to_float(text)
        number = to_float(self.text if self.place < 0 else numbers[self.place], self.power)
        return number / (to_float(numbers[self.whole]) or 1) if self.whole >= 0 else number

    def named(self, name: str, names: Names) -> Slot:
        """Return the number by another name, with what that means."""
        kind, preference = role(name, names)
        return self._replace(name=name, role=kind, preference=preference)

    def held_out(self, names: Names) -> Slot:
        """Return the number by the name of the same metric on held-out data."""
        if not self.role and grammar.HELD_OUT.search(self.name):
            return self
        name = f"valid/{self.name}"
        if self.role and not role(name, names).role:
            name = f"valid/{self.role}"
        return self.named(name, names)

    def is_step(self, numbers: Sequence[str]) -> bool:
        """Return whether the number can be a step."""
        text = numbers[self.place]
        if text.isdigit() and len(text) < MAX_DIGITS and not self.unit:
            return True
        value = self.value(numbers)
        counted = self.power or not self.unit or self.unit in grammar.ORDINALS
        return bool(counted and 0 <= value < MAX_STEP and value.is_integer())


class Block(Struct):
    """The rows of the lines of one shape, whose numbers are converted together."""

    slots: tuple[Slot, ...]  # what each column holds
    places: list[int]  # of the numbers that the slots need, as `parts` holds them
    pick: Callable[[Sequence[str]], tuple[str, ...]]  # takes these from the numbers of a line
    step_name: str = ""  # how the lines spell the step
    rows: array[int] = field(default_factory=lambda: array("q"))  # of each line
    lines: array[int] = field(default_factory=lambda: array("q"))  # their numbers
    texts: list[tuple[str, ...]] = field(default_factory=list)  # the numbers as written, not yet converted
    parts: list[Floats] = field(default_factory=list)  # what was converted: (n, numbers)

    @classmethod
    def of(cls, slots: Sequence[Slot], step_name: str) -> Block:
        """Return an empty block of such slots."""
        places = [place for slot in slots for place in (slot.place, slot.whole) if place >= 0]
        if len(places) > 1:
            return cls(tuple(slots), places, itemgetter(*places), step_name)
        return cls(tuple(slots), places, lambda numbers: tuple(numbers[place] for place in places), step_name)

    def add(self, row: int, line: int, numbers: Sequence[str]) -> None:
        """Add the numbers of a line to a row."""
        self.rows.append(row)
        self.lines.append(line)
        self.texts.append(self.pick(numbers))
        if len(self.texts) >= FLUSH_ROWS:
            self.flush()

    def flush(self) -> None:
        """Convert what is waiting, so that a long log need not be kept as text."""
        if self.texts:
            count = len(self.texts)
            size = count * len(self.texts[0])
            try:
                values = np.fromiter(map(float, chain.from_iterable(self.texts)), np.float64, size)
            except ValueError:  # thousands with commas
                values = np.fromiter(map(to_float, chain.from_iterable(self.texts)), np.float64, size)
            self.parts.append(values.reshape(count, -1))
            self.texts.clear()

    def values(self, slot: Slot) -> Floats:
        """Return the values of a slot, float64 (n,)."""
        if slot.place < 0:
            return np.full(len(self.rows), GARBLED if slot.garbled else to_float(slot.text))
        values = self.column(slot.place) * 10.0**slot.power
        if slot.whole >= 0:
            whole = self.column(slot.whole)
            values = values / np.where(whole == 0, 1.0, whole)
        return values

    def column(self, place: int) -> Floats:
        """Return what was converted of the numbers at a place."""
        index = self.places.index(place)
        return np.concatenate([part[:, index] for part in self.parts])


class Template(Struct):
    """What lines of one shape hold."""

    metrics: list[Slot] = field(default_factory=list)  # neither step nor epoch nor rank, of known and unknown names
    loss: Slot | None = None  # the one that is the training loss
    known: bool = False  # whether one of them is a known metric; a label, as the number of a batch, is none
    step: Slot | None = None  # the number that names the step best
    epoch: Slot | None = None
    rank: Slot | None = None
    # The places of (done, total) of a bar or of `[12/391]`; of several the last one before the metrics.
    position: tuple[int, int] | None = None
    bar: str = ""  # `keras`, `tqdm` or empty
    percent: bool = False  # whether the position is given in percent as well
    held: bool = False  # whether it is marked as measured on held-out data
    words: int = 0  # how many belong to no number
    leads: bool = False  # whether the loss and a sign begin the line, whatever it says behind them
    problem: str = ""  # why a line that looks like metrics can't be read
    has_side: bool = False  # whether a name says what it was measured on, as `train_loss`
    counted: bool = False  # whether a number says how far a counter goes
    own: frozenset[str] = frozenset()  # the names of metrics that no row has twice
    names: frozenset[str] = frozenset()  # those of all metrics
    block: Block | None = None  # where its rows go; None before the first one

    @property
    def is_located(self) -> bool:
        """Whether it says where the run is."""
        return bool(self.step or self.epoch or self.position)

    def settle(self, *, kinds: bool) -> None:
        """Settle the names, now that the metrics are settled."""
        self.has_side = any(grammar.SIDE.search(slot.name) for slot in self.metrics)
        self.counted = any(slot and slot.of >= 0 for slot in (self.step, self.epoch))
        self.loss = next((slot for slot in self.metrics if slot.role == "loss"), None)
        self.names = frozenset(slot.name for slot in self.metrics)
        own = (slot.name for slot in self.metrics if slot.role or (kinds and grammar.may_train(slot.name, kinds=True)))
        self.own = frozenset(own)

    def place(self, numbers: Sequence[str]) -> tuple[int, int]:
        """Return how far a bar or a counter has come, and how far it goes."""
        done, total = self.position or (0, 0)
        return to_count(numbers[done]), to_count(numbers[total])

    def total(self, numbers: Sequence[str]) -> int:
        """Return how far the counter of a line goes; 0 where it does not say so."""
        place = NOWHERE
        if self.step:
            place = self.step.of
        elif self.position:
            place = self.position[1]
        return to_count(numbers[place]) if place >= 0 else 0

    def has_digits(self) -> bool:
        """Return whether names hold digits, so that lines of other digits have other names."""
        slots = (*self.metrics, *filter(None, (self.step, self.epoch)))
        names = "".join(slot.name for slot in slots)
        if self.problem or (self.rank and self.rank.place < 0) or not names.isascii():
            return True
        return _DIGIT.search(names) is not None


def to_float(text: str, power: int = 0) -> float:
    """Return a number as written, times a power of ten.

    >>> to_float("1,234.5"), to_float("2e+3"), to_float("1.1", 3)
    (1234.5, 2000.0, 1100.0)
    """
    if "#" in text:  # what C runtimes print for NaN and infinity
        return number(text) or 0.0
    text = text.replace(",", "")
    if power and text[-1:].isdigit() and "e" not in text.lower():
        return float(f"{text}e{power}")
    return float(text)


@lru_cache(maxsize=4096)
def to_count(text: str) -> int:
    """Return a number that counts; 0 where it has a fraction or is too large, as a later line of a shape may print.

    >>> to_count("1,200"), to_count("10.5")
    (1200, 0)
    """
    text = text.replace(",", "")
    return int(text) if text.isdigit() and len(text) < MAX_DIGITS else 0


def split(text: str) -> tuple[str, list[str]]:
    """Return the shape of a text and its numbers."""
    parts = grammar.NUMBER.split(text)
    return MASK.join(parts[::2]), parts[1::2]


def joined(shape: str, numbers: Sequence[str]) -> str:
    """Return the text of a shape with numbers in their places."""
    first, *others = shape.split(MASK)
    return first + "".join(number + part for number, part in zip(numbers, others, strict=False))
