"""The classes of the commands: text and flags are taken as they come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from collections.abc import Callable

    import typer

NOT_TEXT = frozenset({"checkpoint_every"})


class TextCommand(TyperCommand):
    """A command whose parameters are text and flags, taken as they come.

    Typer converts every value through pydantic, whose import alone takes as long as all that `explain` does.
    Text and flags need no conversion; what does, or is missing, goes the usual way.
    """

    def get_params(self, ctx: Any) -> Any:
        """The parameters, as click asks for them."""
        return _as_they_come(super().get_params(ctx))


class TextGroup(TyperGroup):
    """A group of commands, with the same care for its own parameters."""

    def get_params(self, ctx: Any) -> Any:
        """The parameters, as click asks for them."""
        return _as_they_come(super().get_params(ctx))


def _as_they_come(params: Any) -> Any:
    for param in params:
        if not isinstance(param.process_value, _Process):
            many = param.nargs == -1 or bool(getattr(param, "multiple", False))
            param.process_value = _Process(param.process_value, many, param.required, param.name not in NOT_TEXT)
    return params


@dataclass(frozen=True, slots=True)
class _Process:
    """Stands in for a parameter's `process_value`."""

    usual: Callable[..., Any]
    many: bool
    required: bool
    text: bool

    def __call__(self, context: typer.Context, value: Any) -> Any:
        if value in (None, (), False) and not self.required:
            return () if self.many else value
        if (
            self.text
            and self.many
            and isinstance(value, tuple | list)
            and value
            and all(isinstance(item, str) for item in value)
        ):
            return tuple(value)
        if self.text and isinstance(value, str) and not self.many:
            return value
        return self.usual(context, value)
