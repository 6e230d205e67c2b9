"""What trackers keep: each reader from a small file, as its tracker writes it, to series."""

from __future__ import annotations

import contextlib
import io
import json
import math
import sqlite3
import struct
import zipfile
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_run, load_runs
from tests.loaders.make import json_lines, points, write
from tests.loaders.make_binary import mlflow, part, single, varint, wandb, wandb_file, write_events

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

Row = tuple[int, Mapping[str, float]]
NAN, INF = float("nan"), float("inf")
ROWS: list[Row] = [
    (0, {"loss": 4.0, "grad_norm": 1.0, "eval_loss": 4.5}),
    (1, {"loss": 3.0, "grad_norm": 1.5}),
    (2, {"loss": 2.0, "grad_norm": 1.25, "eval_loss": 3.5}),
    (3, {"loss": NAN, "grad_norm": INF}),
    (4, {"loss": NAN, "grad_norm": NAN, "eval_loss": NAN}),
]
EXPECTED = {
    "loss": [(0, 4.0), (1, 3.0), (2, 2.0), (3, "nan"), (4, "nan")],
    "grad_norm": [(0, 1.0), (1, 1.5), (2, 1.25), (3, INF), (4, "nan")],
    "eval_loss": [(0, 4.5), (2, 3.5), (4, "nan")],
}
ALL_NAN = {**EXPECTED, "grad_norm": [*EXPECTED["grad_norm"][:3], (3, "nan"), (4, "nan")]}


def stored(value: float) -> float | str:
    """A number as strict JSON has it."""
    return {"nan": "NaN", "inf": "Infinity"}.get(repr(value), value)


def zipped(**files: str) -> bytes:
    """A zip archive of files, whose names have _ for the point."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("_", "."), content)
    return out.getvalue()


def trackio(folder: Path, runs: Mapping[str, Sequence[Row]] | None = None) -> Path:
    """A project's database, with JSON as bytes."""
    file = folder / "project.db"
    with closing(sqlite3.connect(file)) as store:
        store.execute("CREATE TABLE metrics (id INTEGER, run_id TEXT, run_name TEXT, step INTEGER, metrics TEXT)")
        store.execute("CREATE TABLE configs (id INTEGER, run_id TEXT, run_name TEXT, config TEXT)")
        for run, rows in (runs or {"fox": ROWS}).items():
            store.execute(
                "INSERT INTO configs VALUES (1, ?, ?, ?)", (run, run, b'{"optimizer": "adamw", "_Group": null}')
            )
            for step, values in rows:
                content = {key: stored(value) for key, value in values.items()}
                entry = json.dumps({**content, "sample": "text", "table": {"_type": "trackio.table"}}).encode()
                store.execute("INSERT INTO metrics VALUES (1, ?, ?, ?, ?)", (run, run, step, entry))
        store.commit()
    return file


def swanlab(folder: Path, names: Sequence[str] = ("fox",)) -> Path:
    """The folder of the local mode: names in a database, values in files beside it."""
    with closing(sqlite3.connect(folder / "runs.swanlab")) as store:
        store.execute("CREATE TABLE experiment (id INTEGER, run_id TEXT, name TEXT)")
        store.execute("CREATE TABLE tag (id INTEGER, experiment_id INTEGER, name TEXT, folder TEXT, system INTEGER)")
        for id_, name in enumerate(names):
            store.execute("INSERT INTO experiment VALUES (?, ?, ?)", (id_, f"run-{id_}", name))
            for number, key in enumerate(("loss", "grad_norm", "eval_loss")):
                store.execute("INSERT INTO tag VALUES (1, ?, ?, ?, 0)", (id_, f"train/{key}", str(number)))
                place = folder / f"run-{id_}" / "logs" / str(number)
                place.mkdir(parents=True)
                entries = [{"index": step, "data": row[key]} for step, row in ROWS if key in row]
                write(place, json_lines(entries[:2]), "1000.log")
                write(place, json_lines(entries[2:]), "10000.log")
        store.execute("UPDATE tag SET name = 'eval/loss' WHERE folder = '2'")
        store.execute("INSERT INTO tag VALUES (9, 0, 'stolen', '../../../outside', 0)")
        store.commit()
    return folder / "runs.swanlab"


