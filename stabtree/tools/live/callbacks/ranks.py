"""What several processes agree on: torch is imported when they are asked."""

from __future__ import annotations

from typing import Any


def main_says(stop: bool, device: Any) -> bool:
    """Return what the main process says, in all of them; each has to ask, at the same step."""
    from torch import distributed, tensor

    if not (distributed.is_available() and distributed.is_initialized()):
        return False  # no one to ask: one alone that stops would leave the others waiting
    flag = tensor(int(stop), device=device)
    distributed.broadcast(flag, src=0)
    return bool(flag.item())
