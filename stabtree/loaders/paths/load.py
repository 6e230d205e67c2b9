"""`load_run` and `load_runs`: from what a user names to runs."""

from __future__ import annotations

import difflib
import math
import os
import re
from collections import Counter, deque
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from stabtree.common import extensions
from stabtree.common.errors import NoLogError, NoRowsError, SeveralRunsError, StabtreeError
from stabtree.common.text import clean, first_few
from stabtree.loaders.counters import MIN_ROWS
from stabtree.loaders.folder import CLOSED, made_up, size_of
from stabtree.loaders.formats import LOADERS, Loader, by_name, picked
from stabtree.loaders.json.document import values_table
from stabtree.loaders.paths.find import (
    MAX_TOGETHER,
    OTHERS,
    PRINTED,
    Unit,
    ending,
    expanded,
    grouped,
    is_log,
    may_be_log,
    parts,
    place,
    tree_of,
    units_of,
)
from stabtree.loaders.paths.joined import Loaded, joined
from stabtree.loaders.paths.read import LISTED, Claims, Found, LoadOptions, read_file, read_run, run_found
from stabtree.loaders.source import ADDRESS, NAME_METRICS, glimpse, open_source
from stabtree.run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stabtree.loaders.paths.find import FolderTree
    from stabtree.loaders.source import Source
    from stabtree.metrics.names import Names

__all__ = ["LOADERS", "Loaded", "Loader", "check_options", "find_runs", "load_run", "load_runs"]

MAX_PARTS = 8  # paths that may be the parts of one run
MAX_RUNS = 1000  # that are held in memory at once; far more than anyone starts in one folder
GLIMPSE_BYTES = 4096  # the first lines show what nearly every log is
MAX_LOOKS = 10_000  # at the first lines of files, which may be a whole data set,
LOOKS_FOR_WHOLE = 100  # where a file that is looked at whole, as its first lines show nothing, counts so many times
NO_METRICS = "holds no metrics"
OUTSIDE = "is a link that leads outside the folder"
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|nan|inf)(?![\w.]*\w)", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]{2}")
MIN_ALIKE = 3  # lines of one shape; as many rows as the shortest run has
MAX_LINE = 2000  # characters of a line that is looked at


class Ignored(NamedTuple):
    """A file that holds no metrics, and how that is known."""

    path: str
    reason: str


class Contents(Struct, frozen=True):
    """What paths hold."""

    # The runs in the order of the paths, and the logs that could not be read, each with its error.
    loaded: tuple[Loaded, ...] = ()
    ignored: tuple[Ignored, ...] = ()  # files that may have been logs and hold no metrics
    further: tuple[Unit, ...] = ()  # folders and logs that are still to be read
    roots: tuple[str, ...] = ()  # the folders that were named, links resolved
    seen: frozenset[str] = frozenset()  # those that were read, links resolved

    @property
    def outside(self) -> tuple[str, ...]:
        """The links that lead out of the folders that were read, and were not followed."""
        return tuple(item.path for item in self.ignored if item.reason == OUTSIDE)


def load_run(*paths: Any, ranks: bool = False, rerun: Any = None, **options: Any) -> Run:
    """Read a run from the files that its trainer wrote, or from values in memory.

    Args:
        paths: a metrics file, a manifest, the folder or address of a run; `-` reads standard input. Several must
            be the ranks of one run, or its parts. Or one DataFrame, mapping of column to values, or list of records.
        ranks: whether several paths are the ranks or parts of one run; if not said, that must be proved.
        rerun: another run of the same training, for the questions that compare the two; read with the same options.
        options: any of these.
            dtype: the precision of the run (`fp32`, `fp16`, `bf16`, `fp8`), whatever a manifest says.
            checkpoint_every: steps between two checkpoints, whatever a manifest says.
            columns: metric -> column, for columns whose names are not known: `{"loss": "train/nll"}`.
            step_column: the column that holds the steps.
            format: the name of a loader, where sniffing the content errs.
            run: which run, where a file or folder holds several.
            checkpoints: the folder of the run's checkpoints; their steps are read from their names.
            contents: what a file holds, by its absolute path, where that is not what is on the disk.
            follow_links: whether links in a folder are followed out of it.

    Returns:
        The run. All that was skipped, assumed or changed is in its `notes` and `sources`.

    Raises:
        StabtreeError: where a file can't be read as metrics, or an argument is wrong.
    """
    how = LoadOptions(**options)
    if not paths:
        raise StabtreeError("no file to read", hint="name a metrics file, a manifest or the folder of a run")
    if len(paths) == 1 and not isinstance(paths[0], str | Path):
        names = how.names()
        table = values_table(paths[0], names)
        found = Found.of(table.path, (table,), table.path, names).only(how.run, table.path)
        run = run_found(found, how, ["-"])
    elif ranks or len(paths) > 1 or os.path.isdir(paths[0]) or ADDRESS.match(str(paths[0])):  # noqa: PTH112 - never raises
        loaded = find_runs(*paths, ranks=ranks, **options).loaded
        run = only_run(loaded, str(paths[0]) if len(paths) == 1 else "")
    else:
        run = read_run(paths, how, {})
    return run if rerun is None else replace(run, rerun=load_run(rerun, **options))


