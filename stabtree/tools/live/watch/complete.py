"""Whether a log says that its run is complete: nothing more is to come, so that its silence is no stall."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.stats import interval
from stabtree.frameworks.load import frameworks
from stabtree.loaders.folder import is_file

if TYPE_CHECKING:
    from stabtree.run import Run

TAIL_BYTES = 4096
# What most trainers write last, of the whole run and not of a part of it.
_LAST = (
    r"(?:^|[\r\n])(?![^\r\n]*\b(?:epoch|fold|phase|round|stage)\b)"
    r"[^\r\n]*\btraining(?: is| has)?(?: been)? (?:completed?|finished)\b"
)


def is_complete(run: Run) -> bool:
    """Return whether a run made all its steps, or its trainer's last line is at the end of the log."""
    loss, last = run.get("loss"), run.last_step
    if loss is not None and last is not None:
        counted_from_one = int(loss.steps[0] > 0)
        if last + interval(loss.steps) > run.planned_step + counted_from_one:
            return True
    return any(_last_line().search(_end_of(source.path)) for source in run.sources)


@cache
def _last_line() -> re.Pattern[bytes]:
    """Return what finds the last line of a complete run, by any trainer."""
    lines = [one.log.last_line for one in frameworks().values() if one.log.last_line]
    return re.compile("|".join((*lines, _LAST)).encode(), re.IGNORECASE)


def _end_of(path: str) -> bytes:
    if not is_file(Path(path)):  # a pipe in its place would be waited for
        return b""
    try:
        with Path(path).open("rb") as stream:
            stream.seek(max(0, Path(path).stat().st_size - TAIL_BYTES))
            return stream.read(TAIL_BYTES)
    except (OSError, ValueError):
        return b""
