"""Files for the loader tests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from stabtree.run import Run

ROWS: list[dict[str, str]] = [
    {
        "step": str(i * 10),
        "loss": "nan" if i == 17 else "" if i == 9 else f"{4 - i / 8:.4f}",
        "grad_norm": "inf" if i == 12 else f"{1 + i % 3 / 4}",
        "lr": f"{1e-3 * min(1.0, (i + 1) / 5):.6g}",
        "batch_id": f"{(i * 2654435761) % 2**32:08x}",
        "eval_loss": f"{4.1 - i / 9:.3f}" if i % 5 == 0 else "",
    }
    for i in range(25)
]


def text(delimiter: str = ",", rows: list[dict[str, str]] = ROWS, end: str = "\n") -> str:
    """The rows with a header."""
    lines = [delimiter.join(rows[0]), *(delimiter.join(row.values()) for row in rows)]
    return end.join(lines) + end


def write(folder: Path, content: str | bytes, name: str = "metrics.csv") -> Path:
    """A file with this content."""
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def json_lines(rows: Iterable[object]) -> str:
    """Rows as a logger of JSON lines writes them."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def points(run: Run) -> Mapping[str, list[tuple[int, float | str]]]:
    """The run's series but its clock as lists: values to 9 digits (older pandas errs in the last ones), NaN as text."""
    return {
        metric: [
            (step, "nan" if np.isnan(value) else float(f"{value:.9g}"))
            for step, value in zip(series.steps.tolist(), series.values.tolist(), strict=True)
        ]
        for metric, series in sorted(run.series.items())
        if metric != "wall_time"
    }
