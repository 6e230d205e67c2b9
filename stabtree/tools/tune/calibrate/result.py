"""What calibrating found: data only. `render.calibrate` turns it into text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass

if TYPE_CHECKING:
    from stabtree.tools.tune.calibrate.knobs import Tunable
    from stabtree.tools.tune.calibrate.share import Share

BROKEN = "looks broken"
"""How the reason begins for leaving out a run that a person may vouch for."""


@dataclass(frozen=True, slots=True)
class Change:
    """A threshold that is to be set.

    Attributes:
        knob: the threshold.
        value: what it is to be: `needed` and the margin, rounded away from what is in force.
        needed: the value nearest to the one in force at which none of the runs alarms.
        margin: the share of `needed` that is added for runs to come: by how much a run is above all others on
            average over the runs, which leaving out one after the other shows.
        extreme: the run that needs the most.
        seen: what its evidence says.
        runs: the runs that alarm without the change.
        leaves: the findings that the change silences.
    """

    knob: Tunable
    value: float
    needed: float
    margin: float
    extreme: str
    seen: str
    runs: tuple[str, ...]
    leaves: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Left:
    """A finding that no number is set for.

    Attributes:
        leaf: the finding.
        runs: the runs that have it.
        never: whether it must not be calibrated away: it reports NaN or of a divergence.
        missed: labelled faults that nothing would report if it were ignored.
    """

    leaf: str
    runs: tuple[str, ...]
    never: bool
    missed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Miss:
    """A labelled fault that would not alarm any more.

    Attributes:
        name: the fault.
        leaf: the finding that reports it now.
        question: the question that this finding comes from.
        before: its verdict now.
        after: its verdict then.
    """

    name: str
    leaf: str
    question: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was found.

    Attributes:
        runs: the healthy runs that it rests on.
        excluded: runs that do not count, each with the reason.
        alarmed: how many of the runs alarm now, and of how many.
        expected: how many alarm with what the other runs alone would have set: what to expect of runs to come.
        changes: what is to be set.
        left: findings that no number is set for.
        faults: how many labelled faults there are.
        caught: how many of them alarm now.
        missed: those that alarm now and would not any more.
    """

    runs: tuple[str, ...]
    excluded: tuple[tuple[str, str], ...]
    alarmed: Share
    expected: Share
    changes: tuple[Change, ...]
    left: tuple[Left, ...]
    faults: int
    caught: int
    missed: tuple[Miss, ...]

    @property
    def broken(self) -> bool:
        """Whether runs are left out that a person may vouch for."""
        return any(reason.startswith(BROKEN) for _, reason in self.excluded)

    @property
    def settings(self) -> dict[str, float]:
        """What is to be set, by the keys of a project's `set`."""
        return {change.knob.key: typed(change.knob, change.value) for change in self.changes}


def typed(knob: Tunable, value: float) -> float:
    """Return a value as its threshold's type has it."""
    if knob.whole:
        return round(value)
    return value
