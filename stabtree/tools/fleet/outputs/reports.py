"""A report of each run that calls for one, beside the page of all runs."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from stabtree.common.errors import StabtreeError
from stabtree.report.html import html
from stabtree.tree.model import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.tools.fleet.record import Record

ALARMED = (Severity.CRITICAL, Severity.WARNING)
LONGEST_NAME = 80
DIGITS = 10  # of a hash: so that two names which differ only in what a file can't be called stay two files


def report_name(record: Record) -> str:
    """Return the name of the file of a run's report; empty where a run is not alarmed and gets none."""
    if record.badge not in ALARMED:
        return ""
    digest = hashlib.sha256(f"{record.path}\0{record.run}".encode("utf-8", "surrogatepass")).hexdigest()
    readable = re.sub(r"[^A-Za-z0-9]+", "-", record.name)[-LONGEST_NAME:].strip("-")
    return f"{readable}-{digest[:DIGITS]}.html"


def reports(
    records: Iterable[Record], diagnosed: Callable[[Record], Diagnosis | StabtreeError]
) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each report, one at a time.

    Args:
        records: the runs.
        diagnosed: reads and judges a run once more; a log that went away since has no report.
    """
    for record in records:
        name = report_name(record)
        if not name:
            continue
        found = diagnosed(record)
        if not isinstance(found, StabtreeError):
            yield name, html(found)
