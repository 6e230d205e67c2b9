"""A kind of run with a failure, written as its trainer writes it, and read and judged as anybody's log is."""

from __future__ import annotations

import json
import tempfile
import zlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stabtree.common.files import LogLine
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from stabtree.tree.load import load_trees
from tests.whole.advice.columns import ROWS
from tests.whole.advice.failures import FAILURES, LINES, configured
from tests.whole.advice.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from numpy.typing import NDArray

    from stabtree.diagnosis.result import Diagnosis
    from stabtree.run import Run
    from tests.whole.advice.columns import Floats
    from tests.whole.advice.kinds import Kind

    Bools = NDArray[np.bool_]


def made(kind_name: str, failure: str) -> Run:
    """A run of a kind with a failure; the same one each time."""
    kind = KINDS[kind_name]
    rng = np.random.default_rng(zlib.crc32(f"{kind_name} {failure}".encode()))
    columns = kind.columns(rng)
    logged = {name: ~np.isnan(values) for name, values in columns.items()}
    with np.errstate(invalid="ignore"):
        FAILURES[failure](columns, kind, rng)
    cells = {name: _cells(values, logged.get(name)) for name, values in columns.items()}
    run = _read(cells, kind, configured(kind.config, failure), kind_name)
    if failure in LINES:
        return replace(run, lines=(LogLine(ROWS + 2, LINES[failure], at_end=True),))
    return run


def _cells(values: Floats, logged: Bools | None) -> list[str]:
    """A column as text: a cell of a row that a trainer does not evaluate is empty, a NaN elsewhere is logged."""
    kept = np.ones(ROWS, bool) if logged is None else logged
    return [f"{value:.6g}" if keep else "" for value, keep in zip(values.tolist(), kept.tolist(), strict=True)]


def _read(cells: Mapping[str, list[str]], kind: Kind, config: Mapping[str, Any], name: str) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / name
        place.mkdir()
        manifest = {"name": name, "metrics_file": "metrics.csv", **config}
        (place / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        steps = [str((row + 1) * kind.every) for row in range(ROWS)]
        lines = [[kind.step, *cells], *zip(steps, *cells.values(), strict=True)]
        text = "".join(",".join(line) + "\n" for line in lines)
        (place / "metrics.csv").write_text(text, encoding="utf-8")
        return load_run(place)


@cache
def diagnosed(kind_name: str, failure: str) -> Diagnosis:
    """What is found in such a run."""
    run = made(kind_name, failure)
    return diagnose(run, load_trees(run))
