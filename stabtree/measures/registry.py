"""The `@measure` decorator: a function's signature is its declaration.

Positional parameters are what the function asks for: a metric by its name, the run, or another measure by its name.
Keyword-only parameters are what a tree may tune; `docs/how-to/write-a-measure.md` shows how to make one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cache, partial
from operator import is_
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.answer import NO, UNKNOWN, YES, Answer, unknown
from stabtree.common.errors import StabtreeError
from stabtree.common.faults import FaultRecord, MeasureFailedError
from stabtree.common.figures import figure
from stabtree.common.lazy import np
from stabtree.common.passes import extremes, remembered, sound_rows
from stabtree.common.shared import LEVELS, ROWS_SHORT
from stabtree.common.stats import LARGEST, median
from stabtree.common.text import counting, docstring
from stabtree.measures.table import MEASURES
from stabtree.metrics.table import by_name
from stabtree.run import Run, Series

if TYPE_CHECKING:
    from collections.abc import Collection
    from contextlib import AbstractContextManager
    from importlib.metadata import EntryPoint

    from stabtree.common.answer import Evidence
    from stabtree.common.faults import Fault
    from stabtree.common.lazy import Floats, Ints

EVENT = "event"  # what observations of a trouble ask for: when it began, and in which series
UNGROUPED = "all"  # the group of a grouped metric that was logged ungrouped

Groups = Mapping[str, Series]
"""A grouped metric, by group; the ungrouped series, where logged, is under `UNGROUPED`."""

Param = int | float | bool | str
Pattern = str
"""A parameter that is a regular expression; loading a tree checks it."""

Metric = str
"""A parameter that names a metric, without which the question can't be asked."""

Count = int
"""A parameter that is a number of rows, steps or levels to look at: at least 1."""

_KINDS: dict[str, type[Param]] = {
    "int": int,
    "Count": int,
    "float": float,
    "bool": bool,
    "str": str,
    "Pattern": str,
    "Metric": str,
}


class Parameter(Struct, frozen=True):
    """What a tree may tune.

    Attributes:
        kind: its type.
        default: its value where no tree states one; None where a tree must.
        pattern: whether it is a regular expression.
        metric: whether it names a metric that must have been logged.
        minimum: the smallest number that it may be.
    """

    kind: type[Param]
    default: Param | None = None
    pattern: bool = False
    metric: bool = False
    minimum: int = 0


class Need(Struct, frozen=True):
    """What a function asks for.

    Attributes:
        name: a metric or another measure; any name for the run.
        kind: `Series`, `Groups`, `Run`, or `Measure`.
        required: whether it can't answer without.
        takes: of a measure, which of `Absent` and `Unknown` the function takes as a value instead of not being called.
    """

    name: str
    kind: str
    required: bool
    takes: frozenset[str] = frozenset()


class Absent(Struct, frozen=True):
    """A value that was looked for and is not there.

    Attributes:
        evidence: what was seen instead; never empty.
        strength: how near it came, as in `Answer`; None where it has no degrees.
    """

    evidence: tuple[Evidence, ...]
    strength: float | None = None


class Unknown(Struct, frozen=True):
    """A value that the data can't show, with the metrics to log."""

    reason: str
    missing: tuple[str, ...] = ()


class Failed(Unknown, frozen=True):
    """A value whose function raised; no function wants it handed over."""


