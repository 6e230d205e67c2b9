"""The `@predicate` decorator, and predicates of other installed packages.

A function's signature is its declaration. The entry points of the group `stabtree.predicates` are looked up only where
a tree names a predicate that is not ours; `docs/how-to/write-a-predicate.md` shows how to make one.
"""

from __future__ import annotations

import math
import re
from functools import cache, partial
from operator import is_
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.answer import NO, UNKNOWN, YES, Answer, unknown
from stabtree.common.errors import StabtreeError
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.stats import LARGEST
from stabtree.common.text import counting, docstring
from stabtree.facts import FACTS
from stabtree.facts.registry import (
    UNGROUPED,
    Count,
    Groups,
    Metric,
    Need,
    Param,
    Parameter,
    Pattern,
    Unknown,
    any_floats,
    complete,
    declared,
    gather,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from importlib.metadata import EntryPoint

    from stabtree.common.faults import Fault
    from stabtree.facts.registry import Facts
    from stabtree.run import Run

__all__ = ["UNGROUPED", "Count", "Groups", "Metric", "Need", "Param", "Parameter", "Pattern", "Predicate", "predicate"]


class Predicate(Struct, frozen=True):
    """A question that data can answer.

    Attributes:
        name: the function's name, by which a tree calls it.
        source: where the rule and its thresholds come from.
        verdicts: all that it may answer, `unknown` included.
        needs: the series and facts it asks for.
        params: what a tree may tune.
        min_points: fewest finite values of each required series.
        absent: the verdict where a fact that it asks for is not there.
        rule: the exact rule, for nodes that state none of their own.
        sets: the setting that a person's answer is, for all that ask for it; empty where it is none.
        package: the package that offers it; empty for our own.
    """

    name: str
    source: str
    verdicts: tuple[str, ...]
    needs: tuple[Need, ...]
    params: Mapping[str, Parameter]
    min_points: int
    absent: str
    rule: str
    func: Callable[..., Answer]
    sets: str = ""
    package: str = ""

    @property
    def question(self) -> str:
        """The first line of the docstring."""
        return docstring(self.func).partition("\n")[0]

    def ask(self, facts: Facts, params: Mapping[str, Param]) -> Answer:
        """Answer for a run: unknown by itself where a required series is absent or too short, or a fact is unknown.

        Raises:
            ValueError: where the predicate breaks its own contract (a bug of ours).
        """
        arguments, refused = gather(facts, self.needs, self.min_points)
        if isinstance(refused, Unknown):
            return as_logged(Answer(UNKNOWN, reason=refused.reason, missing=refused.missing), facts.run, facts.unit)
        if refused:
            answer = Answer(self.absent, refused.evidence, strength=refused.strength)
            if self.absent == UNKNOWN:
                answer = Answer(UNKNOWN, reason=refused.evidence[0].text)
            return as_logged(answer, facts.run, facts.unit)
        settings = complete(self.name, self.params, params)
        if metric := self._lacking(facts.run, settings):
            return unknown(f"{metric} was not logged", metric)
        with any_floats(facts.run):
            answer = self.func(*arguments, **settings)
        if answer.verdict not in self.verdicts or (answer.verdict != UNKNOWN and not answer.evidence):
            raise ValueError(f"{self.name} broke its contract: {answer}")
        return as_logged(answer, facts.run, facts.unit)

    def _lacking(self, run: Run, settings: Mapping[str, Param]) -> str:
        named = (str(settings[key]) for key, item in self.params.items() if item.metric)
        return next((name for name in named if run.get(name) is None), "")

    def answer(self, facts: Facts, params: Mapping[str, Param], kind: str, id_: str) -> Answer:
        """Answer a `question` or `cause` as `ask` does; unknown where that raises, which is recorded as a fault."""

        def failed(fault: Fault | None) -> Answer:
            return Answer(UNKNOWN, reason=fault.reason if fault else "a fact it needs failed")

        return facts.faults.attempt(kind, id_, lambda: self.ask(facts, params), failed, self.package)


# A value that was cut for the reckoning, or what was reckoned from it.
_CUT = re.compile(r"(?<![\d.])-?1e100([σ×]?)")


def _uncut(value: str, cut: re.Match[str]) -> str:
    return f"{cut[0]} or more" if cut[1] or not value else value


def as_logged(answer: Answer, run: Run, unit: str) -> Answer:
    """Return the answer in the log's own terms: rows where it counts rows, and values as they were before clipping."""
    evidence, reason = [], counting(answer.reason, unit)
    for given in answer.evidence:
        item = given if unit == "step" else replace(given, brief=counting(given.brief, unit))
        text, observed = counting(item.text, unit), item.observed
        if "1e100" in text:
            series = run.get(item.metric)
            sizes = np.abs(series.values) if series else np.zeros(0)
            beyond = np.unique(series.values[(sizes > LARGEST) & (sizes < math.inf)]) if series else sizes
            value = f"{figure(float(beyond[0]), 4)}" if len(beyond) == 1 else ""
            text = _CUT.sub(partial(_uncut, value), text)
            if value and observed and abs(observed) == LARGEST:
                observed = float(beyond[0])
        evidence.append(item if text is item.text else replace(item, text=text, observed=observed))
    if reason == answer.reason and all(map(is_, evidence, answer.evidence)):
        return answer
    return replace(answer, evidence=tuple(evidence), reason=reason)


def predicate(
    *,
    source: str,
    labels: tuple[str, ...] = (YES, NO),
    min_points: int = 0,
    absent: str = "",
    rule: str = "",
    sets: str = "",
) -> Callable[[Callable[..., Answer]], Predicate]:
    """Turn a function into a `Predicate`.

    Args:
        source: the document or paper that the rule comes from.
        labels: verdicts besides unknown.
        min_points: fewest finite values of each required series.
        absent: the verdict where a fact that it asks for is not there: no, or unknown where it never says no.
        rule: the exact rule in words, parameters in braces, for nodes that state none of their own.
        sets: the setting that a person's answer is, as `dtype`: all that ask for it believe the answer.
    """

    def declare(func: Callable[..., Answer]) -> Predicate:
        needs, params = declared(func)
        for need in needs:
            if need.kind == "Fact" and need.name not in FACTS:
                raise TypeError(f"{func.__name__}: {need.name} is neither a known metric nor a fact")
        return Predicate(
            name=func.__name__,
            source=source,
            verdicts=(*labels, UNKNOWN),
            needs=needs,
            params=params,
            min_points=min_points,
            absent=absent or (NO if NO in labels else UNKNOWN),
            rule=rule,
            func=func,
            sets=sets,
        )

    return declare


GROUP = "stabtree.predicates"


def offered(ours: Collection[str]) -> dict[str, EntryPoint]:
    """Return the predicates that installed packages offer, by name.

    Raises:
        StabtreeError: where a name is one of ours, or two packages offer it: neither silently wins.
    """
    found: dict[str, EntryPoint] = {}
    for entry in _entries():
        other = ""
        if entry.name in ours:
            other = "stabtree itself"
        elif entry.name in found:
            other = _package(found[entry.name])
        if other:
            raise StabtreeError(
                f"it offers a predicate {entry.name!r}, which {other} has as well",
                where=f"package {_package(entry)}",
                hint=f"give it another name under [project.entry-points.{GROUP!r}], or uninstall the package",
            )
        found[entry.name] = entry
    return found


@cache
def _entries() -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points  # takes as long as all of `--help`

    return tuple(entry_points(group=GROUP))


@cache
def loaded(entry: EntryPoint) -> Predicate:
    """Load the predicate of an entry point, under the name that it is offered by.

    Raises:
        StabtreeError: where it can't be imported, or is no predicate.
    """
    package = f"package {_package(entry)}"
    try:
        found = entry.load()
    except (Exception, SystemExit) as error:  # whatever a module does when it is imported
        problem = f"its predicate {entry.name!r} can't be imported: {type(error).__name__}: {error}"
        hint = f"see what is wrong with `python -c 'import {entry.module}'`"
        raise StabtreeError(problem, where=package, hint=hint) from error
    if not isinstance(found, Predicate):
        problem = f"what it offers as {entry.name!r} is not a predicate but of type {type(found).__name__}"
        raise StabtreeError(problem, where=package, hint=f"put @predicate before {entry.attr or entry.module}")
    return replace(found, name=entry.name, package=_package(entry))


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.module.partition(".")[0]
