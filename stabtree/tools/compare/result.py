"""The result of a comparison of runs, in plain values."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import ConfigScalar, Run


_PARTING = ("metric", "step", "place", "how", "good", "bad", "last_alike", "noises", "over_rows")


class Axis(StrEnum):
    """The axis that the rows of two runs are matched on."""

    STEP = "step"
    TOKENS = "tokens"
    TIME = "time"


class Parted(StrEnum):
    """The verdict of a comparison."""

    YES = "part"
    NO = "same"
    UNKNOWN = "unknown"


class Method(StrEnum):
    """What counted as noise."""

    SEED = "same seed"  # the rows are equal to the last digit, until they are not
    HISTORY = "one good run"  # noise is what the differences were before
    ENVELOPE = "several good runs"  # noise is what the good runs differ by
    NONE = ""


class DigitsApart(StrEnum):
    """Why the digits of two runs differ from the start."""

    NO = "no"  # they are of one seed
    SEED = "seed"  # their settings say so
    PRECISION = "precision"  # likewise
    ROUNDING = "rounding"  # their first rows are equal but for rounding
    UNKNOWN = ""


class Parting(Struct, frozen=True):
    """The point at which one series of the bad run leaves the good ones.

    Attributes:
        metric: the series.
        step: the first step of the bad run at which it differs.
        place: its position on the axis that the runs are matched by.
        how: `differs`, `jumps`, `shifts`, `not finite` or `stops`.
        good: the value of the first good run there; None if it is not finite.
        bad: the value of the bad run; None if it is not finite or missing.
        last_alike: the last step before at which the two were alike; None if there is none.
        noises: the difference in multiples of the usual noise; None if that is unknown.
        over_rows: over how many rows the difference was averaged.
    """

    metric: str
    step: int
    place: float
    how: str
    good: float | None
    bad: float | None
    last_alike: int | None = None
    noises: float | None = None
    over_rows: int = 1


class Unlike(Struct, frozen=True):
    """A setting in which the runs differ.

    Attributes:
        key: its name.
        good: the values of the good runs, each once; empty if none of them states it.
        bad: the value of the bad run; None if it does not state it.
    """

    key: str
    good: tuple[ConfigScalar, ...]
    bad: ConfigScalar | None


class Comparison(Struct, frozen=True):
    """The differences between the bad run and the good ones.

    Attributes:
        good: the good runs.
        bad: the bad run.
        names: what the runs are called, the bad one last.
        by: what the rows were matched by.
        method: what counted as noise.
        digits_apart: why not every printed digit counts, with another method than the same seed.
        parted: whether they part.
        reason: why that is unknown, if it is.
        partings: the series that part, first to last.
        compared: the series that were compared.
        left_out: common series that can't be compared, each with the reason.
        rows: the number of positions that the runs have in common.
        first_step: the first of them, in steps of the bad run; None if there is none.
        last_step: the last one.
        chance: the probability that healthy runs are reported to part; 0 if every difference counts.
        settings: the settings that differ.
        diagnoses: the diagnosis of each run, in the order of `names`; empty if none was asked for.
        notes: further notes.
    """

    good: tuple[Run, ...]
    bad: Run
    names: tuple[str, ...]
    by: Axis = Axis.STEP
    method: Method = Method.NONE
    digits_apart: DigitsApart = DigitsApart.UNKNOWN
    parted: Parted = Parted.UNKNOWN
    reason: str = ""
    partings: tuple[Parting, ...] = ()
    compared: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    rows: int = 0
    first_step: int | None = None
    last_step: int | None = None
    chance: float = 0.0
    settings: tuple[Unlike, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def first(self) -> Parting | None:
        """The first parting; None if there is none."""
        return self.partings[0] if self.partings else None

    def __repr__(self) -> str:
        where = f", {self.first.metric} at {self.first.step:,}" if self.first else ""
        return f"Comparison({self.names[-1]!r}: {self.parted}{where})"

    def _repr_html_(self) -> str:
        """Return the page of `--output html` in a frame of its own, as a notebook shows it."""
        from stabtree.report.html import framed
        from stabtree.report.outputs import COMPARISON, HTML, output

        return framed(output(COMPARISON, HTML)(self))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as `stabtree compare --json` prints them."""
        return {
            "schema": 1,
            "verdict": self.parted.value,
            "reason": self.reason,
            "good": list(self.names[:-1]),
            "bad": self.names[-1],
            "by": self.by.value,
            "method": self.method.value,
            "chance": self.chance,
            "rows": self.rows,
            "first_step": self.first_step,
            "last_step": self.last_step,
            "partings": [{name: _plain(getattr(item, name)) for name in _PARTING} for item in self.partings],
            "compared": list(self.compared),
            "left_out": [{"metric": metric, "why": why} for metric, why in self.left_out],
            "settings": [
                {"key": item.key, "good": [*map(_plain, item.good)], "bad": _plain(item.bad)} for item in self.settings
            ],
            "findings": [
                {
                    "run": name,
                    "verdict": str(one.verdict),
                    "findings": [{"id": item.leaf.id, "onset_step": item.onset_step} for item in one.findings],
                }
                for name, one in zip(self.names, self.diagnoses, strict=False)
            ],
            "notes": list(self.notes),
        }


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
