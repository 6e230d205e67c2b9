"""One run of many in plain values: what a table, a cache or another machine needs to know of it."""

from __future__ import annotations

from stabtree.common.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Record:
    """What became of a run.

    Attributes:
        path: what to type to diagnose it alone; with `run` where the path holds several.
        run: its name within the path; empty where the path holds one.
        verdict: a severity, `unknown`, or `unread` for a log that can't be read.
        badge: the verdict that is shown, `ok` where what was found are notes that call for nothing.
        partial: whether what could be judged of a run that was not judged as a whole is in order.
        leaf: the main finding; empty where there is none.
        section: the section that it was found in.
        title: what was found, or why it can't be read.
        onset_step: the first step of the main finding.
        unit: what its steps count.
        more: how many further findings there are.
        rows: rows of its log.
        last_step: the last logged step.
        restart_step: the checkpoint to go back to.
        first: what to do about it first, besides going back; of a run that can't be judged what to log.
        notes: what loading it changed or ignored.
        spark: the loss in a few values for a small line, lowest and highest of each stretch kept; None where a stretch
            holds none that is finite.
        mark: the place in `spark` at which the main finding begins.
        data: the object of `diagnose --json` as compact JSON; of a log that can't be read its error.
        seconds: how long reading and judging took.
    """

    path: str
    run: str = ""
    verdict: str = "unknown"
    badge: str = "unknown"
    partial: bool = False
    leaf: str = ""
    section: str = ""
    title: str = ""
    onset_step: int | None = None
    unit: str = "step"
    more: int = 0
    rows: int = 0
    last_step: int | None = None
    restart_step: int | None = None
    first: str = ""
    notes: tuple[str, ...] = ()
    spark: tuple[float | None, ...] = ()
    mark: int | None = None
    data: bytes = b""
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """The path, and the run's name where the path holds several."""
        if self.run:
            return f"{self.path} {self.run}"
        return self.path