def load_runs(*paths: str | Path, ranks: bool = False, **options: Any) -> tuple[Loaded, ...]:
    """Read every run that paths hold: of files, patterns, folders of runs, and files with several runs.

    Several logs are one run only where that is proved (a rank in their names, stretches of steps that follow each
    other, the same values) or said.

    Args:
        paths: metrics files, manifests, folders, patterns; `-` reads standard input.
        ranks: whether all paths are the ranks of one run.
        options: as of `load_run`.

    Returns:
        The runs in the order of the paths; a log that can't be read is listed with its error.

    Raises:
        StabtreeError: where an argument is wrong, whatever the log.
    """
    return find_runs(*paths, ranks=ranks, **options).loaded


def find_runs(*paths: str | Path, ranks: bool = False, most: float = math.inf, **options: Any) -> Contents:
    """Read every run that paths hold, and name the files that were ignored; otherwise as `load_runs`.

    Where there are more runs than `most`, the rest need not be read: it is `further`.
    """
    how = LoadOptions(**options)
    if any(map(ADDRESS.match, map(str, paths))):
        found: Contents = extensions.function("fetched_runs")(*paths, ranks=ranks, most=most, **options)
        return found
    if ranks:
        return Contents((Loaded(clean(paths[0]), _read_ranks(paths, how), str(paths[0])),))
    return _find(paths, how, most)


def check_options(**options: Any) -> None:
    """Refuse options of `load_run` that are wrong whatever the log."""
    how = LoadOptions(**{key: value for key, value in options.items() if key not in ("ranks", "checkpoints")})
    how.names()
    how.overrides()


def _read_ranks(given: Sequence[str | Path], options: LoadOptions) -> Run:
    """Read the one run of which paths are the ranks, or the parts."""
    files: list[str | Path] = []
    for path in given:
        found = _find([path], options).loaded if os.path.isdir(path) else ()  # noqa: PTH112 - never raises
        files += chain.from_iterable(item.files for item in found) if found else [path]
    return read_run(files or given, options, {})


def only_run(loaded: Sequence[Loaded], folder: str) -> Run:
    """Return the one run that was loaded, with a note on each log that could not be read.

    Args:
        loaded: what was found.
        folder: the folder that was named alone; empty for several paths.

    Raises:
        StabtreeError: where there are several runs, or none.
    """
    runs = [item for item in loaded if isinstance(item.run, Run)]
    errors = [item.run for item in loaded if isinstance(item.run, StabtreeError)]
    if len(runs) > 1:
        names = [_below(item, folder) if folder else item.name for item in runs]
        if not folder:
            hint = "name one of them; say --ranks where they are ranks of one run"
            raise SeveralRunsError(f"these are {len(runs)} runs: {first_few(names, LISTED)}", hint=hint)
        count = f"{'at least ' * (len(loaded) > MAX_RUNS)}{len(runs):,}"
        problem = f"holds {count} runs: {first_few(names, LISTED)}"
        raise SeveralRunsError(problem, where=clean(folder), hint=f"name one: --run {clean(names[0])!r}")
    if not runs:
        raise errors[0]
    unread = (f"Not read: {error.where} {error.problem}." for error in errors)
    return replace(runs[0].own, notes=(*runs[0].own.notes, *unread))


