"""MLflow's SQLite database, opened so that nothing is written and nothing in it is run."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.config import read_config
from stabtree.loaders.points import Points, tabulate
from stabtree.loaders.table import Table
from stabtree.loaders.tables.cells import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stabtree.common.lazy import Floats
    from stabtree.loaders.source import Source
    from stabtree.metrics.names import Names

MAGIC = b"SQLite format 3\0"
# MLflow stores an infinity as the largest float there is, and a NaN as 0 beside a mark.
LARGEST = 1.7976931348623157e308
# Steps of SQLite's machine for each byte of the file: several times what reading every table takes. Pages that
# point to each other, or a column that is computed, take more.
WORK = 20
LEAST_WORK = 10_000_000
_TURN = 100_000
# No row of the table of metrics is shorter.
ROW_BYTES = 8
# No key and no value of a parameter is longer in MLflow's own schema.
MAX_TEXT = 1 << 20
FETCHED = 10_000
# Of a damaged schema even SQLite's own message may be no text.
_DAMAGE = (sqlite3.Error, UnicodeError, MemoryError, OverflowError)
HINT = "name the database that mlflow wrote, such as mlflow.db"


def is_store(source: Source) -> bool:
    """Whether a database has MLflow's tables; what can't be opened may be one."""
    try:
        with closing(_open(source)) as store:
            return {"metrics", "runs"} <= _tables(store)
    except (StabtreeError, *_DAMAGE):
        return True


def read(source: Source, names: Names) -> tuple[Table, ...]:
    """The runs that have metrics.

    Raises:
        StabtreeError: where the database can't be read, is none of MLflow's or holds no metrics.
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
    """The database, read-only and without its journals.

    Raises:
        StabtreeError: where it is no plain file.
        sqlite3.Error: where it is damaged.
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
        return work > LEAST_WORK + WORK * source.size

    store.set_progress_handler(stop, _TURN)
    store.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_TEXT)
    store.text_factory = lambda text: text.decode("utf-8", "replace")
    store.execute("PRAGMA trusted_schema = off")
    return store


def _tables(store: sqlite3.Connection) -> set[str]:
    """Names of the plain tables; a view or a virtual table could run anything."""
    rows = store.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
    return {str(name) for name, sql in rows if str(sql).upper().lstrip().startswith("CREATE TABLE")}


def _select(store: sqlite3.Connection, query: str, size: int) -> Iterator[Sequence[Any]]:
    """The rows of a query over one table, as many as a file of `size` bytes can hold.

    Raises:
        sqlite3.DatabaseError: where there are more, since damaged pages point to each other.
    """
    for place, row in enumerate(store.execute(query)):
        if place * ROW_BYTES > size:
            raise sqlite3.DatabaseError("it has more rows than there is room for")
        yield row


def _runs(store: sqlite3.Connection, tables: set[str], source: Source, wanted: Names) -> tuple[Table, ...]:
    found = _points(store, source.size)
    if not found:
        raise StabtreeError("holds no metrics", where=source.path, hint=HINT)
    names = _names(store, tables, tuple(found), source.size)
    config = _params(store, source.size) if "params" in tables else {}
    notes = _journal(source)
    made = []
    for (key, (points, told)), name in zip(found.items(), names, strict=True):
        rows, columns, more = tabulate(points, wanted)
        settings, mistakes = read_config(params(config.get(key, {})))
        made.append(
            Table(
                path=source.path,
                format="mlflow, SQLite",
                rows=rows,
                columns=columns,
                config={"name": name, **settings},
                notes=(*notes, *told, *more, *mistakes),
                run=name if len(found) > 1 else "",
            )
        )
    return tuple(made)


def _journal(source: Source) -> tuple[str, ...]:
    """A note on rows that a process which did not end has left beside the database."""
    beside = source.file.with_name(source.file.name + "-wal") if source.file else None
    if beside and beside.is_file() and beside.stat().st_size:
        return (f"Rows that are still in {clean(beside.name, 80)} were not read: run mlflow once to move them over.",)
    return ()


def _points(store: sqlite3.Connection, size: int) -> dict[str, tuple[Points, tuple[str, ...]]]:
    """The values of each run in the order of their timestamps, and notes, by the run's id."""
    runs: dict[str, int] = {}
    names: dict[str, int] = {}
    bad: dict[int, int] = {}
    cells: list[Floats] = []
    for batch in _batches(store, size):
        rows = []
        for run, key, value, time, step, is_nan in batch:
            place = runs.setdefault(str(run), len(runs))
            numbers = _numbers(value, time, step, is_nan)
            if numbers is None:
                bad[place] = bad.get(place, 0) + 1
            else:
                rows.append((place, names.setdefault(str(key), len(names)), *numbers))
        cells.append(np.array(rows, dtype=np.float64).reshape(-1, 5))
    if not cells:
        return {}
    whole = np.concatenate(cells)
    whole = whole[np.lexsort((whole[:, 4], whole[:, 3], whole[:, 0]))]
    found: dict[str, tuple[Points, tuple[str, ...]]] = {}
    for run, place in runs.items():
        own = whole[np.searchsorted(whole[:, 0], place) : np.searchsorted(whole[:, 0], place, side="right")]
        notes = (f"Rows that hold no number: {bad[place]:,}, not read.",) if place in bad else ()
        found[run] = _of_run(tuple(names), own), notes
    return found


