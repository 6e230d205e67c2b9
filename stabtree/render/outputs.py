"""The outputs of `diagnose`: a new one is a function in a file of its own, and a line here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.render.several import Outcome


class Output(Protocol):
    """Writes a diagnosis; what has no use for a width or for colour takes them as `**_look`."""

    def __call__(self, diagnosis: Diagnosis, /, *, width: int, color: bool) -> str:
        """The whole text, for a screen so wide and with or without colour."""


class TableOutput(Protocol):
    """Writes what became of several runs."""

    def __call__(self, outcomes: Sequence[Outcome], /, *, width: int, color: bool) -> str:
        """The whole text, as of an `Output`."""


def _in(module: str, name: str) -> Output:
    """The function of that name, imported at its first use: `--help` names the outputs and needs none of them."""

    def output(diagnosis: Diagnosis, /, *, width: int, color: bool) -> str:
        from importlib import import_module

        found: Output = getattr(import_module(module), name)
        return found(diagnosis, width=width, color=color)

    return output


SCREEN, HEADLINE, JSON = "screen", "headline", "json"
OUTPUTS: dict[str, Output] = {
    SCREEN: _in("stabtree.render.screen", "screen"),
    HEADLINE: _in("stabtree.render.screen", "headline"),
    JSON: _in("stabtree.render.machine", "to_json"),
}


def tables() -> dict[str, TableOutput]:
    """The same outputs for several runs."""
    from stabtree.render import several

    return {SCREEN: several.table, HEADLINE: several.headlines, JSON: several.to_json}
