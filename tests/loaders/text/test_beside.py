"""What a text log prints beside the rows of training: values, totals, skipped steps, saves, and what is not read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from stabtree import diagnose
from stabtree.loaders import load_run, load_runs
from stabtree.loaders.text.messages import SHOWN, Unread
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
    assert any("printed twice between two rows" in note for note in run.notes)


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
        "Args(\n    reward=Reward(\n        score_penalty=-1,\n    ),\n    loss_scale_of_values=2,\n)\n",
        "import math\nsizes = {\n  9: 6,\n  10: 4,\n}\n",
    ],
)
def test_a_printed_configuration_is_no_series(block: str, tmp_path: Path) -> None:
    """Neither alone nor between the runs of a log."""
    found = load_runs(write(tmp_path, block * 20, "train.log"))
    assert not hasattr(found[0].run, "series")
    rows = "".join(f"step {i} loss: {i}.5\n" for i in range(1, 9))
    run = load_run(write(tmp_path, f"{rows}{block}step 9 loss: 0.5\n{block}", "both.log"))
    names = {*run.series, *run.others}
    assert not [name for name in names if name.lower().startswith(("loss_", "focal", "score", "value"))]


def test_a_summary_after_an_error_is_no_row_after_it(tmp_path: Path) -> None:
    rows = "".join(f"step {i} loss: {i}.5\nval dice: 0.{i}\n" for i in range(1, 9))
    run = run_of(tmp_path, f"{rows}RuntimeError: CUDA error: an illegal memory access\nval dice: 0.5\n")
    assert [line.at_end for line in run.lines] == [True]


def test_values_before_the_first_row_do_not_hide_it(tmp_path: Path) -> None:
    """A log whose first lines hold other numbers alone is searched further for its rows."""
    head = "".join(f"Epoch {i} preparing shard: {i}.5\n" for i in range(2500))
    run = run_of(tmp_path, head + "".join(f"step {i} loss: {i}.5\n" for i in range(1, 9)))
    assert points(run, "loss") == [(i, i + 0.5) for i in range(1, 9)]


def text_of(*lines: str) -> str:
    """Return lines as a text."""
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("form", "key", "planned"),
    [
        ("step {0}/600 loss {1:.4f}", "max_steps", 600),
        ("\r 10%|##   | {0}/600 [00:10<00:15, 4.0it/s, loss={1:.4f}]", "max_steps", 600),
        ("Epoch {0}/600 - loss: {1:.4f} - val_loss: {1:.4f}", "epochs", 600),
        ("step {0} loss {1:.4f}", "max_steps", None),
        ("epoch 1 step {0}/600 loss {1:.4f}", "max_steps", None),  # of the epoch, perhaps
        ("step {0}/200 loss {1:.4f}", "max_steps", None),  # beyond its own total
    ],
)
def test_a_counter_says_how_far_the_run_was_to_go(tmp_path: Path, form: str, key: str, planned: int | None) -> None:
    """Where it can only be the total of the run; a log that stops long before it is a note."""
    run = run_of(tmp_path, text_of(*(form.format(step, 3 - step / 400) for step in range(1, 400))))
    assert run.setting(key) == planned
    found = {item.leaf.id for item in diagnose(run).findings}
    assert ("stops-short" in found) is (planned is not None)


def test_a_step_that_is_skipped_is_where_its_message_says(tmp_path: Path) -> None:
    """It is a row of its own where the message names the step: there the loss is missing."""
    rows = [f"step {step} loss {3 - step / 400:.4f}" for step in range(300)]
    late = [f"WARNING: non-finite gradient at step {step}, skipping update" for step in range(300, 400)]
    run = run_of(tmp_path, text_of(*rows, *late))
    assert run.series["skipped_steps"].steps[-1] == 399
    assert run.series["skipped_steps"].values[[0, -1]].tolist() == [0, 100]
    assert diagnose(run).findings[0].leaf.id == "loss-stops"


def test_steps_that_are_skipped_from_some_row_on_are_more_and_more(tmp_path: Path) -> None:
    """Up to the first message none was."""
    rows = [f"step {step} loss {3 - step / 400:.4f}" for step in range(600)]
    lines = [part for row in rows[300:] for part in (row, "skipping optimizer step")]
    assert "skips-rise" in {item.leaf.id for item in diagnose(run_of(tmp_path, text_of(*rows[:300], *lines))).findings}


def test_a_traceback_is_judged_where_the_log_holds_no_course(tmp_path: Path) -> None:
    """A single line of numbers is refused as final values, unless the program ended in an error after it."""
    lines = ("train_loss: 0.5 val_loss: 0.6", "Traceback (most recent call last):", "RuntimeError: shapes do not fit")
    found = diagnose(run_of(tmp_path, text_of(*lines))).findings
    assert [item.leaf.id for item in found] == ["exception"]


def saved(tmp_path: Path, line: str) -> dict[int, int]:
    """Where a log says that checkpoints were saved, with a line after the row of step 30."""
    rows = [f"step {step} | loss {5 - step / 50:.3f} | lr 0.001" for step in range(0, 100, 10)]
    return dict(run_of(tmp_path, text_of(*rows[:4], line, *rows[4:])).saved)


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("saving checkpoint to out", 30),
        ("Saved checkpoint to runs/a/state_step000035.pt", 35),
        ("[08/30 16:32:10] fvcore.common.checkpoint INFO: Saving checkpoint to ./output/model_0000034.pth", 34),
        ("Saving model checkpoint to out/checkpoint-30", 30),
        (">> Model checkpoint saved!", 30),
        ("Best model saved at epoch 7", 30),
    ],
)
def test_a_line_that_says_so_gives_the_step(tmp_path: Path, line: str, step: int) -> None:
    """Its own number where that lies between the rows around it, else that of the row before."""
    assert saved(tmp_path, line) == {step: 5}


@pytest.mark.parametrize(
    "line",
    [
        "checkpoints will be saved to out",
        "the loss did not improve: model not saved",
        "Full config saved to checkpoints/a/config.yaml",
        "torch.save(model.state_dict(), 'model.pt')",
        "model save path: runs/a.pt",
        "Loading checkpoint from out",
    ],
)
def test_a_line_that_speaks_of_it_only_gives_none(tmp_path: Path, line: str) -> None:
    """What will be saved, was not, or is code."""
    assert saved(tmp_path, line) == {}


def test_lines_of_one_kind_are_counted_together(tmp_path: Path) -> None:
    """Those of time and memory are harmless, errors and settings are no kind of their own."""
    content = "".join(
        f"step {i} loss: {i}.5\n"
        f"2031-01-02 03:04:05 we gathered some {i} samples of the buffer here\n"
        f"the epoch took {i}.5 s for all\n"
        "RuntimeError: CUDA error 700\n"
        for i in range(1, 8)
    )
    kinds = run_of(tmp_path, content).sources[0].unread
    assert [(kind.count, kind.line, kind.harmless) for kind in kinds] == [(7, 2, False), (7, 3, True)]
    assert "some 1 samples" in kinds[0].example


def test_the_account_stays_short() -> None:
    """What is not listed stays harmless if it is."""
    unread = Unread()
    for number in range(1, 301):
        unread.add(1, number, f"kind {'x' * number} 1")
        unread.add(2, number, f"time {'x' * number} 1")
    kinds = unread.kinds()
    assert len(kinds) == 2 * (SHOWN + 1)
    assert [sum(kind.count for kind in kinds if kind.harmless == harmless) for harmless in (False, True)] == [300, 600]


def test_source_code_is_one_kind_and_harmless(tmp_path: Path) -> None:
    code = "import math\n" + "".join(
        f"{name}, b_{name} = self.{name}(x, 0.5)\n{name} = f(0.5)\n" for name in "pqrstuvw"
    )
    run = run_of(tmp_path, code + "".join(f"step {i} loss: {i}.5\n" for i in range(1, 8)))
    assert [(kind.count, kind.line, kind.harmless) for kind in run.sources[0].unread] == [(16, 2, True)]
