"""Makes `runs.npz` and `truth.json` from the dev split of the benchmark.

    python -m tests.corpus.labelled.extract BENCH

Every value must come back as the loader read it; the script stops where one does not.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import astuple

from stabtree.loaders import load_run
from tests.corpus.labelled import FOLDER, NUMBERS, packed, runs, truth

if TYPE_CHECKING:
    from stabtree.run import Run, Series

KEPT = (
    *("fault", "healthy", "family", "columns_kind", "log_interval"),
    *("section", "acceptable_sections", "acceptable_leaves", "onset_step", "first_visible_step"),
)


def head(run: Run) -> dict[str, Any]:
    """All of a run but its numbers."""
    return {
        "name": run.name,
        "rows": {metric: len(series) for metric, series in run.series.items()},
        "config": {key: setting.value for key, setting in run.config.items()},
        "gaps": [astuple(gap) for gap in run.gaps],
        "resumes": [astuple(resume) for resume in run.resumes],
        "notes": run.notes,
    }


def numbered(series: Series) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The values of a series as int32: of a batch its number, else the bits of a float32."""
    if series.metric in NUMBERS:
        _, first, which = np.unique(series.values, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[which].astype(np.int32)
    return series.values.astype(np.float32).view(np.int32)


def write(bench: Path) -> None:
    """Write both files."""
    found = {path.name: load_run(path) for path in sorted((bench / "dev" / "runs").iterdir())}
    metrics = sorted({metric for run in found.values() for metric in run.series})
    stored: dict[str, Any] = {
        "heads": np.frombuffer(json.dumps({id_: head(run) for id_, run in found.items()}).encode(), np.uint8)
    }
    for metric in metrics:
        columns = [run.series[metric] for run in found.values() if metric in run.series]
        stored[f"{metric}/steps"] = packed(np.concatenate([one.steps for one in columns]).astype(np.int32))
        stored[f"{metric}/values"] = packed(np.concatenate([numbered(one) for one in columns]))
    np.savez_compressed(FOLDER / "runs.npz", **stored)
    facts = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (bench / "dev" / "truth").iterdir()}
    lines = (f"{json.dumps(id_)}: {json.dumps({key: facts[id_].get(key) for key in KEPT})}" for id_ in sorted(facts))
    (FOLDER / "truth.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    for id_, run in runs().items():
        for metric, series in run.series.items():
            read = found[id_].series[metric]
            same = metric in NUMBERS or np.array_equal(series.values, read.values, equal_nan=True)
            if not same or not np.array_equal(series.steps, read.steps):
                raise SystemExit(f"{id_} {metric}: not what was read")
    sys.stdout.write(f"{len(runs())} runs, {len(truth())} truths, {(FOLDER / 'runs.npz').stat().st_size:,} bytes\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
