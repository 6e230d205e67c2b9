"""MLflow's stores: the runs in a folder or a database, told apart and never mixed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run
from tests.loaders.make import points, write

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

SCHEMA = """
CREATE TABLE experiments (experiment_id INTEGER, name VARCHAR(256));
CREATE TABLE runs (run_uuid VARCHAR(32) PRIMARY KEY, name VARCHAR(250), experiment_id INTEGER);
CREATE TABLE metrics (key VARCHAR(250), value FLOAT NOT NULL, timestamp BIGINT NOT NULL, run_uuid VARCHAR(32),
    step BIGINT DEFAULT '0' NOT NULL, is_nan BOOLEAN DEFAULT '0' NOT NULL);
CREATE TABLE params (key VARCHAR(250), value VARCHAR(8000), run_uuid VARCHAR(32));
INSERT INTO experiments VALUES (0, 'Default');
"""
Point = tuple[str, object, int, int]


def run_folder(place: Path, name: str, metrics: Mapping[str, Sequence[str]], params: Mapping[str, str]) -> Path:
    """One run of the file store."""
    for sub in ("metrics", "params", "tags"):
        (place / sub).mkdir(parents=True)
    write(place, f"artifact_uri: file:///x\nrun_id: {place.name}\nrun_name: {name}\n", "meta.yaml")
    for metric, lines in metrics.items():
        file = place / "metrics" / metric
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    for param, value in params.items():
        write(place / "params", value, param)
    return place


def lines(values: Iterable[object], steps: Iterable[int], start: int = 1_700_000_000_000) -> list[str]:
    """The file of a metric, a second between its values."""
    return [f"{start + 1000 * i} {value} {step}" for i, (value, step) in enumerate(zip(values, steps, strict=True))]


def database(path: Path, runs: Mapping[str, Sequence[Point]], extra: str = "") -> Path:
    """A database with one run for each id; points are (key, value, timestamp, step), NaN as None."""
    with closing(sqlite3.connect(path)) as store:
        store.executescript(SCHEMA)
        for run, found in runs.items():
            store.execute("INSERT INTO runs VALUES (?, ?, 0)", (run, f"name-{run}"))
            store.executemany(
                "INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)",
                [(key, 0 if value is None else value, at, run, step, value is None) for key, value, at, step in found],
            )
            store.execute("INSERT INTO params VALUES ('learning_rate', '1e-3', ?)", (run,))
        store.executescript(extra)
        store.commit()
    return path


LOSS: list[Point] = [("train_loss", 4 - i / 8, 1000 + i, i * 10) for i in range(6)]


def test_a_run_of_the_file_store(tmp_path: Path) -> None:
    """One file a metric, each on its own steps; parameters are the configuration."""
    metrics = {
        "loss": lines([4.5, "nan", "inf"], [0, 10, 20]),
        "val_loss": lines([4.75], [10], 1_700_000_001_500),
        "train/lr": lines([0.5, 0.5, 0.5], [0, 10, 20]),
    }
    place = run_folder(tmp_path / "mlruns" / "0" / "abc", "fox", metrics, {"optimizer": "adam", "fp16": "True"})
    write(tmp_path / "mlruns" / "0", "name: Default\n", "meta.yaml")
    for path in (tmp_path, tmp_path / "mlruns", tmp_path / "mlruns" / "0", place):
        run = load_run(path)
        assert points(run) == {
            "loss": [(0, 4.5), (10, "nan"), (20, float("inf"))],
            "eval_loss": [(10, 4.75)],
            "lr": [(0, 0.5), (10, 0.5), (20, 0.5)],
        }
        assert (run.name, run.setting("optimizer"), run.setting("dtype")) == ("fox", "adam", "fp16")


@pytest.mark.parametrize(("status", "leaf"), [("3", ""), ("1", ""), ("4", "exit-status"), ("KILLED", "cancelled")])
def test_the_status_of_a_run_is_how_it_ended(tmp_path: Path, status: str, leaf: str) -> None:
    """A number in a file store, a word in a database."""
    place = run_folder(tmp_path / "abc", "x", {"loss": lines([4 - i / 8 for i in range(6)], range(6))}, {})
    write(place, f"run_id: abc\nstatus: {status}\n", "meta.yaml")
    word = {"1": "RUNNING", "3": "FINISHED", "4": "FAILED"}.get(status, status)
    extra = f"ALTER TABLE runs ADD COLUMN status TEXT DEFAULT '{word}'"
    for path in (place, database(tmp_path / "mlflow.db", {"a": LOSS}, extra)):
        found = diagnose(load_run(path))
        assert [item.leaf.id for item in found.findings if item.leaf.of.startswith("E.")] == [leaf] * bool(leaf)
        assert (found.verdict == "warning") is bool(leaf)


def test_one_metric_file(tmp_path: Path) -> None:
    """The file is named after its metric in a store; elsewhere the metric has to be named."""
    place = run_folder(tmp_path / "abc", "fox", {"loss": lines([3, 2, 1], [0, 5, 9])}, {})
    assert points(load_run(place / "metrics" / "loss"))["loss"] == [(0, 3), (5, 2), (9, 1)]
    copied = write(tmp_path, "\n".join(lines([3, 2, 1], [0, 5, 9])), "copied")
    with pytest.raises(StabtreeError) as error:
        load_run(copied)
    assert "--column loss=value" in error.value.hint
    assert len(load_run(copied, columns={"loss": "value"}).series["loss"]) == 3


def test_broken_lines_are_named(tmp_path: Path) -> None:
    """A cut last line and text are skipped and counted."""
    content = [*lines([3, 2, 1], [0, 5, 9]), "1700000000000 oops 10", "17000000", f"1700000000000 1 {10**400}"]
    place = run_folder(tmp_path / "abc", "fox", {"loss": content}, {})
    run = load_run(place)
    assert len(run.series["loss"]) == 3
    assert [skip.line for skip in run.sources[0].skipped] == [4, 5, 6]


def test_several_runs_are_never_mixed(tmp_path: Path) -> None:
    """Each is called by its folder, or as its user named it where no other one has that name."""
    for place, name in (("0/a1", "fox"), ("0/b2", "fox"), ("1/c3", "hen")):
        run_folder(tmp_path / "mlruns" / place, name, {"loss": lines([3, 2], [0, 1])}, {})
    for experiment in ("0", "1"):
        write(tmp_path / "mlruns" / experiment, f"name: e{experiment}\n", "meta.yaml")
    run_folder(tmp_path / "mlruns" / "1" / "empty", "none", {}, {})
    with pytest.raises(StabtreeError, match="holds 3 runs: mlruns/0/a1, mlruns/0/b2, mlruns/1/c3"):
        load_run(tmp_path)
    assert load_run(tmp_path, run="hen").name == "hen"


def test_many_steps_in_a_millisecond(tmp_path: Path) -> None:
    """Metrics of one step are one row even where the clock does not tell the steps apart."""
    same = [f"1700000000000 2 {step}" for step in range(9)]
    run = load_run(run_folder(tmp_path / "abc", "fox", {"loss": same, "lr": same}, {}))
    assert run.sources[0].rows == 9


def test_a_resume_goes_back(tmp_path: Path) -> None:
    """The order of the time stamps tells which values came later."""
    values = lines([4, 3, 9, 9, 9], [0, 1, 2, 3, 4]) + lines([2, 1, 0.5], [2, 3, 4], 1_800_000_000_000)
    run = load_run(run_folder(tmp_path / "abc", "fox", {"loss": values}, {}))
    assert run.series["loss"].values.tolist() == [4, 3, 2, 1, 0.5]
    assert len(run.resumes) == 1


def test_a_database(tmp_path: Path) -> None:
    """A NaN is marked in a column of its own; an infinity is the largest number."""
    more: list[Point] = [("train_loss", None, 2000, 60), ("train_loss", 1.7976931348623157e308, 3000, 70)]
    run = load_run(database(tmp_path / "mlflow.db", {"r1": [*LOSS, ("val_loss", 5.0, 2500, 60), *more]}))
    assert points(run)["loss"] == [(i * 10, 4 - i / 8) for i in range(6)] + [(60, "nan"), (70, float("inf"))]
    assert points(run)["eval_loss"] == [(60, 5.0)]
    assert (run.name, run.setting("lr")) == ("name-r1", 0.001)
    assert run.sources[0].format == "mlflow, SQLite"


def test_the_runs_of_a_database(tmp_path: Path) -> None:
    """One of several has to be named; those without metrics don't count."""
    file = database(tmp_path / "mlflow.db", {"r1": LOSS, "r2": LOSS[:3], "r3": []})
    with pytest.raises(StabtreeError, match="holds 2 runs: name-r1, name-r2"):
        load_run(file)
    assert len(load_run(file, run="name-r2").series["loss"]) == 3


