"""Options that several commands share: a command takes a frozen dataclass, its user types the fields as options.

    def inspect(paths: Paths, read: Annotated[ReadOptions, Only("column", "dtype")]) -> None: ...

has the options `--column` and `--dtype`; all other fields of `ReadOptions` keep their defaults.
"""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer
from msgspec.structs import fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Values = Callable[[str], Iterable[str]]
    """Return what an option can be given, from the start of it that is typed."""


def option(panel: str, spelling: str, about: str, values: Values | None = None, *, hidden: bool = False) -> Any:
    """Declare an option.

    Args:
        panel: the group of the help that lists it.
        spelling: its names and what its value is called, as the help shows them: `-j, --jobs N`.
        about: its line of the help.
        values: completes its value; files where not given.
        hidden: whether the help leaves it out.
    """
    words = spelling.replace(",", "").split()
    names = [word for word in words if word.startswith("-")]
    metavar = None if words[-1] in names else words[-1]
    return typer.Option(
        *names, help=about, metavar=metavar, rich_help_panel=panel, autocompletion=values, hidden=hidden
    )


class Only:
    """The fields of an options class that a command offers.

    Args:
        names: fields, as their class declares them.
        declared: fields that this command declares in its own way.
    """

    def __init__(self, *names: str, **declared: Any) -> None:
        self.names = (*names, *declared)
        self.declared = declared


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command as Typer is to see it, each options class in its signature replaced by that class's fields."""
    hints = get_type_hints(command, include_extras=True)
    options = {name: _class_of(hint) for name, hint in hints.items() if hasattr(_class_of(hint), "__struct_fields__")}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name in options:
            parameters += _parameters(hints[parameter.name])
        else:
            hinted = parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY)
            parameters.append(hinted)

    @wraps(command)
    def call(**given: Any) -> None:
        made = {name: _made(cls, given) for name, cls in options.items()}
        command(**given, **made)

    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    setattr(call, "__signature__", inspect.Signature(parameters))  # noqa: B010 - mypy knows no such attribute
    return call


def _class_of(hint: Any) -> Any:
    if get_origin(hint) is Annotated:
        return get_args(hint)[0]
    return hint


def _parameters(hint: Any) -> Iterator[inspect.Parameter]:
    """Yield the fields of an options class that a command offers, as parameters."""
    cls = _class_of(hint)
    only = next((item for item in getattr(hint, "__metadata__", ()) if isinstance(item, Only)), None)
    hints = get_type_hints(cls, include_extras=True)
    if only and not hints.keys() >= set(only.names):
        raise TypeError(f"{cls.__name__} has no {sorted({*only.names} - hints.keys())}")
    for field in fields(cls):
        if only and field.name not in only.names:
            continue
        plain, declared = get_args(hints[field.name])
        if only and field.name in only.declared:
            declared = only.declared[field.name]
        default = field.default
        if get_origin(plain) is tuple:  # Typer's word for an option that may be given several times is a list
            plain, default = list[get_args(plain)[0]] | None, None  # type: ignore[misc]
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[plain, declared]
        )


def _made(cls: Any, given: dict[str, Any]) -> Any:
    """Return an options class of what was given, and take that out of it."""
    values = {}
    for field in fields(cls):
        if field.name in given:
            value = given.pop(field.name)
            values[field.name] = tuple(value or ()) if field.default == () else value
    return cls(**values)
