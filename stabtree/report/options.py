"""The options of a report, decided once for all outputs by the command line or whoever else calls."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Length(StrEnum):
    """How much a report says."""

    SCREEN = "screen"  # what it takes to act, on one screen
    FULL = "full"  # all of it


class RenderOptions(Struct, frozen=True):
    """How a report is rendered.

    Attributes:
        width: columns of a screen.
        color: whether it may be coloured.
        length: how much it says.
        plots: whether figures are drawn.
        ascii: whether only ASCII can be shown.
        links: whether the terminal can show links.
        exit_code: the exit code that the command will end with; None where there is none.
        fail_on: the verdicts that count as a failure.
        accept_partial: whether a run passes if every check that could run passed.
    """

    width: int = 100
    color: bool = False
    length: Length = Length.SCREEN
    plots: bool = True
    ascii: bool = False
    links: bool = False
    exit_code: int | None = None
    fail_on: frozenset[str] = frozenset({"warning"})
    accept_partial: bool = False


DEFAULT_OPTIONS = RenderOptions()
