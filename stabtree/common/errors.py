"""The exceptions that a user can cause."""

from typing import Any

FOUND, UNUSABLE, NOT_JUDGED, OUR_FAULT = 1, 2, 3, 4
"""The exit codes besides 0, which means that every run was judged and none is at or above `--fail-on`."""
PRECEDENCE = (FOUND, OUR_FAULT, UNUSABLE, NOT_JUDGED)
"""The order in which the exit codes of several runs count."""
FAULTS = "stabtree.faults"
"""The logger that gets each fault of our own with its traceback, at level DEBUG."""


class StabtreeError(Exception):
    """Something that the user can fix: a bad file, a bad option, a bad tree.

    Anything else that escapes from stabtree is a bug of ours and keeps its traceback.

    Args:
        problem: what is wrong, in one sentence.
        where: the file, line, column or option it is about.
        hint: the next thing to type or to do.
        places: by the index of a line of the problem, the `Place` that it is about.
    """

    def __init__(self, problem: str, *, where: str = "", hint: str = "", places: Any = ()) -> None:
        self.problem = problem
        self.where = where
        self.hint = hint
        self.places: dict[int, Any] = dict(places)
        super().__init__(": ".join(filter(None, (where, problem))))

    def __str__(self) -> str:
        """The problem, where it is, and what to do: all that a traceback shows."""
        return "; ".join(filter(None, (str(self.args[0]), self.hint)))


def too_little_memory(where: str = "") -> StabtreeError:
    """Return the error for a log that needs more memory than there is."""
    hint = "judge its end alone: (head -n 1 FILE; tail -n 100000 FILE) | stabtree -"
    return StabtreeError("there is too little memory to read and judge it", where=where, hint=hint)


class SeveralRunsError(StabtreeError):
    """One run was asked for, but there are several.

    Attributes:
        names: the runs within the file or folder, by name; empty where they are files of their own.
        files: the files that are a run each.
        unseen: the number of further files that were not opened.
    """

    def __init__(
        self, problem: str, *, names: tuple[str, ...] = (), files: tuple[str, ...] = (), unseen: int = 0, **place: str
    ) -> None:
        self.names = names
        self.files = files
        self.unseen = unseen
        super().__init__(problem, **place)


class NoLogError(StabtreeError):
    """A folder without a log."""


class NoRowsError(StabtreeError):
    """A log whose header names metrics, with no row or no number below it."""
