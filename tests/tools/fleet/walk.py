"""A scan's finding of runs alone, without judging them."""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.tools.fleet.find import units
from stabtree.tools.fleet.read import read_unit

if TYPE_CHECKING:
    from pathlib import Path


def names(top: Path, **how: Any) -> list[str]:
    """The paths of all runs below a folder, from there, in order; `!` marks what can't be read."""
    waiting = deque(units([str(top)]))
    found, seen = [], set()
    while waiting:
        unit = waiting.popleft()
        if not unit.files and unit.linked:
            real = os.path.realpath(unit.folder)
            if real in seen:
                continue
            seen.add(real)
        got = read_unit(unit, how, [os.path.realpath(top)])
        waiting.extend(got.further)
        for item in got.loaded:
            mark = "! " if isinstance(item.run, StabtreeError) else ""
            found.append(f"{mark}{os.path.relpath(item.path, top)}")
    return sorted(found)
