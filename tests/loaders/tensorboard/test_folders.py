"""TensorBoard's folders: which event files are one run, what its tags are called in it, and which runs are resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_run, load_runs
from tests.loaders.make import points, write
from tests.loaders.make_binary import write_events

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stabtree.run import Run


def rows(count: int) -> list[tuple[int, Mapping[str, float]]]:
    """A falling loss with its learning rate."""
    return [(step, {"train/loss": 4 - step / 64, "lr": 0.5}) for step in range(count)]


def test_a_restart_goes_on_in_a_new_file(tmp_path: Path) -> None:
    """Files of one folder are one run, in the order of their time stamps; going back is a resume."""
    write_events(tmp_path, rows(20), 1.7e9)
    write_events(tmp_path, [(step, {"train/loss": 9.0}) for step in range(12, 30)], 1.8e9, "a.tfevents.1800000000.host")
    run = load_run(tmp_path)
    assert run.series["loss"].steps.tolist() == list(range(30))
    assert run.series["loss"].values.tolist()[11:13] == [4 - 11 / 64, 9.0]
    assert [(found.from_step, found.to_step) for found in run.resumes] == [(19, 12)]
    assert run.sources[0].format == "tfevents, 2 files"


def test_train_and_validation_are_one_run(tmp_path: Path) -> None:
    """Keras writes two folders with the same tags; the loss of the second is the eval loss."""
    write_events(tmp_path / "train", [(step, {"epoch_loss": 4 - step}) for step in range(4)])
    alone = write_events(tmp_path / "validation", [(step, {"epoch_loss": 5 - step}) for step in range(4)])
    assert "No training loss is logged" in load_run(alone).notes[0]
    run = load_run(tmp_path)
    assert points(run)["eval_loss"] == [(0, 5), (1, 4), (2, 3), (3, 2)]
    assert points(run)["loss"] == [(0, 4), (1, 3), (2, 2), (3, 1)]


def test_a_run_may_be_called_test(tmp_path: Path) -> None:
    """A folder `test` without training beside it is a run as any other, and so is one that begins like a tag."""
    write_events(tmp_path / "one" / "loss_big", [(step, {"loss": 9}) for step in range(5)])
    assert load_run(tmp_path / "one").series["loss"].origin == "loss"
    file = write_events(tmp_path / "test", rows(5))
    write_events(tmp_path / "mine", [(step, {"loss": 9}) for step in range(5)])
    for run in (load_run(file), load_run(tmp_path / "test"), load_run(tmp_path, run="test")):
        assert run.series["loss"].values[0] == 4


@pytest.mark.parametrize("mark", ["_", "/"])
def test_add_scalars_writes_folders_of_its_own(tmp_path: Path, mark: str) -> None:
    """`add_scalars("loss", {"train": ..., "val": ...})` of PyTorch and tensorboardX belongs to the run above."""
    write_events(tmp_path, [(step, {"lr": 0.5}) for step in range(3)])
    write_events(tmp_path / f"loss{mark}train", [(step, {"loss": 4}) for step in range(3)])
    write_events(tmp_path / f"loss{mark}val", [(step, {"loss": 5}) for step in range(3)])
    write_events(tmp_path / "1700000000.25", [(0, {"hparam/best": 1})])
    run = load_run(tmp_path)
    assert {name: series.values.tolist() for name, series in run.series.items() if name != "wall_time"} == {
        "lr": [0.5] * 3,
        "loss": [4] * 3,
        "eval_loss": [5] * 3,
    }


def test_several_runs_are_never_mixed(tmp_path: Path) -> None:
    """Other sub-folders are runs of their own: one has to be named."""
    for name, value in (("version_0", 4.0), ("version_1", 5.0)):
        write_events(tmp_path / "logs" / name, [(step, {"train_loss": value}) for step in range(3)])
    (tmp_path / "logs" / "version_1" / "hparams.yaml").write_text("lr: 1e-3\nprecision: 16-mixed\n", encoding="utf-8")
    with pytest.raises(StabtreeError, match="holds 2 runs: logs/version_0, logs/version_1"):
        load_run(tmp_path)
    run = load_run(tmp_path, run="logs/version_1")
    assert run.series["loss"].values.tolist() == [5.0] * 3
    assert (run.setting("lr"), run.setting("dtype")) == (0.001, "fp16")


def test_metrics_in_the_folder_are_a_run_beside_those_below_it(tmp_path: Path) -> None:
    """The folder of a project with a metrics file and old runs holds them all."""
    write(tmp_path, "step,loss\n0,7\n1,6\n")
    write_events(tmp_path / "runs" / "old", rows(5))
    assert load_run(tmp_path, run="metrics.csv").series["loss"].values.tolist() == [7, 6]
    assert len(load_run(tmp_path, format="tfevents").series["loss"]) == 5
    write_events(tmp_path, rows(3))
    assert len(load_runs(tmp_path)) == 3


def test_a_manifest_in_the_folder_names_its_run(tmp_path: Path) -> None:
    """Event files beside it are another run, unless they hold the same values."""
    write_events(tmp_path, rows(5))
    write(tmp_path, "step,loss\n0,7\n1,6\n")
    write(tmp_path, '{"dtype": "bf16", "metrics": "metrics.csv"}', "manifest.json")
    assert load_run(tmp_path, run="manifest.json").series["loss"].values.tolist() == [7, 6]
    assert len(load_runs(tmp_path)) == 2


def stretch(folder: Path, first: int, last: int, start: float, *, every: int = 1, tag: str = "train/loss") -> Path:
    """An event folder with the rows of some steps, written from some time on."""
    return write_events(folder, [(step, {tag: 4 - step / 100, "lr": 0.1}) for step in range(first, last, every)], start)


def runs_in(folder: Path) -> list[Run]:
    """The runs of a folder."""
    return [item.run for item in load_runs(folder) if not isinstance(item.run, StabtreeError)]


@pytest.mark.parametrize("begin", [60, 90, 101])
def test_a_run_resumed_in_a_new_folder_is_one(tmp_path: Path, begin: int) -> None:
    """Its second folder begins at a checkpoint of the first, or right after its end, and later in time."""
    stretch(tmp_path / "b_host", 1, 101, 1.7e9)
    stretch(tmp_path / "a_host", begin, 200, 1.8e9)
    run = load_run(tmp_path)
    assert run.series["loss"].steps.tolist() == list(range(1, 200))
    assert len(run.resumes) == (begin < 101)
    assert "b_host goes on in a_host: one run with its resumes." in run.notes


def test_a_run_that_crashed_again_and_again_is_one(tmp_path: Path) -> None:
    """Each resume begins within what stands before it, however far the one before it got."""
    for number, (first, last) in enumerate(((1, 100), (51, 70), (51, 90), (81, 200))):
        stretch(tmp_path / f"run{number}", first, last, 1.7e9 + number * 1e6)
    assert [len(run.series["loss"]) for run in runs_in(tmp_path)] == [199]


@pytest.mark.parametrize(
    ("second", "why"),
    [
        pytest.param({"first": 1, "last": 200}, "it begins at the first step", id="from scratch"),
        pytest.param({"first": 10, "last": 200, "every": 10}, "its first row is one interval in", id="logged rarely"),
        pytest.param({"first": 50, "last": 101}, "it ends where the other one does", id="a branch"),
        pytest.param({"first": 150, "last": 300}, "steps between the two are missing", id="far behind"),
        pytest.param({"first": 50, "last": 200, "tag": "nll"}, "it logs something else", id="other tags"),
        pytest.param({"first": 50, "last": 200, "start": 1.7e9 + 10}, "they ran side by side", id="at the same time"),
    ],
)
def test_unrelated_runs_stay_several(tmp_path: Path, second: dict[str, float], why: str) -> None:
    """Nothing but a seam in steps and in time puts two folders together."""
    stretch(tmp_path / "a", 1, 101, 1.7e9)
    stretch(tmp_path / "b", **{"start": 1.8e9, **second})  # type: ignore[arg-type]
    assert len(load_runs(tmp_path)) == 2, why


def test_a_resume_that_may_be_of_two_runs_is_of_neither(tmp_path: Path) -> None:
    """Where two runs could go on there, nothing is proved."""
    stretch(tmp_path / "a", 1, 101, 1.7e9)
    stretch(tmp_path / "b", 1, 101, 1.75e9)
    stretch(tmp_path / "c", 60, 200, 1.8e9)
    assert len(load_runs(tmp_path)) == 3


def test_a_folder_that_was_used_twice_holds_two_attempts(tmp_path: Path) -> None:
    """A second event file that begins at the first step again is no resume."""
    stretch(tmp_path, 1, 60, 1.7e9)
    stretch(tmp_path, 1, 101, 1.8e9)
    assert [len(run.series["loss"]) for run in runs_in(tmp_path)] == [59, 100]


def test_text_that_is_named_like_an_event_file_is_none(tmp_path: Path) -> None:
    """A module `read_tfevents.py` in a project hides no run and is none."""
    write(tmp_path, "import struct\n", "read_tfevents.py")
    with pytest.raises(StabtreeError, match="holds no file that stabtree can read"):
        load_run(tmp_path)
    stretch(tmp_path / "runs" / "a", 1, 60, 1.7e9)
    assert len(load_run(tmp_path).series["loss"]) == 59


def test_what_counts_epochs_is_placed_by_time(tmp_path: Path) -> None:
    """An evaluation at epoch 3 is at the step that training logged last before; a tag that ends early stays."""
    logged: list[tuple[int, Mapping[str, float]]] = []
    for step in range(1, 81):
        logged.append((step, {"train/loss": 4 - step / 32}))
        if step <= 20:
            logged.append((step, {"warmup": 0.5}))
        if step % 10 == 0:
            logged.append((step // 10, {"val/loss": 4 - step / 40}))
    write_events(tmp_path, logged)
    run = load_run(tmp_path)
    assert points(run)["eval_loss"] == [(10 * epoch, 4 - epoch / 4) for epoch in range(1, 9)]
    assert run.others["warmup"].steps.tolist() == list(range(1, 21))
    assert not run.resumes
    assert any("placed by time" in note for note in run.notes)
