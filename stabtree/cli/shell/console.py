"""Whether a terminal takes escape sequences: all do, but a Windows console only when asked to."""

from __future__ import annotations

import os
from typing import Any

STDOUT = -11
VIRTUAL_TERMINAL = 0x0004  # ENABLE_VIRTUAL_TERMINAL_PROCESSING


def takes_escapes() -> bool:
    """Return whether standard output, a terminal, takes colour; switch a Windows console to it."""
    if os.environ.get("TERM") == "dumb":
        return False
    if os.name != "nt":
        return True
    import ctypes

    return switched(getattr(ctypes, "windll").kernel32)  # noqa: B009 - there is none elsewhere


def wants_color() -> bool:
    """Return whether the user has not turned colours off."""
    return not os.environ.get("NO_COLOR")


def switched(kernel: Any) -> bool:
    """Ask the console behind `kernel` to take escape sequences, and return whether it does."""
    from ctypes import byref, c_ulong

    console, mode = kernel.GetStdHandle(STDOUT), c_ulong()
    if not kernel.GetConsoleMode(console, byref(mode)):
        return False
    return bool(mode.value & VIRTUAL_TERMINAL or kernel.SetConsoleMode(console, mode.value | VIRTUAL_TERMINAL))
