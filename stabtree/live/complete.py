"""Whether a log says that its run is complete: nothing more is to come, so that its silence is no stall."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from stabtree.common.stats import interval

if TYPE_CHECKING:
    from stabtree.run import Run

TAIL_BYTES = 4096
# What trainers write last: the Trainer's summary, Lightning, and the words of most others, not of a part of the run.
_LAST = re.compile(
    rb"train_runtime\W|`?Trainer\.fit`? stopped: `?max_\w+="
    rb"|(?:^|[\r\n])(?![^\r\n]*\b(?:epoch|fold|phase|round|stage)\b)"
    rb"[^\r\n]*\btraining(?: is| has)?(?: been)? (?:completed?|finished)\b",
    re.IGNORECASE,
)


def is_complete(run: Run) -> bool:
    """Whether a run made all its steps, or its trainer's last line stands at the end of the log."""
    loss, last = run.get("loss"), run.last_step
    if loss is not None and last is not None:
        counted_from_one = int(loss.steps[0] > 0)
        if last + interval(loss.steps) > run.planned_step + counted_from_one:
            return True
    return any(_LAST.search(_end_of(source.path)) for source in run.sources)


def _end_of(path: str) -> bytes:
    try:
        with Path(path).open("rb") as stream:
            stream.seek(max(0, Path(path).stat().st_size - TAIL_BYTES))
            return stream.read(TAIL_BYTES)
    except (OSError, ValueError):
        return b""
