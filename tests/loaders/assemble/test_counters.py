"""Every counter of a file is found, and what it means where one starts again is decided from the loss and the rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from stabtree.loaders import load_run, load_runs
from stabtree.run import Run
from tests.loaders.assemble.appended import Log, logs
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

# Of these logs a few can't be told apart: two runs of a flat, noisy loss without a learning rate are one of epochs.
MIN_RIGHT = 0.97


def read(path: Path) -> list[int]:
    """How many values of the loss, or of the reward, each run of a file holds."""
    found = []
    for loaded in load_runs(path):
        assert isinstance(loaded.run, Run), loaded.run
        series = loaded.run.get("loss") or loaded.run.get("reward")
        found.append(0 if series is None else len(series))
    return found


@pytest.mark.parametrize(("name", "form"), [("log.csv", Log.csv), ("log.jsonl", Log.jsonl), ("log.txt", Log.printed)])
def test_runs_appended_to_one_file_are_told_apart(tmp_path: Path, name: str, form: object) -> None:
    """Whatever counts their rows, however short the last one, resumed or not, in every format."""
    made = logs(seed=1, count=4)
    wrong = [log.kind for log in made if read(write(tmp_path, form(log), name)) != log.runs]  # type: ignore[operator]
    assert len(wrong) <= (1 - MIN_RIGHT) * len(made), wrong


@pytest.mark.parametrize("header", ["episode,steps,reward", "steps,episode,reward"])
def test_the_length_of_an_episode_counts_no_steps(tmp_path: Path, header: str) -> None:
    """It goes up and down while the episodes are counted."""
    random = np.random.default_rng(3)
    rows = [(episode, int(random.integers(5, 200))) for episode in range(60)]
    text = "".join(f"{a},{b},{b / 2}\n" for a, b in (row if header[0] == "e" else row[::-1] for row in rows))
    run = load_run(write(tmp_path, header + "\n" + text), columns={"reward": "reward"})
    assert run.sources[0].steps_from == "episode"
    assert len(run.series["reward"]) == 60


@pytest.mark.parametrize(
    ("rows", "meaning"),
    [
        pytest.param([(i, 4 - i / 30) for i in range(60)], "never goes back, sure", id="one run"),
        pytest.param(
            [(i % 30, 4 - i % 30 / 20) for i in range(90)],
            "starts again 2× = 2 new runs, sure; not epochs: the loss is back at its first level",
            id="runs",
        ),
        pytest.param(
            [(i % 30, 4 * 0.98**i) for i in range(90)],
            "starts again 2× = 2 epochs, sure; not runs: the loss goes on",
            id="epochs",
        ),
        pytest.param(
            [*((i, 4.0 - i / 30) for i in range(60)), *((i, 4.0 - i / 30) for i in range(40, 80))],
            "goes back 1×, never to its start = resumes or rows out of order, likely",
            id="a resume",
        ),
    ],
)
def test_what_was_decided_is_shown(tmp_path: Path, rows: list[tuple[int, float]], meaning: str) -> None:
    """With how sure it is, and what was rejected."""
    text = "iter,loss\n" + "".join(f"{step},{loss:.5f}\n" for step, loss in rows)
    first = load_runs(write(tmp_path, text))[0].run
    assert isinstance(first, Run)
    assert (first.sources[0].steps_from, first.sources[0].restarts) == ("iter", meaning)


def test_two_counters_that_start_again_together_are_another_run(tmp_path: Path) -> None:
    """The epochs begin again with the steps, wherever the loss is then."""
    rows = [
        f"{e},{s},{3 - 0.01 * (s + 20 * e) - run / 2:.4f}\n" for run in range(3) for e in range(2) for s in range(20)
    ]
    assert read(write(tmp_path, "epoch,step,loss\n" + "".join(rows))) == [40, 40, 40]
