"""What comes to the logs below some paths: files, folders, patterns, and what is not there yet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.errors import StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.folder import MAX_DEPTH, entries, is_file
from stabtree.loaders.formats import by_name, picked
from stabtree.loaders.paths.find import OTHERS, deduplicated, expanded
from stabtree.loaders.paths.load import GLIMPSE_BYTES
from stabtree.loaders.source import glimpse
from stabtree.metrics.names import named
from stabtree.tools.live.watch.growing import GrowingFile
from stabtree.tools.live.watch.rows import LineRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stabtree.tools.live.watch.rows import Row

LISTED_EVERY = 10  # looks, after which folders are searched for new files
MAX_FILES = 1000
MAX_ENTRIES = 20_000
MAX_GLIMPSES = 500  # files that are looked into at once; the others wait for the next search
BY_NAME = ("tfevents", ".wandb")  # what loggers call their files, however they begin
DATABASES = (".db", ".sqlite", ".sqlite3")  # SQLite writes to a file beside one first
SETTLED_BYTES = 1 << 16  # a file that is longer and was no log before will be none


class Growth(NamedTuple):
    """What came to all logs.

    Attributes:
        rows: the new rows of the logs that are read by lines, in their order.
        files: the file that each of them came to.
        size: bytes of all logs, and one for each time that one was written over and stayed as long.
        there: whether there is any.
        notes: what is out of the ordinary, each once.
    """

    rows: tuple[Mapping[str, float], ...]
    files: tuple[str, ...]
    size: int
    there: bool
    notes: tuple[str, ...]


class Follower:
    """Looks at logs again and again, by their sizes and times alone: no disk is asked for more.

    Args:
        paths: files, folders, patterns; none of them need be there yet.
        columns: metric -> column, for columns whose names are not known.
        step_column: the column that holds the steps.
        format: the name of a loader, where sniffing the content errs.
    """

    def __init__(
        self,
        paths: Sequence[str],
        *,
        columns: Mapping[str, str],
        step_column: str | None = None,
        format: str | None = None,  # noqa: A002 - as of `load_run`
    ) -> None:
        self._paths = paths
        self._names = named(columns, step_column)
        self._forced = by_name(format) if format else None
        self._logs: dict[str, tuple[GrowingFile, LineRows]] = {}
        self._read: dict[str, None] = {}
        self._sizes: dict[str, int] = {}  # of what is no log, when it was looked into
        self._problems: dict[str, str] = {}
        self._looks = self._glimpses = 0

    def reads(self, files: Iterable[str]) -> None:
        """Follow what a judgement read too, such as the file that a manifest names."""
        for file in files:
            if file not in self._read:
                self._read[file] = None
                self._looks = 0

    def look(self) -> Growth:
        """What came since the last look."""
        if self._looks % LISTED_EVERY == 0 or not any(file.size for file, _ in self._logs.values()):
            self._list()
        self._looks += 1
        rows: list[Row] = []
        files: list[str] = []
        notes: list[str] = []
        for path, (file, lines) in self._logs.items():
            came = file.look()
            notes += self._told(path, came.problem, known=bool(file.size))
            if came.anew and lines.found:
                notes.append(f"{clean(path)} was written anew: it is followed from its beginning")
            if came.anew or came.head:
                lines.begin(came.head)
            new = lines.take(came.text)
            rows += new
            files += [path] * len(new)
            file.lines &= lines.by_line
        size = sum(file.size + file.rewrites for file, _ in self._logs.values())
        return Growth(tuple(rows), tuple(files), size, size > 0, tuple(notes))

    def _told(self, path: str, problem: str, *, known: bool) -> Iterator[str]:
        """The note on a file that can't be looked at, once each time; one that was never there is waited for."""
        before = self._problems.get(path, "")
        self._problems[path] = problem
        if problem and problem != before and (known or not _is_gone(path)):
            yield f"{clean(path)} can't be looked at just now, and is tried again: {clean(problem)}"

    def _list(self) -> None:
        """Find the logs that are there now; one that was found is kept until it is known to be gone."""
        self._glimpses = 0
        found = {path: None for path in self._logs if not _is_gone(path)}
        for given in self._paths:
            for path in expanded(given):
                if _is_folder(path):
                    found.update(dict.fromkeys(self._below(Path(path))))
                else:
                    found[path] = None
                    if path.endswith(DATABASES) and is_file(Path(f"{path}-wal")):
                        found[f"{path}-wal"] = None
        for path in self._read:
            found.update(dict.fromkeys(_all_below(Path(path)) if _is_folder(path) else [path]))
        alone = deduplicated([*found])[:MAX_FILES]
        self._logs = {path: self._logs.get(path) or self._new(path) for path in map(str, alone)}

    def _new(self, path: str) -> tuple[GrowingFile, LineRows]:
        return GrowingFile(Path(path)), LineRows(Path(path), self._names, self._forced)

    def _below(self, folder: Path) -> Iterator[str]:
        return (path for path in _all_below(folder) if path in self._logs or self._is_log(Path(path)))

    def _is_log(self, file: Path) -> bool:
        if any(mark in file.name for mark in BY_NAME):
            return True
        path = str(file)
        try:
            size, known = file.stat().st_size, self._sizes.get(path, 0)
            if file.name in OTHERS or size == known or known > SETTLED_BYTES or self._glimpses >= MAX_GLIMPSES:
                return False
            self._glimpses += 1
            self._sizes[path] = size
            return picked(glimpse(file, GLIMPSE_BYTES), self._names) is not None
        except (StabtreeError, OSError):
            return False


def _is_folder(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except OSError:
        return False


def _is_gone(path: str) -> bool:
    """Whether nothing is there, and not only nobody can tell just now."""
    try:
        Path(path).lstat()
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False
    return False


def _all_below(folder: Path) -> Iterator[str]:
    """The files below a folder, as far down as runs lie."""
    waiting, seen = [(folder, 0)], 0
    for place, depth in waiting:
        folders, files = entries(place)
        yield from (str(place / name) for name in files if not name.startswith("."))
        seen += len(folders) + len(files)
        if seen > MAX_ENTRIES:
            return
        if depth < MAX_DEPTH:
            waiting += [(place / name, depth + 1) for name in folders if not name.startswith(".")]
