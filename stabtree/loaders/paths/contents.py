"""The runs of a folder, or of loose logs in one: each log is a run, part of one, or named with why it was not read."""

from __future__ import annotations

import os
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.dataclass import dataclass
from stabtree.common.errors import NoRowsError, SeveralRunsError, StabtreeError
from stabtree.common.text import clean
from stabtree.loaders.counters.within import MIN_ROWS
from stabtree.loaders.folder import size_of
from stabtree.loaders.formats import by_name, picked
from stabtree.loaders.paths.claims import Claims
from stabtree.loaders.paths.find import MAX_TOGETHER, Unit, parts, place, tree_of
from stabtree.loaders.paths.joined import Loaded, joined
from stabtree.loaders.paths.kinds import OTHERS, PRINTED, ending, holds_rows, is_log, may_be_log, shape_of
from stabtree.loaders.paths.named import named_by_folder
from stabtree.loaders.paths.read import Found, select_run
from stabtree.loaders.paths.run import read_run, run_found
from stabtree.loaders.source import glimpse, open_source

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from stabtree.loaders.paths.claims import Claim
    from stabtree.loaders.paths.find import FolderTree
    from stabtree.loaders.paths.options import LoadOptions
    from stabtree.metrics.names import Names
    from stabtree.run import Run

# The first lines show what nearly every log is;
GLIMPSE_BYTES = 4096
# where they don't, and its name does not, so many files are looked at whole,
MAX_WHOLE = 100
# and of so many files of one folder, which may hold a whole data set, the first lines are looked at.
MAX_GLIMPSES = 10_000
NO_METRICS = "holds no metrics"


