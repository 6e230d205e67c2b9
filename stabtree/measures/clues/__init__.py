"""The clues that causes and fixes may ask for. Trees name them; a new one is one function in one of these modules."""

from __future__ import annotations

import operator
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from stabtree.common.figures import rewritten
from stabtree.common.text import counting
from stabtree.measures.registry import Absent, Unknown, any_floats, declared, gather

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stabtree.common.faults import Fault
    from stabtree.measures.registry import Measured, Need

    CLUES: dict[str, Clue]

_MODULES = ("course", "rates", "events")


def __getattr__(name: str) -> Any:
    # A run in which nothing is found needs none of them.
    if name != "CLUES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules = (import_module(f"{__name__}.{module}") for module in _MODULES)
    found = {item.name: item for module in modules for item in vars(module).values() if isinstance(item, Clue)}
    globals()["CLUES"] = found
    return found


class Moment(NamedTuple):
    """Which moment of a run a clue is looked for at."""

    onset_step: int | None  # the first bad step; None where the incident has none
    last_good_step: int | None  # the last logged step before it
    metric: str = "loss"  # the series that shows the incident
    unit: str = "step"  # what the steps count: `step`, `epoch` or `row`


class Seen(Struct, frozen=True):
    """What a clue shows."""

    value: float | str  # what conditions are compared with: a number, or a word such as `yes`
    text: str  # a sentence for a person, with its numbers
    # The value as it stands within a fix: `0.6%`, `lr 3e-7 → 3e-6`; empty where there is nothing to insert.
    short: str = ""
    metric: str = ""  # the series that it was seen in
    steps: tuple[int, ...] = ()  # where, at most a handful of steps


class Clue(NamedTuple):
    """A clue by its name, with what its function asks for."""

    name: str
    needs: tuple[Need, ...]
    func: Callable[..., Seen | None]


def clue(func: Callable[..., Seen | None]) -> Clue:
    """Turn a function into a `Clue`."""
    needs, _ = declared(func)
    return Clue(func.__name__, needs[1:], func)


class Clues:
    """The clues of one incident; each is looked for when it is first asked for, and only once.

    Args:
        facts: the facts of the run.
        moment: the moment of the incident.
        table: the clues that there are, by name.
    """

    def __init__(self, facts: Measured, moment: Moment, table: Mapping[str, Clue]) -> None:
        self.facts = facts
        self.moment = moment
        self._table = table
        self._known: dict[str, Seen | None] = {}

    def get(self, name: str) -> Seen | None:
        """Return what a clue shows; None where the log can't show it, or the clue failed."""
        if name not in self._known:
            self._known[name] = self.facts.faults.attempt("clue", name, lambda: self._look(name), _nothing)
        return self._known[name]

    def _look(self, name: str) -> Seen | None:
        item = self._table[name]
        arguments, refused = gather(self.facts, item.needs, 0)
        if isinstance(refused, Absent | Unknown):
            return None
        with any_floats(self.facts.run):
            seen = item.func(self.moment, *arguments)
        if seen is None:
            return None
        # Numbers as people write them, and steps as the run counts.
        text, short = (counting(rewritten(part), self.moment.unit) for part in (seen.text, seen.short))
        return replace(seen, text=text, short=short)


def _nothing(_fault: Fault | None) -> Seen | None:
    return None


_NUMBER = re.compile(r"(>=|<=|>|<)\s*(\S+)\Z")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


class Condition(NamedTuple):
    """What a clue must show."""

    words: tuple[str, ...] = ()  # the words of which it must be one; empty for a number
    compare: str = ""  # `>`, `>=`, `<` or `<=`; empty for words
    limit: float = 0.0  # what a number is compared with

    def met(self, seen: Seen | None) -> bool | None:
        """Return whether a clue shows it; None where the log can't show the clue."""
        if seen is None:
            return None
        if self.words:
            return str(seen.value) in self.words
        if isinstance(seen.value, str):
            return False
        return _COMPARE[self.compare](seen.value, self.limit)


def condition(text: str) -> Condition:
    """Read a condition.

    Raises:
        ValueError: for a comparison without a number, or an empty text.
    """
    found = _NUMBER.match(text.strip())
    if found:
        return Condition(compare=found[1], limit=float(found[2]))
    words = tuple(filter(None, (word.strip() for word in text.split(","))))
    if not words or text.strip()[:1] in "<>=":
        raise ValueError(f"{text!r} is no condition: write '> 20', '<= 2' or words")
    return Condition(words)
