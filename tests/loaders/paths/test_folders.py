"""The folders that trainers write, and the settings that lie in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_run
from tests.loaders.make import write
from tests.loaders.make_binary import write_events

if TYPE_CHECKING:
    from pathlib import Path

    from stabtree.run import Run

ROWS = "epoch,step,train_loss\n" + "".join(f"0,{i},{4 - i / 20}\n" for i in range(20))


def version(folder: Path, number: int, text: str = ROWS, hparams: str = "precision: bf16-mixed\n") -> Path:
    """A version folder of Lightning's CSVLogger."""
    place = folder / f"version_{number}"
    place.mkdir(parents=True)
    write(place, text)
    write(place, hparams, "hparams.yaml")
    return place


def test_several_versions_are_several_runs(tmp_path: Path) -> None:
    """Each brings its own settings, and is called by its folder."""
    for number in (2, 10, 0):
        version(tmp_path / "lightning_logs", number, hparams=f"seed: {number}\n")
    with pytest.raises(StabtreeError, match=r"holds 3 runs: lightning_logs/version_0, .*_10, .*_2"):
        load_run(tmp_path)
    run = load_run(tmp_path / "lightning_logs", run="version_10")
    assert (run.setting("seed"), run.config["seed"].source) == (10, "hparams.yaml")


def test_a_folder_of_ranks_is_one_run(tmp_path: Path) -> None:
    """As `load_runs` and `diagnose` read it, two folders down as well; files that nothing joins are refused."""
    lines = "".join(f'{{"step": {i}, "loss": {4 - i / 20}}}\n' for i in range(9))
    place = tmp_path / "runs" / "one"
    place.mkdir(parents=True)
    for name in ("run.jsonl", "run.rank1.jsonl"):
        write(place, lines, name)
    assert {*load_run(place).ranks} == {*load_run(tmp_path).ranks} == {"0", "1"}
    write(place, lines.replace("4", "5"), "other.jsonl")
    with pytest.raises(StabtreeError, match=r"holds 2 runs: other.jsonl, run.jsonl"):
        load_run(place)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("config.yaml", "_wandb:\n  value: {}\nlr_schedule:\n  value: cosine\n", {"lr_schedule": "cosine"}),
        ("config.yaml", "clip_grad: {desc: null, value: 1.0}\n", {"grad_clip": 1.0}),
        ("args.json", '{"gradient_accumulation_steps": 4, "bf16": true}', {"accumulation_steps": 4, "dtype": "bf16"}),
        ("training_args.json", '{"save_steps": 500, "max_grad_norm": 1}', {"checkpoint_every": 500, "grad_clip": 1}),
        ("params.json", '{"num_classes": 10}', {"n_classes": 10}),
        ("args.yaml", "seed: 7\nmodel: x.yaml\n", {"seed": 7}),
    ],
)
def test_settings_beside_the_metrics(tmp_path: Path, name: str, text: str, expected: dict[str, object]) -> None:
    """Whether the file or its folder is named."""
    file = write(tmp_path, "step,loss\n1,2\n2,1\n")
    write(tmp_path, text, name)
    for path in (file, tmp_path):
        config = load_run(path).config
        assert {key: setting.value for key, setting in config.items()} == expected
        assert {setting.source for setting in config.values()} == {name}


@pytest.mark.parametrize(
    "text",
    [
        "a: [" * 5000,
        "- 1\n",
        "a: &a [1]\nb: " + "[" * 3,
        "x" * 300_000,
        "a: !!python/object/apply:os.system [ls]\n",
        "\0",
    ],
)
def test_hostile_settings_do_no_harm(tmp_path: Path, text: str) -> None:
    """They are passed over: nobody asked for them."""
    file = write(tmp_path, "step,loss\n1,2\n2,1\n")
    write(tmp_path, text, "config.yaml")
    assert not load_run(file).config


ENDED = "step 5, loss: 3.75\nstep 10, loss: 3.5\nTraceback (most recent call last):\nValueError: nothing left\n"


def events_beside(folder: Path, printed: dict[str, str]) -> Run:
    """The run of a folder of events with printed logs in it."""
    write_events(folder, [(i, {"train/loss": 4 - i / 20}) for i in range(20)])
    for name, text in printed.items():
        write(folder, text, name)
    return load_run(folder)


def test_what_was_printed_beside_events_says_how_the_run_ended(tmp_path: Path) -> None:
    """A log of the same values that ends in an error brings its error lines."""
    run = events_beside(tmp_path, {"train.log": ENDED})
    assert any("ValueError" in line.text for line in run.lines)
    assert any("train.log" in note for note in run.notes)
    assert len(run.series["loss"]) == 20


@pytest.mark.parametrize(("end", "told"), [("ValueError: expected real numbers\n", True), ("done\n", False)])
def test_the_error_that_a_printed_log_beside_the_metrics_ends_in_is_told(end: str, told: bool, tmp_path: Path) -> None:
    """A crash that only the printed output shows is read where the metrics' folder holds it."""
    rows = "".join(f"{20 + i},{512 * (i + 1)},{0.5 - 0.01 * i}\n" for i in range(12))
    (tmp_path / "progress.csv").write_text(
        f"rollout/ep_rew_mean,time/total_timesteps,train/loss\n{rows}", encoding="utf-8"
    )
    (tmp_path / "train.log").write_text(f"made the environment\n{end}", encoding="utf-8")
    assert any("ValueError" in line.text for line in load_run(tmp_path).lines) is told
