"""A watch over logs that grow: what comes to the files, how the run goes, and what ends the watch."""

from __future__ import annotations

import glob
import os
import re
import sys
import time
import weakref
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.endings import FINISHED, ending_of
from stabtree.common.errors import StabtreeError
from stabtree.common.stats import interval
from stabtree.common.text import clean
from stabtree.loaders.folder import MAX_DEPTH, is_file
from stabtree.loaders.paths.find import expanded
from stabtree.tools.live.events import Signs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from stabtree.judging.verdict import Outcome
    from stabtree.run import Run
    from stabtree.tools.live.events import News, Watching

LISTED_EVERY = 10
"""Looks after which folders are searched for new files."""
MAX_FILES, MAX_ENTRIES, HEAD_BYTES = 1000, 20_000, 1 << 12
WEIGHTS = (".pt", ".pth", ".bin", ".safetensors", ".ckpt", ".npz", ".npy", ".distcp", ".png", ".keras", ".h5")
DATABASES = (".db", ".sqlite", ".sqlite3")
"""SQLite writes to a file beside its database first."""
SMALL_BYTES = 1 << 16
"""A larger file that a judgement did not read is no log."""
MAX_HELD, CAN_HOLD = 200, sys.platform != "win32"
"""So many files are held open; on Windows nobody could move such a file."""
SIGN = re.compile(rb"\b(nan|inf|infinity)\b", re.IGNORECASE)
ROUSED_SECONDS = 0.1
"""Between two looks while rows come that a finding waits for."""
SILENT_SECONDS, DEAD_SECONDS = 300.0, 10.0
"""Without a byte, after which no more rows are waited for; behind an error, after which the process is dead."""
SETTLED_SECONDS, SETTLED_TIMES = 60.0, 2
"""Without a byte, after which a run that says it is complete is believed; in times of the longest pause so far."""
_NUMBER = re.compile(r"\d+")


class Growth(NamedTuple):
    """What came to all logs since the last look.

    Attributes:
        size: their size in bytes.
        sign: whether new text holds a NaN or an infinity.
        notes: on files.
    """

    size: int
    sign: bool = False
    notes: tuple[str, ...] = ()


