"""One line of a text log as pairs of name and number."""

from __future__ import annotations

from msgspec import Struct, field

MAX_STEP = 2.0**53


class Pair(Struct, frozen=True):
    """A name and its number.

    Attributes:
        name: as the line spells it, with `valid/` in front where the line marks it as evaluated.
        text: the number as written.
        start: where the number begins in the line, for learning the line's form; -1 if unknown.
        role: what the name means, as `grammar.role` has it.
        preference: the index among the names of the role, 0 best.
        power: the power of ten that a suffix multiplies the number by: 3 for `1K`.
        total: what the number is a part of: 10000 for an accuracy of `9800/10000`; 0 for any other.
        of: how far a counter goes: 600 for the step of `399/600`; 0 where that is not said.
        unit: what directly follows the number.
        blank: whether a blank alone separates the name from the number.
    """

    name: str
    text: str
    start: int = -1
    role: str = ""
    preference: int = 0
    power: int = 0
    total: int = 0
    unit: str = ""
    blank: bool = False
    of: int = 0

    @property
    def value(self) -> float:
        """The number as a float."""
        return to_float(self.text, self.power) / (self.total or 1)

    @property
    def rounded_to(self) -> float:
        """What a number with a suffix was rounded to: 1000 for `2K`, 100 for `2.1K`; 0 for any other."""
        if not self.power:
            return 0.0
        return 10.0 ** (self.power - len(self.text.partition(".")[2]))


class Line(Struct):
    """What one line holds.

    Attributes:
        metrics: pairs that are neither step nor epoch nor rank, known and unknown ones.
        known: whether one of them is a known metric; a label, as the number of a batch, is none.
        step: the pair that names the step best.
        epoch: the pair that names the epoch.
        rank: the pair, or prefix, that names the rank.
        position: (done, total) of a progress bar or of `[12/391]`; of several the last one before the metrics.
        bar: `keras`, `tqdm` or empty.
        percent: whether the position is given in percent as well.
        held: whether it is marked as measured on held-out data.
        words: the number of words that belong to no pair.
        problem: why a line that looks like metrics can't be read.
    """

    metrics: list[Pair] = field(default_factory=list)
    known: bool = False
    step: Pair | None = None
    epoch: Pair | None = None
    rank: Pair | None = None
    position: tuple[int, int] | None = None
    bar: str = ""
    percent: bool = False
    held: bool = False
    words: int = 0
    problem: str = ""

    @property
    def loss(self) -> Pair | None:
        """The pair that holds the training loss."""
        return next((pair for pair in self.metrics if pair.role == "loss"), None)

    @property
    def is_located(self) -> bool:
        """Whether it says where the run is."""
        return bool(self.step or self.epoch or self.position)

    @property
    def location(self) -> tuple[float | None, float | None, float | None]:
        """Rank, step and epoch as numbers, None for each that the line does not name."""
        return (
            self.rank.value if self.rank else None,
            self.step.value if self.step else None,
            self.epoch.value if self.epoch else None,
        )


def to_float(text: str, power: int = 0) -> float:
    """Return the number of a pair, times a power of ten.

    >>> to_float("1,234.5"), to_float("2e+3"), to_float("1.1", 3)
    (1234.5, 2000.0, 1100.0)
    """
    if power and text[-1:].isdigit() and "e" not in text.lower():
        return float(f"{text.replace(',', '')}e{power}")
    return float(text.replace(",", ""))
