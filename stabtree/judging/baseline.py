"""A baseline: the findings that were there when somebody accepted them, in a file that is read and written here."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean, near
from stabtree.diagnosis.ignored import Accepted
from stabtree.judging.fingerprint import fingerprint
from stabtree.judging.levels import fails
from stabtree.loaders.assemble.steps import MAX_STEP
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from stabtree.diagnosis.result import Diagnosis, Finding
    from stabtree.run import Run

VERSION = 1
MARK = "stabtree_baseline"
Place = tuple[str, str, str]
LARGEST_BYTES = 16_000_000
WRITE = "write one by `stabtree baseline PATH --output FILE`"


@dataclass(frozen=True, slots=True)
class KnownFinding:
    """A finding that is accepted, as a baseline keeps it.

    Attributes:
        path: the log, relative to the folder of the baseline.
        run: the run's name.
        leaf: the leaf.
        severity: how bad it was: a worse one of the same leaf is not accepted.
        onset_step: its first step, for people; the fingerprint knows it as well.
        fingerprint: what it is known by again.
        breaks: how often each series stopped being finite; where one that the finding rests on did so once more, that
            is new.
        reason: why it is accepted; for a person to write.
        since: since when; likewise.
    """

    path: str
    run: str
    leaf: str
    severity: str
    onset_step: int | None
    fingerprint: str
    breaks: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""
    since: str = ""

    @property
    def place(self) -> Place:
        """What tells it from any other of the file."""
        return self.path, self.run, self.fingerprint


@dataclass(frozen=True, slots=True)
class Baseline:
    """The findings that a file accepts.

    Attributes:
        source: the file, as it was named.
        folder: where it lies, from the root: its paths are relative to that.
        known: the findings by their fingerprints.
        runs: the findings by path and run.
    """

    source: str
    folder: str
    known: Mapping[str, KnownFinding]
    runs: Mapping[tuple[str, str], tuple[KnownFinding, ...]]

    def why(self, diagnosis: Diagnosis, finding: Finding) -> Accepted | None:
        """Why a finding is accepted; None where it is new, or worse than it was."""
        known = fingerprint(diagnosis, finding) if self.known else ""
        own = [entry for entry in self.of(diagnosis.run) if entry.fingerprint == known]
        entry = own[0] if own else self.known.get(known)  # a copy of a log, or one that was moved, is known too
        if entry is None or finding.leaf.severity.rank > Severity(entry.severity).rank:
            return None
        now = breaks(diagnosis.run)
        rests_on = {_group(name) for name in ("loss", *(item.metric for item in finding.evidence if item.metric))}
        if any(now.get(name, 0) > entry.breaks.get(name, 0) for name in rests_on):
            return None
        return Accepted(entry.reason, entry.since, clean(self.source))

    def of(self, run: Run) -> tuple[KnownFinding, ...]:
        """What is accepted of a run."""
        return self.runs.get((placed(run, self.folder), run.name), ())


@dataclass(frozen=True, slots=True)
class BaselineWriter:
    """Stands in for a baseline that accepts whatever is bad enough, and keeps what that was.

    Attributes:
        source: the file that is to hold it.
        levels: the levels, as of `--fail-on`, from which on a finding is accepted.
        found: what was accepted, by path, run and fingerprint.
    """

    source: str
    levels: frozenset[str]
    found: dict[Place, KnownFinding] = field(default_factory=dict)

    def why(self, diagnosis: Diagnosis, finding: Finding) -> Accepted | None:
        """Keep a finding that is bad enough."""
        if not fails(finding.leaf.severity, self.levels):
            return None
        entry = entry_of(diagnosis, finding, folder_of(self.source))
        self.found[entry.place] = entry
        return Accepted(source=self.source)

    def of(self, _run: Run) -> tuple[KnownFinding, ...]:
        """Nothing: what was accepted before is no matter here."""
        return ()


class Update(NamedTuple):
    """What becomes of a baseline.

    Attributes:
        entries: what it holds then.
        new: how many of them it did not hold.
        kept: how many it held of the runs that were judged, and keeps.
        dropped: how many it held of these, and does not any more.
    """

    entries: tuple[KnownFinding, ...]
    new: int
    kept: int
    dropped: int


def changed(
    old: Iterable[KnownFinding], found: Mapping[Place, KnownFinding], judged: Collection[tuple[str, str]], *, add: bool
) -> Update:
    """What becomes of a baseline after runs were judged; what it holds of other runs stays.

    Args:
        old: what it holds.
        found: what was found now, by path, run and fingerprint.
        judged: the path and the run of all that were judged.
        add: whether what it does not hold is accepted as well, and what is worse now as it is now.
    """
    before = {entry.place: entry for entry in old}
    others = {place: entry for place, entry in before.items() if place[:2] not in judged}
    same = {place: entry for place, entry in before.items() if place in found and place not in others}
    new = {place: entry for place, entry in found.items() if add and place not in same}
    if add:
        same = {place: replace(found[place], reason=entry.reason, since=entry.since) for place, entry in same.items()}
    entries = (*others.values(), *same.values(), *new.values())
    return Update(entries, len(new), len(same), len(before) - len(others) - len(same))


def folder_of(file: str) -> str:
    """The folder of a file, from the root."""
    return str(Path(file).absolute().parent)


def baseline_of(source: str, entries: Iterable[KnownFinding]) -> Baseline:
    """A baseline of these findings.

    Args:
        source: the file that it is of.
        entries: the findings.
    """
    runs: dict[tuple[str, str], tuple[KnownFinding, ...]] = {}
    known = {}
    for entry in entries:
        known[entry.fingerprint] = entry
        key = (entry.path, entry.run)
        runs[key] = (*runs.get(key, ()), entry)
    return Baseline(source, folder_of(source), known, runs)


def entry_of(diagnosis: Diagnosis, finding: Finding, folder: str) -> KnownFinding:
    """A finding as a baseline in a folder keeps it."""
    return KnownFinding(
        path=placed(diagnosis.run, folder),
        run=diagnosis.run.name,
        leaf=finding.leaf.id,
        severity=str(finding.leaf.severity),
        onset_step=finding.onset_step,
        fingerprint=fingerprint(diagnosis, finding),
        breaks=breaks(diagnosis.run),
    )


def placed(run: Run, folder: str) -> str:
    """Where a run's log lies, as seen from a folder, with slashes on every machine."""
    path = run.sources[0].path if run.sources else "-"
    if path == "-" or "://" in path:
        return path
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except (OSError, ValueError):  # on another drive
        return Path(path).as_posix()


