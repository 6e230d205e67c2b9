"""What tells the time is read beside a loss, and makes neither rows nor gaps by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree.loaders import load_run
from tests.loaders.make_binary import write_events

if TYPE_CHECKING:
    from pathlib import Path


def read(folder: Path, name: str, text: str) -> dict[str, list[float]]:
    """The series of a file."""
    (folder / name).write_text(text, encoding="utf-8")
    return {metric: series.values.tolist() for metric, series in load_run(folder / name).series.items()}


@pytest.mark.parametrize(
    ("column", "metric"),
    [
        ("_runtime", "wall_time"),
        ("time/time_elapsed", "wall_time"),
        ("Wall time", "wall_time"),
        ("tokens_per_sec", "throughput"),
        ("train/tok/s", "throughput"),
        ("time/fps", "throughput"),
        ("perf/time_per_step", "step_time"),
        ("elapsed time per iteration (ms)", "step_time"),
    ],
)
def test_the_time_is_read_under_its_usual_names(tmp_path: Path, column: str, metric: str) -> None:
    """A column of one of them is a metric of time."""
    rows = "".join(f"{i},{4 - i / 8},{10 + i}\n" for i in range(9))
    assert read(tmp_path, "a.csv", f"step,loss,{column}\n{rows}")[metric] == [10 + i for i in range(9)]


def test_a_line_that_tells_the_time_alone_is_no_row(tmp_path: Path) -> None:
    """Beside a loss it is read; a line of it, and a clock that is no number, change nothing."""
    lines = "".join(f"step {i} loss: {4 - i / 8} dt: {20 + i}ms\nelapsed: 0:00:{10 + i}\ndt: 7\n" for i in range(9))
    found = read(tmp_path, "a.log", lines)
    assert found["loss"] == [4 - i / 8 for i in range(9)]
    assert found["step_time"] == [20 + i for i in range(9)]


def test_rows_of_the_time_alone_are_no_gap_of_the_loss(tmp_path: Path) -> None:
    """A tracker that goes on while nothing is logged says nothing of the loss."""
    rows = [f'{{"step": {i}, "loss": {4 - i / 80}}}\n' for i in range(100) if not 40 <= i <= 60]
    rows[40:40] = [f'{{"step": {i}, "_runtime": {i}}}\n' for i in range(45, 61, 5)]
    (tmp_path / "a.jsonl").write_text("".join(rows), encoding="utf-8")
    run = load_run(tmp_path / "a.jsonl")
    assert len(run.series["wall_time"]) == 4
    assert not run.gaps


def test_a_clock_of_text_is_left_out_in_silence(tmp_path: Path) -> None:
    """`0:12:31` is no number, and no mistake either."""
    rows = "".join(f"{i},{4 - i / 8},0:00:{10 + i}\n" for i in range(9))
    (tmp_path / "a.csv").write_text(f"step,loss,elapsed\n{rows}", encoding="utf-8")
    run = load_run(tmp_path / "a.csv")
    assert "wall_time" not in run.series
    assert not any("elapsed" in note for note in run.notes)


def test_event_files_tell_when_each_row_was_written(tmp_path: Path) -> None:
    """TensorBoard's time is that of the row, in seconds."""
    file = write_events(tmp_path, [(step, {"loss": 4}) for step in range(3)])
    clock = load_run(file).series["wall_time"]
    assert len(clock) == 3
    assert clock.values[0] > 1e9
