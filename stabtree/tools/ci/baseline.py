"""A baseline: the findings that somebody accepted, each by a fingerprint, in a file that is read and written here."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean, near
from stabtree.diagnosis.result import Accepted
from stabtree.judging.accepted import FindingKey, KnownFinding
from stabtree.judging.verdict import fails
from stabtree.loaders.assemble.steps import MAX_STEP
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.run import Run

FINGERPRINT = "stabtree/v1"
"""The version of what is hashed; change it with the recipe, so that no old fingerprint equals a new one."""
VERSION = 1
MARK = "stabtree_baseline"
MAX_BYTES = 16_000_000
MAX_TEXT = 200  # characters of a reason
WRITE = "write one by `stabtree baseline PATH --output FILE`"


def fingerprint(diagnosis: Diagnosis, finding: Incident) -> str:
    """Return the SHA-256, in hex, of the leaf, the run's name, and everything logged up to the onset.

    It stays the same when the log grows, also by new columns. It changes with another NaN in the same file, and with
    a changed row before the onset. A finding without an onset rests on the whole log, so it changes when that grows.

    Args:
        diagnosis: the run's diagnosis.
        finding: one of its findings.
    """
    run, onset = diagnosis.run, finding.onset_step
    parts = [name.encode("utf-8", "surrogatepass") for name in (FINGERPRINT, finding.leaf.id, run.name)]
    for metric, read in sorted(run.series.items()):
        series = run.written.get(metric, read)  # what a value is taken for may change as the log grows
        count = len(series) if onset is None else int(np.searchsorted(series.steps, onset, side="right"))
        if count:
            values = series.values[:count]
            parts += [
                metric.encode("utf-8", "surrogatepass"),
                series.steps[:count].astype("<i8").tobytes(),
                np.where(np.isnan(values), np.nan, values).astype("<f8").tobytes(),  # a NaN has many spellings
            ]
    digest = hashlib.sha256()
    for part in parts:  # with its length before it, so that no two lists of parts give the same bytes
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


class Baseline(Struct, frozen=True):
    """The findings that a file accepts.

    Attributes:
        source: the file, as it was named.
        folder: the absolute path of its folder: the paths in it are relative to that.
        known: the findings by their fingerprints.
        runs: the findings by path and run.
    """

    source: str
    folder: str
    known: Mapping[str, KnownFinding]
    runs: Mapping[tuple[str, str], tuple[KnownFinding, ...]]

    def why(self, diagnosis: Diagnosis, finding: Incident) -> Accepted | None:
        """Return why a finding is accepted; None if it is new, or worse than it was."""
        if not self.known:
            return None
        mark = fingerprint(diagnosis, finding)
        own = [entry for entry in self.of(diagnosis.run) if entry.fingerprint == mark]
        entry = own[0] if own else self.known.get(mark)  # a copy of a log, or one that was moved, is known too
        if entry is None or finding.leaf.severity.rank > Severity(entry.severity).rank:
            return None
        now = breaks(diagnosis.run)
        metrics = {_group(name) for name in ("loss", *(item.metric for item in finding.evidence if item.metric))}
        if any(now.get(name, 0) > entry.breaks.get(name, 0) for name in metrics):
            return None
        return Accepted(entry.reason, entry.since, clean(self.source))

    @property
    def count(self) -> int:
        """The number of accepted findings."""
        return sum(map(len, self.runs.values()))

    def of(self, run: Run) -> tuple[KnownFinding, ...]:
        """Return the accepted findings of a run."""
        return self.runs.get((placed(run, self.folder), run.name), ())


class BaselineWriter(Struct, frozen=True):
    """Used in place of a baseline: accepts and records every finding at or above a level.

    Attributes:
        source: the file to write.
        levels: the levels, as of `--fail-on`, from which on a finding is accepted.
        found: the accepted findings, by path, run and fingerprint.
    """

    source: str
    levels: frozenset[str]
    found: dict[FindingKey, KnownFinding] = field(default_factory=dict)

    def why(self, diagnosis: Diagnosis, finding: Incident) -> Accepted | None:
        """Record and accept a finding that is bad enough; None for any other."""
        if not fails(finding.leaf.severity, self.levels):
            return None
        entry = entry_of(diagnosis, finding, folder_of(self.source))
        self.found[entry.key] = entry
        return Accepted(source=self.source)

    @property
    def count(self) -> int:
        """The number of findings accepted so far."""
        return len(self.found)

    def of(self, _run: Run) -> tuple[KnownFinding, ...]:
        """Return nothing: earlier acceptances do not matter here."""
        return ()


class Update(NamedTuple):
    """The findings of a baseline after an update; how many are new, were kept and were dropped of the judged runs."""

    entries: tuple[KnownFinding, ...]
    new: int
    kept: int
    dropped: int


def changed(
    old: Iterable[KnownFinding],
    found: Mapping[FindingKey, KnownFinding],
    judged: Collection[tuple[str, str]],
    *,
    add: bool,
) -> Update:
    """Update a baseline after runs were judged; findings of other runs stay.

    Args:
        old: its findings so far.
        found: what was found now, by path, run and fingerprint.
        judged: the path and the run of all that were judged.
        add: whether to accept new findings as well, and known ones that are worse now.
    """
    before = {entry.key: entry for entry in old}
    others = {key: entry for key, entry in before.items() if key[:2] not in judged}
    same = {key: entry for key, entry in before.items() if key in found and key not in others}
    new = {}
    if add:
        new = {key: entry for key, entry in found.items() if key not in same}
        same = {key: replace(found[key], reason=entry.reason, since=entry.since) for key, entry in same.items()}
    entries = (*others.values(), *same.values(), *new.values())
    return Update(entries, len(new), len(same), len(before) - len(others) - len(same))


def entry_of(diagnosis: Diagnosis, finding: Incident, folder: str) -> KnownFinding:
    """Return a finding as a baseline in that folder keeps it."""
    run, leaf = diagnosis.run, finding.leaf
    mark = fingerprint(diagnosis, finding)
    return KnownFinding(
        placed(run, folder), run.name, leaf.id, str(leaf.severity), finding.onset_step, mark, breaks(run)
    )


def folder_of(file: str) -> str:
    """Return the absolute path of a file's folder."""
    return str(Path(file).absolute().parent)


