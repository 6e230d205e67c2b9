"""Names that nobody but the user knows: `--column` reaches every format, and hints can be typed as they stand."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_run
from tests.loaders.make import json_lines, points
from tests.loaders.make_binary import wandb_file, wandb_records, write_events
from tests.loaders.test_same_run import as_csv
from tests.loaders.trackers.test_mlflow import database

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.loaders.test_same_run import Row

COLUMNS = {"loss": "trn_x", "grad_norm": "gn"}
# `loss` stands beside the user's own column: it is not the one that was asked for.
ROWS: list[Row] = [{"step": i, "trn_x": 4 - i / 8, "gn": 1 + i % 3 / 4, "loss": 9.0} for i in range(12)]
EXPECTED = {
    "grad_norm": [(int(row["step"]), row["gn"]) for row in ROWS],
    "loss": [(int(row["step"]), row["trn_x"]) for row in ROWS],
}


def lists() -> dict[str, list[float]]:
    """The rows as columns."""
    return {key: [row[key] for row in ROWS] for key in ROWS[0]}


def tfevents(folder: Path) -> Path:
    """An event file."""
    write_events(
        folder / "events.out.tfevents.1700000000.host",
        [(int(row["step"]), {key: row[key] for key in ("trn_x", "gn", "loss")}) for row in ROWS],
    )
    return folder


def wandb(folder: Path) -> Path:
    """The folder of a W&B run."""
    place = folder / "run-20240101_000000-abc"
    place.mkdir()
    records = wandb_records([{"_step": row["step"], **row} for row in ROWS], {}, "a run")
    (place / "run-abc.wandb").write_bytes(wandb_file(records))
    return place


def wandb_output(folder: Path) -> Path:
    """The folder of a W&B run of which only what it printed is left."""
    files = folder / "run-20240101_000000-abc" / "files"
    files.mkdir(parents=True)
    (files / "wandb-metadata.json").write_text("{}", encoding="utf-8")
    (files / "output.log").write_text(printed(), encoding="utf-8")
    return files.parent


def mlflow(folder: Path) -> Path:
    """A run of MLflow's file store."""
    (folder / "metrics").mkdir()
    (folder / "meta.yaml").write_text("run_name: a\n", encoding="utf-8")
    for key in ("trn_x", "gn", "loss"):
        lines = [f"{1700000000000 + i} {row[key]} {row['step']}\n" for i, row in enumerate(ROWS)]
        (folder / "metrics" / key).write_text("".join(lines), encoding="utf-8")
    return folder


def mlflow_database(folder: Path) -> Path:
    """MLflow's database."""
    points_ = [(key, row[key], i, int(row["step"])) for i, row in enumerate(ROWS) for key in ("trn_x", "gn", "loss")]
    return database(folder / "mlflow.db", {"r1": points_})


def lightning(folder: Path) -> Path:
    """The folder of Lightning's CSVLogger."""
    (folder / "version_0").mkdir()
    (folder / "version_0" / "metrics.csv").write_text(as_csv(ROWS), encoding="utf-8")
    return folder


def mmengine(folder: Path) -> Path:
    """The work folder of mmengine."""
    (folder / "vis_data").mkdir()
    (folder / "vis_data" / "scalars.json").write_text(json_lines(ROWS), encoding="utf-8")
    return folder


