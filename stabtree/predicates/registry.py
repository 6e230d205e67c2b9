"""The `@predicate` decorator: a function's signature is its declaration."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from stabtree._lazy import np
from stabtree.answer import NO, UNKNOWN, YES, Answer, unknown
from stabtree.metrics.table import by_name
from stabtree.run import Run, Series

P = ParamSpec("P")
T = TypeVar("T")

Groups = Mapping[str, Series]
"""A grouped metric, by group; the ungrouped series, where logged, stands under `all`."""

UNGROUPED = "all"  # the group of a grouped metric that was logged ungrouped

Param = int | float | bool | str


@dataclass(frozen=True, slots=True)
class Need:
    """A series that a predicate asks for: `kind` is `Series`, `Groups` or `Run`."""

    name: str
    kind: str
    required: bool


@dataclass(frozen=True, slots=True)
class Predicate:
    """A question that data can answer.

    Attributes:
        name: the function's name, by which a tree calls it.
        question: the first line of its docstring.
        doc: the whole docstring.
        source: where the rule and its thresholds come from.
        verdicts: all that it may answer, `unknown` included.
        needs: the series it asks for.
        params: what a tree may tune, with defaults; a value's type is its default's type.
        min_points: fewest finite values of each required series.
    """

    name: str
    question: str
    doc: str
    source: str
    verdicts: tuple[str, ...]
    needs: tuple[Need, ...]
    params: Mapping[str, Param]
    min_points: int
    func: Callable[..., Answer]

    def ask(self, run: Run, params: Mapping[str, Param]) -> Answer:
        """Answer for a run: unknown by itself where a required series is absent or too short.

        Raises:
            ValueError: where the predicate breaks its own contract (a bug of ours).
        """
        arguments: list[Any] = []
        for need in self.needs:
            value, refusal = self._fetch(run, need)
            if refusal:
                return refusal
            arguments.append(value)
        with np.errstate(all="ignore"):  # any floats may have been logged: inf - inf is expected here
            answer = self.func(*arguments, **{**self.params, **params})
        if answer.verdict not in self.verdicts or (answer.verdict != UNKNOWN and not answer.evidence):
            raise ValueError(f"{self.name} broke its contract: {answer}")
        return answer

    def _fetch(self, run: Run, need: Need) -> tuple[Any, Answer | None]:
        if need.kind == "Run":
            return run, None
        if need.kind == "Groups":
            whole = run.get(need.name)
            groups = run.group(need.name) or ({UNGROUPED: whole} if whole else {})
            if not groups and need.required:
                return None, unknown(f"{need.name}/<group> was not logged", need.name)
            return groups, None
        series = run.get(need.name)
        if series is None and need.required:
            return None, unknown(f"{need.name} was not logged", need.name)
        if series is not None and need.required:
            finite = int(np.isfinite(series.values).sum()) if self.min_points else 0
            if finite < self.min_points:
                reason = f"{need.name} has {finite} finite points, at least {self.min_points} are needed"
                return None, unknown(reason, need.name)
        return series, None


def predicate(
    *, source: str, labels: tuple[str, ...] = (), min_points: int = 0
) -> Callable[[Callable[..., Answer]], Predicate]:
    """Turn a function into a `Predicate`.

    Args:
        source: the document or paper that the rule comes from.
        labels: verdicts besides unknown; yes and no when not given.
        min_points: fewest finite values of each required series.
    """

    def declare(func: Callable[..., Answer]) -> Predicate:
        needs: list[Need] = []
        params: dict[str, Param] = {}
        for name, parameter in inspect.signature(func).parameters.items():
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                params[name] = parameter.default
                continue
            kind = str(parameter.annotation).split(" |", maxsplit=1)[0]
            if kind != "Run" and name not in by_name():
                raise TypeError(f"{func.__name__}: {name} is not a known metric")
            needs.append(Need(name, kind, required=parameter.default is inspect.Parameter.empty))
        doc = inspect.cleandoc(func.__doc__ or "")
        return Predicate(
            name=func.__name__,
            question=doc.partition("\n")[0],
            doc=doc,
            source=source,
            verdicts=(*(labels or (YES, NO)), UNKNOWN),
            needs=tuple(needs),
            params=params,
            min_points=min_points,
            func=func,
        )

    return declare
