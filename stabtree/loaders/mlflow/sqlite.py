"""MLflow's SQLite database, opened so that nothing is written and nothing in it is run."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.files import recorded
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.config import read_config
from stabtree.loaders.points import Points, tabulate
from stabtree.loaders.table import Table
from stabtree.loaders.tables.cells import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.common.files import LogLine
    from stabtree.common.lazy import Floats
    from stabtree.loaders.source import Source
    from stabtree.metrics.names import Names

MAGIC = b"SQLite format 3\0"
# MLflow stores an infinity as the largest float there is, and a NaN as 0 beside a mark.
LARGEST = 1.7976931348623157e308
# Steps of SQLite's machine for each byte of the file: several times what reading every table takes. Pages that
# point to each other, or a computed column, take more.
WORK = 20
MIN_WORK = 10_000_000
_TURN = 100_000
# No row of the table of metrics is shorter.
ROW_BYTES = 8
# No key and no value of a parameter is longer in MLflow's own schema.
MAX_TEXT = 1 << 20
FETCHED = 10_000
# With so many runs each name ends with the run's id.
MAX_PLAIN_NAMES = 1000
# SQLite's own message about a damaged schema may not be valid text.
_DAMAGE = (sqlite3.Error, UnicodeError, MemoryError, OverflowError)
# Of MLflow's RunStatus, those of a run that has ended.
STATUSES = {"3": "FINISHED", "4": "FAILED", "5": "KILLED"}
HINT = "name the database that mlflow wrote, such as mlflow.db"


def is_store(source: Source) -> bool:
    """Return whether a database has MLflow's tables; True if it can't be opened."""
    try:
        with closing(_open(source)) as store:
            return {"metrics", "runs"} <= _tables(store)
    except (StabtreeError, *_DAMAGE):
        return True


def read(source: Source, names: Names) -> tuple[Table, ...]:
    """Read the runs that have metrics.

    Raises:
        StabtreeError: if the database can't be read, is none of MLflow's or holds no metrics.
    """
    try:
        with closing(_open(source)) as store:
            tables = _tables(store)
            if not {"metrics", "runs"} <= tables:
                raise StabtreeError("is an SQLite database without MLflow's tables", where=source.path, hint=HINT)
            return _runs(store, tables, source, names)
    except _DAMAGE as error:
        raise StabtreeError(
            f"can't be read as an SQLite database: {clean(error, 120)}",
            where=source.path,
            hint="check it with: sqlite3 FILE 'pragma integrity_check'",
        ) from None


def _open(source: Source) -> sqlite3.Connection:
    """Open the database, read-only and without its journals.

    Raises:
        StabtreeError: if it is no plain file.
        sqlite3.Error: if it is damaged.
    """
    if source.file is None or source.packed:
        raise StabtreeError(
            "is an SQLite database, which is read from a plain file only", where=source.path, hint="name the file"
        )
    store = sqlite3.connect(f"{source.file.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    work = 0

    def stop() -> bool:
        nonlocal work
        work += _TURN
        return work > MIN_WORK + WORK * source.size

    store.set_progress_handler(stop, _TURN)
    store.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_TEXT)
    store.text_factory = lambda text: text.decode("utf-8", "replace")
    store.execute("PRAGMA trusted_schema = off")
    return store


def _tables(store: sqlite3.Connection) -> set[str]:
    """Return the names of the plain tables; a view or a virtual table could run anything."""
    rows = store.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
    return {str(name) for name, sql in rows if str(sql).upper().lstrip().startswith("CREATE TABLE")}


def _select(store: sqlite3.Connection, query: str, size: int) -> Iterator[Sequence[Any]]:
    """Yield the rows of a query over one table, as many as a file of `size` bytes can hold.

    Raises:
        sqlite3.DatabaseError: if there are more, since damaged pages point to each other.
    """
    for count, row in enumerate(store.execute(query)):
        if count * ROW_BYTES > size:
            raise sqlite3.DatabaseError("it has more rows than there is room for")
        yield row


def _runs(store: sqlite3.Connection, tables: set[str], source: Source, wanted: Names) -> tuple[Table, ...]:
    found = _points(store, source.size)
    if not found:
        raise StabtreeError("holds no metrics", where=source.path, hint=HINT)
    names = _names(store, tables, tuple(found), source.size)
    config = _params(store, source.size) if "params" in tables else {}
    statuses = _statuses(store, source.size)
    notes = _journal(source)
    made = []
    for (key, (points, bad)), name in zip(found.items(), names, strict=True):
        rows, columns, more = tabulate(points, wanted)
        settings, mistakes = read_config(params(config.get(key, {})))
        made.append(
            Table(
                path=source.path,
                format="mlflow, SQLite",
                rows=rows,
                columns=columns,
                config={"name": name, **settings},
                notes=(*notes, *bad, *more, *mistakes),
                run=name if len(found) > 1 else "",
                lines=status(statuses.get(key, "")),
            )
        )
    return tuple(made)


def _journal(source: Source) -> tuple[str, ...]:
    """Return a note on rows that a process which did not end has left beside the database."""
    if not source.file:
        return ()
    journal = source.file.with_name(source.file.name + "-wal")
    if not journal.is_file() or not journal.stat().st_size:
        return ()
    return (f"Rows that are still in {clean(journal.name, 80)} were not read: run mlflow once to move them over.",)


def _points(store: sqlite3.Connection, size: int) -> dict[str, tuple[Points, tuple[str, ...]]]:
    """Return the values of each run in the order of their timestamps, and notes, by the run's id."""
    runs: dict[str, int] = {}
    names: dict[str, int] = {}
    bad: Counter[int] = Counter()
    cells: list[Floats] = []
    for batch in _batches(store, size):
        rows = []
        for run, key, value, time, step, is_nan in batch:
            index = runs.setdefault(str(run), len(runs))
            numbers = _numbers(value, time, step, is_nan)
            if numbers is None:
                bad[index] += 1
            else:
                rows.append((index, names.setdefault(str(key), len(names)), *numbers))
        cells.append(np.array(rows, dtype=np.float64).reshape(-1, 5))
    if not cells:
        return {}
    whole = np.concatenate(cells)
    whole = whole[np.lexsort((whole[:, 4], whole[:, 3], whole[:, 0]))]
    found: dict[str, tuple[Points, tuple[str, ...]]] = {}
    for run, index in runs.items():
        own = whole[np.searchsorted(whole[:, 0], index) : np.searchsorted(whole[:, 0], index, side="right")]
        notes: tuple[str, ...] = ()
        if index in bad:
            notes = (f"Rows that hold no number: {bad[index]:,}, not read.",)
        found[run] = _of_run(tuple(names), own), notes
    return found


