"""A baseline: the findings that somebody accepted, each by a fingerprint, in a file that is read and written here."""

from __future__ import annotations

import codecs
import hashlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import asdict, replace

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.diagnosis.result import Accepted
from stabtree.judging.verdict import FindingKey, KnownFinding, fails
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
        own = (entry for entry in self.of(diagnosis.run) if entry.fingerprint == mark)
        entry = next(own, self.known.get(mark))  # a copy of a log, or one that was moved, is known too
        if entry is None or finding.leaf.severity.rank > Severity(entry.severity).rank:
            return None
        now = breaks(diagnosis.run)
        metrics = {"loss"} | {_group(item.metric) for item in finding.evidence if item.metric}
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
    own = {key for key in before if key[:2] in judged}
    kept = own & found.keys()
    entries = {key: entry for key, entry in before.items() if key in kept or key not in own}
    if add:
        entries |= found
        for key in kept:
            entries[key] = replace(found[key], reason=before[key].reason, since=before[key].since)
    new = len(entries.keys() - before.keys())
    return Update(tuple(entries.values()), new, len(kept), len(own - kept))


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


class _Finding(KnownFinding, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A finding as it must be in the file."""

    severity: Severity
    onset_step: Annotated[int, Meta(ge=0)] | None


class _Document(Struct, frozen=True):
    version: int = field(name=MARK)
    findings: list[_Finding]


def _plain(entry: _Finding) -> KnownFinding:
    """Return a finding of the file; no control characters of what people wrote may reach the screen."""
    texts = {key: clean(getattr(entry, key), MAX_TEXT) for key in ("reason", "since")}
    return KnownFinding(**asdict(entry) | texts | {"severity": str(entry.severity)})


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
        document = msgspec.json.decode(raw.removeprefix(codecs.BOM_UTF8), type=_Document)
    except (msgspec.DecodeError, RecursionError) as error:
        problem = f"it is not a baseline of stabtree, or is damaged: {clean(error, 150)}"
        raise StabtreeError(problem, where=where, hint=WRITE) from None
    if document.version != VERSION:
        problem = f"it is of version {document.version}, this stabtree knows {VERSION}"
        raise StabtreeError(problem, where=where, hint="write it again, or update stabtree")
    return baseline_of(str(file), map(_plain, document.findings))


def baseline_of(source: str, entries: Iterable[KnownFinding]) -> Baseline:
    """Return the baseline of a file that holds these findings."""
    runs: dict[tuple[str, str], tuple[KnownFinding, ...]] = {}
    known = {}
    for entry in entries:
        known[entry.fingerprint] = entry
        runs[entry.key[:2]] = (*runs.get(entry.key[:2], ()), entry)
    return Baseline(source, folder_of(source), known, runs)
