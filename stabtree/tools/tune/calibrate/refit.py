"""Refit the limit of a question to the strengths of a team's own runs."""

from __future__ import annotations

from dataclasses import field
from itertools import chain
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.common.lazy import np
from stabtree.tools.tune.logistic import best, losses
from stabtree.tree.calibration import calibrations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import Run
    from stabtree.tools.tune.calibrate.faults import Faults
    from stabtree.tools.tune.calibrate.walks import Walks


@dataclass(frozen=True, slots=True)
class Strengths:
    """How strongly a question answered: healthy runs by their index, and the faults that it found.

    Attributes:
        question: the question.
        healthy: the strength of each healthy run that it measured.
        faults: those of known faults.
    """

    question: str = ""
    healthy: Mapping[int, float] = field(default_factory=dict)
    faults: tuple[float, ...] = ()

    def shift(self, without: int | None = None) -> float:
        """Return by how many doublings the limit rises; 0 where the runs don't call for it.

        It is where the likelihood of a fault reaches the level of an alarm, by the runs given and, as far as they are
        few, by the shipped limit and its slope.
        """
        calm = [strength for index, strength in self.healthy.items() if index != without]
        if not calm:
            return 0.0
        known = calibrations()
        strengths = np.array([*calm, *self.faults], np.float64)
        positive = np.array([0.0] * len(calm) + [1.0] * len(self.faults))
        table = losses(strengths, positive, np.ones(len(strengths)), known.alarm)
        return max(0.0, best(table, known.of(self.question).slope).shift)


def strengths_of(walks: Walks, runs: Sequence[tuple[str, Run]], faults: Faults, question: str) -> Strengths:
    """Return how strongly a question answers of healthy runs, and of the faults that it finds."""
    healthy = {index: _strength(walks.plain(run), question) for index, (_, run) in enumerate(runs)}
    found = (_strength(walks.plain(run), question) for run in faults.runs.values())
    return Strengths(
        question,
        {index: strength for index, strength in healthy.items() if strength is not None},
        tuple(strength for strength in found if strength is not None and strength >= 0),
    )


def _strength(diagnosis: Diagnosis, question: str) -> float | None:
    """Return how strongly a question answered; None where it was not asked, or its answer has no degrees."""
    visits = chain(diagnosis.path, *diagnosis.further)
    return next((visit.answer.strength for visit in visits if visit.question.id == question), None)