def test_steps_that_were_never_given(tmp_path: Path) -> None:
    """Without steps the values are in the order of their time stamps."""
    found: list[Point] = [("loss", float(i), 1000 - i, 0) for i in range(5)]
    run = load_run(database(tmp_path / "mlflow.db", {"r1": found}))
    assert points(run)["loss"] == [(0, 4), (1, 3), (2, 2), (3, 1), (4, 0)]
    assert "Every value was logged at step 0." in run.notes


def test_loose_types(tmp_path: Path) -> None:
    """SQLite lets text, blobs and giant numbers into any column: such rows are counted."""
    odd: list[Point] = [("train_loss", "oops", 1, 1), ("train_loss", b"\xff", 1, 1), ("train_loss", 1.0, 1, 2**60)]
    run = load_run(database(tmp_path / "mlflow.db", {"r1": LOSS + odd}))
    assert len(run.series["loss"]) == 6
    assert "Values that are no numbers, or have no step: 3, not read." in run.notes


def test_a_journal_beside_the_database(tmp_path: Path) -> None:
    """Rows that were not moved into the database yet are missed, not passed over in silence."""
    file = database(tmp_path / "mlflow.db", {"r1": LOSS})
    write(tmp_path, b"rows", "mlflow.db-wal")
    assert load_run(file).notes[0].startswith("Rows that are still in mlflow.db-wal were not read")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["mlflow.db", "mlflow.db-wal"]