def swanlab_offline(folder: Path) -> Path:
    """The log of the offline mode: LevelDB's blocks; step 0 is left out, as protocol buffers do."""
    records = [part(10, part(1, "project") + part(4, "fox"))]
    for step, values in ROWS:
        for key, value in values.items():
            count = part(2, step) if step else b""
            records.append(part(1, step + 1) + part(13, part(1, key) + count + part(5, part(1, float(value)))))
    return write(folder, b":SWL" + wandb_file(records)[4:], "run-fox.swanlab")


def clearml(folder: Path) -> Path:
    """The zip of an offline session, in which no value that is not finite is left."""
    events = [
        {
            "type": "training_stats_scalar",
            "iter": step,
            "metric": {"eval_loss": "loss"}.get(key, key),
            "variant": {"eval_loss": "eval", "loss": "train"}.get(key, key),
            "value": value if math.isfinite(value) else 0.0,
        }
        for step, values in ROWS
        for key, value in values.items()
    ]
    found = zipped(metrics_jsonl=json_lines([events[:4], events[4:]]), task_json="{}", log_jsonl="")
    return write(folder, found, "session.zip")


def comet(folder: Path) -> Path:
    """The zip of an offline experiment."""
    messages: list[dict[str, Any]] = [
        {"type": "parameter_msg", "payload": {"param": {"paramName": "optimizer", "paramValue": "sgd"}}}
    ]
    for step, values in ROWS:
        for key, value in values.items():
            metric = {"metricName": key.removeprefix("eval_"), "metricValue": stored(value), "step": step}
            context = "validate" if key == "eval_loss" else "train"
            payload = {"context": context, "message_id": 1, "metric": metric}
            messages.append({"payload": payload, "type": "metric_msg"})
    return write(folder, zipped(messages_json=json_lines(messages), experiment_json="{}"), "fox.zip")


def sacred(folder: Path) -> Path:
    """The file of a FileStorageObserver, with bare NaN."""
    content = {
        key.replace("eval_", "eval."): {
            "steps": [step for step, row in ROWS if key in row],
            "timestamps": ["2026-01-01T00:00:00"] * 5,
            "values": [row[key] for _, row in ROWS if key in row],
        }
        for key in ("eval_loss", "grad_norm", "loss")
    }
    write(folder, '{"optimizer": "adamw"}', "config.json")
    return write(folder, json.dumps(content, indent=2), "metrics.json")


def visualdl(folder: Path) -> Path:
    """A vdlrecords file, its first record without a value."""
    values = [part(2, "meta_data_tag") + part(3, 1) + part(10, b"")]
    for step, row in ROWS:
        values += [(part(1, step) if step else b"") + part(2, key) + part(3, 1) + single(4, row[key]) for key in row]
    records = [part(1, value) for value in values]
    return write(folder, b"".join(struct.pack("<Q", len(one)) + one for one in records), "vdlrecords.1.log")


def long(folder: Path) -> Path:
    """What `melt` makes of a table."""
    cells = [
        (step, key, value)
        for key in ("loss", "grad_norm", "eval_loss")
        for step, row in ROWS
        if (value := row.get(key)) is not None
    ]
    return write(folder, "step,variable,value\n" + "".join(f"{step},{key},{value}\n" for step, key, value in cells))


def long_lines(folder: Path) -> Path:
    """The same as JSON lines, in the order of steps."""
    return write(
        folder,
        json_lines([{"step": step, "metric": key, "value": stored(row[key])} for step, row in ROWS for key in row]),
    )


def dvclive(folder: Path) -> Path:
    """DVCLive's folder: a file for each metric, `/` in a name a folder."""
    home = folder / "dvclive" / "plots" / "metrics"
    (home / "eval").mkdir(parents=True)
    for key in ("loss", "grad_norm"):
        write(home, f"step\t{key}\n" + "".join(f"{step}\t{row[key]}\n" for step, row in ROWS), f"{key}.tsv")
    write(
        home / "eval",
        "step\tloss\n" + "".join(f"{s}\t{row['eval_loss']}\n" for s, row in ROWS if "eval_loss" in row),
        "loss.tsv",
    )
    write(folder / "dvclive", '{"loss": "nan"}', "metrics.json")
    return folder


