"""MLflow: the folder `mlruns` of its file store, one file of it, and its SQLite database."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
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
from stabtree.loaders.tables.cells import number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from stabtree.loaders.source import Source
    from stabtree.loaders.table import Asked
    from stabtree.metrics.names import Names

# `timestamp value step`; the oldest MLflow wrote no step.
_LINE = re.compile(r"\d{9,14} \S+( -?\d+)?")
MAX_PARAM = 1 << 16
MAX_RUNS = 5000


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of the file store.

    Attributes:
        place: its folder.
        name: what the user called it.
        experiment: the folder of its experiment.
    """

    place: Path
    name: str
    experiment: str = ""


def sniff(source: Source, _names: Names) -> Sure:
    """How surely this is an MLflow database or the file of one metric."""
    if source.data.startswith(mlflowdb.MAGIC):
        return Sure.SURELY if mlflowdb.is_store(source) else Sure.NO
    if source.binary:
        return Sure.NO
    lines = [line for line in source.head.split("\n", 20)[:20] if line.strip()]
    return Sure.LIKELY if lines and all(_LINE.fullmatch(line) for line in lines[:-1] or lines) else Sure.NO


def read(source: Source, names: Names) -> Table | tuple[Table, ...]:
    """The runs of a database, or one metric.

    Raises:
        StabtreeError: where the database can't be read or holds no metrics.
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
    """The values of the file of one metric."""
    times, values, steps = [], [], []
    for place, line in enumerate(source.lines(), 1):
        parts = line.split()
        if not parts:
            continue
        try:
            time, value, step = number(parts[0]), number(parts[1]), number(parts[2]) if len(parts) > 2 else 0.0
            if time is None or value is None or step is None or not abs(step) < 2**53 or step != int(step):
                raise ValueError
        except (ValueError, IndexError, OverflowError):
            skips.add(place, f"is not a line `timestamp value step`: {clean(line, 40)!r}")
            continue
        times.append(time)
        values.append(value)
        steps.append(step)
    return Points(
        (name,),
        np.zeros(len(values), dtype=np.int64),
        np.array(steps, dtype=np.int64),
        np.array(times, dtype=np.float64),
        np.array(values, dtype=np.float64),
    )


def folder(path: Path, asked: Asked) -> tuple[Table, ...]:
    """The runs of a folder `mlruns`, of an experiment in it, or one run; of several only that asked for is read.

    Raises:
        StabtreeError: where a run that is read holds no metrics.
    """
    runs = _named(_runs(path))
    tables = []
    for name, found in runs.items():
        if len(runs) == 1 or name == asked.run:
            tables.append(replace(_read_run(found, asked.names), run=name if len(runs) > 1 else ""))
        else:
            tables.append(Table(clean(path), "mlflow", 0, {}, run=name))
    return tuple(tables)


def _runs(path: Path) -> list[_Run]:
    """The runs that have metrics."""
    if _is_run(path):
        return [_Run(path, _run_name(path))]
    for top in (path, path / "mlruns"):
        found = []
        for name in entries(top)[0]:
            if _is_run(top / name):
                found.append(_Run(top / name, _run_name(top / name)))
            elif not name.startswith(".") and is_file(top / name / "meta.yaml"):
                title = _meta(top / name, "name") or name
                inner = [top / name / run for run in entries(top / name)[0][:MAX_RUNS]]
                found += [_Run(place, _run_name(place), title) for place in inner if _is_run(place)]
        if found:
            return found
    return []


def _is_run(place: Path) -> bool:
    return is_file(place / "meta.yaml") and any(entries(place / "metrics"))


def _run_name(place: Path) -> str:
    told = _first_line(place / "tags" / "mlflow.runName")
    return clean(told or _meta(place, "run_name") or place.name, 60)


def _meta(place: Path, key: str) -> str:
    """A text from meta.yaml, which MLflow writes one `key: value` a line."""
    found = re.search(rf"^{key}: *(.*)$", _content(place / "meta.yaml"), re.MULTILINE)
    return found[1].strip().strip("'\"") if found else ""


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


def _named(runs: Sequence[_Run]) -> dict[str, _Run]:
    """The runs by a name that only one has."""
    names = mlflowdb.distinct([(run.experiment, run.name, run.place.name) for run in runs])
    return dict(zip(names, runs, strict=True))


def _read_run(run: _Run, names: Names) -> Table:
    skips, notes, parts = Skips(), [], []
    for name, file in _metric_files(run.place / "metrics"):
        try:
            parts.append(_metric(open_source(file), name, skips))
        except StabtreeError as error:
            notes.append(f"Metric {clean(name, 60)} was not read: it {clean(error.problem, 80)}.")
    rows, columns, told = tabulate(_in_order(merge(parts)), names)
    config, mistakes = read_config(mlflowdb.params({**_params(run.place / "params"), "run_name": run.name}))
    return Table(
        path=clean(run.place),
        format="mlflow",
        rows=rows,
        columns=columns,
        config=config,
        skipped=tuple(skips.first),
        skipped_count=skips.count,
        notes=(*notes, *told, *mistakes),
    )


def _in_order(points: Points) -> Points:
    """The points by time, those of one millisecond by step: a fast run logs many steps in it."""
    order = np.lexsort((points.step, points.time))
    return Points(points.names, points.name[order], points.step[order], points.time[order], points.value[order])


def _metric_files(top: Path) -> list[tuple[str, Path]]:
    """Metrics and their files; `train/loss` is a file `loss` in a folder `train`."""
    found: list[tuple[str, Path]] = []
    open_ = [""]
    for prefix in open_:
        folders, files = entries(top / prefix)
        found += [(prefix + name, top / prefix / name) for name in files]
        if prefix.count("/") < 4:
            open_ += [f"{prefix}{name}/" for name in folders]
    return found


def _params(place: Path) -> Mapping[str, Any]:
    return {name: _content(place / name).strip() for name in entries(place)[1]}
