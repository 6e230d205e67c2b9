"""MLflow: the folder `mlruns` of its file store, one file of it, and its SQLite database.

The database is opened so that nothing is written and nothing in it is run.
"""

from __future__ import annotations

import math
import re
import sqlite3
from array import array
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.files import recorded
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.config import read_config
from stabtree.loaders.folder import entries, is_file
from stabtree.loaders.source import Sure, open_source
from stabtree.loaders.table import Points, Skips, Table, merge, tabulate
from stabtree.loaders.tables.cells import number

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stabtree.common.files import LogLine
    from stabtree.loaders.source import Source
    from stabtree.metrics.names import Names

MAGIC = b"SQLite format 3\0"
# `timestamp value step`; the oldest MLflow wrote no step.
_LINE = re.compile(r"\d{9,14} \S+( -?\d+)?")
MAX_PARAM = 1 << 16
MAX_DEPTH = 4  # folders below `metrics`: `train/loss` is a file `loss` in a folder `train`
# MLflow stores an infinity as the largest float there is, and a NaN as 0 beside a mark.
LARGEST = 1.7976931348623157e308
# Steps of SQLite's machine for each byte of the file: several times what reading every table takes. Pages that
# point to each other, or a computed column, take more.
WORK = 20
MIN_WORK = 10_000_000
_TURN = 100_000
# No key and no value of a parameter is longer in MLflow's own schema.
MAX_TEXT = 1 << 20
_NO_VALUE = (ValueError, TypeError, OverflowError)
# SQLite's own message about a damaged schema may not be valid text.
_DAMAGE = (sqlite3.Error, UnicodeError, MemoryError, OverflowError)
# Of MLflow's RunStatus, those of a run that has ended; a file store writes the number.
STATUSES = {"3": "FINISHED", "4": "FAILED", "5": "KILLED"}
HINT = "name the database that mlflow wrote, such as mlflow.db"


def sniff(source: Source, _names: Names) -> Sure:
    """Return how surely this is an MLflow database or the file of one metric."""
    if source.data.startswith(MAGIC):
        return Sure.SURELY if b"run_uuid" in source.data else Sure.NO
    if source.binary:
        return Sure.NO
    lines = [line for line in source.head.split("\n", 20)[:20] if line.strip()]
    if lines and all(_LINE.fullmatch(line) for line in lines[:-1] or lines):
        return Sure.LIKELY
    return Sure.NO


def read(source: Source, names: Names) -> Table | tuple[Table, ...]:
    """Read the runs of a database that have metrics, or one metric.

    Raises:
        StabtreeError: if the database can't be read, is none of MLflow's or holds no metrics.
    """
    if source.data.startswith(MAGIC):
        try:
            with closing(_open(source)) as store:
                return _runs(store, source, names)
        except _DAMAGE as error:
            raise StabtreeError(
                f"can't be read as an SQLite database: {clean(error, 120)}",
                where=source.path,
                hint="check it with: sqlite3 FILE 'pragma integrity_check'",
            ) from None
    file = source.file
    name = file.name if file and file.parent.name == "metrics" else "value"
    skips = Skips()
    rows, columns, notes = tabulate(_metric(source, name, skips), names)
    return Table(
        path=source.path,
        format="mlflow, one metric",
        rows=rows,
        columns=columns,
        skipped=tuple(skips.first),
        skipped_count=skips.count,
        notes=notes,
    )


def is_run(folder: Path) -> bool:
    """Return whether this is the folder in which MLflow keeps one run."""
    return is_file(folder / "meta.yaml") and any(entries(folder / "metrics"))


def run_in(folder: Path, names: Names) -> Table:
    """Read the metrics of one run of the file store, with its parameters."""
    skips, notes, parts = Skips(), [], []
    for name, file in _metric_files(folder / "metrics"):
        try:
            parts.append(_metric(open_source(file), name, skips))
        except StabtreeError as error:
            notes.append(f"Metric {clean(name, 60)} was not read: it {clean(error.problem, 80)}.")
    rows, columns, more = tabulate(_in_order(merge(parts)), names)
    # MLflow writes one `key: value` a line.
    meta = dict(re.findall(r"^(status|run_name): *(.*)$", _content(folder / "meta.yaml"), re.MULTILINE))
    status, run_name = (meta.get(key, "").strip().strip("'\"") for key in ("status", "run_name"))
    tag = _content(folder / "tags" / "mlflow.runName").partition("\n")[0].strip()
    settings = {name: _content(folder / "params" / name).strip() for name in entries(folder / "params")[1]}
    config, mistakes = read_config(_params({**settings, "run_name": clean(tag or run_name or folder.name, 60)}))
    return Table(
        path=clean(folder),
        format="mlflow",
        rows=rows,
        columns=columns,
        config=config,
        skipped=tuple(skips.first),
        skipped_count=skips.count,
        notes=(*notes, *more, *mistakes),
        lines=_ending(status),
    )


def _metric_files(top: Path) -> list[tuple[str, Path]]:
    """Return metrics and their files."""
    found: list[tuple[str, Path]] = []
    prefixes = [""]
    for prefix in prefixes:
        folders, files = entries(top / prefix)
        found += [(prefix + name, top / prefix / name) for name in files]
        if prefix.count("/") < MAX_DEPTH:
            prefixes += [f"{prefix}{name}/" for name in folders]
    return found


