"""128 labelled training runs as they were logged, thin enough to live beside the tests that judge them.

They are the dev split of `faultbench/`. `runs.npz` holds every column of each run, `truth.json` what was done to it:
`fault`, whether it is `healthy`, and the leaves and sections that are not wrong given what was logged. The logs give
six digits, so a value is kept as a float32, of which six digits are exact, and becomes the float64 of its text again; a
loss scale is a whole number, which stays what it is. `batch_id` is kept as the number of the batch in order of
appearance: questions ask only which ones are the same.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stabtree.run import Gap, Resume, Run, Series, Setting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

FOLDER = Path(__file__).resolve().parent
CALM = ("HEALTHY", "RESUME_DUP_STEPS", "FP16_GRAD_INF_TRANSIENT")
NUMBERS = ("batch_id",)
WHOLE = 2**24  # below it a float32 holds every whole number


@cache
def truth() -> Mapping[str, Mapping[str, Any]]:
    """What was done to each run, by its id."""
    found: dict[str, dict[str, Any]] = json.loads((FOLDER / "truth.json").read_text(encoding="utf-8"))
    return found


@cache
def runs() -> Mapping[str, Run]:
    """All runs by their ids."""
    with np.load(FOLDER / "runs.npz") as stored:
        heads = json.loads(stored["heads"].tobytes())
        columns = {name[:-6]: _column(stored, name[:-6]) for name in stored.files if name.endswith("/steps")}
    taken = dict.fromkeys(columns, 0)
    found = {}
    for id_, head in heads.items():
        series = {}
        for metric, rows in head["rows"].items():
            start = taken[metric]
            steps, values = columns[metric]
            series[metric] = Series(metric, steps[start : start + rows], values[start : start + rows])
            taken[metric] += rows
        found[id_] = Run(
            name=head["name"],
            series=series,
            config={key: Setting(_scalar(value), "manifest.json") for key, value in head["config"].items()},
            gaps=tuple(Gap(*gap) for gap in head["gaps"]),
            resumes=tuple(Resume(*resume) for resume in head["resumes"]),
            notes=tuple(head["notes"]),
        )
    return found


def unpacked(planes: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Whole numbers from the bytes of their differences, uint8 (4, n), first bytes first."""
    changes = np.ascontiguousarray(planes.T).view("<i4").ravel()
    return np.cumsum(changes, dtype=np.int32)


def six_digits(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """The numbers that were kept as float32: their texts have six digits, or they are whole."""
    whole = (values == np.trunc(values)) & (np.abs(values) < WHOLE)
    read = np.array([float(f"{value:.6g}") for value in values.tolist()])
    return np.where(whole, values.astype(np.float64), read)


def _column(stored: Any, metric: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    steps, bits = (unpacked(stored[f"{metric}/{part}"]) for part in ("steps", "values"))
    if metric in NUMBERS:
        return steps.astype(np.int64), bits.astype(np.float64)
    return steps.astype(np.int64), six_digits(bits.view(np.float32))


def _scalar(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