def parquet(folder: Path) -> Path:
    """A Parquet file."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as format_

    format_.write_table(pa.table(lists()), str(folder / "metrics.parquet"))
    return folder / "metrics.parquet"


def printed() -> str:
    """What a trainer prints, with a name that stands for nothing."""
    return "".join(f"STEP {row['step']:.0f} | trn_x={row['trn_x']} | gn={row['gn']} | loss=9.0\n" for row in ROWS)


def written(name: str, content: Callable[[], str]) -> Callable[[Path], Path]:
    """A file of text."""

    def write(folder: Path) -> Path:
        (folder / name).write_text(content(), encoding="utf-8")
        return folder / name

    return write


WRITERS: dict[str, Callable[[Path], Path]] = {
    "csv": written("a.csv", lambda: as_csv(ROWS)),
    "jsonl": written("a.jsonl", lambda: json_lines(ROWS)),
    "json array": written("a.json", lambda: json.dumps(ROWS)),
    "json columns": written("a.json", lambda: json.dumps(lists())),
    "manifest with series": written("manifest.json", lambda: json.dumps({"series": lists()})),
    "manifest with records": written("manifest.json", lambda: json.dumps({"metrics": ROWS})),
    "trainer_state": written("trainer_state.json", lambda: json.dumps({"global_step": 12, "log_history": ROWS})),
    "text": written("a.log", printed),
    "printed dicts": written("a.log", lambda: "".join(f"{row}\n" for row in ROWS)),
    "parquet": parquet,
    "tfevents": tfevents,
    "wandb": wandb,
    "wandb output": wandb_output,
    "mlflow": mlflow,
    "mlflow database": mlflow_database,
    "lightning": lightning,
    "mmengine": mmengine,
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_column_that_the_user_names_is_read_in_every_format(tmp_path: Path, name: str) -> None:
    """The loss is the column that was asked for, whatever else stands in the file."""
    run = load_run(WRITERS[name](tmp_path), columns=COLUMNS)
    assert {metric: rows for metric, rows in points(run).items() if metric != "eval_loss"} == EXPECTED


@pytest.mark.parametrize("format_", [None, "text"])
def test_a_text_log_of_unknown_names_reads(tmp_path: Path, format_: str | None) -> None:
    """No word of the line need be known but its epoch."""
    file = tmp_path / "a.log"
    file.write_text("EPOCH 3 | trn_x=2.31 | gn=0.5\n", encoding="utf-8")
    run = load_run(file, columns=COLUMNS, format=format_)
    assert points(run) == {"grad_norm": [(3, 0.5)], "loss": [(3, 2.31)]}


def test_a_step_that_the_user_names_is_read_from_a_text_log(tmp_path: Path) -> None:
    """Also where the line names another step, which then is none."""
    file = tmp_path / "a.log"
    file.write_text("".join(f"step {i} tick: {10 * i} loss: {4 - i / 8}\n" for i in range(9)), encoding="utf-8")
    assert load_run(file).series["loss"].steps.tolist() == list(range(9))
    assert load_run(file, step_column="tick").series["loss"].steps.tolist() == [10 * i for i in range(9)]


LOST = {
    "text": ("a.log", "".join(f"EPOCH {i} | trn_x={4 - i / 8} | gn=0.5\n" for i in range(9)), None),
    "text asked for": ("a.log", "".join(f"EPOCH {i} | trn_x={4 - i / 8} | gn=0.5\n" for i in range(9)), "text"),
    "text with a rate": ("a.log", "".join(f"step {i} lr 0.1 mean crit: {4 - i / 8}\n" for i in range(9)), None),
    "csv": ("a.csv", as_csv([{"step": row["step"], "q": row["trn_x"]} for row in ROWS]), None),
    "csv with blanks": ("a.csv", as_csv([{"step": row["step"], "mean q": row["trn_x"]} for row in ROWS]), None),
    "jsonl": ("a.jsonl", json_lines([{"step": row["step"], "trn_x": row["trn_x"]} for row in ROWS]), None),
    "empty loss": ("a.csv", "step,loss,q\n" + "".join(f"{i},,{4 - i / 8}\n" for i in range(9)), None),
}


@pytest.mark.parametrize("name", LOST)
def test_the_hint_works_as_it_is_typed(tmp_path: Path, name: str) -> None:
    """What the error of an unknown loss tells to type gives a reading."""
    file, content, format_ = LOST[name]
    (tmp_path / file).write_text(content, encoding="utf-8")
    with pytest.raises(StabtreeError) as caught:
        load_run(tmp_path / file, format=format_)
    option, typed = shlex.split(caught.value.hint.partition(": ")[2])
    assert option == "--column"
    metric, _, column = typed.partition("=")
    assert len(load_run(tmp_path / file, columns={metric: column}, format=format_).series["loss"]) >= 9


def test_prose_gets_no_hint_that_fails(tmp_path: Path) -> None:
    """Where no name can be a loss the hint names none."""
    (tmp_path / "a.txt").write_text("Some words.\nNothing to see here: 12 of them.\n" * 9, encoding="utf-8")
    with pytest.raises(StabtreeError) as caught:
        load_run(tmp_path / "a.txt")
    assert caught.value.hint.startswith("name the file that the trainer wrote its metrics to")
    assert "--column" not in caught.value.hint


def test_a_column_beside_the_one_that_was_asked_for_is_told(tmp_path: Path) -> None:
    """Of a metric that the user names a column for, the usual column is named as ignored, and why."""
    run = load_run(WRITERS["csv"](tmp_path), columns=COLUMNS)
    why = {use.name: use.why for use in run.sources[0].columns}
    assert why["loss"] == "loss is read from trn_x"
