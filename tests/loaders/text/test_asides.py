"""Values that are printed beside the rows of training, and where they go."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from stabtree.loaders import load_run, load_runs
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.run import Run

Points = list[tuple[int, float]]


def run_of(folder: Path, content: str) -> Run:
    """Return the run that a text log holds."""
    return load_run(write(folder, content, "train.log"))


def points(run: Run, name: str) -> Points:
    """Return (step, value) of a series, of a metric or of any other column."""
    series = {**run.others, **run.series}[name]
    return list(zip(series.steps.tolist(), series.values.tolist(), strict=True))


EPOCHS = range(1, 6)
# What is printed after each row of loss -> the series that it must become.
BESIDE: dict[str, tuple[str, str, list[float]]] = {
    "accuracy": ("Test accuracy: 0.{0}5\n", "Test accuracy", [0.15, 0.25, 0.35, 0.45, 0.55]),
    "dice in a sentence": (
        "Testing performance in val model: mean_dice : 0.0{0}, best_dice : 0.5\n",
        "mean_dice",
        [0.01, 0.02, 0.03, 0.04, 0.05],
    ),
    "an assignment": ("mIoU = 0.{0}1\n", "mIoU", [0.11, 0.21, 0.31, 0.41, 0.51]),
    "a share of the samples": ("Test Accuracy: {0}/10 (50%)\n", "Test Accuracy", [0.1, 0.2, 0.3, 0.4, 0.5]),
    "a rank behind a dash": ("Rank-1  : {0}.5%\n", "Rank-1", [1.5, 2.5, 3.5, 4.5, 5.5]),
    "a list without names": ("[0.{0}5, 2.5]\n", "value_1", [0.15, 0.25, 0.35, 0.45, 0.55]),
    "skipped updates": ("grad norm too large, skipping optimizer step\n", "skipped_steps", [1, 2, 3, 4, 5]),
}


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize(("head", "every"), [("step {0}00, loss: {0}.5\n", 100), ("Epoch {0} loss: {0}.5\n", 1)])
def test_values_beside_a_row_belong_to_it(name: str, head: str, every: int, tmp_path: Path) -> None:
    line, column, values = BESIDE[name]
    run = run_of(tmp_path, "".join(head.format(i) + line.format(i) for i in EPOCHS))
    found = points(run, "eval_quality") if column in ("Test accuracy", "Test Accuracy") else points(run, column)
    assert [step for step, _ in found] == [every * i for i in EPOCHS]
    assert [value for _, value in found] == pytest.approx(values)
    assert points(run, "loss") == [(every * i, i + 0.5) for i in EPOCHS]


def test_closing_evaluations_are_no_rows_that_lack_a_loss(tmp_path: Path) -> None:
    """What training prints beside its loss was measured elsewhere where there is none."""
    rows = [f"INFO - epoch: {i // 4}, batch_id: {i % 4}, AUC:0.9, loss:{9 - i / 4}\n" for i in range(32)]
    tail = [f"INFO - epoch: 7, batch_id: {i}, AUC: 0.{i + 5}, ACC: 0.75\n" for i in range(4)]
    run = run_of(tmp_path, "".join((*rows, *tail)))
    assert not run.gaps
    assert len(run.series["loss"]) == len(rows)
    assert [value for _, value in points(run, "valid/AUC")] == [0.8]
    assert {value for _, value in points(run, "AUC")} == {0.9}


def test_a_value_that_is_not_finite_is_never_replaced(tmp_path: Path) -> None:
    """Of several values between two rows one that is not finite counts."""
    lines = [f"epoch {i} loss: {i}.5\nval dice: nan\nval dice: 0.5\n" for i in EPOCHS]
    run = run_of(tmp_path, "".join(lines))
    assert all(math.isnan(value) for _, value in points(run, "eval_quality"))
    assert any("more than once between two rows" in note for note in run.notes)


def test_overflows_between_rows_without_steps_are_rows(tmp_path: Path) -> None:
    rows = [f"{{'loss': {2 - i / 10}, 'learning_rate': 0.0001, 'epoch': 0.{i}}}\n" for i in range(6)]
    lines = [
        f"[deepspeed] OVERFLOW! Skipping step. Attempted loss scale: {2 * s}, reducing to {s}\n" for s in (8, 4, 2)
    ]
    run = run_of(
        tmp_path, "".join((*rows[:5], *lines, rows[5], lines[2].replace("4, reducing to 2", "2, reducing to 1")))
    )
    assert points(run, "loss_scale") == [(5, 8.0), (6, 4.0), (7, 2.0), (9, 1.0)]
    assert [step for step, _ in points(run, "loss")] == [0, 1, 2, 3, 4, 8]
    assert not run.gaps


def test_what_is_printed_once_is_no_series(tmp_path: Path) -> None:
    lines = [f"step {i} loss: {i}.5\n" for i in range(1, 9)]
    lines.insert(4, "hidden_size: 768\n")
    run = run_of(tmp_path, "".join(lines))
    assert "hidden_size" not in run.others
    assert [kind.line for kind in run.sources[0].unread] == [5]


@pytest.mark.parametrize(
    "block",
    [
        "MODEL:\n  ROI_HEADS:\n    LOSS_WEIGHT: 1.0\n    SCORE_THRESH_TEST: 0.05\n",
        "[04/01 10:00:00 detectron2]: Full config:\nMODEL:\n  RETINANET:\n    FOCAL_LOSS_ALPHA: 0.25\n",
        "Arguments:\n  lr: 0.1\n  loss_weight: 0.5\n",
    ],
)
def test_a_printed_configuration_is_no_series(block: str, tmp_path: Path) -> None:
    """Neither alone nor between the runs of a log."""
    found = load_runs(write(tmp_path, block * 20, "train.log"))
    assert not hasattr(found[0].run, "series")
    rows = "".join(f"step {i} loss: {i}.5\n" for i in range(1, 9))
    run = load_run(write(tmp_path, f"{rows}{block}step 9 loss: 0.5\n{block}", "both.log"))
    names = {*run.series, *run.others}
    assert not [name for name in names if name.lower().startswith(("loss_", "focal", "score"))]


def test_a_summary_after_an_error_is_no_row_after_it(tmp_path: Path) -> None:
    rows = "".join(f"step {i} loss: {i}.5\nval dice: 0.{i}\n" for i in range(1, 9))
    run = run_of(tmp_path, f"{rows}RuntimeError: CUDA error: an illegal memory access\nval dice: 0.5\n")
    assert [line.at_end for line in run.lines] == [True]


def test_values_before_the_first_row_do_not_hide_it(tmp_path: Path) -> None:
    """A log whose first lines hold other numbers alone is searched further for its rows."""
    head = "".join(f"Epoch {i} preparing shard: {i}.5\n" for i in range(2500))
    run = run_of(tmp_path, head + "".join(f"step {i} loss: {i}.5\n" for i in range(1, 9)))
    assert points(run, "loss") == [(i, i + 0.5) for i in range(1, 9)]
