"""Faults of stabtree, or of a package beside it, while a run is judged: each fails one question and never the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from stabtree.common.errors import FAULTS
from stabtree.common.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")


class MeasureFailedError(Exception):
    """A fact was needed that failed before; the fault is recorded already."""


class Fault(Struct, frozen=True):
    """One part of a diagnosis that failed.

    Attributes:
        kind: what failed: `question`, `cause`, `fact`, or another `part`.
        id: the id or the name of it.
        problem: the exception and its message.
        package: the package whose code failed; empty for stabtree itself.
    """

    kind: str
    id: str
    problem: str
    package: str = ""

    @property
    def reason(self) -> str:
        """Why there is no answer."""
        whose = "an internal fault of stabtree"
        if self.package:
            whose = f"a fault of the package {self.package}"
        return f"{whose} in the {self.kind} {self.id} ({self.problem})"

    @property
    def note(self) -> str:
        """Two sentences on what failed and where to report it."""
        where = f"the authors of {self.package}" if self.package else "the authors of stabtree"
        return f"Not judged: {self.reason}. Please report it to {where}, with what --debug prints."


class FaultRecord:
    """The faults met while one run is judged, each part once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Fault] = {}

    def __iter__(self) -> Iterator[Fault]:
        return iter(tuple(self._found.values()))

    def attempt(
        self, kind: str, id_: str, work: Callable[[], T], otherwise: Callable[[Fault | None], T], package: str = ""
    ) -> T:
        """Return the result of `work`; where that raises, record a fault and return `otherwise(fault)`.

        Args:
            kind: what `work` belongs to, as in `Fault`.
            id_: the id or the name of it.
            work: what may fail.
            otherwise: makes the result of a failure; it gets None where a fact failed that is recorded already.
            package: the package whose code it is; empty for stabtree itself.
        """
        try:
            return work()
        except MeasureFailedError:
            return otherwise(None)
        except MemoryError:  # the others would have no more of it
            raise
        except Exception as error:  # whatever it is, the other questions still count
            fault = Fault(kind, id_, f"{type(error).__name__}: {clean(error, 200)}", package)
            self._found.setdefault((kind, id_), fault)
            import logging  # most runs have no fault

            logging.getLogger(FAULTS).debug("%s", fault.reason, exc_info=error)  # for whoever turned debugging on
            return otherwise(fault)
