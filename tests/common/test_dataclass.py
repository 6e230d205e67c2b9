"""Our data classes behave as those of the standard library do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from typing import Any

import numpy as np
import pytest

from stabtree.common.dataclass import dataclass

MAKERS: tuple[Any, ...] = (dataclasses.dataclass, dataclass)


@dataclass(frozen=True, slots=True)
class Value:
    """What the tests pickle, which needs a class at the top level."""

    name: str
    size: float = 1.0
    parts: list[int] = field(default_factory=list)
    seen: int = field(default=0, compare=False, repr=False)


def made(maker: Any, **options: Any) -> Any:
    """A class of the same fields, made by either."""

    class Made:
        """A class."""

        first: int
        second: str = "b"
        third: tuple[int, ...] = ()
        hidden: int = field(default=0, compare=False, repr=False)
        many: list[int] = field(default_factory=list)

    Made.__annotations__ = dict(Made.__annotations__)
    return maker(**options)(Made)


@pytest.mark.parametrize(
    "options",
    [
        {"frozen": True, "slots": True},
        {"slots": True},
        {"frozen": True, "slots": True, "eq": False},
        {"frozen": True, "slots": True, "repr": False},
        {"slots": True, "kw_only": True},
        {"slots": True, "weakref_slot": True, "eq": False},
        {},
    ],
)
def test_a_class_behaves_as_the_standard_one(options: dict[str, Any]) -> None:
    """In its signature, fields, equality, hash, text and what it refuses."""
    theirs, ours = (made(maker, **options) for maker in MAKERS)
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    assert [(one.name, one.type, one.default) for one in fields(ours)] == [
        (one.name, one.type, one.default) for one in fields(theirs)
    ]
    outcomes = []
    for kind in (theirs, ours):
        one, same, other = kind(first=1), kind(first=1, hidden=5), kind(first=2, many=[1])
        outcomes.append(
            (
                one == same,
                one == other,
                one == "one",
                repr(other) if options.get("repr", True) else None,
                asdict(replace(other, second="c")),
                attempt(setattr, one, "first", 3),
                attempt(delattr, one, "second"),
                attempt(kind),
                type(attempt(hash, kind(first=1, many=()))),
                hasattr(one, "__dict__"),
            )
        )
    assert outcomes[0] == outcomes[1]


def attempt(call: Any, *arguments: object) -> object:
    """What comes out, or what is raised."""
    try:
        return call(*arguments)
    except (TypeError, AttributeError) as error:
        return str(error).rpartition(".")[2]


def test_copies_and_pickles_are_equal() -> None:
    """A frozen class with slots needs methods of its own for both."""
    value = Value("a", 2.0, [1, 2], 7)
    for copied in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):  # noqa: S301
        assert copied == value
        assert copied.seen == 7
        with pytest.raises(FrozenInstanceError):
            copied.name = "b"  # type: ignore[misc]


def test_the_same_array_is_equal_to_itself() -> None:
    """As a tuple compares: by identity first."""

    @dataclass(frozen=True, slots=True, eq=True)
    class Held:
        """Of one field."""

        values: Any

    values = np.arange(3)
    assert Held(values) == Held(values)


def test_a_default_factory_is_called_each_time() -> None:
    """Else instances would share a list."""
    assert Value("a").parts is not Value("a").parts
    assert Value("a", parts=[3]).parts == [3]


def test_post_init_is_called_and_may_set_fields() -> None:
    """Past what a frozen class refuses."""

    @dataclass(frozen=True, slots=True)
    class Doubled:
        """Sets itself."""

        size: int

        def __post_init__(self) -> None:
            object.__setattr__(self, "size", 2 * self.size)

    assert Doubled(2).size == 4


def test_a_subclass_has_the_fields_of_its_base() -> None:
    """In the same order."""

    @dataclass(frozen=True, slots=True)
    class Longer(Value):
        """With one more."""

        last: int = 3

    assert [one.name for one in fields(Longer)] == ["name", "size", "parts", "seen", "last"]
    assert Longer("a").last == 3
