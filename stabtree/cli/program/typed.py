"""The classes of the commands: an option's type, as its function declares it, decides what becomes of its text."""

from __future__ import annotations

import inspect
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from msgspec import Struct
from typer.core import TyperCommand, TyperGroup

from stabtree.cli.program.help import argument_name, write_groups
from stabtree.cli.shell.printing import emit
from stabtree.common.errors import StabtreeError
from stabtree.common.text import docstring

if TYPE_CHECKING:
    from collections.abc import Callable

    import typer

KINDS: dict[type, str] = {str: "text", int: "a whole number", float: "a number", Path: "a path"}
"""What an option's text may become, and what to call it where it can't."""


class TypedCommand(TyperCommand):
    """A command whose options become what its function says they are.

    Typer converts every value through pydantic, whose import alone takes as long as all that `explain` does.
    Text, numbers, paths and choices need no such help; any other type, and what is missing, goes the usual way.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        if not self.help and self.callback:
            self.help = docstring(inspect.unwrap(self.callback))

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters, as Typer asks for them."""
        return _converted(super().get_params(ctx), self.callback)

    def get_help_option(self, ctx: Any) -> Any:
        """Return what prints the help, as any other result is printed."""
        return _emitting(super().get_help_option(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options in groups."""
        write_groups(self.get_params(ctx), ctx, formatter)


class TypedGroup(TyperGroup):
    """A group of commands, with the same care for its own options."""

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters, as Typer asks for them."""
        return _converted(super().get_params(ctx), self.callback)

    def get_help_option(self, ctx: Any) -> Any:
        """Return what prints the help, as any other result is printed."""
        return _emitting(super().get_help_option(ctx))


def _emitting(option: Any) -> Any:
    if option is not None:
        option.callback = _help
    return option


def _help(context: typer.Context, _option: Any, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        emit(context.get_help())
        context.exit()


def _converted(params: Any, callback: Callable[..., Any] | None) -> Any:
    new = [param for param in params if not isinstance(param.process_value, _Process)]
    declared = inspect.signature(callback, eval_str=True).parameters if new and callback else {}
    for param in new:
        kind = None
        if param.name in declared and param.callback is None:
            kind = _element(declared[param.name].annotation)
        many = param.nargs == -1 or bool(getattr(param, "multiple", False))
        param.process_value = _Process(param.process_value, kind, many, param.required, _name(param))
    return params


def _element(hint: Any) -> type | None:
    """Return the type of one value of an option: `int` for `list[int] | None`; None where it is not ours to convert."""
    if hasattr(hint, "__metadata__"):
        hint = getattr(hint, "__origin__", hint)
    if get_origin(hint) in (Union, UnionType):
        members = [member for member in get_args(hint) if member is not NoneType]
        if len(members) != 1:
            return None
        hint = members[0]
    if get_origin(hint) is list:
        hint = get_args(hint)[0]
    if isinstance(hint, type) and _is_ours(hint):
        return hint
    return None


def _is_ours(kind: type) -> bool:
    """Return whether we convert the values of a type ourselves."""
    return kind is bool or kind in KINDS or issubclass(kind, StrEnum)


def _name(param: Any) -> str:
    """Return how a message names a parameter: its longest spelling, or an argument's own name."""
    spelled: list[str] = [name for name in param.opts if name.startswith("-")]
    if spelled:
        return max(spelled, key=len)
    return argument_name(param).removesuffix("...")


class _Process(Struct, frozen=True):
    """A replacement of a parameter's `process_value`."""

    usual: Callable[..., Any]
    kind: type | None
    many: bool
    required: bool
    name: str

    def __call__(self, context: typer.Context, value: Any) -> Any:
        missing = value in (None, (), [])
        if not self.required and (missing or value is False):
            return () if self.many else value
        if self.kind is None or missing:
            return self.usual(context, value)
        if self.many:
            return tuple(_fitted(item, self.kind, self.name) for item in value)
        return _fitted(value, self.kind, self.name)


def _fitted(value: Any, kind: type, name: str) -> Any:
    """Return a value as what its option is declared to be.

    Raises:
        StabtreeError: where it can't be that.
    """
    if isinstance(value, kind):  # a flag, or a default
        return value
    try:
        return kind(value)
    except ValueError:
        if issubclass(kind, StrEnum):
            wanted = f"one of {', '.join(kind)}"
        else:
            wanted = KINDS[kind]
        problem, hint = f"{value!r} is not {wanted}", f"type {name} with {wanted}"
        raise StabtreeError(problem, where=name, hint=hint) from None
