"""A watch over logs that grow: what comes to the files, how the run goes, and what ends the watch."""

from __future__ import annotations

import os
import re
import time
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.errors import StabtreeError
from stabtree.common.stats import interval
from stabtree.common.text import clean
from stabtree.frameworks.load import frameworks
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
MAX_FILES, MAX_ENTRIES = 1000, 20_000
WEIGHTS = (".pt", ".pth", ".bin", ".safetensors", ".ckpt", ".npz", ".npy", ".distcp", ".png", ".keras", ".h5")
DATABASES = (".db", ".sqlite", ".sqlite3")
"""SQLite writes to a file beside its database first."""
SMALL_BYTES = 1 << 16
"""A larger file that a judgement did not read is no log."""
MAX_NEW = 1 << 20
SIGN = re.compile(rb"\b(nan|inf|infinity)\b", re.IGNORECASE)
ROUSED_SECONDS = 0.1
"""Between two looks while rows come that a finding waits for."""
SILENT_SECONDS, DEAD_SECONDS = 300.0, 10.0
"""Without a byte, after which no more rows are waited for; behind an error, after which the process is dead."""
SETTLED_SECONDS, SETTLED_TIMES = 60.0, 2
"""Without a byte, after which a run that says it is complete is believed; in times of the longest pause so far."""
TAIL_BYTES = 4096
_NUMBER = re.compile(r"\d+")
# What most trainers write last, of the whole run and not of a part of it.
_LAST = (
    r"(?:^|[\r\n])(?![^\r\n]*\b(?:epoch|fold|phase|round|stage)\b)"
    r"[^\r\n]*\btraining(?: is| has)?(?: been)? (?:completed?|finished)\b"
)


class Growth(NamedTuple):
    """What came to all logs: their size in bytes, whether new text holds a NaN or an infinity, and notes on files."""

    size: int
    sign: bool = False
    notes: tuple[str, ...] = ()


class _Watched:
    """A file that may grow, and what was last seen of it; `name` is its path as it was given."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.size = self.rewrites = self.time = 0
        self.is_log = True
        self.problem = ""


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
        """Take in which files a judgement read, such as the one that a manifest names; larger others are no logs."""
        read = {str(Path(file).absolute()) for file in files}
        if read - self._read:
            self._looks = 0
        self._read |= read
        if not read:
            return
        for path, file in self._files.items():
            is_read = not self._read.isdisjoint({path, *map(str, Path(path).parents)})
            file.is_log = is_read or file.name in self._paths or file.size <= SMALL_BYTES

    def look(self) -> Growth:
        """Return what came since the last look."""
        if self._looks % LISTED_EVERY == 0 or not any(file.size for file in self._files.values()):
            for name in self._list():
                if len(self._files) < MAX_FILES:
                    self._files.setdefault(str(Path(name).absolute()), _Watched(name))
        self._looks += 1
        notes: list[str] = []
        signs: set[str] = set()
        for path, file in list(self._files.items()):
            if not file.is_log:
                continue
            problem = ""
            try:
                self._look_at(file, notes, signs)
            except (OSError, ValueError) as error:
                is_gone = isinstance(error, FileNotFoundError)
                if is_gone and file.name not in self._paths:
                    del self._files[path]
                    continue
                problem = getattr(error, "strerror", None) or str(error)
                if problem != file.problem and (file.size or not is_gone):  # one that was never there is waited for
                    notes.append(
                        f"{clean(file.name)} can't be looked at just now, and is tried again: {clean(problem)}"
                    )
            file.problem = problem
        size = sum(file.size + file.rewrites for file in self._files.values() if file.is_log)
        return Growth(size, self._signs.call(frozenset(signs)), tuple(notes))

    def _look_at(self, file: _Watched, notes: list[str], signs: set[str]) -> None:
        """Take in the size of a file, and look for signs in what was written to its end."""
        path = Path(file.name)
        status = path.stat()
        if not is_file(path):
            raise OSError(0, "is not a regular file")
        before, size = file.size, status.st_size
        anew = size < before
        if anew and path.suffix != ".json":  # which trainers write anew each time
            notes.append(f"{clean(file.name)} was written anew: it is followed from its beginning")
        file.rewrites += anew or (size == before and file.time not in (0, status.st_mtime_ns))
        if before and size > before:
            with path.open("rb") as stream:
                stream.seek(max(before, size - MAX_NEW))
                if SIGN.search(stream.read(MAX_NEW)):
                    signs.add(file.name)
        file.size, file.time = size, status.st_mtime_ns

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
            patience = SILENT_SECONDS
            if self._watching.announcer.awaits_end:
                patience = DEAD_SECONDS
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
        new: dict[str, list[str]] = {}
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
                    new.setdefault(text, []).append(name)
        for text, (name, *others) in new.items():
            more = f" (and {len(others)} more)" if others else ""
            yield f"{clean(name)}{more}: {clean(text)}"

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
    """Return whether a run made all its steps, or its trainer's last line is at the end of the log."""
    loss, last = run.get("loss"), run.last_step
    if loss is not None and last is not None:
        counted_from_one = int(loss.steps[0] > 0)
        if last + interval(loss.steps) > run.planned_step + counted_from_one:
            return True
    for path in (Path(source.path) for source in run.sources):
        try:
            if is_file(path):  # a pipe in its place would be waited for
                with path.open("rb") as stream:
                    stream.seek(max(0, path.stat().st_size - TAIL_BYTES))
                    if last_line().search(stream.read(TAIL_BYTES)):
                        return True
        except (OSError, ValueError):
            continue
    return False


@cache
def last_line() -> re.Pattern[bytes]:
    """Return what finds the last line of a complete run, by any trainer."""
    lines = [framework.log.last_line for framework in frameworks().values() if framework.log.last_line]
    return re.compile("|".join((*lines, _LAST)).encode(), re.IGNORECASE)
