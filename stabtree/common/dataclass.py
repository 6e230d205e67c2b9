"""`dataclasses.dataclass`, cheap to define: a command defines over a hundred of them before it reads a line.

The standard library compiles up to six functions for each class, which was a quarter of a short command's time. Here
only `__init__` is compiled, and the rest is shared by all classes. What comes out behaves the same; `fields`, `replace`
and `asdict` of the standard library work on it. Each field is an argument: `init=False` and `InitVar` are not for here.
"""

from __future__ import annotations

import dataclasses
import sys
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from dataclasses import dataclass  # type checkers know this one
else:

    def dataclass(cls: Any = None, /, *, frozen: bool = False, eq: bool = True, repr: bool = True, **rest: Any) -> Any:  # noqa: A002
        """Make a data class, as `dataclasses.dataclass` does of the same arguments."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, eq=eq, repr=repr, **rest)
        made = dataclasses.dataclass(cls, init=False, repr=False, eq=False, **rest)
        fields = dataclasses.fields(made)
        methods: dict[str, Any] = {"__init__": _init(made, fields)}
        if repr:
            methods["__repr__"] = _repr
        if eq:
            compared = [field.name for field in fields if field.compare]
            methods |= {"_compared": staticmethod(_values(compared)), "__eq__": _eq, "__hash__": None}
        if frozen:
            methods |= _FROZEN
        if frozen and eq:
            methods["__hash__"] = _hash
        for name, method in methods.items():
            if name not in cls.__dict__:
                setattr(made, name, method)
        return made


__all__ = ["dataclass"]


class _Unset:
    """Stands for a value that a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


def _init(cls: Any, fields: Sequence[dataclasses.Field[Any]]) -> Callable[..., None]:
    """Compile `__init__`; it sets fields past `__setattr__`, which a frozen class refuses."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_unset": _Unset()}
    parameters, named, lines = ["self"], list[str](), list[str]()
    for field in fields:
        name = value = parameter = field.name
        if field.default is not dataclasses.MISSING:
            known[f"_default_{name}"] = field.default
            parameter = f"{name}=_default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}"] = field.default_factory
            parameter = f"{name}=_unset"
            value = f"_make_{name}() if {name} is _unset else {name}"
        (named if field.kw_only else parameters).append(parameter)
        lines.append(f"_set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    if named:
        parameters += ["*", *named]
    body = "\n  ".join(lines or ["pass"])
    text = f"def make({', '.join(known)}):\n def __init__({', '.join(parameters)}):\n  {body}\n return __init__"
    # With the names of its module around it, by which others look up what its annotations mean.
    made: dict[str, Any] = {}
    exec(text, vars(sys.modules[cls.__module__]), made)  # noqa: S102
    init: Callable[..., None] = made["make"](**known)
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {field.name: field.type for field in fields} | {"return": None}
    return init


def _values(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what gives the values of these fields as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._compared(self) == self._compared(other)


def _hash(self: Any) -> int:
    return hash(self._compared(self))


@recursive_repr()
def _repr(self: Any) -> str:
    shown = [f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr]
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse_to_set(_self: Any, name: str, _value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: Any, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: Sequence[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


_FROZEN = {
    "__setattr__": _refuse_to_set,
    "__delattr__": _refuse_to_delete,
    "__getstate__": _state,  # without the two, unpickling would assign to fields
    "__setstate__": _set_state,
}
