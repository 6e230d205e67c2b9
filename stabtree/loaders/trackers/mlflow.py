"""MLflow: its SQLite database, the folder `mlruns` of its file store, and one file of it."""

from __future__ import annotations

import math
import os
import re
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.common.files import LogLine
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.folder import STATUSES, entries, is_file
from stabtree.loaders.source import Sure, open_source
from stabtree.loaders.table import Skips, Table
from stabtree.loaders.tables.collected import Collected, distinct
from stabtree.loaders.trackers.database import has_tables, is_database, journal, opened, records

if TYPE_CHECKING:
    from stabtree.loaders.source import Source
    from stabtree.metrics.names import Names

# `timestamp value step`; the oldest MLflow wrote no step.
_LINE = re.compile(r"\d{9,14} \S+( -?\d+)?")
MAX_PARAM = 1 << 16
MAX_DEPTH = 4  # folders below `metrics`: `train/loss` is a file `loss` in a folder `train`
# MLflow stores an infinity as the largest float there is, and a NaN as 0 beside a mark.
LARGEST = 1.7976931348623157e308
TABLES = {"metrics": "run_uuid", "runs": "run_uuid"}
HINT = "name the database that mlflow wrote, such as mlflow.db"
# By itself MLflow's library asks a server that is down for a quarter of an hour: seven times, for two minutes each.
_LIMITS = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_HTTP_REQUEST_TIMEOUT": "20"}
# All parameters are stored as text.
_WORDS = {"True": True, "False": False, "None": None, "": None}


def sniff(source: Source, _names: Names) -> Sure:
    """Return how surely this is an MLflow database or the file of one metric."""
    if has_tables(source, TABLES):
        return Sure.SURELY
    lines = [line for line in source.head.split("\n", 20)[:20] if line.strip()]
    if not source.binary and lines and all(map(_LINE.fullmatch, lines[:-1] or lines)):
        return Sure.LIKELY
    return Sure.NO


def read(source: Source, names: Names) -> Table | tuple[Table, ...]:
    """Read the runs of a database that have metrics, or one metric.

    Raises:
        StabtreeError: if the database can't be read, is none of MLflow's or holds no metrics.
    """
    if is_database(source):
        return _runs(source, names)
    file = source.file
    skips, found = Skips(), Collected()
    _metric(source, file.name if file and file.parent.name == "metrics" else "value", found, skips)
    table = found.table(source.path, "mlflow, one metric", names)
    return replace(table, skipped=tuple(skips.first), skipped_count=skips.count)


def is_run(folder: Path) -> bool:
    """Return whether this is the folder in which MLflow keeps one run."""
    return is_file(folder / "meta.yaml") and any(entries(folder / "metrics"))


def run_in(folder: Path, names: Names) -> Table:
    """Read the metrics of one run of the file store, with its parameters."""
    skips, found, notes = Skips(), Collected(), []
    prefixes = [""]
    for prefix in prefixes:
        folders, files = entries(folder / "metrics" / prefix)
        for name in files:
            try:
                _metric(open_source(folder / "metrics" / prefix / name), prefix + name, found, skips)
            except StabtreeError as error:
                notes.append(f"Metric {clean(prefix + name, 60)} was not read: it {clean(error.problem, 80)}.")
        if prefix.count("/") < MAX_DEPTH:
            prefixes += [f"{prefix}{name}/" for name in folders]
    # MLflow writes one `key: value` a line; the status is told as of any folder.
    run_name, *_ = *re.findall(r"(?m)^run_name: *['\"]?(.*?)['\"]?\s*$", _content(folder / "meta.yaml")), ""
    tag = _content(folder / "tags" / "mlflow.runName").partition("\n")[0].strip()
    for name in entries(folder / "params")[1]:
        text = _content(folder / "params" / name).strip()
        found.config[name] = _WORDS.get(text, text)
    found.config["run_name"] = clean(tag or run_name or folder.name, 60)
    table = _table(found, clean(folder), "mlflow", names)
    return replace(table, skipped=tuple(skips.first), skipped_count=skips.count, notes=(*notes, *table.notes))


def _metric(source: Source, name: str, found: Collected, skips: Skips) -> None:
    """Read the values of the file of one metric."""
    for place, line in enumerate(source.lines(), 1):
        parts = line.split()
        time, value, step = (*parts[:3], "0", "0")[:3]
        if parts and not (len(parts) > 1 and found.add(name, step, value, time)):
            skips.add(place, "is not a line `timestamp value step`", line)
    found.bad = 0  # they are counted as lines