def bare(folder: Path) -> Path:
    """Torchrl's and d3rlpy's folders: no headers, an epoch before the step."""
    for key, name in (
        ("loss", "scalars/train/loss"),
        ("grad_norm", "scalars/train/grad_norm"),
        ("eval_loss", "scalars/eval/loss"),
    ):
        place = folder / f"{name}.csv"
        place.parent.mkdir(parents=True, exist_ok=True)
        write(place.parent, "".join(f"1,{step},{row[key]}\n" for step, row in ROWS if key in row), place.name)
    return folder


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (make, EXPECTED)
        for make in (trackio, swanlab, swanlab_offline, comet, sacred, visualdl, long, long_lines, dvclive, bare)
    ]
    + [(clearml, ALL_NAN)],
)
def test_each_series_is_read_on_its_own_steps(
    tmp_path: Path, make: Callable[[Path], Path], expected: Mapping[str, object]
) -> None:
    """NaN and infinity are values, an evaluation is logged now and then; nothing is lost."""
    run = load_run(make(tmp_path))
    assert {name: found for name, found in points(run).items() if name in EXPECTED} == expected
    assert not [note for note in run.notes if "not read" in note]


def test_names_and_settings_come_with_the_values(tmp_path: Path) -> None:
    """A run is called what its user called it."""
    for make, name in ((trackio, "fox"), (swanlab, "fox"), (swanlab_offline, "fox")):
        place = tmp_path / make.__name__
        place.mkdir()
        assert load_run(make(place)).name == name
    assert load_run(tmp_path / "trackio" / "project.db").setting("optimizer") == "adamw"
    assert load_run(sacred(tmp_path)).setting("optimizer") == "adamw"
    assert load_run(comet(tmp_path)).setting("optimizer") == "sgd"


def test_runs_of_one_database_stay_apart(tmp_path: Path) -> None:
    """Each is read by its name; SwanLab's also by its folder, without what a damaged database points to elsewhere."""
    outside = tmp_path / "outside"
    outside.mkdir()
    write(outside, '{"index": 0, "data": 1}\n', "1.log")
    place = tmp_path / "swanlog"
    place.mkdir()
    swanlab(place, ("fox", "hen"))
    assert [item.name.rpartition(" ")[2] for item in load_runs(place)] == ["fox", "hen"]
    assert load_run(place / "run-1").name == "hen"
    assert "stolen" not in load_run(place, run="fox").others
    file = trackio(tmp_path, {"fox": ROWS, "hen": ROWS[:3]})
    assert load_run(file, run="hen").last_step == 2


def test_a_tracker_that_hides_nan_is_quoted(tmp_path: Path) -> None:
    """ClearML stores 0.0: two series that fall to it at one step are NaN, a rate or a loss alone is not."""
    assert any(
        "Reporting it as '0.0'" in note and "step 3 to the end" in note for note in load_run(clearml(tmp_path)).notes
    )
    event = {"type": "training_stats_scalar", "variant": "a"}
    entries = [
        {**event, "iter": step, "metric": name, "value": value}
        for step in range(6)
        for name, value in (("loss", 2.0 if step < 3 else 0.0), ("lr", 1.0 if step < 3 else 0.0))
    ]
    run = load_run(write(tmp_path, json.dumps(entries) + "\n", "metrics.jsonl"))
    assert points(run)["loss"][-1] == (5, 0.0)


def test_one_metric_that_trackio_prints(tmp_path: Path) -> None:
    """Its name stands beside the values."""
    values = [{"step": step, "value": stored(row["loss"]), "timestamp": "t"} for step, row in ROWS]
    content = {"project": "p", "run": "fox", "metric": "loss", "values": values}
    run = load_run(write(tmp_path, json.dumps(content, indent=2), "metric.json"))
    assert (run.name, points(run)["loss"]) == ("fox", EXPECTED["loss"])


def test_a_folder_of_series_whose_steps_do_not_move_counts_rows(tmp_path: Path) -> None:
    """DVCLive writes step 0 until next_step is called; an evaluation is not put before the rows that led to it."""
    for key, count in (("loss", 40), ("accuracy", 4)):
        write(tmp_path, f"step\t{key}\n" + "".join(f"0\t{4 - row / 50}\n" for row in range(count)), f"{key}.tsv")
    run = load_run(tmp_path)
    assert run.by_row
    assert any("next_step is not called" in note for note in run.notes)
    assert [len(run.series["loss"]), int(run.series["loss"].steps[-1])] == [40, 39]


