"""Several runs of a Recorder in one file: the last is judged, and a run that goes on stays one."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from stabtree import Recorder, TrainingStoppedError, diagnose
from stabtree.loaders import load_run
from stabtree.run import RUN_HEADER
from tests.cli.command import run
from tests.conftest import falling

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LOSS = falling(600)


def train(path: Path, steps: Iterable[int], nan: int = 10**9, **options: Any) -> int | None:
    """Log a run whose loss is NaN from a step on; the step at which it was stopped, None where it was not."""
    step = None
    config, on_finding = options.pop("config", {}), options.pop("on_finding", None)
    with Recorder(path, on_finding=on_finding, **options) as recorder:
        recorder.config(config) if config else None
        try:
            for step in steps:
                recorder.log(step, loss=np.nan if step >= nan else LOSS[step], lr=1e-3)
        except TrainingStoppedError:
            return step
    return None


def headers(path: Path) -> list[dict[str, Any]]:
    """The records that runs and resumed processes begin with."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [row[RUN_HEADER] for row in rows if RUN_HEADER in row]


def starts(path: Path) -> int:
    """How many of them begin a run."""
    return len([header for header in headers(path) if "resumes" not in header])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log in which a run broke at step 400."""
    file = tmp_path / "run.jsonl"
    train(file, range(410), 400)
    return file


def test_a_rerun_is_not_stopped_by_the_run_before(path: Path) -> None:
    """It is judged by its own rows alone, by all that read the file; a note counts the others."""
    with Recorder(path, on_finding="warn") as recorder:
        recorder.config(lr=1e-3)
    assert not recorder.news
    assert train(path, range(600), on_finding="raise") is None
    assert starts(path) == 2
    found = diagnose(path)
    assert (found.verdict, len(found.run.series["loss"])) == ("ok", 600)
    assert any(note.startswith("The file holds 2 runs of a Recorder: the last is read") for note in found.run.notes)
    watched = run("watch", str(path), "--stall", "0.1s", "--every", "0.05")
    assert "CRITICAL" not in watched.stdout
    assert "stalled" in watched.stdout


@pytest.mark.parametrize("step", [350, 100])
def test_a_resume_from_before_the_trouble_is_one_run(path: Path, step: int) -> None:
    """The rows that it replaces stop it no more."""
    assert train(path, range(step, 600), on_finding="raise") is None
    assert starts(path) == 1
    found = load_run(path)
    assert len(found.series["loss"]) == 600
    assert [resume.to_step for resume in found.resumes] == [step]
    assert diagnose(found).verdict == "ok"


def test_a_resume_completes_a_line_that_was_cut_and_may_replace_nothing(tmp_path: Path) -> None:
    """A line that a killed process left half is ended; no record says that a run begins."""
    path = tmp_path / "run.jsonl"
    train(path, range(30))
    path.write_bytes(path.read_bytes()[:-12])
    train(path, range(30, 60))
    assert path.read_text(encoding="utf-8").count('"resumes": true') == 1
    assert load_run(path).series["loss"].steps.tolist() == [*range(29), *range(30, 60)]


def test_the_configuration_is_that_of_the_last_run(tmp_path: Path) -> None:
    """What was given before its first row is repeated with the record, and what only the other run had is gone."""
    path = tmp_path / "run.jsonl"
    train(path, range(100), config={"dtype": "fp16", "optimizer": "sgd"})
    train(path, range(200), config={"dtype": "bf16"})
    found = load_run(path)
    assert (found.setting("dtype"), found.setting("optimizer"), len(found.series["loss"])) == ("bf16", None, 200)


def test_a_rerun_that_counts_from_one_is_another_run(path: Path) -> None:
    """And does not keep the first row of the run before, which counted from 0."""
    train(path, range(1, 600))
    assert load_run(path).series["loss"].steps[0] == 1
    assert starts(path) == 2


def test_a_resume_is_measured_from_the_last_run_of_the_file(path: Path) -> None:
    """A file begins with another run, whose first step says nothing of the one that goes on."""
    train(path, range(300, 500), resume=False)
    train(path, range(100, 500))
    train(path, range(450, 600))
    first, second, third, fourth = headers(path)
    assert fourth.pop("resumes") is True
    assert len({first["id"], second["id"], third["id"]}) == starts(path) == 3
    assert fourth["id"] == third["id"]
    assert len(load_run(path).series["loss"]) == 500


def test_a_header_says_what_a_run_was_started_with(tmp_path: Path) -> None:
    """Its id, when it began, and its settings, on the first line; what comes to be known later is a setting too."""
    path = tmp_path / "run.jsonl"
    with Recorder(path) as recorder:
        recorder.config(seed=7, optimizer="SGD")
        recorder.log(0, loss=1.0)
        recorder.config(trainable_share=0.25)
        recorder.log(1, loss=1.0)
    first = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    assert first["config"] == {"seed": 7, "optimizer": "SGD"}
    assert datetime.fromisoformat(first[RUN_HEADER]["started"]).tzinfo is not None
    run = load_run(path)
    assert (run.setting("seed"), run.setting("trainable_share")) == (7, 0.25)


@pytest.mark.parametrize(("rank", "config"), [(0, {"seed": 3, "world_size": 2}), (1, {})])
def test_a_header_knows_the_seed_and_the_ranks_of_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: int, config: dict[str, int]
) -> None:
    """A rank above 0 leaves out a seed of its own, which would make it another run; a resume may be seeded anew."""
    known = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, get_world_size=lambda: 2)
    torch: Any = SimpleNamespace(distributed=known, initial_seed=lambda: 3)
    monkeypatch.setitem(sys.modules, "torch", torch)
    for steps in (range(5), range(5, 9)):
        train(tmp_path / "run.jsonl", steps, rank=rank)
    (file,) = tmp_path.iterdir()
    lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    assert [line["config"] for line in lines if RUN_HEADER in line] == [config, {}]


def test_two_ranks_that_are_started_again_are_one_run(tmp_path: Path) -> None:
    """Each file holds both runs, and the last of each is a rank of the last run."""
    for rows in (60, 40):
        for rank in range(2):
            train(tmp_path / "run.jsonl", range(rows), rank=rank, config={"lr": 1e-3})
    run = load_run(tmp_path)
    assert sorted(run.ranks) == ["0", "1"]
    assert len(run.series["loss"]) == 40


def test_the_runs_that_are_left_out_are_named(tmp_path: Path) -> None:
    """By when they started and how many rows they have; of many the last ones."""
    path = tmp_path / "run.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(6):
            about = {"id": f"run{number}", "started": f"2026-01-0{number + 1}T10:00:00+00:00"}
            file.write(json.dumps({RUN_HEADER: about, "config": {}}) + "\n")
            file.writelines(json.dumps({"step": step, "loss": 1.0}) + "\n" for step in range(10 + number))
    (note,) = [note for note in load_run(path).notes if "runs of a Recorder" in note]
    assert note.startswith("The file holds 6 runs of a Recorder: the last is read, started 2026-01-06T10:00:00+00:00.")
    assert "Not read: 2 more; 12 rows of the run started 2026-01-03T10:00:00+00:00" in note


@pytest.mark.parametrize("about", ["[" * 100_000, "null}", '{"id": {"a": 1', '"a'])
def test_a_header_that_is_none_ends_no_training(tmp_path: Path, about: str) -> None:
    """Whatever is held where the header would be, the run is another one."""
    path = tmp_path / "run.jsonl"
    path.write_text(f'{{"{RUN_HEADER}": {about}\n{{"step": 0, "loss": 1.0}}\n', encoding="utf-8")
    with Recorder(path) as rec:
        rec.log(0, loss=2.0)
    assert path.read_text(encoding="utf-8").count(RUN_HEADER) == 2