def _content(file: Path) -> str:
    if is_file(file):
        with suppress(OSError), file.open("rb") as stream:
            return stream.read(MAX_PARAM).decode("utf-8", "replace")
    return ""


def _runs(source: Source, names: Names) -> tuple[Table, ...]:
    if not has_tables(source, TABLES):
        raise StabtreeError("is an SQLite database without MLflow's tables", where=source.path, hint=HINT)
    found: dict[str, Collected] = {}
    with opened(source) as store:
        for id_, key, value, time, step, is_nan in store.execute(
            "SELECT run_uuid, key, value, timestamp, step, is_nan FROM metrics"
        ):
            run = found.setdefault(str(id_), Collected())
            run.add(str(key), step or 0, math.nan if is_nan else value, time or 0)
        if not found:
            raise StabtreeError("holds no metrics", where=source.path, hint=HINT)
        # The oldest schemas have no status.
        runs = {str(row["run_uuid"]): row for row in records(store, "runs")}
        for row in records(store, "params"):
            if owner := found.get(str(row.get("run_uuid"))):
                value = row.get("value")
                owner.config[str(row.get("key"))] = _WORDS.get(str(value), value)
    tables = []
    for id_, name in distinct({id_: str(runs.get(id_, {}).get("name") or id_) for id_ in found}).items():
        run = found[id_]
        run.config = {"name": name, **run.config}
        table = _table(run, source.path, "mlflow, SQLite", names, str(runs.get(id_, {}).get("status", "")))
        notes = (*journal(source, "mlflow"), *table.notes)
        tables.append(replace(table, run=name * (len(found) > 1), notes=notes))
    return tuple(tables)


def _table(found: Collected, path: str, format_: str, names: Names, status: str = "") -> Table:
    """Return the table of a run: by time, what is of one millisecond by step, as a fast run logs many steps in it."""
    points = found.points()
    points = points.pick(np.lexsort((points.step, points.time)))
    value = np.where(np.abs(points.value) >= LARGEST, np.copysign(np.inf, points.value), points.value)
    ended = STATUSES.get(status, status)
    lines: tuple[LogLine, ...] = (LogLine(0, f"status: {ended} (MLflow)", at_end=True),) * (ended in STATUSES.values())
    table = found.table(path, format_, names, points=replace(points, value=value))
    return replace(table, lines=lines)


def fetch(library: Any, id_: str, home: Path) -> Path | None:
    """Write what MLflow's own library says of a run into a database as MLflow's; None if nothing was logged."""
    client, file = _client(library, id_), home / "mlflow.db"
    run = client.get_run(id_)
    with closing(sqlite3.connect(file)) as store, store:
        for table in ("runs (run_uuid, name, status)", "params (run_uuid, key, value)"):
            store.execute(f"CREATE TABLE {table}")
        store.execute("CREATE TABLE metrics (run_uuid, key, value, timestamp, step, is_nan)")
        store.execute("INSERT INTO runs VALUES (?, ?, ?)", (id_, run.info.run_name, run.info.status))
        store.executemany("INSERT INTO params VALUES (?, ?, ?)", ((id_, *item) for item in run.data.params.items()))
        for key in run.data.metrics:
            rows = client.get_metric_history(id_, key)
            values = ((id_, key, row.value, row.timestamp, row.step, math.isnan(row.value)) for row in rows)
            store.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", values)
    return file if run.data.metrics else None


def listed(library: Any, path: str, most: int) -> list[str]:
    """Return the addresses of the newest runs of an experiment, by its name or id."""
    client, name = _client(library, path), path.removeprefix("experiments/")
    found = client.get_experiment_by_name(name) or client.get_experiment(name)
    runs = client.search_runs([found.experiment_id], max_results=most, order_by=["attributes.start_time DESC"])
    return [f"mlflow:{run.info.run_id}" for run in runs]


def _client(library: Any, path: str) -> Any:
    """Return a client of MLflow's own library, which is to give up on a server that does not answer.

    Raises:
        StabtreeError: where nothing names a server.
    """
    if not library.is_tracking_uri_set() and not any(map(Path.exists, map(Path, ("mlflow.db", "mlruns")))):
        problem = "is of a server that nothing names"  # MLflow would begin a database in the working directory
        hint = "set MLFLOW_TRACKING_URI to the address of the server"
        raise StabtreeError(problem, where=f"mlflow:{path}", hint=hint)
    for name, limit in _LIMITS.items():
        os.environ.setdefault(name, limit)
    return library.MlflowClient()
