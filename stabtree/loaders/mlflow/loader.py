"""MLflow: the folder `mlruns` of its file store, one file of it, and its SQLite database."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stabtree.common.errors import StabtreeError
from stabtree.common.lazy import np
from stabtree.common.text import clean
from stabtree.loaders.config import read_config
from stabtree.loaders.folder import entries, is_file
from stabtree.loaders.mlflow import sqlite as mlflowdb
from stabtree.loaders.points import Points, merge, tabulate
from stabtree.loaders.source import Sure, open_source
from stabtree.loaders.table import Skips, Table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stabtree.loaders.source import Source
    from stabtree.metrics.names import Names

# `timestamp value step`; the oldest MLflow wrote no step.
_LINE = re.compile(r"\d{9,14} \S+( -?\d+)?")
MAX_PARAM = 1 << 16


def sniff(source: Source, _names: Names) -> Sure:
    """Return how surely this is an MLflow database or the file of one metric."""
    if source.data.startswith(mlflowdb.MAGIC):
        if mlflowdb.is_store(source):
            return Sure.SURELY
        return Sure.NO
    if source.binary:
        return Sure.NO
    lines = [line for line in source.head.split("\n", 20)[:20] if line.strip()]
    if lines and all(_LINE.fullmatch(line) for line in lines[:-1] or lines):
        return Sure.LIKELY
    return Sure.NO


def read(source: Source, names: Names) -> Table | tuple[Table, ...]:
    """Read the runs of a database, or one metric.

    Raises:
        StabtreeError: if the database can't be read or holds no metrics.
    """
    if source.data.startswith(mlflowdb.MAGIC):
        return mlflowdb.read(source, names)
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


def _metric(source: Source, name: str, skips: Skips) -> Points:
    """Read the values of the file of one metric."""
    rows = []
    for number, line in enumerate(source.lines(), 1):
        parts = line.split()
        if not parts:
            continue
        try:
            time, value, step = (*parts[:3], "0")[:3]
            rows.append(mlflowdb.logged_value(value, time, step))
        except (ValueError, OverflowError):
            skips.add(number, f"is not a line `timestamp value step`: {clean(line, 40)!r}")
    cells = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    return Points(
        (name,), np.zeros(len(rows), dtype=np.int64), cells[2].astype(np.int64), cells[1].copy(), cells[0].copy()
    )


def is_run(folder: Path) -> bool:
    """Return whether this is the folder in which MLflow keeps one run."""
    return is_file(folder / "meta.yaml") and any(entries(folder / "metrics"))


def run_in(folder: Path, names: Names) -> Table:
    """Read the metrics of one run, with its parameters.

    Raises:
        StabtreeError: if it holds no metrics.
    """
    skips, notes, parts = Skips(), [], []
    for name, file in _metric_files(folder / "metrics"):
        try:
            parts.append(_metric(open_source(file), name, skips))
        except StabtreeError as error:
            notes.append(f"Metric {clean(name, 60)} was not read: it {clean(error.problem, 80)}.")
    rows, columns, more = tabulate(_in_order(merge(parts)), names)
    config, mistakes = read_config(mlflowdb.params({**_params(folder / "params"), "run_name": _run_name(folder)}))
    return Table(
        path=clean(folder),
        format="mlflow",
        rows=rows,
        columns=columns,
        config=config,
        skipped=tuple(skips.first),
        skipped_count=skips.count,
        notes=(*notes, *more, *mistakes),
        lines=mlflowdb.status(_meta(folder, "status")),
    )


def _run_name(folder: Path) -> str:
    return clean(_first_line(folder / "tags" / "mlflow.runName") or _meta(folder, "run_name") or folder.name, 60)


def _meta(folder: Path, key: str) -> str:
    """Return a text from meta.yaml, in which MLflow writes one `key: value` a line."""
    found = re.search(rf"^{key}: *(.*)$", _content(folder / "meta.yaml"), re.MULTILINE)
    if found:
        return found[1].strip().strip("'\"")
    return ""


def _content(file: Path) -> str:
    try:
        if not is_file(file):
            return ""
        with file.open("rb") as stream:
            return stream.read(MAX_PARAM).decode("utf-8", "replace")
    except OSError:
        return ""


def _first_line(file: Path) -> str:
    return _content(file).partition("\n")[0].strip()


def _in_order(points: Points) -> Points:
    """Return the points by time, those of one millisecond by step: a fast run logs many steps in it."""
    order = np.lexsort((points.step, points.time))
    return Points(points.names, points.name[order], points.step[order], points.time[order], points.value[order])


def _metric_files(top: Path) -> list[tuple[str, Path]]:
    """Return metrics and their files; `train/loss` is a file `loss` in a folder `train`."""
    found: list[tuple[str, Path]] = []
    open_ = [""]
    for prefix in open_:
        folders, files = entries(top / prefix)
        found += [(prefix + name, top / prefix / name) for name in files]
        if prefix.count("/") < 4:
            open_ += [f"{prefix}{name}/" for name in folders]
    return found


def _params(folder: Path) -> Mapping[str, Any]:
    return {name: _content(folder / name).strip() for name in entries(folder)[1]}