class Ignored(NamedTuple):
    """A file that holds no metrics, and how that is known."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Contents:
    """What a unit holds.

    Attributes:
        loaded: its runs, and the logs that could not be read.
        ignored: files that may have been logs and hold no metrics.
        further: folders and logs that are still to be read.
    """

    loaded: tuple[Loaded, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    further: tuple[Unit, ...] = ()


def contents(
    unit: Unit,
    options: LoadOptions,
    roots: Sequence[str] = (),
    *,
    unlisted: Collection[str] = (),
    cache: dict[str, Found] | None = None,
) -> Contents:
    """Read a unit.

    Args:
        unit: a folder, or loose logs of one.
        options: how to read them.
        roots: the folders that are read, links resolved.
        unlisted: folders below that are read on their own.
        cache: what was read before, by path; what is read now is added.

    Raises:
        StabtreeError: for an option that is wrong whatever the log.
    """
    options.check()
    reader = _UnitReader(options, options.names(), cache={} if cache is None else cache)
    if unit.files:
        for name in unit.files:
            reader.add_file(name if name in ("-", "") else place(unit.folder, name), named=unit.named)
        loaded = [replace(item, name=clean(item.name)) for item in joined(reader.found, options, reader.cache)]
        return Contents(tuple(loaded), tuple(reader.ignored))
    tree = tree_of(unit, roots, unlisted)
    further = [*tree.further, *reader.add_tree(tree)]
    loaded = named_by_folder(joined(reader.found, options, reader.cache))
    return Contents(tuple(loaded), tuple(reader.ignored), tuple(further))


@dataclass(slots=True)
class _UnitReader:
    """Reads the logs of one unit.

    Attributes:
        options: how to read them.
        names: what their columns mean.
        found: runs and logs that can't be read, in the order of the files.
        ignored: files that hold no metrics.
        cache: what was read, by path.
    """

    options: LoadOptions
    names: Names
    found: list[Loaded] = field(default_factory=list)
    ignored: list[Ignored] = field(default_factory=list)
    cache: dict[str, Found] = field(default_factory=dict)
    _shapes: set[tuple[str, str]] = field(default_factory=set)  # of files without metrics, of which a data set has many
    _glimpses: int = 0
    _wholes: int = 0

    def add_tree(self, tree: FolderTree) -> list[Unit]:
        """Read a tree; return those of its logs that are too many to be read with the others."""
        for folder, reason in tree.closed.items():
            problem = StabtreeError(f"can't be looked into: {reason}", where=clean(folder), hint="check its rights")
            self.found.append(Loaded(folder, problem, folder))
        claims = Claims(tree, self.names, self.options.format)
        for claim in claims:
            self._add_claim(claim)
        further: list[Unit] = []
        for folder, listing in tree.listings.items():
            self._add_special(folder, listing.special)
            loose = [name for name in listing.files if not claims.holds(folder, name)]
            logs = self._logs_of(folder, loose)
            if len(logs) > MAX_TOGETHER:
                further += parts(folder, logs)
            else:
                for name in logs:
                    self.add_file(place(folder, name))
        return further

    def add_file(self, path: str, *, named: bool = False) -> None:
        """Read a file; one that nobody named is ignored where it holds no metrics."""
        try:
            self.found.append(Loaded(path, read_run([path], self.options, self.cache), path, (path,)))
        except SeveralRunsError as error:
            for name in error.names:
                self._add(f"{path} {name}", path, partial(self._run_of, path, name))
            if not error.names:
                self.found.append(Loaded(path, error, path))
        except StabtreeError as error:
            end = None if named else self._ending(path)
            reason = "" if named else self._harmless(path, error)
            if end:
                self.found.append(Loaded(path, end, path, (path,)))
            elif reason:
                self.ignored.append(Ignored(path, reason))
            else:
                self.found.append(Loaded(path, error, path))

    def _ending(self, path: str) -> Run | None:
        """Return the end of a printed log without its rows, which hold too little, where it ends in an error."""
        found = self.cache.get(path)
        last = found.tables[-1] if found and found.tables else None
        if found is None or last is None or not last.ended_in_error:
            return None
        silent = replace(last, rows=0, columns={}, skipped=(), skipped_count=0)
        return run_found(replace(found, tables=(silent,)), self.options, [path])

    def _run_of(self, path: str, name: str) -> Run:
        return read_run([path], replace(self.options, run=name), self.cache)

    def _add(self, name: str, path: str, read: Callable[[], Run], files: tuple[str, ...] = ()) -> None:
        try:
            self.found.append(Loaded(name, read(), path, files))
        except StabtreeError as error:
            self.found.append(Loaded(name, error, path))

    def _add_claim(self, claim: Claim) -> None:
        """Read the runs of a folder of a logger."""
        path, found = claim.path, claim.found
        if isinstance(found, StabtreeError):
            self.found.append(Loaded(path, found, path))
            return
        runs = list(dict.fromkeys(table.run for table in found.tables))
        for run in runs:
            name = f"{path} {run}" if len(runs) > 1 else path
            self._add(name, path, partial(self._run_in, found, path, run), (path,) if path in claim.files else ())

    def _run_in(self, found: Found, path: str, name: str) -> Run:
        return run_found(select_run(found, path, name), self.options, [path])

    def _add_special(self, folder: str, names: Sequence[str]) -> None:
        """Name what is no regular file and is called like a log."""
        for name in filter(is_log, names):
            path = place(folder, name)
            if os.path.islink(path):  # noqa: PTH114 - a path that may be none
                self.ignored.append(Ignored(path, "is a link that leads nowhere"))
            else:
                problem = StabtreeError("is not a regular file", where=clean(path), hint="leave it out")
                self.found.append(Loaded(path, problem, path))

    def _logs_of(self, folder: str, names: Sequence[str]) -> list[str]:
        """Return the names of those files that are logs by their names or their contents."""
        logs, unseen = [], 0
        for name in names:
            path = place(folder, name)
            if name in OTHERS:
                self.ignored.append(Ignored(path, "holds settings or final values"))
            elif may_be_log(name):
                reason = self._no_log(Path(path))
                if reason is None:
                    unseen += 1
                elif reason:
                    self.ignored.append(Ignored(path, reason))
                else:
                    logs.append(name)
        if unseen:
            problem = f"holds {unseen:,} more files, which were not looked at"
            error = StabtreeError(problem, where=clean(folder), hint="name the logs among them by a pattern")
            self.found.append(Loaded(f"{folder} (the rest)", error, folder))
        return logs

    def _no_log(self, file: Path) -> str | None:
        """Return why a file is no log, nothing where it is or may be one; None where there are too many to look."""
        by_its_name = is_log(file.name)
        if size_of(file) == 0:
            return "" if by_its_name and ending(file.name) not in PRINTED else "is empty"
        if by_its_name and not self.options.format:
            return ""
        self._glimpses += 1
        if self._glimpses > MAX_GLIMPSES:
            return None
        try:
            return self._no_metrics(file)
        except StabtreeError as error:
            return "" if by_its_name else error.problem

    def _no_metrics(self, file: Path) -> str | None:
        """Return as `_no_log` what the content of a file shows.

        Raises:
            StabtreeError: where it can't be read.
        """
        first = glimpse(file, GLIMPSE_BYTES)
        if self.options.format:
            return "" if by_name(self.options.format).sniff(first, self.names) else "is of another format"
        whole = size_of(file) <= GLIMPSE_BYTES
        shape = ending(file.name), shape_of(first.head)
        if whole and not first.binary and shape in self._shapes:
            return NO_METRICS
        loader = picked(first, self.names)
        short = whole and loader is not None and loader.name == "jsonl" and first.head.count("\n") < MIN_ROWS
        if (loader and not short) or (holds_rows(first.head) and not first.binary):
            return ""
        if whole or (first.binary and not first.packed):
            if first.binary:
                return f"is {first.binary}"
            self._shapes.add(shape)
            return NO_METRICS
        self._wholes += 1
        if self._wholes > MAX_WHOLE:
            return None
        return "" if picked(open_source(file), self.names) else NO_METRICS

    def _harmless(self, path: str, error: StabtreeError) -> str:
        """Return why a file that can't be read holds no metrics; nothing where it may hold some."""
        name = Path(path).name
        read = self.cache.get(path)
        if read is not None:
            short = all(table.rows < MIN_ROWS for table in read.tables)
            return error.problem if short and not isinstance(error, NoRowsError) else ""
        try:
            source = glimpse(Path(path), GLIMPSE_BYTES)
        except StabtreeError:
            return ""
        loader = picked(source, self.names)
        if loader and loader.name == "wandb" and not source.binary:
            return error.problem  # settings, final values, messages
        if source.binary or (is_log(name) and ending(name) not in PRINTED and any(map(str.isdigit, source.head))):
            return ""
        return "" if isinstance(error, NoRowsError) or holds_rows(source.head) else error.problem
