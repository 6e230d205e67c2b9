"""How far a text log says that its run was to go, and what it says of skipped steps and of its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree import diagnose, load_run

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.run import Run


def read(tmp_path: Path, *lines: str) -> Run:
    """The run of a log of these lines."""
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return load_run(tmp_path / "train.log")


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
    run = read(tmp_path, *(form.format(step, 3 - step / 400) for step in range(1, 400)))
    assert run.setting(key) == planned
    found = {item.leaf.id for item in diagnose(run).findings}
    assert ("stops-short" in found) is (planned is not None)


def test_a_step_that_is_skipped_is_where_its_message_says(tmp_path: Path) -> None:
    """It is a row of its own where the message names the step: there the loss is missing."""
    rows = [f"step {step} loss {3 - step / 400:.4f}" for step in range(300)]
    late = [f"WARNING: non-finite gradient at step {step}, skipping update" for step in range(300, 400)]
    run = read(tmp_path, *rows, *late)
    assert run.series["skipped_steps"].steps[-1] == 399
    assert run.series["skipped_steps"].values[[0, -1]].tolist() == [0, 100]
    assert diagnose(run).findings[0].leaf.id == "loss-stops"


def test_steps_that_are_skipped_from_some_row_on_are_more_and_more(tmp_path: Path) -> None:
    """Up to the first message none was."""
    rows = [f"step {step} loss {3 - step / 400:.4f}" for step in range(600)]
    lines = [part for row in rows[300:] for part in (row, "skipping optimizer step")]
    assert "skips-rise" in {item.leaf.id for item in diagnose(read(tmp_path, *rows[:300], *lines)).findings}


def test_a_traceback_is_judged_where_the_log_holds_no_course(tmp_path: Path) -> None:
    """A single line of numbers is refused as final values, unless the program ended in an error after it."""
    lines = ("train_loss: 0.5 val_loss: 0.6", "Traceback (most recent call last):", "RuntimeError: shapes do not fit")
    found = diagnose(read(tmp_path, *lines)).findings
    assert [item.leaf.id for item in found] == ["exception"]