class Measure(Struct, frozen=True):
    """What is measured of a run: the answer to a question, or a value that others ask for by its name.

    Attributes:
        name: the function's name, by which a tree or another measure asks for it.
        needs: the series and other measures that it asks for.
        params: what a tree may tune; of a value it is stated once, under `facts:`.
        min_points: fewest finite values of each required series.
        func: the function.
        source: where the rule of a question and its thresholds come from; empty for a value.
        verdicts: all that a question may be answered with, `unknown` included; none for a value.
        absent: the verdict where a value that it asks for is not there.
        rule: the exact rule, for nodes that state none of their own.
        sets: the setting that a person's answer is, for all that ask for it; empty where it is none.
        package: the package that offers it; empty for our own.
    """

    name: str
    needs: tuple[Need, ...]
    params: Mapping[str, Parameter]
    min_points: int
    func: Callable[..., Any]
    source: str = ""
    verdicts: tuple[str, ...] = ()
    absent: str = ""
    rule: str = ""
    sets: str = ""
    package: str = ""

    @property
    def at_event(self) -> bool:
        """Whether it asks for the trouble that causes are weighed for."""
        return any(need.name == EVENT for need in self.needs)

    @property
    def question(self) -> str:
        """The first line of the docstring."""
        return docstring(self.func).partition("\n")[0]

    def ask(self, facts: Measured, params: Mapping[str, Param]) -> Answer:
        """Answer for a run: unknown by itself where a required series is absent or too short, or a value is unknown.

        Raises:
            ValueError: where the measure breaks its own contract (a bug of ours).
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

    def answer(self, facts: Measured, params: Mapping[str, Param], kind: str, id_: str) -> Answer:
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


class Measured:
    """What was measured of one run; each value is looked for when it is first asked for, and only once.

    Args:
        run: the run.
        params: the parameters of each, by its name: one value for all that ask.
        faults: where faults are recorded; a record of its own when not given.
    """

    def __init__(
        self,
        run: Run,
        params: Mapping[str, Mapping[str, Param]],
        faults: FaultRecord | None = None,
    ) -> None:
        self.run = run
        self.faults = faults or FaultRecord()
        self.params = params
        self._known: dict[str, Any] = {}
        self._whole: Measured | None = None
        self.unit = run.unit

    def at(self, event: object) -> Measured:
        """Return a store that knows an `event` too, and measures anew only what asks for it."""
        found = Measured(self.run, self.params, self.faults)
        found._known, found._whole = {EVENT: event}, self
        return found

    def get(self, name: str) -> Any:
        """Return the value, `Absent` or `Unknown`; `Failed` where its function raised."""
        if self._whole is not None and name != EVENT and not MEASURES[name].at_event:
            return self._whole.get(name)
        if name not in self._known:
            self._known[name] = self.faults.attempt("fact", name, lambda: self._find(name), _failed)
        return self._known[name]

    def sure(self, name: str) -> Any:
        """Return the value, for work that is pointless without it; where it failed, that work fails too."""
        found = self.get(name)
        if isinstance(found, Failed):
            raise MeasureFailedError(name)
        return found

    def _find(self, name: str) -> Any:
        value = MEASURES[name]
        arguments, refused = gather(self, value.needs, value.min_points)
        settings = complete(name, value.params, self.params.get(name, {}))
        with any_floats(self.run):
            return refused or value.func(*arguments, **settings)


def _failed(fault: Fault | None) -> Failed:
    return Failed(fault.reason if fault else "a fact it needs failed")


def any_floats(run: Run) -> AbstractContextManager[object]:
    """Return a context that silences floating-point warnings; a run without series needs no numpy for it."""
    return np.errstate(all="ignore") if run.series else nullcontext()


def complete(name: str, known: Mapping[str, Parameter], given: Mapping[str, Param]) -> dict[str, Param]:
    """Return all parameters of a function: what is given, else the default.

    Raises:
        ValueError: for one that has neither; a tree that was checked states them all.
    """
    found: dict[str, Param] = {}
    for key, parameter in known.items():
        value = given.get(key, parameter.default)
        if value is None:
            raise ValueError(f"{name} needs a value for {key}")
        found[key] = value
    return found


def gather(facts: Measured, needs: tuple[Need, ...], min_points: int) -> tuple[list[Any], Absent | Unknown | None]:
    """Return what a function asks for, in its order; or why it can't be asked."""
    found: list[Any] = [None] * len(needs)
    # What was not logged is reported before a value is searched for.
    for facts_now in (False, True):
        for place, need in enumerate(needs):
            if (need.kind == "Measure") is not facts_now:
                continue
            value = found[place] = _fetched(facts, need, min_points)
            if isinstance(value, Absent | Unknown) and type(value).__name__ not in need.takes:
                return [], value
    return found, None


def _fetched(facts: Measured, need: Need, min_points: int) -> Any:
    if need.kind == "Measure":
        return facts.get(need.name)
    run = facts.run
    if need.kind == "Run":
        return run
    if need.kind == "Groups":
        whole = run.get(need.name)
        groups = run.group(need.name) or ({UNGROUPED: whole} if whole else {})
        return groups if groups or not need.required else Unknown(f"{need.name}/<group> was not logged", (need.name,))
    series = run.get(need.name)
    if series is None:
        return Unknown(f"{need.name} was not logged", (need.name,)) if need.required else None
    if need.required and min_points:
        points = len(finite(series)[0])
        if points < min_points:
            reason = f"{need.name} has {points} finite points, at least {min_points} are needed"
            return Unknown(reason, (need.name,))
    return series


def declared(func: Callable[..., Any]) -> tuple[tuple[Need, ...], dict[str, Parameter]]:
    """Return what a function's signature declares: what it asks for, and what a tree may tune.

    Raises:
        TypeError: for a parameter that is neither.
    """
    needs: list[Need] = []
    params: dict[str, Parameter] = {}
    # `inspect.signature` would do; for all measures it takes as long as the whole of `--help`.
    code, notes = func.__code__, func.__annotations__
    positional = code.co_varnames[: code.co_argcount]
    first_default = len(positional) - len(func.__defaults__ or ())
    for index, name in enumerate(positional):
        words = _words(notes.get(name))
        kind = words[0] if words and words[0] in ("Run", "Series", "Groups") else "Measure"
        if kind in ("Series", "Groups") and name not in by_name():
            raise TypeError(f"{func.__name__}: {name} is not a known metric")
        takes = frozenset(words[1:]) if kind == "Measure" else frozenset()
        needs.append(Need(name, kind, index < first_default, takes))
    for name in code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]:
        words = _words(notes.get(name))
        if not words or words[0] not in _KINDS:
            raise TypeError(f"{func.__name__}: {name} must be of type {', '.join(_KINDS)}")
        default = (func.__kwdefaults__ or {}).get(name)
        kind, least = words[0], 1 if words[0] == "Count" else 0
        params[name] = Parameter(_KINDS[kind], default, kind == "Pattern", kind == "Metric", least)
    return tuple(needs), params


