"""What a known metric is: its names, its unit, how to log it."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - read when a file is converted
from enum import StrEnum
from typing import Literal

from msgspec import Struct

from stabtree.common.yaml12 import Words


class Role(StrEnum):
    """What a column holds, in the words that `inspect` prints."""

    LOSS = "loss"
    HELD_OUT_LOSS = "held-out loss"
    PART = "part of a loss"
    REWARD = "reward"
    QUALITY = "quality"
    GRADIENT = "gradient"
    NORM = "norm"
    RATE = "rate"
    SCALE = "scale"
    VALUE = "value"
    POLICY = "policy"
    ENTROPY = "entropy"
    COUNTER = "counter"
    CLOCK = "clock"  # time, speed and memory
    SETTING = "setting"
    LABEL = "label"
    OTHER = "other"


class Metric(Struct, frozen=True, forbid_unknown_fields=True):
    """A known series, as `metrics.yaml` describes it.

    Attributes:
        name: the canonical name; a measure's positional parameter of this name asks for it.
        meaning: what the series holds, with its unit.
        aliases: names seen in real logs, best first; the canonical name comes before them unless it is
            listed among them.
        role: what it holds, where the words of its names don't say that already.
        better: `lower`, `higher`, or nothing where it may go either way.
        alone: aliases that carry the metric only when the whole column is called so.
        grouped: whether `name/<group>` (per parameter group or layer) is a series of its own.
        flag: whether its cells may be true or false.
        log: how to log it, shown to the user if a question could not be answered without it.
    """

    name: str
    meaning: str
    log: str
    aliases: Words = Words()
    role: Role = Role.OTHER
    better: Literal["", "lower", "higher"] = ""
    alone: Words = Words()
    grouped: bool = False
    flag: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """All names, best first: the canonical one leads unless the aliases give it another place."""
        return self.aliases if self.name in self.aliases else (self.name, *self.aliases)


class MetricTable(Struct, frozen=True):
    """What `metrics.yaml` holds.

    Attributes:
        metrics: the known metrics.
        axes: the names of columns that say which row it is, best first, by `step`, `epoch`, `rank`, `run` and `phase`.
    """

    metrics: tuple[Metric, ...]
    axes: Mapping[Literal["run", "rank", "phase", "epoch", "step"], Words]


def names(words: str) -> tuple[str, ...]:
    """Return the names in a line of text."""
    return tuple(words.split())