def _find(paths: Sequence[str | Path], options: LoadOptions, most: float = math.inf) -> Contents:
    """Read the runs that paths hold, and put together what is proved to be one run."""
    named = units_of(list(chain.from_iterable(expanded(str(path)) for path in paths)))
    roots = tuple(os.path.realpath(unit.folder) for unit in named if not unit.files)
    every = replace(options, run=None) if roots else options
    whole = most == math.inf or len(named) <= MAX_PARTS  # of more, no run is read from several
    units = deque(named if whole else grouped(named))
    cache: dict[str, Found] = {}  # of loose logs, to join them with others
    loaded, ignored, further, seen = list[Loaded](), list[Ignored](), list[Unit](), frozenset[str]()
    while units and (whole or len(loaded) <= most):
        found = _read_all(units.popleft(), every, roots, cache, most)
        loaded += found.loaded
        ignored += found.ignored
        further += found.further
        seen |= found.seen
    if len(named) > 1 and not (units or further):
        loaded = joined(loaded, every, cache)
    if roots and options.run is not None:
        loaded = [only_named(loaded, options.run, str(paths[0]))]
    return Contents(tuple(loaded), tuple(ignored), (*further, *units), roots, seen)


def _read_all(unit: Unit, options: LoadOptions, roots: Sequence[str], cache: dict[str, Found], most: float) -> Contents:
    """Read a unit and all that is below it, or what is there of so many runs."""
    where = clean(unit.folder)
    if not unit.files and made_up(Path(unit.folder)):
        raise StabtreeError("is made up by the kernel, and holds no logs", where=where, hint=NAME_METRICS)
    waiting, seen = deque([unit]), set[str]()
    loaded: list[Loaded] = []
    ignored: list[Ignored] = []
    while waiting and len(loaded) <= min(most, MAX_RUNS - 1):
        part = waiting.popleft()
        target = "" if part.files else os.path.realpath(part.folder)  # links may lead there again
        if target not in seen:
            try:
                found = contents(part, options, roots, cache=cache if unit.files else None)
            except Exception as fault:
                if isinstance(fault, StabtreeError) or part is unit or most == math.inf:
                    raise
                waiting.appendleft(part)  # who reads the rest tells what is wrong with it
                break
            loaded += found.loaded
            ignored += found.ignored
            waiting.extendleft(reversed(found.further))
        seen |= {target} - {""}
    if waiting and most == math.inf:
        problem = f"holds more than {MAX_RUNS:,} runs: {len(waiting):,} folders or groups of logs were not read"
        error = StabtreeError(problem, where=where, hint=f"type `stabtree diagnose {where}`")
        loaded.append(Loaded(f"{unit.folder} (the rest)", error, unit.folder))
    elif not waiting and not loaded:
        names = first_few([Path(item.path).name for item in ignored], LISTED)
        problem = f"holds no file that stabtree can read, only {names}" if ignored else "holds no log"
        loaded.append(Loaded(unit.folder, NoLogError(problem, where=where, hint=NAME_METRICS), unit.folder))
    return Contents(tuple(loaded), tuple(ignored), tuple(waiting), seen=frozenset(seen))


def contents(
    unit: Unit,
    options: LoadOptions,
    roots: Sequence[str] = (),
    *,
    cache: dict[str, Found] | None = None,
) -> Contents:
    """Read a unit.

    Args:
        unit: a folder, or loose logs of one.
        options: how to read them.
        roots: the folders that are read, links resolved.
        cache: what was read before, by path; what is read now is added.

    Raises:
        StabtreeError: for an option that is wrong whatever the log.
    """
    options.overrides()
    reader = _UnitReader(options, options.names(), {} if cache is None else cache)
    further: list[Unit] = []
    closed = CLOSED.set(() if options.follow_links else roots)
    try:
        for name in unit.files:
            reader.add_file(name if name in ("-", "") else place(unit.folder, name), named=unit.named)
        if not unit.files:
            tree = tree_of(unit, roots, follow=options.follow_links)
            further = [*tree.further, *reader.add_tree(tree)]
    finally:
        CLOSED.reset(closed)
    loaded = joined(reader.loaded, options, reader.cache)
    if not unit.files:
        loaded = _named_by_folder(loaded)
    loaded = [replace(item, name=clean(item.name)) for item in loaded]
    return Contents(tuple(loaded), tuple(reader.ignored), tuple(further))