class _Watched:
    """A log that may grow, and what was read of it; `name` is its path as it was given.

    What was read stays read: a log that is rotated, cut or replaced goes on in another part. Its file is held open
    where that hinders nobody, and read to its end wherever it was moved.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.parts: list[bytearray] = []
        self._size = 0
        self.problem = ""
        self._file: int | Path = Path(name)

    @property
    def size(self) -> int:
        """The bytes of all its parts."""
        return sum(map(len, self.parts[:-1])) + self._size

    def look(self, *, hold: bool, keep: bool) -> tuple[bytes, bool]:
        """Return what came since the last look, and whether the log was begun anew.

        Args:
            hold: whether to hold its file open.
            keep: whether to keep what it holds: what nobody named or judged may be anything.

        Raises:
            OSError: where it is not there, or is no regular file.
        """
        path, new = Path(self.name), b""
        if self.parts and keep:
            new = self._read(len(self.parts[-1]))
            self.parts[-1] += new
            self._size = max(self._size, len(self.parts[-1]))
        status, is_first = path.stat(), not self.parts
        if not is_file(path):
            raise OSError(0, "is not a regular file")
        is_moved = is_first or not os.path.samestat(status, os.stat(self._file))  # noqa: PTH116 - or a descriptor
        last = self.parts[-1] if self.parts else bytearray()
        if not is_moved and status.st_size >= self._size and self._read(0, len(last[:HEAD_BYTES])) == last[:HEAD_BYTES]:
            self._size = status.st_size
            return new, False
        if not is_moved and last:
            last[:] = self._copied(bytes(last)) or last
        elif hold and is_moved:
            self._file = os.open(path, os.O_RDONLY)
            weakref.finalize(self, os.close, self._file)
        text = b""
        if keep:
            text = self._read(0)
        # What is written over as a whole, as a table or a state by each epoch, holds its old rows itself.
        is_whole = status.st_size >= self._size or path.suffix == ".json" or b"\0" in last[:HEAD_BYTES]
        self.parts[len(self.parts) - is_whole :] = [bytearray(text)]
        self._size = status.st_size
        return b"" if is_first else new + text, not is_whole

    def _read(self, begin: int, size: int = -1) -> bytes:
        with open(self._file, "rb", closefd=not isinstance(self._file, int)) as file:
            file.seek(begin)
            return file.read(size)

    def _copied(self, text: bytes) -> bytes:
        """Return the copy that was made of a log before it was cut to nothing; nothing where there is none."""
        path = Path(self.name)
        for file in path.parent.glob(f"{glob.escape(path.name)}?*"):
            with suppress(OSError):
                if is_file(file) and file.stat().st_size >= len(text) and (copy := file.read_bytes()).startswith(text):
                    return copy
        return b""

    def text(self) -> bytes:
        """Return what the log holds; nothing where that is what lies at its place."""
        if not any(self.parts) or (len(self.parts) == 1 and Path(self.name).exists()):
            return b""
        text = b""
        for part in self.parts:
            if part.startswith(text):
                text = bytes(part)  # written anew, and longer
            elif not text.startswith(part):  # as a header alone
                text += part
        return text


class Follower:
    """Looks at the sizes of logs again and again, and at the text that comes to them.

    Args:
        paths: files, folders, patterns; none of them need be there yet.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths, self._signs = paths, Signs()
        self._files: dict[str, _Watched] = {}  # by absolute path
        self._read: set[str] = set()
        self._looks = 0

    def judged(self, files: Iterable[str]) -> None:
        """Take in which files a judgement read, such as the one that a manifest names."""
        read = {str(Path(file).absolute()) for file in files}
        if read - self._read:
            self._looks = 0
        self._read |= read

    def contents(self) -> dict[str, bytes]:
        """Return by absolute path what those logs hold that are more than their file."""
        return {path: text for path, file in self._files.items() if (text := file.text())}

    def look(self) -> Growth:
        """Return what came since the last look."""
        lists = self._looks % LISTED_EVERY == 0 or not any(file.size for file in self._files.values())
        for name in self._list() if lists else ():
            if len(self._files) < MAX_FILES:
                self._files.setdefault(str(Path(name).absolute()), _Watched(name))
        self._looks += 1
        notes: list[str] = []
        signs: set[str] = set()
        total = 0
        for count, (path, file) in enumerate(list(self._files.items())):
            keep = file.name in self._paths or not self._read.isdisjoint({path, *map(str, Path(path).parents)})
            if self._read and not keep and file.size > SMALL_BYTES:
                continue  # no log
            problem = ""
            try:
                new, anew = file.look(hold=CAN_HOLD and count < MAX_HELD, keep=keep)
            except (OSError, ValueError) as error:
                is_gone = isinstance(error, FileNotFoundError)
                if is_gone and lists and file.name not in self._paths:
                    del self._files[path]
                    continue
                problem = getattr(error, "strerror", None) or str(error)
                if problem != file.problem and (file.size or not is_gone):  # one that was never there is waited for
                    notes.append(
                        f"{clean(file.name)} can't be looked at just now, and is tried again: {clean(problem)}"
                    )
            else:
                if SIGN.search(new):
                    signs.add(file.name)
                if anew:
                    notes.append(f"{clean(file.name)} was written anew: its old rows still count")
            file.problem = problem
            total += file.size
        return Growth(total, self._signs.call(frozenset(signs)), tuple(notes))

    def _list(self) -> Iterator[str]:
        """Yield the files that may be logs."""
        for given in (*self._paths, *sorted(self._read)):
            for path in expanded(given):
                if os.path.isdir(path):  # noqa: PTH112 - answers False where a Path raises
                    yield from _below(path)
                else:
                    yield path
                    if path.endswith(DATABASES):
                        yield f"{path}-wal"


def _below(folder: str) -> Iterator[str]:
    """Yield the files below a folder, as far down as runs lie."""
    seen = 0
    for place, folders, files in os.walk(folder):
        if len(Path(place).relative_to(folder).parts) >= MAX_DEPTH:
            folders.clear()
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        seen += len(folders) + len(files)
        if seen > MAX_ENTRIES:
            return
        logs = (name for name in sorted(files) if not name.lower().endswith(WEIGHTS))
        yield from (str(Path(place, name)) for name in logs if not name.startswith("."))


class End(StrEnum):
    """What ended a watch, as it is said."""

    ASKED = "stopped"
    FOUND = "found what --until-found waits for"
    STALLED = "stalled: nothing was written for {}, and the log does not say that the run is complete"
    COMPLETE = "the run is complete, and nothing was written for {}"


class Round(NamedTuple):
    """What one look brought.

    Attributes:
        news: what is reported.
        notes: what happened besides.
        there: whether any log is there.
        outcomes: the last outcomes.
        quiet_seconds: since anything was written.
    """

    news: tuple[News, ...]
    notes: tuple[str, ...]
    there: bool = False
    outcomes: Sequence[Outcome] = ()
    quiet_seconds: float = 0.0


