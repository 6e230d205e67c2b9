"""Whether a terminal takes escape sequences: all do, but for a Windows console that nobody has asked to."""

from __future__ import annotations

import os
from typing import Any

STDOUT = -11
VIRTUAL_TERMINAL = 0x0004  # ENABLE_VIRTUAL_TERMINAL_PROCESSING


def takes_escapes() -> bool:
    """Whether standard output, a terminal, takes colour; a Windows console is switched to it."""
    if os.name != "nt":
        return True
    import ctypes

    return switched(getattr(ctypes, "windll").kernel32)  # noqa: B009 - there is none elsewhere


def switched(kernel: Any) -> bool:
    """Whether a console that `kernel` speaks for takes escape sequences, now that it was asked to."""
    from ctypes import byref, c_ulong

    console, mode = kernel.GetStdHandle(STDOUT), c_ulong()
    if not kernel.GetConsoleMode(console, byref(mode)):
        return False
    return bool(mode.value & VIRTUAL_TERMINAL or kernel.SetConsoleMode(console, mode.value | VIRTUAL_TERMINAL))
