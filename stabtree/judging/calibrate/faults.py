"""Labelled faults: what would be missed with other thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.judging.calibrate.knobs import way_to
from stabtree.judging.calibrate.result import Miss
from stabtree.loaders import load_runs
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stabtree.judging.calibrate.walks import Walks
    from stabtree.loaders import Loaded
    from stabtree.run import Run

LEVEL = Severity.WARNING
NAN = "nan"  # of `stabtree.tree.model.EVENTS`
GROUPS = ("phase19", "convergence")
HARMLESS = ("healthy", "normal-backoff", "plateau", "spike-minor", "grad-skipped")
"""Of the runs that come with stabtree, those that are told nothing or a note."""


def shipped_runs() -> Path:
    """The folder of the runs that come with stabtree: in a wheel it lies in the package, in a checkout beside it."""
    package = Path(__file__).parents[2]
    folder = package / "_runs"
    return folder if folder.is_dir() else package.parent / "fixtures"


def shipped_faults() -> tuple[Path, ...]:
    """The failed runs that come with stabtree, each named after what it must be told."""
    folders = (folder for group in GROUPS for folder in sorted((shipped_runs() / group).iterdir()))
    return tuple(folder for folder in folders if folder.is_dir() and folder.name not in HARMLESS)


@dataclass(frozen=True, slots=True)
class Faults:
    """Labelled faults, how they are judged, and those that can't be read, each with why."""

    walks: Walks
    runs: Mapping[str, Run]
    unread: tuple[tuple[str, str], ...] = ()

    def caught(self) -> tuple[str, ...]:
        """Those that alarm as things stand."""
        return tuple(name for name, run in self.runs.items() if self.walks.told(run, {}).alarms(LEVEL))

    def missed(self, set_: Mapping[str, float], ignored: Sequence[str] = ()) -> tuple[str, ...]:
        """Those that alarm as things stand, and do not with thresholds set or leaves ignored."""
        return tuple(
            name
            for name in self.caught()
            if not self.walks.told(self.runs[name], set_).alarms(LEVEL).keys() - {*ignored}
        )

    def nan(self, names: Iterable[str]) -> bool:
        """Whether one of some faults is told of a NaN as things stand."""
        told = (self.walks.told(self.runs[name], {}).alarms(LEVEL) for name in names)
        return any(NAN in leaf.events for leaves in told for leaf in leaves.values())

    def misses(self, set_: Mapping[str, float]) -> tuple[Miss, ...]:
        """The same, with what each is told now and then."""
        found = []
        for name in self.missed(set_):
            plain = self.walks.plain(self.runs[name])
            leaf = plain.findings[0].leaf.id
            question = (way_to(plain, leaf) or plain.path)[-1].question.id
            after = self.walks.told(self.runs[name], set_).verdict
            found.append(Miss(name, leaf, question, plain.verdict, after))
        return tuple(found)


def faults_of(loaded: Sequence[Loaded], walks: Walks) -> Faults:
    """Labelled faults by their folders' names; what can't be read is none, and is named."""
    runs: dict[str, Run] = {}
    unread: list[tuple[str, str]] = []
    for item in loaded:
        if isinstance(item.run, StabtreeError):
            unread.append((item.name, item.run.problem))
        else:
            name = Path(item.name).name
            runs[name if name not in runs else item.name] = item.run
    return Faults(walks, runs, tuple(unread))


def load_faults(folder: str | None, how: Mapping[str, Any]) -> tuple[Loaded, ...]:
    """The faults that come with stabtree and, after them, the failed runs of a folder, read as the options say.

    Raises:
        StabtreeError: where the folder holds no run that can be read.
    """
    own = load_runs(folder, **how) if folder else ()
    failed = [item.run for item in own if isinstance(item.run, StabtreeError)]
    if failed and len(failed) == len(own):
        raise StabtreeError(failed[0].problem, where=f"--faults {folder}", hint=failed[0].hint)
    return (*load_runs(*shipped_faults()), *own)
