"""An examiner that dies of some logs, as a worker does that runs out of memory; it must be importable by workers."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.tools.fleet.examine import Examined, Examiner

if TYPE_CHECKING:
    from stabtree.loaders.paths.find import Unit

MARK = "deadly"


@dataclass(frozen=True, slots=True)
class Mortal(Examiner):
    """Is killed by every unit whose path holds `deadly`."""

    def examined(self, unit: Unit) -> Examined:
        """As any examiner, if it lives."""
        if any(MARK in path for path in unit.paths):
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
        return Examiner.examined(self, unit)
