"""A judge that kills its worker, once or each time, as one does that runs out of memory; workers can import it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.tools.fleet.scan import Judged, UnitJudge

if TYPE_CHECKING:
    from stabtree.loaders.paths.find import Unit


class Killer(UnitJudge, frozen=True):
    """Kills its process where it comes to a unit with `fatal` in a path, and takes a second where one holds `slow`.

    Attributes:
        once: a file that says that it did; it does so each time where none is named.
    """

    once: str = ""

    def judged(self, unit: Unit) -> Judged:
        """Judge a unit as any judge, if it lives."""
        paths = " ".join(unit.paths)
        if "slow" in paths:
            time.sleep(1)
        if "fatal" in paths and not (self.once and Path(self.once).exists()):
            if self.once:
                Path(self.once).touch()
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
        return UnitJudge.judged(self, unit)
