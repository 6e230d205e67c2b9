"""Several runs in one file are listed and asked for, never mixed; a resume is no new run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_run
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path


def stretch(first: int, last: int, start: float, end: float) -> list[str]:
    """Rows of one stretch: step, loss, lr with a warm-up of five rows."""
    steps = range(first, last)
    return [
        f"{step},{start + (end - start) * i / len(steps):.4f},{1e-3 * min(1.0, (step + 1) / 5):.6f}\n"
        for i, step in enumerate(steps)
    ]


def log(*stretches: list[str]) -> str:
    """A CSV file of these stretches."""
    return "step,loss,lr\n" + "".join(line for rows in stretches for line in rows)


def test_runs_appended_to_one_file_are_asked_for(tmp_path: Path) -> None:
    """Each begins at the first step with the first loss."""
    path = write(tmp_path, log(*(stretch(0, n, 4, 2) for n in (40, 60, 30))))
    with pytest.raises(StabtreeError, match="holds 3 runs: 1, 2, 3") as caught:
        load_run(path)
    assert "--run" in caught.value.hint
    assert [len(load_run(path, run=str(run)).series["loss"]) for run in (1, 2, 3)] == [40, 60, 30]


@pytest.mark.parametrize("counter", ["step", "epoch", "round"])
def test_an_attempt_of_a_few_rows_that_is_done_again_is_no_run(tmp_path: Path, counter: str) -> None:
    """It is too short to judge, and a far longer one repeats it; a note says that it is not read."""
    text = log(stretch(0, 5, 4, 3), stretch(0, 80, 4, 1)).replace("step", counter)
    run = load_run(write(tmp_path, text))
    assert len(run.series["loss"]) == 80
    assert f"An attempt of 5 rows, given up at {counter} 4 and begun anew, is not read." in run.notes


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_a_short_last_run_is_never_merged_into_the_one_before(tmp_path: Path, rows: int) -> None:
    """However few rows it has: it is being written, perhaps."""
    path = write(tmp_path, log(stretch(0, 40, 4, 2), stretch(0, 40, 4, 2)[:rows]))
    assert [len(load_run(path, run=run).series["loss"]) for run in "12"] == [40, rows]


def test_an_attempt_that_ended_in_nan_is_never_replaced(tmp_path: Path) -> None:
    """A loss that is finite again at the first step is no resume, whatever the rate says."""
    rows = [*(f"{i},4\n" for i in range(30)), *(f"{i},nan\n" for i in range(30, 40))]
    path = write(tmp_path, "step,loss\n" + "".join([*rows, *(f"{i},{4 - i / 50}\n" for i in range(80))]))
    assert np.isnan(load_run(path, run="1").series["loss"].values[-1])


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_steps_within_epochs_that_nobody_numbers_are_counted_on(tmp_path: Path, noise: float) -> None:
    """The steps fall back as often as there are epochs, each time after as many, and the loss goes on."""
    wobble = np.random.default_rng(0).normal(0, noise, 400)
    rows = [f"{i % 20 * 5},{1 + 3 * np.exp(-i / 80) + wobble[i]:.4f}\n" for i in range(390)]
    run = load_run(write(tmp_path, "step,loss\n" + "".join(rows)))
    assert run.series["loss"].steps.tolist() == list(range(0, 1950, 5))
    assert not run.resumes
    assert "The steps in column step begin again in each of 20 epochs: they are counted on." in run.notes


def test_a_counter_that_starts_again_while_the_loss_goes_on_is_counted_on(tmp_path: Path) -> None:
    """Keras numbers the epochs from 0 in each call of `fit`, whose weights are those of the call before."""
    rows = [f"{i % 20 if i < 20 else i - 20},{4 * 0.95**i:.4f}\n" for i in range(50)]
    run = load_run(write(tmp_path, "epoch,loss\n" + "".join(rows)))
    assert run.series["loss"].steps.tolist() == list(range(50))
    assert run.sources[0].restarts == "starts again 1× = 1 epoch, sure; not runs: the loss goes on"


@pytest.mark.parametrize("name", ["run", "run_id", "Run Name", "experiment"])
def test_a_column_names_the_runs(tmp_path: Path, name: str) -> None:
    """Rows of runs that wrote in turns."""
    rows = [f"{run},{step},{loss - step / 100}\n" for step in range(20) for run, loss in (("sgd-a", 4), ("adam-b", 3))]
    path = write(tmp_path, f"{name},step,loss\n" + "".join(rows))
    with pytest.raises(StabtreeError, match="holds 2 runs: sgd-a, adam-b"):
        load_run(path)
    run = load_run(path, run="adam-b")
    assert (run.name, len(run.series["loss"]), run.series["loss"].values[0]) == ("adam-b", 20, 3)
    assert load_run(path, run="sgd-a").sources[0].columns[0].why == "names the run"


def test_a_wandb_export_of_several_runs(tmp_path: Path) -> None:
    """Columns `run - metric`; a run's rows are those that hold something of it."""
    rows = [f'"{i}","{4 - i / 10 if i % 2 else ""}","1","{3 - i / 10 if i < 8 else ""}"\n' for i in range(20)]
    head = '"Step","first - train/loss","first - train/loss__MIN","second - x - train/loss"\n'
    path = write(tmp_path, head + "".join(rows))
    with pytest.raises(StabtreeError, match="holds 2 runs: first, second - x"):
        load_run(path)
    first = load_run(path, run="first").series["loss"]
    assert np.array_equal(first.steps, np.arange(1, 20, 2))
    assert load_run(path, run="second - x").last_step == 7
    named = load_run(path, run="second - x", columns={"loss": "train/loss"})
    assert named.series["loss"].values[0] == 3
