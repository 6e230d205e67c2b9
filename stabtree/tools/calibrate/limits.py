"""For each question the limit that the most extreme of some healthy runs just does not reach."""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from stabtree.common.answer import UNKNOWN
from stabtree.common.errors import StabtreeError
from stabtree.common.shared import FARTHEST
from stabtree.diagnosis.walk import answering
from stabtree.measures import measure_named
from stabtree.tree.model import Severity
from stabtree.tree.params import apply_overrides, declared, fine, fits, known, settable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from stabtree.diagnosis.result import Diagnosis, Visit
    from stabtree.judging.judge import Judging
    from stabtree.loaders import Loaded
    from stabtree.measures.registry import Parameter
    from stabtree.run import Run

DIGITS = 3
AT_LIMIT = 0.02
"""How far from 0 a strength may be, in doublings, for an answer that is at its limit."""
FARTHER = (0.5, 1.0, 2.0, 3.5)
"""Doublings by which a limit is moved at most: beyond, the question is as good as not asked."""
SHARES = ("share", "chance", "correlation")  # none is above 1
LENGTHS = ("steps", "rows")  # where a question looks, not what is too much


class Limit(NamedTuple):
    """The limit of a question that the most extreme run just does not reach.

    Attributes:
        key: what to set, as `spike.sigma`.
        now: the limit in force.
        value: the limit at which the strength of the most extreme run is 0, rounded to where it does not fire.
        strength: how far that run is from the limit in force, in doublings.
        extreme: the name of that run.
        seen: what its evidence says.
        runs: in how many of the runs the question was asked and measured something.
        alarms: the runs that alarm by it.
        leaves: their findings.
    """

    key: str
    now: float
    value: float
    strength: float
    extreme: str
    seen: str
    runs: int
    alarms: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()


class Calibration(NamedTuple):
    """The limits that healthy runs call for.

    Attributes:
        runs: the names of the healthy runs.
        excluded: runs that do not count, each with the reason.
        alarmed: the number of healthy runs that alarm now.
        limits: those to set, then those that no run reaches, nearest first.
        left: the findings that are still reported with all of them set, each with its runs.
    """

    runs: tuple[str, ...]
    excluded: tuple[tuple[str, str], ...]
    alarmed: int
    limits: tuple[Limit, ...]
    left: dict[str, tuple[str, ...]]

    @property
    def to_set(self) -> tuple[Limit, ...]:
        """The limits by which runs alarm."""
        return tuple(limit for limit in self.limits if limit.alarms)


def calibrate(given: Iterable[Loaded], judging: Judging) -> Calibration:
    """Return the limits that healthy runs call for.

    Args:
        given: the runs; those that can't be read or judged, or have a critical finding, are left out.
        judging: how they are judged.
    """
    runs: dict[str, Run] = {}
    walks: dict[str, Diagnosis] = {}
    excluded = []
    for item in given:
        if isinstance(item.run, StabtreeError):
            excluded.append((item.name, f"can't be read: {item.run.problem}"))
            continue
        found = judging.diagnosed(item.run)
        critical = [finding.leaf.id for finding in found.findings if finding.leaf.severity is Severity.CRITICAL]
        if critical:
            excluded.append((item.name, f"looks broken: {critical[0]}; if it is not, --ignore {critical[0]}"))
        elif found.verdict == UNKNOWN:
            excluded.append((item.name, f"can't be judged: {found.misread or 'too little was logged'}"))
        else:
            runs[item.name], walks[item.name] = item.run, found
    alarmed = sum(any(_alarms(found)) for found in walks.values())
    limits = sorted(_limits(walks), key=_move)
    set_ = {limit.key: limit for limit in limits if limit.alarms}
    if set_:
        values = tuple(f"{key}={limit.value!r}" for key, limit in set_.items())
        walks = {name: replace(judging, set=values).diagnosed(run) for name, run in runs.items()}
    left: dict[str, tuple[str, ...]] = {}
    for name, found in walks.items():
        left.update((leaf, (*left.get(leaf, ()), name)) for leaf in _alarms(found))
    others = sorted((limit for limit in limits if limit.strength < 0), key=lambda limit: -limit.strength)
    unset = (limit for limit in others if limit.key not in set_)
    return Calibration(tuple(runs), tuple(excluded), alarmed, (*set_.values(), *unset), left)


def _alarms(found: Diagnosis) -> Iterator[str]:
    """Yield the leaves that are alarms."""
    return (item.leaf.id for item in found.reached if item.is_alarm)


def _limits(walks: dict[str, Diagnosis]) -> list[Limit]:
    """Return the limit of each question that measured something in a run, as far as one number decides it."""
    measured: dict[str, dict[str, float]] = {}  # question -> run -> strength
    reported: dict[str, dict[str, list[str]]] = {}  # question -> run -> leaves
    for name, found in walks.items():
        for id_, strength in _strengths(chain(found.path, *found.further)):
            measured.setdefault(id_, {})[name] = strength
        for leaf in _alarms(found):
            if question := _decided(found, leaf):
                reported.setdefault(question, {}).setdefault(name, []).append(leaf)
    moved = []
    for id_, strengths in measured.items():
        runs = reported.get(id_, {})
        # Strengths of several conditions may be alike where their limits are not: each run that alarms is asked.
        extreme = [name for name in strengths if name in runs] or [max(strengths, key=strengths.__getitem__)]
        limits = [limit for name in extreme if (limit := _limit(id_, name, walks[name], strengths[name]))]
        if limits:
            leaves = dict.fromkeys(chain.from_iterable(runs.values()))
            most = max(limits, key=_move)
            moved.append(most._replace(runs=len(strengths), alarms=tuple(runs), leaves=tuple(leaves)))
    return moved


