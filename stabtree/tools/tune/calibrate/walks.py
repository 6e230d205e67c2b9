"""Judging runs again and again, with other thresholds each time."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.diagnosis.walk import diagnose
from stabtree.facts import FACTS
from stabtree.tree.overrides import declared

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.facts.registry import Param
    from stabtree.judging.judge import Judging
    from stabtree.run import Run
    from stabtree.tree.model import Leaf, Severity

Set = dict[str, float]
"""Values by the keys of thresholds."""


@dataclass(frozen=True, slots=True)
class Reached:
    """What is found in a run: the verdict, and all leaves by their ids."""

    verdict: str
    leaves: Mapping[str, Leaf]

    def alarms(self, level: Severity) -> dict[str, Leaf]:
        """Return the leaves of a level or above."""
        return {id_: leaf for id_, leaf in self.leaves.items() if leaf.severity.rank >= level.rank}


@dataclass(slots=True)
class Walks:
    """How runs are judged, and what came of it: nothing is asked twice. The runs must live as long as it does.

    Attributes:
        judging: how runs are judged but for what is calibrated.
    """

    judging: Judging
    _plain: dict[int, Diagnosis] = field(default_factory=dict)
    _reached: dict[tuple[int, tuple[tuple[str, float], ...]], Reached] = field(default_factory=dict)

    def plain(self, run: Run) -> Diagnosis:
        """Return what is found in a run now."""
        if id(run) not in self._plain:
            self._plain[id(run)] = self.judging.diagnosed(run)
        return self._plain[id(run)]

    def reached(self, run: Run, set_: Mapping[str, float]) -> Reached:
        """Return what a run is reported with thresholds set besides."""
        key = id(run), tuple(sorted(set_.items()))
        if key not in self._reached:
            found = self.found(run, set_)
            self._reached[key] = Reached(found.verdict, {item.leaf.id: item.leaf for item in found.reached})
        return self._reached[key]

    def found(self, run: Run, set_: Mapping[str, float]) -> Diagnosis:
        """Return what is found in a run with thresholds set besides."""
        plain, judging = self.plain(run), self.judging
        if not set_:
            return plain
        settings = _by_home(plain)
        for key, value in set_.items():
            id_, _, name = key.rpartition(".")
            settings.setdefault(id_, {})[name] = value
        return diagnose(
            run,
            plain.tree,
            literal=judging.literal,
            # What is set need not concern every run: of one that its trees do not ask, nothing hangs on it.
            overrides={id_: given for id_, given in settings.items() if id_ in plain.tree.questions or id_ in FACTS},
            answers=judging.answers,
            applied=judging.applied,
            ignore=(*judging.ignore, *judging.settings.ignore),
        )


def _by_home(plain: Diagnosis) -> dict[str, dict[str, Param]]:
    """Return what is set anyway, by the fact or node that has it: `Q2.1.sigma` is one with `spike.sigma`."""
    found: dict[str, dict[str, Param]] = {}
    for id_, given in plain.overrides.items():
        known = declared(plain.tree, id_)
        for name, value in given.items():
            found.setdefault(known[name][0] or id_, {})[name] = value
    return found
