"""An examiner that kills its worker, once or each time; workers must be able to import it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.dataclass import dataclass
from stabtree.tools.fleet.examine import Examined, Examiner

if TYPE_CHECKING:
    from stabtree.loaders.paths.find import Unit


@dataclass(frozen=True, slots=True)
class Killed(Examiner):
    """Kills its process where it comes to a unit whose path holds `fatal`.

    Attributes:
        once: a file that says that it did; it does so each time where none is named.
    """

    once: str = ""

    def examined(self, unit: Unit) -> Examined:
        """As any examiner, if it lives."""
        if "fatal" in unit.path and not (self.once and Path(self.once).exists()):
            if self.once:
                Path(self.once).touch()
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
        return Examiner.examined(self, unit)
