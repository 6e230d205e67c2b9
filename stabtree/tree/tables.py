"""The two tables behind all advice: causes with what speaks for and against each, and what to do about them."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping  # noqa: TC003 - read when a file is converted
from functools import cache, cached_property
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from msgspec import Struct

from stabtree.common.errors import StabtreeError
from stabtree.common.text import near
from stabtree.common.yaml12 import read, typed
from stabtree.tree import fixes
from stabtree.tree.model import Kind, Node
from stabtree.tree.shipped import TABLES, trees_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COSTS = {"glance": 0.0, "minutes": 0.05, "hour": 0.15, "rerun": 0.2}
"""What an action costs, in the measure of how likely it cures a cause."""
CONTEXT, CONFIG = "context.", "config."
RESTART, LOG_NEXT = "{restart}", "{log_next}"
_CONDITION = re.compile(r"(\S+) (>=|<=|>|<|=) (.+)")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


class Condition(NamedTuple):
    """What must have been observed: a name, how it compares, and with what."""

    name: str
    compare: str
    value: str

    def met(self, seen: object) -> bool | None:
        """Return whether an observation meets it; None where the value is of another type."""
        if self.compare == "=":
            return str(seen) == self.value
        if isinstance(seen, bool) or not isinstance(seen, int | float):
            return None
        return _COMPARE[self.compare](seen, float(self.value))


@cache
def condition(text: str) -> Condition:
    """Read a condition.

    Raises:
        ValueError: if it is none, or compares sizes with what is no number.
    """
    found = _CONDITION.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is no condition: write 'measure > 3', 'measure = word' or 'Q2.3 = lr_jump'")
    if found[2] != "=":
        float(found[3])
    return Condition(found[1], found[2], found[3])


class Cause(Node, frozen=True):
    """A cause.

    Attributes:
        id: its id, a term of the field.
        says: what is wrong, as a clause.
        explains: kind of finding -> how likely it is there before anything else is known.
        evidence: condition -> how many times likelier it is by that than its rivals; below 1 that speaks against it.
        proof: conditions of which each proves it.
        kind: the wider cause that it is a case of; its own id where it is none.
        log: the series that would show it, the most telling first.
        sound: whether it leaves the weights sound.
        source: where it comes from.
    """

    id: str
    says: str
    explains: Mapping[Kind, float]
    evidence: Mapping[str, float]
    source: str
    proof: tuple[str, ...] = ()
    kind: str = ""
    log: tuple[str, ...] = ()
    sound: bool = False

    @property
    def wider(self) -> str:
        """The id by which everybody knows it."""
        return self.kind or self.id


class Remedy(Node, frozen=True):
    """Something to do.

    Attributes:
        id: its id.
        says: what to do, with placeholders for what this run has.
        helps: cause -> how likely it cures that.
        costs: what it costs.
        always: kind of finding -> how much it helps whatever the cause.
        harms: cause -> how likely it does damage there, or costs an hour.
        never: conditions of which each forbids it.
        ask: the question that it answers, where it is a test.
        splits: answer -> the causes that it leaves.
        of: the nodes of a document whose own advice it is: it is given for their findings alone.
        kind: the wider action that it is a case of; its own id where it is none.
        source: where it comes from.
    """

    id: str
    says: str
    helps: Mapping[str, float]
    costs: Literal["glance", "minutes", "hour", "rerun"]
    always: Mapping[Kind, float] = {}
    harms: Mapping[str, float] = {}
    never: tuple[str, ...] = ()
    ask: str = ""
    splits: Mapping[str, tuple[str, ...]] = {}
    of: tuple[str, ...] = ()
    kind: str = ""
    source: str = ""

    @property
    def wider(self) -> str:
        """The id by which everybody knows it."""
        return self.kind or self.id


class Tables(Struct, dict=True):
    """Both tables.

    Attributes:
        causes: all causes, by id.
        actions: all actions, by id.
        groups: name of a group -> observations that tell the same; of a group only the strongest counts.
        families: name of a family -> causes that go together, and are no rivals of each other.
    """

    causes: Mapping[str, Cause]
    actions: Mapping[str, Remedy]
    groups: Mapping[str, tuple[str, ...]]
    families: Mapping[str, tuple[str, ...]]

    @cached_property
    def group_of(self) -> Mapping[str, str]:
        """Observation -> the name of its group."""
        return {name: group for group, names in self.groups.items() for name in names}

    @cached_property
    def family_of(self) -> Mapping[str, frozenset[str]]:
        """Wider cause -> itself and those that go with it."""
        alone = {cause.wider: frozenset({cause.wider}) for cause in self.causes.values()}
        return alone | {name: frozenset(family) for family in self.families.values() for name in family}


T = TypeVar("T", Cause, Remedy)


class _CauseFile(Node, frozen=True):
    causes: tuple[Cause, ...]
    groups: Mapping[str, tuple[str, ...]] = {}
    families: Mapping[str, tuple[str, ...]] = {}


class _ActionFile(Node, frozen=True):
    actions: tuple[Remedy, ...]


@cache
def tables() -> Tables:
    """Return the shipped tables.

    Raises:
        StabtreeError: where a file is damaged.
    """
    folder = trees_folder()
    causes, actions = (folder / name for name in TABLES)
    known = typed(read(causes), _CauseFile, causes.name)
    doing = typed(read(actions), _ActionFile, actions.name)
    found = Tables(_by_id(known.causes), _by_id(doing.actions), known.groups, known.families)
    if problem := next(mistakes(found), ""):
        raise StabtreeError(problem, where=causes.name, hint="reinstall stabtree")
    return found


def expected(p: Mapping[str, float], much: Mapping[str, float]) -> float:
    """Return how much an action helps, or harms, by how likely each cause is."""
    return sum(p.get(name, 0.0) * share for name, share in much.items())


def _by_id(rows: tuple[T, ...]) -> dict[str, T]:
    return {row.id: row for row in rows}


def mistakes(found: Tables) -> Iterator[str]:
    """Yield what is wrong with how the rows of both tables name each other."""
    for cause in found.causes.values():
        for text in (*cause.evidence, *cause.proof):
            try:
                condition(text)
            except ValueError as error:
                yield f"cause {cause.id}: {error}"
    for action in found.actions.values():
        for name in (*action.helps, *action.harms, *chain.from_iterable(action.splits.values())):
            if name not in found.causes:
                yield f"action {action.id} names the cause {name!r}{near(name, found.causes)}"
        text = action.says.replace(RESTART, "").replace(LOG_NEXT, "")
        yield from (f"action {action.id} {problem}" for problem in fixes.mistakes(text))
        if bool(action.ask) != bool(action.splits):
            yield f"action {action.id} has a question without what its answers leave, or the other way round"
