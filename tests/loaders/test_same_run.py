"""One small run, written as each trainer writes it, loads to the same run.

The rows: loss, grad_norm and lr at every tenth step, an eval loss at every fifth of those. Text logs and
binary event files follow in `test_same_run_printed`.
"""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

from stabtree.loaders import load_run
from tests.loaders.make import json_lines, points

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Row = dict[str, float]

TRAIN: list[Row] = [
    {"step": 10 * i, "loss": 4 - i / 8, "grad_norm": 1 + i % 3 / 4, "lr": 1e-3 * min(1.0, (i + 1) / 5)}
    for i in range(25)
]
EVAL: list[Row] = [{"step": 10 * i, "eval_loss": 4.125 - i / 16} for i in range(0, 25, 5)]
EXPECTED = {
    "loss": [(int(row["step"]), row["loss"]) for row in TRAIN],
    "grad_norm": [(int(row["step"]), row["grad_norm"]) for row in TRAIN],
    "lr": [(int(row["step"]), float(f"{row['lr']:.9g}")) for row in TRAIN],
    "eval_loss": [(int(row["step"]), row["eval_loss"]) for row in EVAL],
}


def mixed(names: dict[str, str] | None = None) -> list[Row]:
    """Train and eval rows in the order in which a trainer logs them, keys renamed."""
    names = names or {}
    evals = {row["step"]: row for row in EVAL}
    rows = [row for train in TRAIN for row in (train, evals.get(train["step"])) if row]
    return [{names.get(key, key): value for key, value in row.items()} for row in rows]


def joined(names: dict[str, str] | None = None) -> list[Row]:
    """One row a step, keys renamed."""
    names = names or {}
    evals = {row["step"]: row for row in EVAL}
    return [
        {names.get(key, key): value for key, value in {**train, **evals.get(train["step"], {})}.items()}
        for train in TRAIN
    ]


def as_csv(rows: list[Row]) -> str:
    """A header and the rows, empty where a row lacks a key."""
    text = io.StringIO()
    names = dict.fromkeys(key for row in rows for key in row)
    writer = csv.DictWriter(text, list(names))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def trainer_state() -> str:
    """Hugging Face: the log history between the settings, a summary last."""
    history = [{"epoch": 0.01 * place, **row} for place, row in enumerate(mixed({"lr": "learning_rate"}))]
    summary = {"epoch": 1.0, "step": 240, "total_flos": 1e15, "train_loss": 2.5, "train_runtime": 60.0}
    return json.dumps({"global_step": 240, "log_history": [*history, summary], "logging_steps": 10}, indent=2)


def swift() -> str:
    """ms-swift: the step as `done/total` text, and statistics of the data last."""
    rows = [{"global_step/max_steps": f"{row.pop('step'):.0f}/240", **row} for row in mixed({"lr": "learning_rate"})]
    return "".join(json.dumps(row) + "\n" for row in rows) + '{"train_dataset": "287.5±102.3, min=63"}\n'


def lightning() -> str:
    """Lightning's CSVLogger: one row for training, one for validation, at the same step."""
    names = {"loss": "train_loss", "eval_loss": "val_loss", "lr": "lr-AdamW"}
    return as_csv([{"epoch": 0, **row} for row in mixed(names)])


def wandb_export() -> str:
    """A W&B CSV export of one run, with its columns of extremes."""
    names = {key: f"run-1 - train/{key}" for key in ("loss", "grad_norm", "lr")}
    rows = joined({**names, "eval_loss": "run-1 - eval/loss", "step": "Step"})
    return as_csv([{**row, "run-1 - train/loss__MIN": 0.0, "run-1 - train/loss__MAX": 9.0} for row in rows])


def columns() -> str:
    """An object of columns."""
    rows = joined()
    return json.dumps({key: [row.get(key) for row in rows] for key in ("step", "loss", "grad_norm", "lr", "eval_loss")})


WRITERS: dict[str, tuple[str, Callable[[], str]]] = {
    "csv": ("metrics.csv", lambda: as_csv(joined())),
    "tsv": ("metrics.tsv", lambda: as_csv(joined()).replace(",", "\t")),
    "jsonl": ("metrics.jsonl", lambda: json_lines(mixed())),
    "json array": ("metrics.json", lambda: json.dumps(mixed(), indent=1)),
    "json objects in a row": ("metrics.json", lambda: "\n".join(json.dumps(row, indent=1) for row in mixed())),
    "json columns": ("history.json", columns),
    "trainer_state": ("trainer_state.json", trainer_state),
    "llama-factory": (
        "trainer_log.jsonl",
        lambda: json_lines([{"total_steps": 240, **row} for row in mixed({"step": "current_steps"})]),
    ),
    "ms-swift": ("logging.jsonl", swift),
    "lightning": ("metrics.csv", lightning),
    "timm-like": ("summary.csv", lambda: as_csv(joined({"loss": "train_loss", "step": "epoch"}))),
    "stable-baselines3": (
        "progress.csv",
        lambda: as_csv(joined({"loss": "train/loss", "lr": "train/learning_rate", "step": "time/total_timesteps"})),
    ),
    "detectron2": ("metrics.json", lambda: json_lines(mixed({"loss": "total_loss", "step": "iteration"}))),
    "mmengine": ("scalars.json", lambda: json_lines([{"base_lr": 1.0, **row} for row in mixed()])),
    "wandb export": ("wandb_export.csv", wandb_export),
}


def checked(path: Path) -> None:
    """Assert that a file loads to the run."""
    assert points(load_run(path)) == {metric: EXPECTED[metric] for metric in sorted(EXPECTED)}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_run(tmp_path: Path, name: str) -> None:
    """As a file, and as the folder that holds it."""
    file, writer = WRITERS[name]
    (tmp_path / file).write_text(writer(), encoding="utf-8")
    checked(tmp_path / file)
    checked(tmp_path)


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_arrow_formats_give_the_same_run(tmp_path: Path, kind: str) -> None:
    """Parquet and Feather: a null is not logged."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    rows = joined()
    table = pa.table({key: [row.get(key) for row in rows] for key in ("step", "loss", "grad_norm", "lr", "eval_loss")})
    file = tmp_path / f"metrics.{kind}"
    (parquet.write_table if kind == "parquet" else feather.write_feather)(table, str(file))
    checked(file)
    checked(tmp_path)