class _UnitReader(Struct):
    """Reads the logs of one unit."""

    options: LoadOptions  # how to read them
    names: Names  # what their columns mean
    cache: dict[str, Found]  # what was read, by path
    loaded: list[Loaded] = field(default_factory=list)  # runs and logs that can't be read, in the order of the files
    ignored: list[Ignored] = field(default_factory=list)  # files that hold no metrics
    _looks: int = 0  # into files whose names don't say what they are

    def add_tree(self, tree: FolderTree) -> list[Unit]:
        """Read a tree; return those of its logs that are too many to be read with the others."""
        for folder, reason in tree.closed.items():
            self._refuse(folder, f"can't be looked into: {reason}", "check its rights")
        claims = Claims(tree, self.names, self.options.format)
        for claim in claims:
            self._add(claim.path, claim.found, named=True, alone=claim.path in claim.files)
        further: list[Unit] = []
        for folder, listing in tree.listings.items():
            for name in listing.special:
                path = place(folder, name)
                if os.path.exists(path) and os.path.islink(path):  # noqa: PTH110, PTH114 - they never raise
                    if may_be_log(name) or os.path.isdir(path):  # noqa: PTH112
                        self.ignored.append(Ignored(path, OUTSIDE))
                elif os.path.islink(path) and is_log(name):  # noqa: PTH114
                    self.ignored.append(Ignored(path, "is a link that leads nowhere"))
                elif is_log(name):
                    self._refuse(path, "is not a regular file", "leave it out")
            logs = self._logs_of(folder, [name for name in listing.files if not claims.holds(folder, name)])
            if len(logs) > MAX_TOGETHER:
                further += parts(folder, logs)
                continue
            for name in logs:
                self.add_file(place(folder, name))
        return further

    def _refuse(self, path: str, problem: str, hint: str, name: str = "") -> None:
        self.loaded.append(Loaded(name or path, StabtreeError(problem, where=clean(path), hint=hint), path))

    def add_file(self, path: str, *, named: bool = False) -> None:
        """Read a file; one that nobody named is ignored where it holds no metrics."""
        try:
            self._add(path, read_file(path, self.names, self.options, self.cache), named=named)
        except StabtreeError as error:
            self._add(path, error, named=named)

    def _add(self, path: str, found: Found | StabtreeError, *, named: bool, alone: bool = True) -> None:
        """Add each of the runs that were found; `alone` says whether the path is all that they were read from."""
        if isinstance(found, StabtreeError):
            self._add_unread(path, found, named=named)
            return
        runs = found.runs if self.options.run is None else [self.options.run]
        for run in runs:
            name = f"{path} {run}" if len(runs) > 1 else path
            try:
                made = run_found(found.only(run, clean(path)), self.options, [path])
                self.loaded.append(Loaded(name, made, path, (path,) * (alone and len(runs) == 1)))
            except StabtreeError as error:
                self._add_unread(path, error, named=named or len(runs) > 1, name=name)

    def _add_unread(self, path: str, error: StabtreeError, *, named: bool, name: str = "") -> None:
        """Add a file that can't be read as metrics: the end of a printed log, with its error, or as ignored."""
        found = self.cache.get(path)
        last = found.tables[-1] if found and found.tables else None
        if not named and found and last and last.ended_in_error:  # its rows hold too little, and are left out
            silent = replace(last, rows=0, columns={}, skipped=(), skipped_count=0)
            end = run_found(replace(found, tables=(silent,)), self.options, [path])
            self.loaded.append(Loaded(path, end, path, (path,)))
        elif not named and self._is_harmless(path, error):
            self.ignored.append(Ignored(path, error.problem))
        else:
            self.loaded.append(Loaded(name or path, error, path))

    def _is_harmless(self, path: str, error: StabtreeError) -> bool:
        """Whether a file that can't be read holds no metrics."""
        if path in self.cache:
            short = all(table.rows < MIN_ROWS for table in self.cache[path].tables)
            return short and not isinstance(error, NoRowsError)
        try:
            source = glimpse(Path(path), GLIMPSE_BYTES)
        except StabtreeError:
            return False
        loader = picked(source, self.names)
        if source.binary or (loader and loader.name == "wandb"):  # settings, final values, messages
            return not source.binary
        certain = is_log(Path(path).name) and ending(path) not in PRINTED and any(map(str.isdigit, source.head))
        return not (certain or isinstance(error, NoRowsError) or _holds_rows(source.head))

    def _logs_of(self, folder: str, names: Sequence[str]) -> list[str]:
        """Return the names of those files that are logs by their names or their contents."""
        logs, unseen = [], 0
        for name in names:
            path = place(folder, name)
            if name in OTHERS:
                self.ignored.append(Ignored(path, "holds settings or final values"))
            elif self._looks >= MAX_LOOKS and not is_log(name) and may_be_log(name):
                unseen += 1
            elif may_be_log(name):
                reason = self._no_log(Path(path))
                if reason:
                    self.ignored.append(Ignored(path, reason))
                else:
                    logs.append(name)
        if unseen:
            problem = f"holds {unseen:,} more files, which were not looked at"
            self._refuse(folder, problem, "name the logs among them by a pattern", f"{folder} (the rest)")
        return logs

    def _no_log(self, file: Path) -> str:
        """Return why a file is no log; nothing where it is or may be one."""
        by_its_name = is_log(file.name)
        size = size_of(file)
        if size == 0 and (not by_its_name or ending(file.name) in PRINTED):
            return "is empty"
        if by_its_name and not self.options.format:
            return ""
        self._looks += 1
        try:
            first = glimpse(file, GLIMPSE_BYTES)
            if self.options.format:
                return "" if by_name(self.options.format).sniff(first, self.names) else "is of another format"
            whole = size <= GLIMPSE_BYTES
            if self._is_of_a_format(first, whole=whole):
                return ""
            if whole or (first.binary and not first.packed):
                return f"is {first.binary}" if first.binary else NO_METRICS
            self._looks += LOOKS_FOR_WHOLE
            return "" if picked(open_source(file), self.names) else NO_METRICS
        except StabtreeError as error:
            return "" if by_its_name else error.problem

    def _is_of_a_format(self, first: Source, *, whole: bool) -> bool:
        """Whether the first lines of a file show a log; a document of a line or two is read as JSONL by its form."""
        loader = picked(first, self.names)
        if loader and not (whole and loader.name == "jsonl" and first.head.count("\n") < MIN_ROWS):
            return True
        return not first.binary and _holds_rows(first.head)