def breaks(run: Run) -> dict[str, int]:
    """How often the series of each metric stop being finite, of those that do."""
    found: dict[str, int] = {}
    for metric, series in sorted(run.series.items()):
        bad = ~np.isfinite(series.values)
        count = int(np.count_nonzero(bad[1:] & ~bad[:-1])) + int(bad[:1].sum())
        if count:
            found[_group(metric)] = found.get(_group(metric), 0) + count
    return found


def _group(metric: str) -> str:
    return metric.partition("/")[0]


def written(entries: Iterable[KnownFinding]) -> str:
    """The file's text: the same findings give the same bytes."""
    ordered = sorted(entries, key=lambda entry: (entry.path, entry.run, entry.leaf, entry.fingerprint))
    return json.dumps({MARK: VERSION, "findings": [asdict(entry) for entry in ordered]}, indent=1) + "\n"


def read_baseline(file: str | Path) -> Baseline:
    """The baseline in a file.

    Raises:
        StabtreeError: where it can't be read, is no baseline, or is damaged.
    """
    where = clean(file)
    try:
        with Path(file).open("rb") as stream:
            raw = stream.read(LARGEST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StabtreeError(f"it can't be read: {reason}", where=where, hint=WRITE) from None
    if len(raw) > LARGEST_BYTES:
        raise StabtreeError("it is over 16 MB, too large for a baseline", where=where, hint="name another file")
    try:
        document: Any = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise StabtreeError(f"it is damaged: {clean(error, 100)}", where=where, hint=WRITE) from None
    if not isinstance(document, dict) or MARK not in document:
        raise StabtreeError("it is no baseline of stabtree", where=where, hint=WRITE)
    if document[MARK] is True or document[MARK] != VERSION:
        problem = f"it is of version {clean(document[MARK], 20)}, this stabtree knows {VERSION}"
        raise StabtreeError(problem, where=where, hint="write it again, or update stabtree")
    items = document.get("findings")
    if not isinstance(items, list):
        raise StabtreeError("it is damaged: findings must be a list", where=where, hint=WRITE)
    return baseline_of(str(file), [_entry(item, f"{where}: findings[{place}]") for place, item in enumerate(items)])


def _entry(item: Any, where: str) -> KnownFinding:
    """One finding of the file, each of its keys of its type."""

    def wrong(problem: str, hint: str = "correct it, or accept the finding again") -> StabtreeError:
        return StabtreeError(problem, where=where, hint=hint)

    if not isinstance(item, dict):
        raise wrong("it is damaged: a finding must be an object")
    for key in item:
        if key not in KEYS:
            raise wrong(f"there is no key {clean(key, 60)!r}{near(key, KEYS)}")
    for key, (fits, kind) in KEYS.items():
        if key not in item and key not in OPTIONAL:
            raise wrong(f"{key} is missing")
        if key in item and not fits(item[key]):
            raise wrong(f"{key} must be {kind}")
    # What is told of it on a screen must not write to it.
    told = {key: clean(item[key], LONGEST) for key in ("reason", "since") if key in item}
    return KnownFinding(**{**item, **told})


LONGEST = 200  # characters of a reason
OPTIONAL = ("breaks", "reason", "since")
TEXT = (lambda value: isinstance(value, str), "a text")
KEYS: dict[str, tuple[Any, str]] = {
    "path": TEXT,
    "run": TEXT,
    "leaf": TEXT,
    "severity": (lambda value: value in [*map(str, Severity)], f"one of {', '.join(Severity)}"),
    "onset_step": (lambda value: value is None or (type(value) is int and 0 <= value < MAX_STEP), "a step or null"),
    "fingerprint": TEXT,
    "breaks": (
        lambda value: isinstance(value, dict) and all(type(count) is int for count in value.values()),
        "an object of whole numbers",
    ),
    "reason": TEXT,
    "since": TEXT,
}
"""The keys of a finding: whether a value fits, and what it must be."""
