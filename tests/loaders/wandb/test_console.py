"""What a run printed is in its `.wandb` file too, and is read as a log of its own would be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree.diagnosis.walk import diagnose
from stabtree.loaders import load_run, load_runs
from stabtree.report.model import Report
from stabtree.run import Run
from tests.loaders.make import points, write
from tests.loaders.make_binary import part, wandb_file, wandb_records
from tests.loaders.wandb.test_wandb import CONFIG, NAME, ROWS, run_folder

if TYPE_CHECKING:
    from pathlib import Path


def with_console(pieces: list[tuple[int, str]], *, raw: bool = True, before: int = 8) -> bytes:
    """A run's file in which something is printed after so many of its rows; the error stream is 0, the other one 1."""
    records = wandb_records(ROWS, CONFIG, "quick-fox-1")
    printed = [part(1, 9) + part(13 if raw else 4, part(1, stream) + part(3, text)) for stream, text in pieces]
    return wandb_file([*records[: before + 1], *printed, *records[before + 1 :]])


TRACEBACK = [
    (0, "Traceback (most recent call last):\n"),
    (0, '  File "train.py", line 7, in <module>\n    step()\n'),
    (1, "epoch 1: loss 3."),
    (0, "RuntimeErr"),
    (1, "2\r"),
    (0, "or: expected\x1b[0m a tensor\n"),
]


@pytest.mark.parametrize("raw", [True, False])
def test_the_console_of_a_run_is_read_as_a_log_is(tmp_path: Path, *, raw: bool) -> None:
    """Pieces of two streams are lines again; those about errors are kept, and show how the run ended."""
    run = load_run(write(tmp_path, with_console(TRACEBACK, raw=raw), NAME))
    assert [line.text for line in run.lines] == [
        "Traceback (most recent call last):",
        'File "train.py", line 7, in <module>',
        "RuntimeError: expected a tensor",
    ]
    assert all(line.at_end for line in run.lines)
    assert points(run)["loss"] == [(step, 4 - step / 8) for step in range(8)]
    assert diagnose(run).findings[0].leaf.id == "exception"


def test_an_error_that_rows_follow_is_not_the_end(tmp_path: Path) -> None:
    """What was caught is kept, and ended nothing."""
    run = load_run(write(tmp_path, with_console(TRACEBACK, before=4), NAME))
    assert run.lines
    assert not any(line.at_end for line in run.lines)


def test_a_line_without_end_is_read_and_a_very_long_one_is_cut(tmp_path: Path) -> None:
    """A bar that never ends its line takes no more room than its beginning."""
    pieces = [(1, "x" * 4000)] * 40 + [(0, "ValueError: no end")]
    run = load_run(write(tmp_path, with_console(pieces), NAME))
    assert [line.text for line in run.lines] == ["ValueError: no end"]


def test_an_output_log_beside_the_file_repeats_nothing(tmp_path: Path) -> None:
    """W&B keeps the console in both."""
    folder = run_folder(tmp_path / "run-1-id0", with_console(TRACEBACK))
    write(folder / "files", "".join(text for stream, text in TRACEBACK if not stream), "output.log")
    (run,) = [found.run for found in load_runs(tmp_path)]
    assert isinstance(run, Run)
    assert len(run.lines) == len({line.text for line in run.lines}) == 3


def test_a_run_that_failed_before_its_first_row_is_judged_by_its_error(tmp_path: Path) -> None:
    """Nothing was logged, and what was printed says why."""
    content = wandb_file([wandb_records([], CONFIG, "r")[0], part(13, part(3, "ValueError: no data\n"))])
    assert diagnose(load_run(write(tmp_path, content, NAME))).findings[0].leaf.id == "exception"


def test_a_scale_at_its_minimum_is_why_no_gradient_arrived(tmp_path: Path) -> None:
    """The error is printed last, and the steps before it were skipped for the same reason."""
    rows = [{"_step": k, "train/loss": 0.0, "train/grad_norm": 0.0} for k in range(1, 18)]
    config = {"fp16": True, "torch_dtype": "bfloat16"}
    error = part(13, part(3, "Exception: Current loss scale already at minimum - cannot decrease scale anymore.\n"))
    run = load_run(write(tmp_path, wandb_file([*wandb_records(rows, config, "r"), error]), NAME))
    found = diagnose(run)
    assert run.setting("dtype") == "fp16"
    assert found.findings[0].leaf.id == "minimum-loss-scale"
    assert "no-gradient" in [item.leaf.id for item in found.findings[0].consequences]
    assert not any("trainable parameters" in action.text for action in Report(found).do_now)