def test_other_databases(tmp_path: Path) -> None:
    """A database of something else, an empty store and a damaged one are told apart."""
    with closing(sqlite3.connect(tmp_path / "other.db")) as store:
        store.executescript("CREATE TABLE a (b)")
    with pytest.raises(StabtreeError, match="is an SQLite database, which stabtree does not read"):
        load_run(tmp_path / "other.db")
    with pytest.raises(StabtreeError, match="holds no metrics"):
        load_run(database(tmp_path / "empty.db", {}))
    data = database(tmp_path / "mlflow.db", {"r1": LOSS}).read_bytes()
    with pytest.raises(StabtreeError, match="can't be read as an SQLite database"):
        load_run(write(tmp_path, data[:5000], "cut.db"))


def test_views_are_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view that never ends is no table; a table whose reading never ends is stopped."""
    endless = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n) SELECT"
    view = (
        f"DROP TABLE metrics; CREATE VIEW metrics AS {endless} 'r1' run_uuid, 'loss' key, i value, i timestamp, "
        "i step, 0 is_nan FROM n"
    )
    with pytest.raises(StabtreeError, match="SQLite database"):
        load_run(database(tmp_path / "view.db", {"r1": LOSS}, view))
    monkeypatch.setattr("stabtree.loaders.trackers.database._TURN", 100)
    monkeypatch.setattr("stabtree.loaders.trackers.database.MIN_WORK", 1000)
    monkeypatch.setattr("stabtree.loaders.trackers.database.WORK", 0)
    with pytest.raises(StabtreeError, match="interrupted"):
        load_run(database(tmp_path / "big.db", {"r1": LOSS * 5000}))


def test_a_database_from_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite needs a file; the error says so."""
    with database(tmp_path / "mlflow.db", {"r1": LOSS}).open("rb") as stream:

        class Piped:
            buffer = stream

        monkeypatch.setattr("sys.stdin", Piped)
        with pytest.raises(StabtreeError, match="read from a plain file only"):
            load_run("-")