def _holds_rows(text: str) -> bool:
    """Return whether a text repeats a line of words and two or more numbers, as whatever prints metrics does."""
    shapes: Counter[str] = Counter()
    for line in text.splitlines():
        shape, numbers = _NUMBER.subn("#", line[:MAX_LINE])
        if numbers > 1 and _WORD.search(shape):
            shapes[shape] += 1
    return max(shapes.values(), default=0) >= MIN_ALIKE


def _named_by_folder(loaded: Sequence[Loaded]) -> list[Loaded]:
    """Return runs named by their folder, where a folder holds one run alone."""
    paths = Counter(item.path for item in loaded if item.name == item.path)
    runs = Counter(_home(item) for item in loaded if isinstance(item.run, Run))
    above = {*map(str, chain.from_iterable(Path(home).parents for home in runs))}  # of another run
    homes, named = {home for home, count in runs.items() if count == 1} - above, []
    for item in loaded:
        name = path = _home(item)
        if not isinstance(item.run, Run) or item.name != item.path:
            name, path = item.name, item.path
        elif name not in homes:  # two loggers may have used one folder
            name, path = f"{item.path} {item.format * (paths[item.path] > 1)}".strip(), item.path
        elif Path(name) == Path():
            name = path = str(Path("..", Path.cwd().name))  # says more than `.`
        named.append(replace(item, name=name, path=path))
    return named


def _home(item: Loaded) -> str:
    """Return the folder of a run."""
    if item.files:
        return str(Path(os.path.commonpath([str(Path(file).parent) for file in item.files])))
    return item.path


def _below(item: Loaded, folder: str) -> str:
    """Return what to call a run below a folder: its path from there, and its name in it."""
    inner = item.name.removeprefix(item.path).strip()
    path = os.path.relpath(item.path, folder)
    return " ".join(filter(None, (path * (path != "." or not inner), inner)))


def _is_called(item: Loaded, name: str) -> bool:
    """Whether this is the name of a run in its file, of its folder, or its path as far as that is needed."""
    inner = item.name.removeprefix(item.path).strip()
    is_path = not inner and f"/{Path(item.path).as_posix()}".endswith(f"/{name}")
    return is_path or name in (inner, item.name, item.own.name)


def only_named(loaded: Sequence[Loaded], wanted: str, folder: str) -> Loaded:
    """Return the run of a name: its path and name below the folder, or else any other that it is called by."""
    runs = {_below(item, folder): item for item in loaded if isinstance(item.run, Run)}
    if wanted in runs:
        return runs[wanted]
    named = [item for item in runs.values() if _is_called(item, wanted)]
    if len(named) == 1:
        return named[0]
    closest = difflib.get_close_matches(wanted, runs, n=1) or list(runs)[:1]
    hint = f"name one: --run {clean(closest[0])!r}" if closest else NAME_METRICS
    raise SeveralRunsError(f"holds {len(runs)} runs: {first_few(list(runs), LISTED)}", where=clean(folder), hint=hint)
