"""What the messages of a text log show of the program that wrote it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stabtree.predicates.clues.registry import Seen, clue
from stabtree.predicates.lines import own_frame

if TYPE_CHECKING:
    from stabtree.predicates.clues.registry import Moment
    from stabtree.run import Run

_RANK = re.compile(r"\brank ?[1-9]|local_rank", re.IGNORECASE)


@clue
def failing_line(_moment: Moment, run: Run) -> Seen | None:
    """Return the last line of the user's own code in the traceback that ended the run."""
    frame = own_frame(run)
    return Seen("yes", f"the error was raised at {frame}", frame) if frame else None


@clue
def several_ranks(_moment: Moment, run: Run) -> Seen:
    """Return whether the log is of several ranks."""
    if run.ranks or any(_RANK.search(line.text) for line in run.lines):
        return Seen("yes", "the log names several ranks")
    return Seen("no", "the log names one process only")
