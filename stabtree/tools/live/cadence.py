"""When a growing log is judged: often enough to tell soon, seldom enough that each row costs the same however many."""

from __future__ import annotations

from stabtree.common.dataclass import dataclass

GROWTH = 0.02
PAUSE_SECONDS = 5.0
SHARE = 0.05
MAX_READS = 100
"""All judgements together read so many times the log; growth by `GROWTH` alone comes to 1 / GROWTH = 50 times."""


@dataclass(slots=True)
class Cadence:
    """The judging points of one log.

    Attributes:
        growth: the share by which the log has grown since the last one that makes the next.
        pause_seconds: after so long any growth makes the next.
        share: of the time since the last one, that judging again after a pause may take.
        budget: of all the time that has passed, that judging may take where no sign calls for it: 1 for a process of
            its own, little inside a training loop.
        max_reads: how many times the log may be read in all for the sake of signs.
    """

    growth: float = GROWTH
    pause_seconds: float = PAUSE_SECONDS
    share: float = SHARE
    budget: float = 1.0
    max_reads: int = MAX_READS
    _size: int = 0
    _read: int = 0
    _begun: float | None = None
    _ended: float = 0.0
    _last_seconds: float = 0.0
    _spent_seconds: float = 0.0

    def due(self, size: int, now: float, *, called: bool = False) -> bool:
        """Return whether the log is to be judged now.

        Args:
            size: how long it is, in rows or bytes, the same unit always.
            now: seconds on any clock that does not go back.
            called: whether a sign or a finding that waits for its rows calls for it.
        """
        if self._begun is None:
            self._begun = self._ended = now
        if size < self._size:
            return True  # written anew
        if size == self._size:
            return False
        if called and self._read + size <= self.max_reads * size:
            return True
        allowed = self.budget * max(now - self._begun, 0.0)
        if self.budget < 1 and self._size and self._spent_seconds + self._last_seconds > allowed:
            return False
        waited = now - self._ended
        paused = waited >= self.pause_seconds and self._last_seconds <= self.share * waited
        return paused or size - self._size >= max(self.growth * self._size, 1)

    def judged(self, size: int, began: float, ended: float) -> None:
        """Take in that the log was judged at a size; `began` and `ended` are seconds on the clock of `due`."""
        if size < self._size:  # written anew
            self._read = 0
        self._read += size
        self._size = size
        self._ended = ended
        self._last_seconds = ended - began
        self._spent_seconds += ended - began
