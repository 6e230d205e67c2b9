"""For each question the limit that the most extreme of some healthy runs just does not reach."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from stabtree.common.answer import UNKNOWN
from stabtree.common.errors import StabtreeError
from stabtree.common.strength import FARTHEST
from stabtree.diagnosis.walk import answering
from stabtree.predicates import predicate_named
from stabtree.tree.model import Severity
from stabtree.tree.params import apply_overrides, declared, fine, fits, known, settable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from stabtree.diagnosis.result import Diagnosis, Visit
    from stabtree.facts.registry import Parameter
    from stabtree.judging.judge import Judging
    from stabtree.loaders import Loaded
    from stabtree.run import Run
    from stabtree.tree.model import Question

MAX_ROUNDS = 3  # what one limit no longer reports another may
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
        question: the question.
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
    question: str
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


class _Extreme(NamedTuple):
    """An answer with a strength, and the run that it is of."""

    strength: float
    run: str
    visit: Visit
    diagnosis: Diagnosis


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
        if reason := _unfit(found):
            excluded.append((item.name, reason))
        else:
            runs[item.name], walks[item.name] = item.run, found
    alarmed = sum(any(_alarms(found)) for found in walks.values())
    limits = _limits(walks)
    others = sorted((limit for limit in limits if limit.strength < 0), key=lambda limit: -limit.strength)
    set_: dict[str, Limit] = {}
    for _ in range(MAX_ROUNDS):
        if not any(limit.alarms for limit in limits):
            break
        for limit in sorted((limit for limit in limits if limit.alarms), key=_move):
            before = set_.get(limit.key, limit)
            names = dict.fromkeys((*before.alarms, *limit.alarms))
            set_[limit.key] = limit._replace(now=before.now, alarms=tuple(names))
        values = tuple(f"{key}={limit.value!r}" for key, limit in set_.items())
        walks = {name: replace(judging, set=values).diagnosed(run) for name, run in runs.items()}
        limits = _limits({name: found for name, found in walks.items() if any(_alarms(found))})
    left: dict[str, tuple[str, ...]] = {}
    for name, found in walks.items():
        left.update((leaf, (*left.get(leaf, ()), name)) for leaf in _alarms(found))
    unset = (limit for limit in others if limit.key not in set_)
    return Calibration(tuple(runs), tuple(excluded), alarmed, (*set_.values(), *unset), left)


def _unfit(found: Diagnosis) -> str:
    """Return why a run can't stand for a healthy one; empty where it can."""
    critical = [finding.leaf.id for finding in found.findings if finding.leaf.severity is Severity.CRITICAL]
    if critical:
        return f"looks broken: {critical[0]}; if it is not, --ignore {critical[0]}"
    if found.verdict == UNKNOWN:
        return f"can't be judged: {found.misread or 'too little was logged'}"
    return ""


def _alarms(found: Diagnosis) -> Iterator[str]:
    """Yield the leaves that are alarms."""
    return (item.leaf.id for item in found.reached if item.is_alarm)


def _limits(walks: dict[str, Diagnosis]) -> list[Limit]:
    """Return the limit of each question that measured something in a run, as far as one number decides it."""
    measured: dict[str, list[_Extreme]] = {}
    reported: dict[str, dict[str, list[str]]] = {}  # question -> run -> leaves
    for name, found in walks.items():
        visits = {visit.question.id: visit for walk in (found.path, *found.further) for visit in walk}
        for id_, visit in visits.items():
            strength = visit.answer.strength
            if visit.given_by == "data" and strength is not None and strength > -FARTHEST:
                measured.setdefault(id_, []).append(_Extreme(strength, name, visit, found))
        for leaf in _alarms(found):
            if question := _decided(found, leaf):
                reported.setdefault(question, {}).setdefault(name, []).append(leaf)
    moved = []
    for id_, items in measured.items():
        runs = reported.get(id_, {})
        # Strengths of several conditions may be alike where their limits are not: each run that alarms is asked.
        extreme = [item for item in items if item.run in runs] or [max(items, key=lambda item: item.strength)]
        limits = [limit for item in extreme if (limit := _limit(item))]
        if limits:
            leaves = dict.fromkeys(leaf for names in runs.values() for leaf in names)
            most = max(limits, key=_move)
            moved.append(most._replace(runs=len(items), alarms=tuple(runs), leaves=tuple(leaves)))
    return moved


