"""Trackio: its SQLite database, one a project, and what `trackio get metric --json` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from stabtree.common.errors import StabtreeError
from stabtree.loaders.json.lines import parse_object
from stabtree.loaders.json.rows import flatten
from stabtree.loaders.source import Sure
from stabtree.loaders.tables.collected import Collected, distinct
from stabtree.loaders.trackers.database import has_tables, is_database, journal, opened, records

if TYPE_CHECKING:
    from typing import Any

    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Table
    from stabtree.metrics.names import Names

HINT = "name the database of a project, such as ~/.cache/huggingface/trackio/PROJECT.db"
COUNTS = "Trackio counts its own calls of log as steps where none was given, evaluations too."


def sniff(source: Source, _names: Names) -> Sure:
    """Return how surely this is a database of Trackio, or one metric of a run."""
    if has_tables(source, {"metrics": "run_name"}):
        return Sure.SURELY
    keys = ('"project"', '"run"', '"metric"', '"values"')
    start = source.head[:2000]
    return Sure.SURELY.when(start.lstrip().startswith("{") and all(key in start for key in keys))


def read(source: Source, names: Names) -> tuple[Table, ...]:
    """Read the runs of a project, or one metric.

    Raises:
        StabtreeError: if it can't be read, or holds no metrics.
    """
    if not is_database(source):
        return (_one_metric(source, names),)
    found: dict[str, Collected] = {}
    titles: dict[str, str] = {}
    with opened(source) as store:
        for row in records(store, "metrics"):
            id_ = str(row.get("run_id") or row.get("run_name"))
            run = found.setdefault(id_, Collected())
            titles[id_] = str(row.get("run_name") or id_)
            for name, value in flatten(_object(row.get("metrics"))):
                if not isinstance(value, str) or value in ("NaN", "Infinity", "-Infinity"):
                    run.add(name, row.get("step"), value)
        for row in records(store, "configs"):
            id_ = str(row.get("run_id") or row.get("run_name"))
            if id_ in found:
                found[id_].config.update(_object(row.get("config")))
    if not found:
        raise StabtreeError("holds no metrics", where=source.path, hint=HINT)
    tables = []
    for id_, name in distinct(titles).items():
        run = found[id_]
        run.config = {"name": name, **{key: value for key, value in run.config.items() if not key.startswith("_")}}
        notes, counter = journal(source, "trackio"), "_step"
        # A trainer logs its own steps beside those of Trackio, which count calls.
        if not any(names.role(column) == "step" for column in run.names):
            notes, counter = (*notes, COUNTS), "step"
        table = run.table(source.path, "trackio", names, counter=counter, notes=notes)
        tables.append(replace(table, run=name * (len(found) > 1)))
    return tuple(tables)


def _object(stored: Any) -> dict[str, Any]:
    """Return an object that is stored as text or as bytes."""
    if isinstance(stored, bytes):
        stored = stored.decode("utf-8", "replace")
    return parse_object(str(stored)) or {}


def _one_metric(source: Source, names: Names) -> Table:
    content = _object("\n".join(source.lines()))
    found, name, values = Collected(), content.get("metric"), content.get("values")
    if not isinstance(name, str) or not isinstance(values, list):
        hint = "print it again with: trackio get metric ... --json"
        raise StabtreeError("is JSON that can't be read, or is cut", where=source.path, hint=hint)
    for row in values:
        if isinstance(row, dict):
            found.add(name, row.get("step"), row.get("value"))
        else:
            found.bad += 1
    found.config["name"] = content.get("run")
    return found.table(source.path, "trackio, one metric", names)