def _metric(source: Source, name: str, skips: Skips) -> Points:
    """Read the values of the file of one metric."""
    cells = array("d")
    for number_, line in enumerate(source.lines(), 1):
        parts = line.split()
        if not parts:
            continue
        try:
            time, value, step = (*parts[:3], "0")[:3]
            cells.extend((0, *_logged(value, time, step)))
        except _NO_VALUE:
            skips.add(number_, f"is not a line `timestamp value step`: {clean(line, 40)!r}")
    return _points((name,), cells)


def _content(file: Path) -> str:
    try:
        if not is_file(file):
            return ""
        with file.open("rb") as stream:
            return stream.read(MAX_PARAM).decode("utf-8", "replace")
    except OSError:
        return ""


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


def _runs(store: sqlite3.Connection, source: Source, wanted: Names) -> tuple[Table, ...]:
    if not {"metrics", "runs"} <= _tables(store):
        raise StabtreeError("is an SQLite database without MLflow's tables", where=source.path, hint=HINT)
    found: dict[str, tuple[dict[str, int], array[float]]] = {}  # by run its metrics with their numbers, and the cells
    bad = Counter[str]()
    for id_, key, value, time, step, is_nan in store.execute(
        "SELECT run_uuid, key, value, timestamp, step, is_nan FROM metrics"
    ):
        names, cells = found.setdefault(str(id_), ({}, array("d")))
        try:  # SQLite's loose types let anything in
            logged, when, at = _logged(math.nan if is_nan else value, time or 0, step or 0)
        except _NO_VALUE:
            bad[str(id_)] += 1
            continue
        logged = math.copysign(math.inf, logged) if abs(logged) >= LARGEST else logged
        cells.extend((names.setdefault(str(key), len(names)), logged, when, at))
    if not found:
        raise StabtreeError("holds no metrics", where=source.path, hint=HINT)
    listed = store.execute("SELECT * FROM runs")  # the oldest schemas have no status
    rows_of = (dict(zip((column[0] for column in listed.description), row, strict=True)) for row in listed)
    runs = {str(row["run_uuid"]): row for row in rows_of if str(row.get("run_uuid")) in found}
    titles = {id_: str(runs.get(id_, {}).get("name") or id_) for id_ in found}
    config: dict[str, dict[str, Any]] = {}
    if "params" in _tables(store):
        for id_, key, value in store.execute("SELECT run_uuid, key, value FROM params"):
            config.setdefault(str(id_), {})[str(key)] = value
    times = Counter(titles.values())
    made = []
    for id_, (names, cells) in found.items():
        name = titles[id_] if times[titles[id_]] == 1 else f"{titles[id_]}-{id_}"
        rows, columns, more = tabulate(_in_order(_points(tuple(names), cells)), wanted)
        settings, mistakes = read_config(_params(config.get(id_, {})))
        unread = [f"Rows that hold no number: {bad[id_]:,}, not read."] * (bad[id_] > 0)
        made.append(
            Table(
                path=source.path,
                format="mlflow, SQLite",
                rows=rows,
                columns=columns,
                config={"name": name, **settings},
                notes=(*_journal(source), *unread, *more, *mistakes),
                run=name * (len(found) > 1),
                lines=_ending(str(runs.get(id_, {}).get("status", ""))),
            )
        )
    return tuple(made)


def _journal(source: Source) -> tuple[str, ...]:
    """Return a note on rows that a process which did not end has left beside the database."""
    journal = source.file and source.file.with_name(source.file.name + "-wal")
    if not journal or not journal.is_file() or not journal.stat().st_size:
        return ()
    return (f"Rows that are still in {clean(journal.name, 80)} were not read: run mlflow once to move them over.",)


def _logged(value: Any, time: Any, step: Any) -> tuple[float, float, float]:
    """Return value, timestamp and step as numbers.

    Raises:
        ValueError, TypeError, OverflowError: if one of them is none, or the step is not whole or too large.
    """
    logged, when, at = number(value), number(time), number(step)
    if logged is None or when is None or at is None or not abs(at) < 2**53 or at != int(at):
        raise ValueError("not a value, a timestamp and a step")
    return logged, when, at


def _points(names: tuple[str, ...], cells: array[float]) -> Points:
    """Return points out of the index of the name, value, timestamp and step of each."""
    name, value, time, step = np.array(cells).reshape(-1, 4).T.copy()
    return Points(names, name.astype(np.int64), step.astype(np.int64), time, value)


def _in_order(points: Points) -> Points:
    """Return the points by time, those of one millisecond by step: a fast run logs many steps in it."""
    order = np.lexsort((points.step, points.time))
    return Points(points.names, points.name[order], points.step[order], points.time[order], points.value[order])


def _ending(status: str) -> tuple[LogLine, ...]:
    """Return the status of a run that has ended as a line."""
    name = STATUSES.get(status, status)
    if name in STATUSES.values():
        return (recorded(f"status: {name} (MLflow)"),)
    return ()


def _params(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return MLflow's parameters, which are all text, as the values that they were."""
    words = {"True": True, "False": False, "None": None, "": None}
    return {key: words.get(value, value) for key, value in values.items()}
