"""Labelled faults: what would be missed with other thresholds."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stabtree.common.dataclass import dataclass
from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_runs
from stabtree.tools.tune.calibrate.knobs import way_to
from stabtree.tools.tune.calibrate.result import Miss
from stabtree.tree.model import Severity
from stabtree.tree.shipped import shipped_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stabtree.loaders import Loaded
    from stabtree.run import Run
    from stabtree.tools.tune.calibrate.walks import Walks

LEVEL = Severity.WARNING
NAN = "nan"  # of `stabtree.tree.model.EVENTS`
GROUPS = ("phase19", "convergence")
HARMLESS = ("healthy", "normal-backoff", "plateau", "spike-minor", "grad-skipped", "near-limit", "not-shown")
"""Of the runs that come with stabtree, those that have no finding, or a note."""


def shipped_faults() -> tuple[Path, ...]:
    """Return the failed runs that come with stabtree, each named after the finding it must have."""
    folders = chain.from_iterable(sorted((shipped_runs() / group).iterdir()) for group in GROUPS)
    return tuple(folder for folder in folders if folder.is_dir() and folder.name not in HARMLESS)


@dataclass(frozen=True, slots=True)
class Faults:
    """Labelled faults, how they are judged, and those that can't be read, each with why."""

    walks: Walks
    runs: Mapping[str, Run]
    unread: tuple[tuple[str, str], ...] = ()

    def caught(self) -> tuple[str, ...]:
        """Return those that alarm now."""
        return tuple(name for name, run in self.runs.items() if self.walks.reached(run, {}).alarms(LEVEL))

    def missed(self, set_: Mapping[str, float], ignored: Sequence[str] = ()) -> tuple[str, ...]:
        """Return those that alarm now, and do not with thresholds set or leaves ignored."""
        return tuple(
            name
            for name in self.caught()
            if not self.walks.reached(self.runs[name], set_).alarms(LEVEL).keys() - {*ignored}
        )

    def nan(self, names: Iterable[str]) -> bool:
        """Return whether one of some faults has a NaN now."""
        alarms = (self.walks.reached(self.runs[name], {}).alarms(LEVEL) for name in names)
        return any(NAN in leaf.events for leaf in chain.from_iterable(leaves.values() for leaves in alarms))

    def misses(self, set_: Mapping[str, float]) -> tuple[Miss, ...]:
        """Return the same, with the verdict of each, now and then."""
        found = []
        for name in self.missed(set_):
            plain = self.walks.plain(self.runs[name])
            leaf = plain.findings[0].leaf.id
            question = (way_to(plain, leaf) or plain.path)[-1].question.id
            after = self.walks.reached(self.runs[name], set_).verdict
            found.append(Miss(name, leaf, question, plain.verdict, after))
        return tuple(found)


def faults_of(loaded: Sequence[Loaded], walks: Walks) -> Faults:
    """Return labelled faults by their folders' names; what can't be read is none, and is named."""
    runs: dict[str, Run] = {}
    unread: list[tuple[str, str]] = []
    for item in loaded:
        if isinstance(item.run, StabtreeError):
            unread.append((item.name, item.run.problem))
        else:
            name = Path(item.name).name
            if name in runs:
                name = item.name
            runs[name] = item.run
    return Faults(walks, runs, tuple(unread))


def load_faults(folder: str | None, how: Mapping[str, Any]) -> tuple[Loaded, ...]:
    """Return the faults that come with stabtree and, after them, the failed runs of a folder, read as the options say.

    Raises:
        StabtreeError: where the folder holds no run that can be read.
    """
    own: Sequence[Loaded] = ()
    if folder:
        own = load_runs(folder, **how)
    failed = [item.run for item in own if isinstance(item.run, StabtreeError)]
    if failed and len(failed) == len(own):
        raise StabtreeError(failed[0].problem, where=f"--faults {folder}", hint=failed[0].hint)
    return (*load_runs(*shipped_faults()), *own)