def placed(run: Run, folder: str) -> str:
    """Return the path of a run's log relative to a folder, with slashes on every platform."""
    path = run.sources[0].path if run.sources else "-"
    if path == "-" or "://" in path:
        return path
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except (OSError, ValueError):  # on another drive
        return Path(path).as_posix()


def breaks(run: Run) -> dict[str, int]:
    """Count how often the series of each metric stop being finite; metrics that never do are left out."""
    counts: Counter[str] = Counter()
    for metric, series in sorted(run.series.items()):
        bad = ~np.isfinite(series.values)
        counts[_group(metric)] += int(np.count_nonzero(bad[1:] & ~bad[:-1])) + int(bad[:1].sum())
    return {metric: count for metric, count in counts.items() if count}


def _group(metric: str) -> str:
    return metric.partition("/")[0]


# ---- the file


def written(entries: Iterable[KnownFinding]) -> str:
    """Return the file's text: the same findings give the same bytes."""
    ordered = sorted(entries, key=lambda entry: (entry.path, entry.run, entry.leaf, entry.fingerprint))
    return json.dumps({MARK: VERSION, "findings": [asdict(entry) for entry in ordered]}, indent=1) + "\n"


def read_baseline(file: str | Path) -> Baseline:
    """Read the baseline in a file.

    Raises:
        StabtreeError: if it can't be read, is not a baseline, or is damaged.
    """
    where = clean(file)
    try:
        with Path(file).open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StabtreeError(f"it can't be read: {reason}", where=where, hint=WRITE) from None
    if len(raw) > MAX_BYTES:
        raise StabtreeError("it is over 16 MB, too large for a baseline", where=where, hint="name another file")
    try:
        document: Any = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise StabtreeError(f"it is damaged: {clean(error, 100)}", where=where, hint=WRITE) from None
    if not isinstance(document, dict) or MARK not in document:
        raise StabtreeError("it is not a baseline of stabtree", where=where, hint=WRITE)
    if document[MARK] is True or document[MARK] != VERSION:
        problem = f"it is of version {clean(document[MARK], 20)}, this stabtree knows {VERSION}"
        raise StabtreeError(problem, where=where, hint="write it again, or update stabtree")
    items = document.get("findings")
    if not isinstance(items, list):
        raise StabtreeError("it is damaged: findings must be a list", where=where, hint=WRITE)
    return baseline_of(str(file), [_entry(item, f"{where}: findings[{index}]") for index, item in enumerate(items)])


def baseline_of(source: str, entries: Iterable[KnownFinding]) -> Baseline:
    """Return the baseline of a file that holds these findings."""
    runs: dict[tuple[str, str], tuple[KnownFinding, ...]] = {}
    known = {}
    for entry in entries:
        known[entry.fingerprint] = entry
        runs[entry.key[:2]] = (*runs.get(entry.key[:2], ()), entry)
    return Baseline(source, folder_of(source), known, runs)


_TEXT = (lambda value: isinstance(value, str), "a text")
# The keys of a finding: a test of the value, and what it must be.
_KEYS: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(("path", "run", "leaf", "fingerprint", "reason", "since"), _TEXT),
    "severity": (lambda value: value in [*map(str, Severity)], f"one of {', '.join(Severity)}"),
    "onset_step": (lambda value: value is None or (type(value) is int and 0 <= value < MAX_STEP), "a step or null"),
    "breaks": (
        lambda value: isinstance(value, dict) and all(type(count) is int for count in value.values()),
        "an object of whole numbers",
    ),
}
_OPTIONAL = ("breaks", "reason", "since")


def _entry(item: Any, where: str) -> KnownFinding:
    """Return one finding of the file.

    Raises:
        StabtreeError: for a key that is unknown, is missing, or has a value of another type.
    """
    if not isinstance(item, dict):
        problem = "it is damaged: a finding must be an object"
    else:
        unknown = (f"there is no key {clean(key, 60)!r}{near(key, _KEYS)}" for key in item if key not in _KEYS)
        missing = (f"{key} is missing" for key in _KEYS if key not in item and key not in _OPTIONAL)
        wrong = (f"{key} must be {kind}" for key, (fits, kind) in _KEYS.items() if key in item and not fits(item[key]))
        problem = next((text for texts in (unknown, missing, wrong) for text in texts), "")
    if problem:
        raise StabtreeError(problem, where=where, hint="correct it, or accept the finding again")
    # No control characters may reach the screen.
    return KnownFinding(**item | {key: clean(item[key], MAX_TEXT) for key in ("reason", "since") if key in item})