def _move(limit: Limit) -> float:
    """Return how far a limit is from the one in force, in its logarithm."""
    return abs(math.log(limit.value / limit.now))


def _decided(found: Diagnosis, leaf: str) -> str:
    """Return the question on the way to a leaf whose limit has to move least; empty where none has a strength."""
    for walk in (found.path, *found.further):
        end = found.tree.leaves.get(walk[-1].target) if walk else None
        if end is not None and leaf in (end.id, end.escalate):
            held = [(visit.answer.strength, visit.question.id) for visit in walk if visit.given_by == "data"]
            return min(((s, id_) for s, id_ in held if s is not None and s >= 0), default=(0.0, ""))[1]
    return ""


def _limit(most: _Extreme) -> Limit | None:
    """Return the limit of a question that has to move least for a run not to reach it; None where no number decides."""
    question, found = most.visit.question, most.diagnosis
    ask = answering(found)
    best: tuple[float, str, float, float] | None = None
    for key, now, parameter in _numbers(found, question):
        whole = parameter.kind is int

        def strength(value: float, key: str = key, now: float = now, parameter: Parameter = parameter) -> float:
            """Return how far the run is from the limit at a value; NaN where the question has no degrees there."""
            if parameter.kind is int:
                value = math.ceil(value) if value > now else math.floor(value)
            too_large = value > 1 >= now and key.endswith(SHARES)
            again = (
                None if too_large or not fits(value, parameter) else ask(question, _with(found, key, value)).strength
            )
            return math.nan if again is None else again

        for up in (True, False):
            value = _crossing(now, most.strength, strength, up=up, whole=whole)
            if value is not None:
                best = min(filter(None, (best, (abs(math.log(value / now)), key, now, value))))
    if best is None:
        return None
    evidence = most.visit.answer.evidence
    _, key, now, value = best
    return Limit(key, question.id, now, value, most.strength, most.run, evidence[0].text if evidence else "", 1)


def _numbers(found: Diagnosis, question: Question) -> Iterator[tuple[str, float, Parameter]]:
    """Yield the numbers that a question is decided by: what to set, the value in force, and its declaration.

    Left out are lengths, and what only fine-tunes a guard: nobody could follow why a spike is not reported for that.
    """
    predicate = predicate_named(question.test)
    if predicate is None:
        return
    tree = found.tree
    own, facts = apply_overrides(tree, found.overrides, literal=found.literal)
    values = known(tree, question, literal=found.literal, facts=facts) | own.get(question.id, {})
    for name, (home, parameter) in settable(predicate).items():
        now = values.get(name)
        if isinstance(now, bool | str) or not now or now < 0 or name.endswith(LENGTHS):
            continue
        guards = tree.facts[home].advanced if home in tree.facts else fine(tree, question)
        if name not in guards:
            yield f"{home or question.id}.{name}", float(now), parameter


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
    kept: dict[str, dict[str, Any]] = {}
    for node, given in found.overrides.items():
        homes = declared(found.tree, node)
        kept[node] = {
            other: held for other, held in given.items() if other != name or homes[other][0] != home or not home
        }
    return {**kept, id_: {**kept.get(id_, {}), name: value}}


def _rounded(value: float, more: int, *, up: bool, whole: bool) -> float:
    """Return a limit that can be typed, rounded to the side where the run does not reach it, and some units farther."""
    unit = 1.0 if whole else 10.0 ** (math.floor(math.log10(value)) - DIGITS + 1)
    steps = math.ceil(value / unit - 1e-9) + more if up else math.floor(value / unit + 1e-9) - more
    return steps if whole else float(f"{steps * unit:.{DIGITS}g}")
