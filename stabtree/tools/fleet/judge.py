"""What a worker does: read a unit, judge its runs, and return plain values; what goes wrong is a record as well."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field

from stabtree._version import __version__
from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.judging.judge import Judging
from stabtree.judging.verdict import Outcome
from stabtree.loaders.paths.load import contents
from stabtree.loaders.paths.read import LoadOptions
from stabtree.loaders.paths.stretch import cut
from stabtree.tools.fleet.record import Record, record_of
from stabtree.tools.fleet.remote import is_address, read_remote, with_hashes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stabtree.loaders import Loaded
    from stabtree.loaders.paths.find import Unit
    from stabtree.loaders.paths.stretch import Ends


class Judged(NamedTuple):
    """What became of a unit: its runs, and the units that were found below it."""

    records: tuple[Record, ...]
    further: tuple[Unit, ...] = ()


class UnitJudge(Struct, frozen=True):
    """How units are read and judged: plain values, so that another process or machine can be handed it.

    Attributes:
        judging: how runs are judged.
        how: how logs are read: options of `load_run`.
        roots: the folders that are scanned, resolved.
        ends: the steps that are judged.
        documents: whether the JSON of each run is wanted.
        version: of stabtree, which a worker must have as well.
    """

    judging: Judging = field(default_factory=Judging)
    how: Mapping[str, Any] = field(default_factory=dict)
    roots: tuple[str, ...] = ()
    ends: Ends | None = None
    documents: bool = True
    version: str = __version__

    def __call__(self, units: Sequence[Unit]) -> list[Judged]:
        """Return what became of units, in their order.

        Raises:
            StabtreeError: where this machine has another version of stabtree, and would judge otherwise.
        """
        if self.version != __version__:
            hint = "type `pip install .` in the same checkout where the workers run"
            raise StabtreeError(f"a worker has stabtree {__version__}, not {self.version}", hint=hint)
        return [self.judged(unit) for unit in units]

    def judged(self, unit: Unit) -> Judged:
        """Return what became of a unit; a fault of our own is a record, and costs no other unit anything."""
        begin = time.perf_counter()
        try:
            options = LoadOptions(**{key: value for key, value in self.how.items() if key != "ranks"})
            far = is_address(unit.folder)
            found = read_remote(unit, options) if far else contents(unit, options, self.roots)
        except Exception as error:
            return Judged((failed(unit, error),))
        each = (time.perf_counter() - begin) / max(len(found.loaded), 1)
        return Judged(tuple(self._record(item, each) for item in found.loaded), found.further)

    def _record(self, item: Loaded, seconds: float) -> Record:
        begin, fault = time.perf_counter(), False
        try:
            outcome = self.judging.outcome(cut(with_hashes(item) if self.documents else item, self.ends))
        except Exception as error:
            outcome, fault = Outcome(item.name, _shown(error)), not isinstance(error, StabtreeError)
        seconds += time.perf_counter() - begin
        return record_of(outcome, item.path, documents=self.documents, fault=fault, seconds=seconds)


def failed(unit: Unit, error: Exception) -> Record:
    """Return the record of a unit that could not be read."""
    path = clean(unit.path, 4096)
    return record_of(Outcome(path, _shown(error)), path, fault=not isinstance(error, StabtreeError))


def _shown(error: Exception) -> StabtreeError:
    """Return the error to show to the user; a bug of ours is one, too."""
    if isinstance(error, StabtreeError):
        return error
    problem = f"stabtree itself failed: {type(error).__name__}: {clean(error, 200)}"
    return StabtreeError(problem, hint="diagnose it alone with --debug, and report what that prints")