@pytest.mark.parametrize(
    "files",
    [
        {"run1.csv": "step,loss", "run2.csv": "step,loss"},
        {"loss_1.csv": "", "loss_2.csv": ""},
        {"loss.csv": "step,loss,lr", "other.csv": "step,loss,lr"},
    ],
)
def test_files_of_several_runs_are_not_one(tmp_path: Path, files: Mapping[str, str]) -> None:
    """Names that differ in a number, or tables of the same columns, are runs of their own."""
    for place, (name, header) in enumerate(files.items()):
        cells = [[step, *[4 + place - step / 9] * max(1, header.count(","))] for step in range(9)]
        write(tmp_path, f"{header}\n".lstrip() + "".join(",".join(map(str, row)) + "\n" for row in cells), name)
    assert len(load_runs(tmp_path)) == 2


def test_a_long_table_with_runs_settings_and_no_steps(tmp_path: Path) -> None:
    """A column of runs parts it; rows of settings are settings; rows without a step are counted."""
    head = "run,type,key,value\n"
    rows = [f"{run},metric,train/loss,{4 - step}\n" for run in ("fox", "hen") for step in range(3)]
    file = write(
        tmp_path, head + "".join(f'{run},parameter,optimizer,"Adam(\n)"\n' for run in ("fox", "hen")) + "".join(rows)
    )
    assert points(load_run(file, run="hen"))["loss"] == [(0, 4), (1, 3), (2, 2)]
    with pytest.raises(StabtreeError, match="has no column 'value'"):
        load_run(file, run="hen", columns={"loss": "value"})


def tensorboard(folder: Path) -> Path:
    """An event file."""
    return write_events(folder, ROWS)


def wandb_offline(folder: Path) -> Path:
    """W&B's file of a run."""
    return write(folder, wandb([{"_step": step, **values} for step, values in ROWS]), "run-fox.wandb")


def mlflow_database(folder: Path) -> Path:
    """MLflow's database."""
    finite = [(key, value, step) for step, row in ROWS for key, value in row.items() if math.isfinite(value)]
    return write(folder, mlflow(finite), "mlflow.db")


DAMAGED = (trackio, swanlab, swanlab_offline, comet, clearml, sacred, visualdl, tensorboard, wandb_offline)


@pytest.mark.parametrize("make", [*DAMAGED, mlflow_database])
def test_damaged_files_are_refused_or_read_in_part(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    """Cut anywhere, or with bytes changed, a file is read as far as it goes or refused with a reason."""
    content = (file := make(tmp_path)).read_bytes()
    for cut in range(1, len(content), max(1, len(content) // 40)):
        for damaged in (content[:cut], content[:cut] + varint(2**40) + content[cut + 6 :]):
            file.write_bytes(damaged)
            with contextlib.suppress(StabtreeError):
                assert load_run(file).sources


def test_sums_of_spacy_are_told_per_step(tmp_path: Path) -> None:
    """Its first row is one batch, the others are sums since the row before."""
    rows = [(0, 4.0), (20, 60.0), (40, 40.0)]
    entries = [{"epoch": 0, "step": step, "losses": {"tagger": loss}, "score": 0.5} for step, loss in rows]
    text = "".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries)
    assert points(load_run(write(tmp_path, text, "log.jsonl")))["loss"] == [(0, 4.0), (20, 3.0), (40, 2.0)]


def test_losses_that_spacy_prints_are_divided_by_the_steps_that_they_are_summed_over(tmp_path: Path) -> None:
    rows = "".join(f"  {i}      {20 * i}          {2 * i}.00       94.00    0.94\n" for i in range(1, 6))
    table = f"E    #       LOSS NER  ENTS_F  SCORE\n---  ------  --------  ------  ------\n{rows}"
    (tmp_path / "train.log").write_text(f"Pipeline: ['ner']\n{table}", encoding="utf-8")
    loss = load_run(tmp_path / "train.log").series["loss"]
    assert loss.steps.tolist() == [20, 40, 60, 80, 100]
    assert loss.values[1:].tolist() == pytest.approx([0.2, 0.3, 0.4, 0.5])
