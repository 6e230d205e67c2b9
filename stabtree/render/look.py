"""How a report is to look: what the command line, or whoever calls, decides once for all outputs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Length(StrEnum):
    """How much a report tells."""

    SCREEN = "screen"  # what it takes to act, on one screen
    FULL = "full"  # all of it


@dataclass(frozen=True, slots=True)
class Look:
    """How a report is to look.

    Attributes:
        width: columns of a screen.
        color: whether it may be coloured.
        length: how much it tells.
        plots: whether figures are drawn.
        ascii: whether nothing but ASCII can be shown.
        links: whether the terminal can show links.
        exit_code: the exit code that the command will end with; None where there is none.
        fail_on: the levels from which on a finding is a failure.
        accept_partial: whether nothing wrong in what could be judged is enough.
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


LOOK = Look()