def _strengths(visits: Iterable[Visit]) -> Iterator[tuple[str, float]]:
    """Yield the questions that the log answered, each with the strength of its answer."""
    for visit in visits:
        strength = visit.answer.strength
        if visit.given_by == "data" and strength is not None and strength > -FARTHEST:
            yield visit.question.id, strength


def _move(limit: Limit) -> float:
    """Return how far a limit is from the one in force, in its logarithm."""
    return abs(math.log(limit.value / limit.now))


def _decided(found: Diagnosis, leaf: str) -> str:
    """Return the question on the way to a leaf whose limit has to move least; empty where none has a strength."""
    for walk in (found.path, *found.further):
        end = found.tree.leaves.get(walk[-1].target) if walk else None
        if end is not None and leaf in (end.id, end.escalate):
            return min(((strength, id_) for id_, strength in _strengths(walk) if strength >= 0), default=(0.0, ""))[1]
    return ""


def _limit(id_: str, run: str, found: Diagnosis, before: float) -> Limit | None:
    """Return the limit of a question that has to move least for a run not to reach it; None where no number decides."""
    question, ask, tree = found.tree.questions[id_], answering(found), found.tree
    measure = measure_named(question.test)
    if measure is None:
        return None
    own, facts = apply_overrides(tree, found.overrides, literal=found.literal)
    values = known(tree, question, literal=found.literal, facts=facts) | own.get(id_, {})
    best: tuple[float, str, float, float] | None = None
    for name, (home, parameter) in settable(measure).items():
        now = values.get(name)
        guards = tree.facts[home].advanced if home in tree.facts else fine(tree, question)
        # Nobody could follow why a spike is not reported for what only fine-tunes a guard.
        if isinstance(now, bool | str) or not now or now < 0 or name.endswith(LENGTHS) or name in guards:
            continue
        key, limit, whole = f"{home or id_}.{name}", float(now), parameter.kind is int

        def strength(value: float, key: str = key, limit: float = limit, parameter: Parameter = parameter) -> float:
            """Return how far the run is from the limit at a value; NaN where the question has no degrees there."""
            if parameter.kind is int:
                value = math.ceil(value) if value > limit else math.floor(value)
            if (value > 1 >= limit and key.endswith(SHARES)) or not fits(value, parameter):
                return math.nan
            again = ask(question, _with(found, key, value)).strength
            return math.nan if again is None else again

        for up in (True, False):
            value = _crossing(limit, before, strength, up=up, whole=whole)
            if value is not None:
                best = min(filter(None, (best, (abs(math.log(value / limit)), key, limit, value))))
    if best is None:
        return None
    visit = next(visit for visit in chain(found.path, *found.further) if visit.question.id == id_)
    evidence = visit.answer.evidence
    return Limit(*best[1:], before, run, evidence[0].text if evidence else "", 1)


def _crossing(now: float, before: float, strength: Callable[[float], float], *, up: bool, whole: bool) -> float | None:
    """Return the value nearest to the limit in force at which a run just does not reach it; None if there is none.

    Mostly that is the limit moved by the very strength. Where other rows decide then, it is looked for in between.
    """

    def moved(doublings: float) -> float:
        return now * 2 ** (doublings if up else -doublings)

    def silent(exact: float) -> float | None:
        tried = (_rounded(exact, more, up=up, whole=whole) for more in range(3))
        return next((value for value in tried if value > 0 and strength(value) < 0), None)

    if abs(strength(moved(before))) <= AT_LIMIT and (value := silent(moved(before))):
        return value
    far = next((doublings for doublings in FARTHER if strength(moved(doublings)) < 0), 0.0) if before >= 0 else 0.0
    if not far:
        return None
    near = 0.0
    while far - near > AT_LIMIT / 4:
        middle = (near + far) / 2
        near, far = (near, middle) if strength(moved(middle)) < 0 else (middle, far)
    return silent(moved(far))


def _with(found: Diagnosis, key: str, value: Any) -> dict[str, dict[str, Any]]:
    """Return what is set of a walk, with one parameter set anew: a fact's may be set by way of any question."""
    id_, _, name = key.rpartition(".")
    home = declared(found.tree, id_)[name][0]
    kept: dict[str, dict[str, Any]] = {node: dict(given) for node, given in found.overrides.items()}
    for node in kept if home else ():
        if declared(found.tree, node).get(name, ("",))[0] == home:
            kept[node].pop(name, None)
    return {**kept, id_: {**kept.get(id_, {}), name: value}}


def _rounded(value: float, more: int, *, up: bool, whole: bool) -> float:
    """Return a limit that can be typed, rounded to the side where the run does not reach it, and some units farther."""
    unit = 1.0 if whole else 10.0 ** (math.floor(math.log10(value)) - DIGITS + 1)
    steps = math.ceil(value / unit - 1e-9) + more if up else math.floor(value / unit + 1e-9) - more
    return steps if whole else float(f"{steps * unit:.{DIGITS}g}")
