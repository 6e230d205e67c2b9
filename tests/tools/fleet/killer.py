"""A judge that kills its worker, as one dies that runs out of memory; workers can import it."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from stabtree.tools.fleet.scan import Judged, UnitJudge

if TYPE_CHECKING:
    from stabtree.loaders.paths.find import Unit


class Killer(UnitJudge, frozen=True):
    """Kills its process where it comes to a unit with `fatal` in a path."""

    def judged(self, unit: Unit) -> Judged:
        """Judge a unit as any judge, if it lives."""
        if "fatal" in " ".join(unit.paths):
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
        return UnitJudge.judged(self, unit)
