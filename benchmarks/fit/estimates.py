"""Estimate the limit and the slope of each question from the answers that labelled logs got."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.documents import documented
from benchmarks.faultbench import LEAVES as BENCH
from benchmarks.fit.judged import is_alarm, leaf_behind
from benchmarks.fit.logistic import FARTHEST, WINDOW, Curve, best, losses, shared_slope
from benchmarks.fit.logs import FAULTBENCH, SIMULATED
from benchmarks.kinds import LEAVES, names
from stabtree.tree.load import load_trees
from stabtree.tree.params import resolved
from stabtree.tree.shipped import Calibrations, Fit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from benchmarks.fit.judged import Judged, Seen
    from benchmarks.fit.logs import Log
    from stabtree.common.lazy import Floats
    from stabtree.measures.registry import Param

ENOUGH = 8
"""Failures that a question must name, and repositories that they must be from, for a limit of its own."""
QUIET = 0.995
"""Share of simulated healthy runs that must stay below a limit."""
DEFAULT = "default"
DIGITS = 2
MIN_GROWTH = 0.5
"""Doublings of a strength for each of its parameter: 1 where the parameter is the limit itself."""


class Case(NamedTuple):
    """One log as a question sees it: the farthest of its answers, and whether the log is a failure of this kind."""

    strength: float
    positive: bool
    weight: float
    group: str
    simulated: bool


class Main(NamedTuple):
    """The parameter that a question's limit is: its name, its value, and how the strength grows with it."""

    name: str
    value: float
    growth: float

    def moved(self, shift: float) -> float:
        """Return its value where the limit is moved by so many doublings of the strength."""
        return float(f"{self.value * 2 ** (-shift / self.growth):.{DIGITS}g}")


@dataclass(frozen=True, slots=True)
class Fits:
    """All that was fitted at one level of alarm: questions by their ids, and slopes by family."""

    questions: Mapping[str, Fit]
    families: Mapping[str, float]

    def at(self, alarm: float, near: float) -> Calibrations:
        """Return them as runs are judged by."""
        return Calibrations(alarm, near, self.families[DEFAULT], self.questions)


def cases_of(logs: Sequence[Log], judged: Sequence[Judged]) -> dict[str, list[Case]]:
    """Return by question how each log that counts was answered; failures of other kinds say nothing of a question."""
    found: dict[str, list[Case]] = defaultdict(list)
    for log, said in zip(logs, judged, strict=True):
        if not log.counts:
            continue
        for seen in _farthest(said.seen):
            positive = log.failed and named_by(seen, log)
            if positive or not log.failed:
                group = f"{log.source} {log.group}"
                case = Case(seen.strength, positive, log.weight, group, log.source == SIMULATED)
                found[seen.question].append(case)
    return dict(found)


def _farthest(seen: Iterable[Seen]) -> Iterable[Seen]:
    """Return of each question the answer that is farthest above a limit that an alarm hangs on."""
    farthest: dict[str, Seen] = {}
    for item in seen:
        if not is_alarm(item.question, item.verdict):
            continue
        if item.question not in farthest or item.strength > farthest[item.question].strength:
            farthest[item.question] = item
    return farthest.values()


def named_by(seen: Seen, log: Log) -> bool:
    """Return whether the leaf behind an answer names the failure of a log."""
    leaf = leaf_behind(seen.question, seen.verdict)
    if log.source == FAULTBENCH:
        return BENCH.get(leaf, f"other.{leaf}") in log.leaves or _nan(leaf, log)
    return any(names(leaf, kind) for kind in log.kinds)


def _nan(leaf: str, log: Log) -> bool:
    return leaf.startswith("nan-") and any(name.startswith("s1.") for name in log.leaves)


def mains_of(judged: Iterable[Judged]) -> dict[str, Main]:
    """Return the parameter that the answers to each question feel in most logs, where no document gives it."""
    felt: dict[str, Counter[str]] = defaultdict(Counter)
    pulls: dict[tuple[str, str], list[float]] = defaultdict(list)
    for said in judged:
        for seen in said.seen:
            for name, growth in seen.felt:
                felt[seen.question][name] += 1
                pulls[seen.question, name].append(growth)
    tree, found = load_trees(), {}
    for id_, counts in felt.items():
        name = max(counts, key=lambda name: (counts[name], name))
        if not documented(tree, id_, name):
            value = float(resolved(tree, tree.questions[id_])[name])
            found[id_] = Main(name, value, _usual(pulls[id_, name]))
    return found


def _usual(growths: Sequence[float]) -> float:
    """Return how the strength usually grows with a parameter; not so little that a limit would run away."""
    usual = float(np.median(growths))
    return math.copysign(max(abs(usual), MIN_GROWTH), usual)


@cache
def family_of(question: str) -> str:
    """Return the family of a question: the kind of failure that most of its leaves name, of as many the first."""
    tree, count = load_trees(), Counter[str]()
    for verdict in tree.questions[question].go:
        kinds = [kind for kind, leaves in LEAVES.items() if leaf_behind(question, verdict) in leaves]
        count.update(kinds[:1])
    return max(count, key=lambda kind: count[kind], default=DEFAULT)


def fit(cases: Mapping[str, Sequence[Case]], mains: Mapping[str, Main], level: float) -> Fits:
    """Fit all questions, so that the chance of a failure is `level` at each limit."""
    tables = {id_: _table(cases[id_], level) for id_ in sorted(cases)}
    families: dict[str, list[str]] = defaultdict(list)
    for id_ in tables:
        families[family_of(id_)].append(id_)
    slopes = {name: shared_slope([tables[id_] for id_ in ids]) for name, ids in sorted(families.items())}
    slopes[DEFAULT] = shared_slope(list(tables.values()))
    found = {id_: _fit(id_, cases[id_], tables[id_], slopes, mains.get(id_)) for id_ in tables}
    return Fits(found, slopes)


def _table(cases: Sequence[Case], level: float) -> Floats:
    real = [case for case in cases if not case.simulated]
    columns = ([getattr(case, name) for case in real] for name in ("strength", "positive", "weight"))
    strengths, positive, weights = (np.array(column, float) for column in columns)
    return losses(strengths, positive, weights, level)


def _fit(id_: str, cases: Sequence[Case], table: Floats, slopes: Mapping[str, float], main: Main | None) -> Fit:
    """Fit one question: where too few failures are known only what simulated healthy runs reach moves its limit."""
    groups = [case.group for case in cases if case.positive and case.strength > -WINDOW]
    family = family_of(id_)
    enough = len(groups) >= ENOUGH and len(set(groups)) >= ENOUGH
    curve = best(table, slopes[family]) if enough else Curve(0.0, slopes[family])
    shift = max(curve.shift, _reached([case.strength for case in cases if case.simulated]))
    limit: dict[str, Param] = {}
    if main and shift and main.moved(shift) != main.value:
        limit = {main.name: main.moved(shift)}
    slope = float(round(curve.slope, 1))
    return Fit(slope, "" if enough else family, limit, len(groups), len(set(groups)))


def _reached(simulated: Sequence[float]) -> float:
    """Return how far above a limit simulated healthy runs reach, but for the few that may."""
    above = sorted(strength for strength in simulated if strength >= 0)
    allowed = round((1 - QUIET) * len(simulated))
    if len(above) <= allowed:
        return -math.inf
    return min(above[-1 - allowed], FARTHEST)
