"""The classes of the commands: text and flags are taken as they come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    import typer

NOT_TEXT = frozenset({"checkpoint_every"})


class _TextParameters:
    """Typer converts every value through pydantic, whose import alone takes as long as all that `explain` does.

    Text and flags need no conversion; what does, or is missing, goes the usual way.
    """

    def get_params(self, ctx: typer.Context) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # a mixin of click commands
        for param in params:
            if not isinstance(param.process_value, _Process):
                many = param.nargs == -1 or bool(getattr(param, "multiple", False))
                param.process_value = _Process(param.process_value, many, param.required, param.name not in NOT_TEXT)
        return params


class TextCommand(_TextParameters, TyperCommand):
    """A command whose parameters are text and flags."""


class TextGroup(_TextParameters, TyperGroup):
    """A group of commands whose own parameters are text and flags."""


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
        if self.text and self.many and isinstance(value, tuple | list) and value and all(isinstance(item, str) for item in value):
            return tuple(value)
        if self.text and isinstance(value, str) and not self.many:
            return value
        return self.usual(context, value)
