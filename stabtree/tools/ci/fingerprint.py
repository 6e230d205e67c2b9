"""Fingerprints, which identify a finding when the same log, or one that has grown, is judged again."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from stabtree.common.lazy import np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stabtree.diagnosis.result import Diagnosis, Incident
    from stabtree.run import Run

VERSION = "stabtree/v1"
"""The version of what is hashed; change it with the recipe, so that no old fingerprint equals a new one."""


def fingerprint(diagnosis: Diagnosis, finding: Incident) -> str:
    """Return the SHA-256, in hex, of the leaf, the run's name, and everything logged up to the onset.

    It stays the same when the log grows, also by new columns. It changes with another NaN in the same file, and with
    a changed row before the onset. A finding without an onset rests on the whole log, so it changes when that grows.

    Args:
        diagnosis: the run's diagnosis.
        finding: one of its findings.
    """
    digest = hashlib.sha256()
    for name in (VERSION, finding.leaf.id, diagnosis.run.name):
        _add(digest, name.encode("utf-8", "surrogatepass"))
    for part in _rows(diagnosis.run, finding.onset_step):
        _add(digest, part)
    return digest.hexdigest()


def _rows(run: Run, onset: int | None) -> Iterator[bytes]:
    """Yield name, steps and values of each series up to the onset, the same on every platform."""
    for metric, read in sorted(run.series.items()):
        series = run.written.get(metric, read)  # what a value is taken for may change as the log grows
        count = len(series)
        if onset is not None:
            count = int(np.searchsorted(series.steps, onset, side="right"))
        if not count:
            continue
        values = series.values[:count]
        yield metric.encode("utf-8", "surrogatepass")
        yield series.steps[:count].astype("<i8").tobytes()
        yield np.where(np.isnan(values), np.nan, values).astype("<f8").tobytes()  # a NaN has many spellings


def _add(digest: hashlib._Hash, part: bytes) -> None:
    """Add a part with its length before it, so that no two lists of parts give the same bytes."""
    digest.update(len(part).to_bytes(8, "little"))
    digest.update(part)
