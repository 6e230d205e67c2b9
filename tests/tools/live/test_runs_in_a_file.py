"""Several runs of a Recorder in one file: the last is judged, and a run that goes on stays one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from stabtree import Recorder, TrainingStoppedError, diagnose
from stabtree.loaders import load_run
from stabtree.run import NEW_RUN
from tests.cli.command import run
from tests.conftest import falling
from tests.tools.live.growing import broken

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LOSS = falling(600)


def train(path: Path, steps: Iterable[int], nan: int = 10**9, **options: Any) -> int | None:
    """Log a run whose loss is NaN from a step on; the step at which it was stopped, None where it was not."""
    step = None
    config = options.pop("config", {})
    with Recorder(path, on_finding="raise", **options) as recorder:
        recorder.config(config) if config else None
        try:
            for step in steps:
                recorder.log(step, loss=np.nan if step >= nan else LOSS[step], lr=1e-3)
        except TrainingStoppedError:
            return step
    return None


def starts(path: Path) -> list[dict[str, Any]]:
    """The records that begin another run."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [row["config"] for row in rows if NEW_RUN in row.get("config", {})]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log in which a run broke at step 400."""
    file = tmp_path / "run.jsonl"
    assert train(file, range(600), 400) is not None
    assert not starts(file)
    return file


def test_a_rerun_is_not_stopped_by_the_run_before(path: Path) -> None:
    """It is judged by its own rows alone, by all that read the file; a note counts the others."""
    assert train(path, range(600)) is None
    (start,) = starts(path)
    assert start.keys() == {NEW_RUN}
    assert len(load_run(path).series["loss"]) == 600
    found = diagnose(path)
    assert found.verdict == "ok"
    assert any(note.startswith("The file holds 2 runs of a Recorder: the last is read") for note in found.run.notes)
    watched = run("watch", str(path), "--stall", "0.3s", "--every", "0.1")
    assert "CRITICAL" not in watched.stdout
    assert "stalled" in watched.stdout


def test_a_rerun_that_breaks_is_stopped_by_its_own_rows(path: Path) -> None:
    """And so is the third run in the file."""
    assert (train(path, range(600), 200) or 0) >= 200
    assert (train(path, range(600), 300) or 0) >= 300
    assert len({start[NEW_RUN] for start in starts(path)}) == 2
    found = diagnose(path)
    assert found.findings[0].onset_step == 300
    assert any("The file holds 3 runs" in note for note in found.run.notes)


@pytest.mark.parametrize("step", [350, 399, 100])
def test_a_resume_from_before_the_trouble_is_one_run(path: Path, step: int) -> None:
    """The rows that it replaces stop it no more."""
    assert train(path, range(step, 600)) is None
    assert not starts(path)
    found = load_run(path)
    assert len(found.series["loss"]) == 600
    assert [resume.to_step for resume in found.resumes] == [step]
    assert diagnose(found).verdict == "ok"


def test_a_resume_at_the_next_step_is_one_run(tmp_path: Path) -> None:
    """Nothing is replaced, and no record is written."""
    path = tmp_path / "run.jsonl"
    assert train(path, range(300)) is None
    assert train(path, range(300, 600)) is None
    assert not starts(path)
    assert len(load_run(path).series["loss"]) == 600


def test_what_is_said_of_a_resume_counts(path: Path, tmp_path: Path) -> None:
    """`resume` decides where the steps would say something else."""
    assert train(path, range(50, 600), resume=False) is None
    assert len(starts(path)) == 1
    assert len(load_run(path).series["loss"]) == 550
    other = tmp_path / "other.jsonl"
    train(other, range(20, 300))
    train(other, range(20, 600), resume=True)
    assert not starts(other)


def test_the_configuration_is_that_of_the_last_run(tmp_path: Path) -> None:
    """What was given before its first row is repeated with the record, and what only the other run had is gone."""
    path = tmp_path / "run.jsonl"
    train(path, range(100), config={"dtype": "fp16", "optimizer": "sgd"})
    train(path, range(200), config={"dtype": "bf16"})
    found = load_run(path)
    assert found.setting("dtype") == "bf16"
    assert found.setting("optimizer") is None
    assert len(found.series["loss"]) == 200


def test_a_run_that_only_began_hides_no_other(path: Path) -> None:
    """A process that was killed between the record and its first row."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"config": {NEW_RUN: "abc"}}) + "\n")
    assert diagnose(path).verdict == "critical"


def test_a_file_of_another_writer_is_a_run_too(tmp_path: Path) -> None:
    """Rows of before there were such records, or of a logger of one's own."""
    path = tmp_path / "run.jsonl"
    rows = [json.dumps({"step": step, "loss": loss}) for step, loss in enumerate(broken(600, 400))]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    assert train(path, range(600)) is None
    assert len(starts(path)) == 1
    assert diagnose(path).verdict == "ok"


def test_an_anonymized_copy_holds_the_same_runs(path: Path, tmp_path: Path) -> None:
    """What begins a run is kept."""
    train(path, range(600))
    copy = tmp_path / "sent.jsonl"
    assert run("anonymize", str(path), "-o", str(copy)).returncode == 0
    assert diagnose(copy).verdict == "ok"
