"""The record that a Recorder begins a run with, and what a file holds besides its last run."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from stabtree.common.dataclass import dataclass
from stabtree.common.text import clean
from stabtree.run import RUN_HEADER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stabtree.run import ConfigScalar

SEVERAL_RUNS = "The file holds"  # begins the note on them
MAX_NAMED = 3
MAX_TEXT = 40


class Header(NamedTuple):
    """What tells runs in one file apart.

    Attributes:
        id: of the run.
        started: when a process began to write it, as ISO 8601; empty where that is not known.
        resumes: whether the process goes on with the run before, whatever its id.
    """

    id: str
    started: str = ""
    resumes: bool = False


def header_of(row: Mapping[str, Any]) -> Header | None:
    """Return the header that a row of configuration is; None where it is none."""
    held = row.get(RUN_HEADER)
    if not isinstance(held, dict) or not isinstance(held.get("id"), str):
        return None
    started = held.get("started")
    if not isinstance(started, str):
        started = ""
    return Header(clean(held["id"], MAX_TEXT), clean(started, MAX_TEXT), held.get("resumes") is True)


class Earlier(NamedTuple):
    """A run of the file that is left out: when it started, and its rows."""

    started: str
    rows: int


@dataclass(slots=True)
class FileRuns:
    """Follows the runs of a file: which one its rows are of, and which ones came before.

    A run begins with the first row after its header, so that a process that ended before that hides no other run.

    Attributes:
        config: the settings of the run that the last row is of.
        earlier: the runs that were left out.
    """

    config: dict[str, ConfigScalar] = field(default_factory=dict)
    earlier: list[Earlier] = field(default_factory=list)
    _header: Header | None = None
    _next: tuple[Header, dict[str, ConfigScalar]] | None = None

    def add(self, header: Header | None, config: Mapping[str, ConfigScalar], rows: int) -> None:
        """Take in a row of configuration, which may be a header, after so many rows of the current run."""
        if header is not None:
            self._turn(header, rows)
        if self._next is None:
            self.config |= config
        else:
            self._next[1].update(config)

    def _turn(self, header: Header, rows: int) -> None:
        """Begin another run, unless the header is of the one that goes on."""
        known = self._header is not None and self._header.id == header.id
        if known or (header.resumes and rows):
            self._next = None
        elif rows:
            self._next = header, {}
        else:
            if self._header is not None:  # a run of no rows
                self.config = {}
            self._header = header

    def begins(self, rows: int) -> bool:
        """Return whether the row to come is the first one of another run than the rows so far."""
        if self._next is None:
            return False
        self.earlier.append(Earlier(self._header.started if self._header else "", rows))
        (self._header, self.config), self._next = self._next, None
        return True

    def notes(self) -> tuple[str, ...]:
        """Return the note on the runs that are left out."""
        if not self.earlier:
            return ()
        last = ""
        if self._header is not None and self._header.started:
            last = f", started {self._header.started}"
        named = [_described(one) for one in self.earlier[-MAX_NAMED:]]
        if len(self.earlier) > MAX_NAMED:
            named.insert(0, f"{len(self.earlier) - MAX_NAMED:,} more")
        count = len(self.earlier) + 1
        return (f"{SEVERAL_RUNS} {count} runs of a Recorder: the last is read{last}. Not read: {'; '.join(named)}.",)


def _described(run: Earlier) -> str:
    rows = f"{run.rows:,} row{'s' * (run.rows != 1)}"
    if run.started:
        return f"{rows} of the run started {run.started}"
    return f"{rows} of a run before"