def _words(annotation: Any) -> list[str]:
    """Return the names of the types in an annotation, whether it is text (a `__future__` import) or not."""
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation).replace(str(Groups), "Groups")
    parts = [part.strip().rpartition(".")[2] for part in text.split("|")]
    return [part for part in parts if part not in ("None", "NoneType")]


def measure(
    *,
    source: str = "",
    labels: tuple[str, ...] = (YES, NO),
    min_points: int = 0,
    absent: str = "",
    rule: str = "",
    sets: str = "",
) -> Callable[[Callable[..., Any]], Measure]:
    """Turn a function into a `Measure`: a question where a source is given, which returns an `Answer`; else a value.

    A value's function returns the thing, `Absent` or `Unknown`.

    Args:
        source: the document or paper that the rule of a question comes from.
        labels: verdicts of a question besides unknown.
        min_points: fewest finite values of each required series.
        absent: the verdict where a value that it asks for is not there: no, or unknown where it never says no.
        rule: the exact rule in words, parameters in braces, for nodes that state none of their own.
        sets: the setting that a person's answer is, as `dtype`: all that ask for it believe the answer.
    """

    def declare(func: Callable[..., Any]) -> Measure:
        needs, params = declared(func)
        for need in needs:
            if need.kind == "Measure" and need.name not in (EVENT, *MEASURES):
                raise TypeError(f"{func.__name__}: {need.name} is neither a known metric nor a measure")
        value = Measure(func.__name__, needs, params, min_points, func)
        if not source:
            return value
        otherwise = absent or (NO if NO in labels else UNKNOWN)
        return replace(value, source=source, verdicts=(*labels, UNKNOWN), absent=otherwise, rule=rule, sets=sets)

    return declare


@remembered
def finite(series: Series) -> tuple[Ints, Floats]:
    """Return the steps and values of the finite entries, values cut to ±`LARGEST` so that their squares stay finite."""
    keep, found = sound_rows(series), extremes(series)
    steps, values = series.steps[keep], series.values[keep]
    if found.lowest < -LARGEST or found.highest > LARGEST:
        values = np.clip(values, -LARGEST, LARGEST)
    return steps, values


def lowest(series: Series) -> float:
    """Return the lowest of the `finite` values of a series, at least one."""
    return max(min(extremes(series).lowest, LARGEST), -LARGEST)


def highest(series: Series) -> float:
    """Return the highest of the `finite` values of a series, at least one."""
    return max(min(extremes(series).highest, LARGEST), -LARGEST)


@remembered
def highest_row(series: Series) -> int:
    """Return the first row of the highest of the `finite` values of a series."""
    return int(np.argmax(finite(series)[1]))


@remembered
def middle(series: Series) -> float:
    """Return the median of the `finite` values of a series."""
    return median(finite(series)[1])


def number(run: Run, key: str) -> float | None:
    """Return a setting that is a number; None where it is not given, or is not a number."""
    value = run.setting(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def last_level(values: Floats) -> float:
    """Return the median of the last rows, of one in `LEVELS`, of `ROWS_SHORT` at least."""
    return median(values[-max(ROWS_SHORT, len(values) // LEVELS) :])


def paired(first: Series, second: Series) -> tuple[Ints, Floats, Floats]:
    """Return the steps at which both were logged, and the values of each there."""
    if first.steps is second.steps:
        return first.steps, first.values, second.values
    steps, own, other = np.intersect1d(first.steps, second.steps, assume_unique=True, return_indices=True)
    return steps, first.values[own], second.values[other]


def seen(*evidence: Evidence | None) -> tuple[Evidence, ...]:
    """Return the evidence that there is, in order."""
    return tuple(item for item in evidence if item is not None)


GROUP = "stabtree.measures"


def offered(ours: Collection[str]) -> dict[str, EntryPoint]:
    """Return the measures that installed packages offer, by name.

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
                f"it offers a measure {entry.name!r}, which {other} has as well",
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
def loaded(entry: EntryPoint) -> Measure:
    """Load the measure of an entry point, under the name that it is offered by.

    Raises:
        StabtreeError: where it can't be imported, or is no measure.
    """
    package = f"package {_package(entry)}"
    try:
        found = entry.load()
    except (Exception, SystemExit) as error:  # whatever a module does when it is imported
        problem = f"its measure {entry.name!r} can't be imported: {type(error).__name__}: {error}"
        hint = f"see what is wrong with `python -c 'import {entry.module}'`"
        raise StabtreeError(problem, where=package, hint=hint) from error
    if not isinstance(found, Measure) or not found.verdicts:
        kind = "a value" if isinstance(found, Measure) else f"of type {type(found).__name__}"
        problem = f"what it offers as {entry.name!r} is no measure that answers a question but {kind}"
        raise StabtreeError(
            problem, where=package, hint=f"put @measure(source=...) before {entry.attr or entry.module}"
        )
    return replace(found, name=entry.name, package=_package(entry))


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.module.partition(".")[0]
