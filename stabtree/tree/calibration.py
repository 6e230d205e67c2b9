"""The fitted limits of questions, and how likely an engineer calls a run faulty at a given strength.

`make fit` writes `trees/calibration.yaml`. A limit is the value of a question's own parameter at which that likelihood
reaches the level of an alarm, so a strength of 0 is an alarm, and below it the fitted slope decides how fast it falls.
"""

from __future__ import annotations

import math
from collections.abc import Mapping  # noqa: TC003 - read when a file is converted
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.yaml12 import read, typed
from stabtree.tree.model import Param  # noqa: TC001 - read when a file is converted
from stabtree.tree.shipped import calibration_file

if TYPE_CHECKING:
    from stabtree.tree.model import Tree


class Fit(Struct, frozen=True):
    """What was fitted for one question.

    Attributes:
        slope: how much the log-odds of a fault grow with each doubling of what was measured.
        family: the family whose slope it shares; empty where it has its own.
        limit: the fitted parameters, by name; empty where the limit is a document's or simulated.
        positives: how many failing runs it rests on.
        repositories: of how many repositories they are.
        unseen: rates on repositories that had no part in the fit, each with its 95% interval, by name.
    """

    slope: float
    family: str = ""
    limit: Mapping[str, Param] = {}
    positives: int = 0
    repositories: int = 0
    unseen: Mapping[str, tuple[float, ...]] = {}


class Calibrations(Struct, frozen=True):
    """The calibrations of all questions.

    Attributes:
        alarm: the likelihood from which on a finding is an alarm.
        near: the likelihood from which on a fact is worth a note.
        slope: the slope of questions in no family.
        questions: what was fitted, by question.
    """

    alarm: float
    near: float
    slope: float
    questions: Mapping[str, Fit]

    def of(self, id_: str) -> Fit:
        """Return what is known of a question; the shared slope where nothing was fitted."""
        return self.questions.get(id_) or Fit(self.slope, "default")

    def likelihood(self, id_: str, strength: float) -> float:
        """Return how likely an engineer would call the run faulty in the way that a question asks for.

        Args:
            id_: the question.
            strength: how far its answer stands from the limit, in doublings.
        """
        odds = math.log(self.alarm / (1 - self.alarm)) + self.of(id_).slope * strength
        return 1 / (1 + math.exp(-odds))


_USED: list[Calibrations] = []


def calibrations() -> Calibrations:
    """Return the calibrations that are used: the shipped ones, unless others were chosen."""
    return _USED[-1] if _USED else _shipped()


def use(other: Calibrations) -> None:
    """Judge with other calibrations from now on: to measure them. Trees that were loaded keep their limits."""
    _USED[:] = [other]


@cache
def _shipped() -> Calibrations:
    path = calibration_file()
    raw = read(path)
    levels, slope = raw["levels"], raw["families"]["default"]["slope"]
    return typed({**levels, "slope": slope, "questions": raw["questions"]}, Calibrations, path.name)


def with_limits(tree: Tree) -> Tree:
    """Return a shipped tree with the fitted limits in place of those that its questions state."""
    known, questions = calibrations().questions, dict(tree.questions)
    for id_ in known.keys() & questions.keys():
        question, limit = questions[id_], known[id_].limit
        advanced = {name: limit.get(name, value) for name, value in question.advanced.items()}
        own = {name: value for name, value in limit.items() if name not in advanced}
        questions[id_] = replace(question, params={**question.params, **own}, advanced=advanced)
    return replace(tree, questions=questions)