def _of_run(names: tuple[str, ...], cells: Floats) -> Points:
    """Return the points of one run, without the names of the others.

    Args:
        names: of all runs.
        cells: float64 (n, 5): run, name, value, timestamp, step.
    """
    used, name = np.unique(cells[:, 1].astype(np.int64), return_inverse=True)
    return Points(
        tuple(names[index] for index in used.tolist()),
        np.asarray(name, dtype=np.int64),
        cells[:, 4].astype(np.int64),
        cells[:, 3].copy(),
        cells[:, 2].copy(),
    )


def _batches(store: sqlite3.Connection, size: int) -> Iterator[Sequence[Sequence[Any]]]:
    rows = _select(store, "SELECT run_uuid, key, value, timestamp, step, is_nan FROM metrics", size)
    while batch := list(islice(rows, FETCHED)):
        yield batch


def _numbers(value: Any, time: Any, step: Any, is_nan: Any) -> tuple[float, float, float] | None:
    """Return value, timestamp and step; None if SQLite's loose types let something else in."""
    if is_nan:
        value = math.nan
    try:
        logged, when, at = logged_value(value, time or 0, step or 0)
    except (ValueError, TypeError, OverflowError):
        return None
    if abs(logged) >= LARGEST:
        logged = math.copysign(math.inf, logged)
    return logged, when, at


def logged_value(value: Any, time: Any, step: Any) -> tuple[float, float, float]:
    """Return value, timestamp and step as numbers.

    Raises:
        ValueError, TypeError, OverflowError: if one of them is none, or the step is not whole or too large.
    """
    logged, when, at = number(value), number(time), number(step)
    if logged is None or when is None or at is None or not abs(at) < 2**53 or at != int(at):
        raise ValueError("not a value, a timestamp and a step")
    return logged, when, at


def _names(store: sqlite3.Connection, tables: set[str], runs: Sequence[str], size: int) -> list[str]:
    """Return a name for each run that has metrics."""
    titles: dict[Any, Any] = {}
    if "experiments" in tables:
        titles = {row[0]: row[1] for row in _select(store, "SELECT experiment_id, name FROM experiments", size)}
    known = {
        str(key): (str(titles.get(experiment, "")), str(name or key))
        for key, name, experiment in _select(store, "SELECT run_uuid, name, experiment_id FROM runs", size)
    }
    return distinct([(*known.get(run, ("", run)), run) for run in runs])


def distinct(runs: Sequence[tuple[str, str, str]]) -> list[str]:
    """Return a unique name for each run (experiment, name, id): the name, else with the others added."""
    several = len({experiment for experiment, _, _ in runs}) > 1
    names = [f"{experiment}/{name}" if several and experiment else name for experiment, name, _ in runs]
    counts = Counter(names)
    plain = len(names) < MAX_PLAIN_NAMES
    return [name if plain and counts[name] == 1 else f"{name}-{run[2]}" for name, run in zip(names, runs, strict=True)]


def _statuses(store: sqlite3.Connection, size: int) -> dict[str, str]:
    """Return the status of each run, where the table has one."""
    if "status" not in {row[1] for row in store.execute("PRAGMA table_info(runs)")}:
        return {}
    return {str(key): str(word) for key, word in _select(store, "SELECT run_uuid, status FROM runs", size)}


def status(word: str) -> tuple[LogLine, ...]:
    """Return the status of a run that has ended as a line; a file store writes it as a number."""
    name = STATUSES.get(word, word)
    if name in STATUSES.values():
        return (recorded(f"status: {name} (MLflow)"),)
    return ()


def _params(store: sqlite3.Connection, size: int) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for run, key, value in _select(store, "SELECT run_uuid, key, value FROM params", size):
        found.setdefault(str(run), {})[str(key)] = value
    return found


def params(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return MLflow's parameters, which are all text, as the values that they were."""
    words = {"True": True, "False": False, "None": None, "": None}
    return {key: words.get(value, value) for key, value in values.items()}
