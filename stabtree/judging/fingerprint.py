"""What a finding is known by again, in another run of this tool over the same log, or over one that has grown."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from stabtree.common.lazy import np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.diagnosis.result import Diagnosis, Finding
    from stabtree.run import Run

VERSION = "stabtree/v1"
"""What the hash is made of: another recipe is another version, so that no old fingerprint is taken for a new one."""


def fingerprint(diagnosis: Diagnosis, finding: Finding) -> str:
    """The SHA-256, in hex, of the leaf, the run's name, and all that was logged up to the onset.

    A log that merely grew gives the same one, whatever was logged later, in new columns too; another NaN in the same
    file gives another one, and so does a changed row before the onset. What has no onset rests on the whole log, and
    is another finding when that grows.

    Args:
        diagnosis: what was found in the run.
        finding: one of its findings.
    """
    known = hashlib.sha256()
    for name in (VERSION, finding.leaf.id, diagnosis.run.name):
        _add(known, name.encode("utf-8", "surrogatepass"))
    for part in _rows(diagnosis.run, finding.onset_step):
        _add(known, part)
    return known.hexdigest()


def _rows(run: Run, onset: int | None) -> Iterator[bytes]:
    """Each series that was logged up to the onset: its name, steps and values, the same on every machine."""
    for metric, read in sorted(run.series.items()):
        series = run.written.get(metric, read)  # what a value is taken for may change as the log grows
        count = len(series) if onset is None else int(np.searchsorted(series.steps, onset, side="right"))
        if not count:
            continue
        values = series.values[:count]
        yield metric.encode("utf-8", "surrogatepass")
        yield series.steps[:count].astype("<i8").tobytes()
        yield np.where(np.isnan(values), np.nan, values).astype("<f8").tobytes()  # a NaN has many spellings


def _add(known: hashlib._Hash, part: bytes) -> None:
    """A part with its length before it, so that no two lists of parts read alike."""
    known.update(len(part).to_bytes(8, "little"))
    known.update(part)
