"""A folder without names, and what holds no text."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from stabtree.loaders import load_run
from stabtree.tools.anonymize.anonymize import MAX_FILES, anonymized
from tests.cli.command import run
from tests.conftest import FIXTURES as ALL
from tests.loaders import make_binary
from tests.loaders.make import points
from tests.tools.anonymize.same import read, said

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FIXTURES = ALL / "phase19"
ROWS = [{"step": i, "loss": 3 - i / 16} for i in range(12)]


@pytest.mark.parametrize("name", ["fp16-overflow", "spike-unexplained", "nan-layer", "spike-bad-batch"])
def test_a_run_s_folder_is_read_as_before(name: str, tmp_path: Path) -> None:
    """Its manifest names the same files, whose rows and settings are those of the run."""
    out = tmp_path / "out"
    done = run("anonymize", str(FIXTURES / name), "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert read(out) == read(FIXTURES / name)
    assert said(out) == said(FIXTURES / name)


def test_a_name_is_the_same_in_all_files_and_in_their_names(tmp_path: Path) -> None:
    """So a manifest finds its files, and what is no log is left out."""
    folder, out = tmp_path / "gerda", tmp_path / "out"
    (folder / "hugo").mkdir(parents=True)
    manifest = {"run_name": "gerda-3", "dtype": "bf16", "optimizer": "frobnicator", "metrics_file": "hugo/gerda.csv"}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    rows = "".join(f"{row['step']},{row['loss']},gerda\n" for row in ROWS)
    (folder / "hugo" / "gerda.csv").write_text(f"step,loss,host\n{rows}", encoding="utf-8")
    (folder / "hparams.yaml").write_text("user: gerda\nmax_steps: 12\n", encoding="utf-8")
    (folder / "weights.bin").write_bytes(bytes(range(256)) * 9)
    done = run("anonymize", str(folder), "-o", str(out))
    assert "3 files written" in done.stderr
    assert "1 left out, which are no logs: weights.bin" in done.stderr
    held = [path.relative_to(out) for path in out.rglob("*") if path.is_file()]
    assert not any("gerda" in str(path) or "gerda" in (out / path).read_text(encoding="utf-8") for path in held)
    found = load_run(str(out))
    assert points(found) == points(load_run(str(folder)))
    assert found.config["dtype"].value == "bf16"


def test_where_a_folder_goes(tmp_path: Path) -> None:
    """To a new one, never into itself, never over files."""
    folder = shutil.copytree(FIXTURES / "fp16-overflow", tmp_path / "run")
    for place, told in (
        (folder / "out", "is inside the folder"),
        (folder, "is the log itself"),
        (tmp_path, "is not empty"),
    ):
        done = run("anonymize", str(folder), "-o", str(place))
        assert (done.returncode, told in done.stderr) == (2, True), done.stderr
    assert "type -o FOLDER" in run("anonymize", str(folder)).stderr
    assert {path.name for path in folder.iterdir()} == {path.name for path in (FIXTURES / "fp16-overflow").iterdir()}


def test_a_data_set_is_no_run(tmp_path: Path) -> None:
    """A folder of thousands of files is refused before any of them is written."""
    folder = tmp_path / "run"
    folder.mkdir()
    for place in range(MAX_FILES + 1):
        (folder / f"{place}.txt").touch()
    done = run("anonymize", str(folder), "-o", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "holds more than 2,000 files" in done.stderr


WRITTEN: dict[str, Callable[[], bytes]] = {
    "events.out.tfevents.1.gerda": lambda: make_binary.events((int(row.pop("step")), row) for row in rows()),
    "run-gerda.wandb": lambda: make_binary.wandb(rows(), {"run_name": "gerda", "lr": 0.25}),
    "gerda.parquet": lambda: make_binary.parquet({key: [row[key] for row in rows()] for key in ("step", "loss")}),
}


def rows() -> list[dict[str, float]]:
    """The rows, to be taken apart."""
    return [dict(row) for row in ROWS]


@pytest.mark.parametrize("name", WRITTEN)
def test_what_holds_no_text_becomes_json_lines(name: str, tmp_path: Path) -> None:
    """Of the series that stabtree reads, alone and in its folder."""
    folder = tmp_path / "run"
    folder.mkdir()
    file = folder / name
    file.write_bytes(WRITTEN[name]())
    lines = b"".join(anonymized(file).pieces)
    assert b"gerda" not in lines
    (tmp_path / "out.jsonl").write_bytes(lines)
    read_, there = points(load_run(str(tmp_path / "out.jsonl"))), points(load_run(str(file)))
    assert read_["loss"] == there["loss"]
    done = run("anonymize", str(folder), "-o", str(tmp_path / "out"))
    (written,) = (tmp_path / "out").iterdir()
    assert written.read_bytes() == lines
    assert "gerda" not in written.name
    assert "were written as JSON lines" in done.stderr


def test_a_file_of_several_runs_asks_which(tmp_path: Path) -> None:
    """As any command does."""
    file = tmp_path / "runs.parquet"
    columns = {key: [row[key] for row in ROWS] * 2 for key in ("step", "loss")}
    file.write_bytes(make_binary.parquet({"run_name": ["a"] * len(ROWS) + ["b"] * len(ROWS), **columns}))
    done = run("anonymize", str(file))
    assert done.returncode == 2
    assert "--run" in done.stderr
    assert run("anonymize", str(file), "--run", "b").stdout.count('"loss"') == len(ROWS)


def test_a_tracker_s_folder_keeps_its_layout(tmp_path: Path) -> None:
    """MLflow's: a file for each metric and tag, in folders that are named after ids."""
    home = tmp_path / "own" / "mlruns" / "0"
    run_ = home / "0123456789abcdef0123456789abcdef"
    for name, text in {
        "metrics/loss": "".join(f"17000000000{i:02d} {3 - i / 16} {i}\n" for i in range(12)),
        "params/lr": "0.25",
        "tags/mlflow.user": "gerda",
        "meta.yaml": "run_name: gerda-3\n",
    }.items():
        (run_ / name).parent.mkdir(parents=True, exist_ok=True)
        (run_ / name).write_text(text, encoding="utf-8")
    (home / "meta.yaml").write_text("name: gerda\n", encoding="utf-8")
    out = tmp_path / "out"
    run("anonymize", str(tmp_path / "own"), "-o", str(out))
    assert read(out) == read(tmp_path / "own")
    assert points(load_run(str(out)))["loss"]
    files = [path for path in out.rglob("*") if path.is_file()]
    assert len(files) == 5
    assert not any("gerda" in path.read_text(encoding="utf-8") or "abcdef" in str(path) for path in files)


