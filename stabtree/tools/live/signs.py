"""What a single row says at once: a sign calls for a judgement of the log, and never speaks for itself."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FINITE = ("loss", "grad_norm")
NEVER_ZERO = ("loss", "grad_norm")
RECENT_ROWS = 50
LOOKS = 4  # what a row is a sign of may take some more to show
MIN_SCALE = 1.0
"""Below it a loss scale divides: seeds/phase19, section 3."""


def signs(row: Mapping[str, float]) -> frozenset[str]:
    """Return what is out of the ordinary in a row, each as `metric what`; empty for an ordinary row.

    Args:
        row: metric -> value; what was not logged is not there.
    """
    found = {f"{metric} is not finite" for metric in FINITE if not math.isfinite(row.get(metric, 0.0))}
    found |= {f"{metric} is 0" for metric in NEVER_ZERO if row.get(metric, 1.0) == 0.0}
    if not row.get("loss_scale", MIN_SCALE) >= MIN_SCALE:
        found.add(f"loss_scale is below {MIN_SCALE:g}")
    return frozenset(found)


class Signs:
    """The rows of one log in a row: which of them calls for a judgement."""

    def __init__(self) -> None:
        self._before: frozenset[str] = frozenset()
        self._losses: deque[float] = deque(maxlen=RECENT_ROWS)
        self._looks = 0

    def call(self, row: Mapping[str, float]) -> bool:
        """Return whether a row shows what the row before it did not, or follows close on one that did.

        A row that goes on as before calls for nothing.
        """
        found = signs(row)
        if self._leaps(row.get("loss", math.nan)):
            found |= {"loss leaps"}
        new = not found <= self._before
        self._before = found
        if new:
            self._looks = LOOKS
        elif self._looks:
            self._looks -= 1
        return self._looks > 0

    def _leaps(self, loss: float) -> bool:
        """Return whether a loss is above the recent ones by half of all that they span: some 4.5σ of calm noise."""
        if not math.isfinite(loss):
            return False
        recent = self._losses
        highest = max(recent, default=math.inf)
        leaps = len(recent) == RECENT_ROWS and loss > highest + (highest - min(recent)) / 2
        recent.append(loss)
        return leaps
