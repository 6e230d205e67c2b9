"""What facts and predicates share: a function's signature is its declaration.

Positional parameters are what the function asks for: a metric by its name, the run, or a fact by its name. Keyword-only
parameters are what a tree may tune.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from stabtree.common.faults import FactFailedError, FaultRecord
from stabtree.common.lazy import np
from stabtree.common.passes import extremes, remembered, sound_rows
from stabtree.common.shared import LEVELS, ROWS_SHORT
from stabtree.common.stats import LARGEST, median
from stabtree.metrics.table import by_name
from stabtree.run import Run, Series

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from stabtree.common.answer import Evidence
    from stabtree.common.faults import Fault
    from stabtree.common.lazy import Floats, Ints

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
        name: a metric or a fact; any name for the run.
        kind: `Series`, `Groups`, `Run`, or `Fact`.
        required: whether it can't answer without.
        takes: of a fact, which of `Absent` and `Unknown` the function takes as a value instead of not being called.
    """

    name: str
    kind: str
    required: bool
    takes: frozenset[str] = frozenset()


class Absent(Struct, frozen=True):
    """A fact that was looked for and is not there.

    Attributes:
        evidence: what was seen instead; never empty.
        strength: how near it came, as in `Answer`; None where it has no degrees.
    """

    evidence: tuple[Evidence, ...]
    strength: float | None = None


class Unknown(Struct, frozen=True):
    """A fact that the data can't show, with the metrics to log."""

    reason: str
    missing: tuple[str, ...] = ()


class Failed(Unknown, frozen=True):
    """A fact whose function raised; no function wants it handed over."""


class Fact(Struct, frozen=True):
    """Something that is found in a run once, for all predicates that ask for it by its name.

    Attributes:
        name: the function's name.
        needs: what it asks for.
        params: what a tree states under `facts:`, one value a walk.
        min_points: fewest finite values of each required series.
    """

    name: str
    needs: tuple[Need, ...]
    params: Mapping[str, Parameter]
    min_points: int
    func: Callable[..., Any]


class Facts:
    """What was found in one run; each fact is looked for when it is first asked for, and only once.

    Args:
        run: the run.
        table: the facts that there are, by name.
        params: the parameters of each, by its name: one value for all that ask.
        faults: where faults are recorded; a record of its own when not given.
    """

    def __init__(
        self,
        run: Run,
        table: Mapping[str, Fact],
        params: Mapping[str, Mapping[str, Param]],
        faults: FaultRecord | None = None,
    ) -> None:
        self.run = run
        self.faults = faults or FaultRecord()
        self._table = table
        self.params = params
        self._known: dict[str, Any] = {}
        self.unit = run.unit

    def get(self, name: str) -> Any:
        """Return the fact, `Absent` or `Unknown`; `Failed` where its function raised."""
        if name not in self._known:
            self._known[name] = self.faults.attempt("fact", name, lambda: self._find(name), _failed)
        return self._known[name]

    def sure(self, name: str) -> Any:
        """Return the fact, for work that is pointless without it; where it failed, that work fails too."""
        found = self.get(name)
        if isinstance(found, Failed):
            raise FactFailedError(name)
        return found

    def _find(self, name: str) -> Any:
        fact = self._table[name]
        arguments, refused = gather(self, fact.needs, fact.min_points)
        settings = complete(name, fact.params, self.params.get(name, {}))
        with any_floats(self.run):
            return refused or fact.func(*arguments, **settings)


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


def gather(facts: Facts, needs: tuple[Need, ...], min_points: int) -> tuple[list[Any], Absent | Unknown | None]:
    """Return what a function asks for, in its order; or why it can't be asked."""
    found: list[Any] = [None] * len(needs)
    # What was not logged is reported before a fact is searched for.
    for facts_now in (False, True):
        for place, need in enumerate(needs):
            if (need.kind == "Fact") is not facts_now:
                continue
            value = found[place] = _fetched(facts, need, min_points)
            if isinstance(value, Absent | Unknown) and type(value).__name__ not in need.takes:
                return [], value
    return found, None


def _fetched(facts: Facts, need: Need, min_points: int) -> Any:
    if need.kind == "Fact":
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
    # `inspect.signature` would do; for all predicates it takes as long as the whole of `--help`.
    code, notes = func.__code__, func.__annotations__
    positional = code.co_varnames[: code.co_argcount]
    first_default = len(positional) - len(func.__defaults__ or ())
    for index, name in enumerate(positional):
        words = _words(notes.get(name))
        kind = words[0] if words and words[0] in ("Run", "Series", "Groups") else "Fact"
        if kind in ("Series", "Groups") and name not in by_name():
            raise TypeError(f"{func.__name__}: {name} is not a known metric")
        takes = frozenset(words[1:]) if kind == "Fact" else frozenset()
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


def fact(*, min_points: int = 0) -> Callable[[Callable[..., Any]], Fact]:
    """Turn a function into a `Fact`; it returns the thing, `Absent` or `Unknown`.

    Args:
        min_points: fewest finite values of each required series.
    """

    def declare(func: Callable[..., Any]) -> Fact:
        needs, params = declared(func)
        return Fact(func.__name__, needs, params, min_points, func)

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