def test_a_secret_in_json_loses_its_digits(tmp_path: Path) -> None:
    """And a person's name that is a common word."""
    file = tmp_path / "run.jsonl"
    file.write_text(
        '{"config": {"user": "train", "api_key": "model 4711", "args": ["--api-key", "model4711"],'
        ' "lr": 0.5}}\n{"step": 1, "loss": 2.5}\n'
    )
    held = b"".join(anonymized(file).pieces).decode()
    assert not any(word in held for word in ("train", "model", "4711"))
    assert '"--api-' in held
    assert '"lr": 0.5' in held


def test_no_file_is_written_over_another(tmp_path: Path) -> None:
    """Ids that differ in their case have the same stand-in; what a name ends in stays."""
    folder, out = tmp_path / "run", tmp_path / "out"
    folder.mkdir()
    for number, name in enumerate(("k1b2c3d4e5.log", "K1B2C3D4E5.log", "k1B2C3D4E5.log.gz")):
        (folder / name).write_text(f"step 1 loss: {number}.5\n")
    assert run("anonymize", str(folder), "-o", str(out)).returncode == 0
    assert {path.read_text()[-4:-1] for path in out.iterdir()} == {"0.5", "1.5", "2.5"}
    assert sum(path.name.endswith(".log.gz") for path in out.iterdir()) == 1
    assert not any("b2c3" in path.name.lower() for path in out.iterdir())