class Session:
    """One watch over the logs of some paths; it ends by itself when all runs say that they are complete.

    Args:
        follower: looks at the logs.
        watching: judges them.
        every: seconds between two looks.
        stall: seconds without anything written that end it; None for never.
        until: whether a finding that is reported ends it.
        stopped: whether it was asked to end.
        sleep: waits for so many seconds, or until it was asked to end.

    Attributes:
        end: what ended it.
        silence: seconds without anything written when it ended.
    """

    def __init__(
        self,
        follower: Follower,
        watching: Watching,
        *,
        every: float = 1.0,
        stall: float | None = None,
        until: Callable[[News], bool] = lambda _news: False,
        stopped: Callable[[], bool] = lambda: False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._follower, self._watching, self._clock = follower, watching, watching.clock
        self._every, self._stall, self._until, self._stopped, self._sleep = every, stall, until, stopped, sleep
        self._size, self._grew, self._longest = 0, self._clock(), 0.0
        self._silent = False
        self._judged: Sequence[Outcome] = ()
        self._noted: set[tuple[str, str]] = set()
        self._complete: bool | None = None  # as last asked since anything changed
        self.end = End.ASKED
        self.silence = 0.0

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """What was last found."""
        return self._watching.outcomes

    def rounds(self) -> Iterator[Round]:
        """Yield what each look brings; the last one comes after a last judgement."""
        while True:
            growth = self._follower.look()
            news: tuple[News, ...] = ()
            if growth.size:
                news = self._watching.grown(growth.size, sign=growth.sign)
            # After a long silence what waits for further rows is reported without them.
            patience = DEAD_SECONDS if self._watching.announcer.awaits_end else SILENT_SECONDS
            is_silent = 0 < growth.size == self._size and self._clock() - self._grew >= patience
            if is_silent and not self._silent:
                news += self._watching.ended(growth.size)
            self._silent = is_silent
            round_ = self._round(growth, news)
            yield round_._replace(notes=(*growth.notes, *self._notes()))
            if self._ends(news):
                break
            roused = self._watching.waits and self._clock() - self._grew < self._every
            self._sleep(min(self._every, ROUSED_SECONDS) if roused else self._every)
        growth = self._follower.look()
        yield self._round(growth, self._watching.ended(growth.size))

    def _round(self, growth: Growth, news: tuple[News, ...]) -> Round:
        now = self._clock()
        if growth.size != self._size:
            self._longest = max(self._longest, now - self._grew) if self._size else 0.0
            self._size, self._grew, self._complete = growth.size, now, None
        if self.outcomes is not self._judged:
            self._judged, self._complete = self.outcomes, None
            runs = [item.found.run for item in self._judged if not isinstance(item.found, StabtreeError)]
            self._follower.judged(source.path for run in runs for source in run.sources)
        return Round(news, growth.notes, growth.size > 0, self._judged, now - self._grew)

    def _notes(self) -> Iterator[str]:
        """Yield what can't be read and which settings are doubtful, each once: nothing else says so before the end."""
        for name, found in self._judged:
            texts: Sequence[str]
            if isinstance(found, StabtreeError):
                texts = (f"not judged just now: {found.problem}",)
            else:
                texts = found.setting_notes
            for text in texts:
                key = name, _NUMBER.sub("", text)  # a line or a count, which goes on as the log does
                if key not in self._noted:
                    self._noted.add(key)
                    yield f"{clean(name)}: {clean(text)}"

    def _ends(self, news: Sequence[News]) -> bool:
        self.silence = self._clock() - self._grew
        settled = max(SETTLED_SECONDS, SETTLED_TIMES * max(self._every, self._longest))
        stalled = self._stall is not None and self.silence >= self._stall
        if any(self._until(item) for item in news if item.change.is_finding):
            self.end = End.FOUND
        elif (stalled or self.silence >= settled) and self._all_complete():
            self.end = End.COMPLETE
        elif stalled:
            self.end = End.STALLED
        else:
            return self._stopped()
        return True

    def _all_complete(self) -> bool:
        if self._complete is None:
            runs = [item.found for item in self._judged]
            self._complete = bool(runs) and all(
                not isinstance(found, StabtreeError) and is_complete(found.run) for found in runs
            )
        return self._complete


def is_complete(run: Run) -> bool:
    """Return whether a run made all its steps, or its log ends with a line that says so."""
    loss, last = run.get("loss"), run.last_step or 0
    if loss is not None and last + interval(loss.steps) > run.planned_step + int(loss.steps[0] > 0):
        return True
    return any(line.at_end and ending_of(line.text) == FINISHED for line in run.lines)