def _of_run(names: tuple[str, ...], cells: Floats) -> Points:
    """The points of one run, without the names of the others.

    Args:
        names: of all runs.
        cells: float64 (n, 5): run, name, value, timestamp, step.
    """
    used, name = np.unique(cells[:, 1].astype(np.int64), return_inverse=True)
    return Points(
        tuple(names[place] for place in used.tolist()),
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
    """Value, timestamp and step; None where SQLite's loose types let something else in."""
    try:
        found = float("nan") if is_nan else number(value)
        at, when = number(step or 0), number(time or 0)
        if found is None or at is None or when is None or not abs(at) < 2**53 or at != int(at):
            return None
        if abs(found) >= LARGEST:
            found = float("inf") if found > 0 else float("-inf")
        return found, when, at
    except (ValueError, TypeError, OverflowError):
        return None


def _names(store: sqlite3.Connection, tables: set[str], runs: Sequence[str], size: int) -> list[str]:
    """A name for each run that has metrics."""
    titles: dict[Any, Any] = {}
    if "experiments" in tables:
        titles = {row[0]: row[1] for row in _select(store, "SELECT experiment_id, name FROM experiments", size)}
    told = {
        str(key): (str(titles.get(experiment, "")), str(name or key))
        for key, name, experiment in _select(store, "SELECT run_uuid, name, experiment_id FROM runs", size)
    }
    return distinct([(*told.get(run, ("", run)), run) for run in runs])


def distinct(runs: Sequence[tuple[str, str, str]]) -> list[str]:
    """Names that only one run has each, of (experiment, name, id): the name, else with the others added."""
    several = len({experiment for experiment, _, _ in runs}) > 1
    names = [f"{experiment}/{name}" if several and experiment else name for experiment, name, _ in runs]
    counts = {name: names.count(name) for name in set(names)} if len(names) < 1000 else dict.fromkeys(names, 2)
    return [name if counts[name] == 1 else f"{name}-{run[2]}" for name, run in zip(names, runs, strict=True)]


def _params(store: sqlite3.Connection, size: int) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for run, key, value in _select(store, "SELECT run_uuid, key, value FROM params", size):
        found.setdefault(str(run), {})[str(key)] = value
    return found


def params(values: Mapping[str, Any]) -> dict[str, Any]:
    """MLflow's parameters, which are all text, as the values that they were."""
    words = {"True": True, "False": False, "None": None, "": None}
    return {key: words.get(value, value) if isinstance(value, str) else value for key, value in values.items()}
