"""Manifests, folders, and the configuration they carry."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.loaders import load_run
from stabtree.loaders.config import dtype, read_config
from stabtree.run import Setting
from tests.loaders.make import points, text, write

if TYPE_CHECKING:
    from pathlib import Path


def manifest(folder: Path, **content: Any) -> Path:
    """A manifest with these keys."""
    return write(folder, json.dumps(content), "manifest.json")


def test_a_folder_with_a_manifest(tmp_path: Path) -> None:
    """The folder, the manifest and the metrics file are three names of one run."""
    file = write(tmp_path, text())
    place = manifest(tmp_path, run_name="gpt-3", dtype="bfloat16", metrics_file="metrics.csv")
    runs = [load_run(tmp_path), load_run(place), load_run(file)]
    assert points(runs[0]) == points(runs[1]) == points(runs[2])
    assert [run.name for run in runs] == ["gpt-3"] * 3
    assert [run.config["dtype"] for run in runs] == [Setting("bf16", "manifest.json")] * 3
    assert runs[2].notes == ("The configuration is from manifest.json beside the file.",)


def test_a_manifest_that_names_another_file_is_left_alone(tmp_path: Path) -> None:
    """The manifest of the neighbour says nothing of this file."""
    write(tmp_path, text(), "other.csv")
    manifest(tmp_path, dtype="fp16", metrics_file="other.csv")
    run = load_run(write(tmp_path, text(), "mine.csv"))
    assert not run.config
    assert not run.notes


def test_a_broken_manifest_says_where(tmp_path: Path) -> None:
    """Line and column of the mistake are told."""
    file = write(tmp_path, '{\n "dtype": "fp16",\n "lr": oops\n}', "manifest.json")
    with pytest.raises(StabtreeError, match="is not valid JSON: Expecting value at line 3 column 8"):
        load_run(file)


def test_a_manifest_of_several_ranks(tmp_path: Path) -> None:
    """Several files that a manifest names are the ranks."""
    for rank in range(2):
        write(tmp_path, f"step,loss\n0,{rank}\n1,{rank}\n", f"rank{rank}.csv")
    manifest(tmp_path, metrics_files=["rank0.csv", "rank1.csv"])
    run = load_run(tmp_path)
    assert list(run.ranks) == ["0", "1"]
    assert points(run)["loss"] == [(0, 0.5), (1, 0.5)]


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../metrics.csv", "a/../../metrics.csv", "C:\\metrics.csv", "..\\m.csv"]
)
def test_files_outside_of_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    """A manifest from someone else can't make us read another file."""
    write(tmp_path, text())
    (tmp_path / "run").mkdir()
    with pytest.raises(StabtreeError, match="outside of its folder"):
        load_run(manifest(tmp_path / "run", metrics_file=name))


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    """A link is no way around."""
    file = write(tmp_path, text())
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "metrics.csv").symlink_to(file)
    with pytest.raises(StabtreeError, match="a link that leads out of its folder"):
        load_run(manifest(folder, metrics_file="metrics.csv"))


@pytest.mark.parametrize("name", ["absent.csv", "", "a\0b", "x" * 5000, "."])
def test_files_that_are_not_there(tmp_path: Path, name: str) -> None:
    """A name that leads nowhere is an error of the manifest."""
    with pytest.raises(StabtreeError) as caught:
        load_run(manifest(tmp_path, metrics_file=name))
    assert caught.value.where.endswith("manifest.json")


def test_manifests_do_not_chain(tmp_path: Path) -> None:
    """A manifest that names itself does not go round in circles."""
    with pytest.raises(StabtreeError, match="is a manifest that another manifest names"):
        load_run(manifest(tmp_path, metrics_file="manifest.json"))


def test_a_jsonl_manifest_merges_its_first_lines(tmp_path: Path) -> None:
    """Metadata over several lines is one configuration; a line of metrics with an lr is no metadata."""
    lines = [
        '{"run_name": "a", "dtype": "fp16", "lr": 0.5}',
        '{"optimizer": {"name": "adamw"}}',
        '{"type": "config", "seed": 3}',
    ]
    rows = [f'{{"step": {i}, "loss": 1.5, "lr": 0.25}}' for i in range(3)]
    run = load_run(write(tmp_path, "\n".join(lines + rows), "manifest.jsonl"))
    assert run.name == "a"
    assert {key: item.value for key, item in run.config.items()} == {
        "dtype": "fp16",
        "lr": 0.5,
        "optimizer": "adamw",
        "seed": 3,
    }
    assert points(run)["lr"] == [(0, 0.25), (1, 0.25), (2, 0.25)]
    assert run.sources[0].rows == 3


@pytest.mark.parametrize(
    "row",
    [
        '{"config": {"precision": "fp16"}}',
        '{"event": "config", "precision": "fp16", "loss": 1}',
        '{"args": {"fp16": true}}',
    ],
)
def test_config_rows_in_a_log(tmp_path: Path, row: str) -> None:
    """A log that begins with its configuration supplies it."""
    run = load_run(write(tmp_path, row + '\n{"step": 0, "loss": 2}\n', "log.jsonl"))
    assert run.config["dtype"] == Setting("fp16", "log.jsonl")
    assert len(run.series["loss"]) == 1


@pytest.mark.parametrize(
    ("content", "config"),
    [
        (
            {"optimizer": {"name": "adamw", "lr": 1e-3, "weight_decay": 0.1}},
            {"optimizer": "adamw", "lr": 1e-3, "weight_decay": 0.1},
        ),
        ({"optimizer": "sgd"}, {"optimizer": "sgd"}),
        ({"lr_schedule": {"name": "cosine", "warmup": 50}}, {"lr_schedule": "cosine", "warmup_steps": 50}),
        ({"lr_scheduler_type": "linear", "lr_warmup_steps": 5}, {"lr_schedule": "linear", "warmup_steps": 5}),
        ({"config": {"lr": "3e-4", "save_steps": 500}}, {"lr": 3e-4, "checkpoint_every": 500}),
        ({"num_classes": 10, "vocab": 50257}, {"n_classes": 10, "vocab_size": 50257}),
        ({"checkpoints": [300, 100, 300]}, {"checkpoints": (100, 300)}),
        ({"max_grad_norm": 1, "gradient_accumulation_steps": 4}, {"grad_clip": 1.0, "accumulation_steps": 4}),
        ({"lr": 0.1, "optimizer": {"lr": 0.2}}, {"lr": 0.1}),
        ({"bf16": True, "fp16": False}, {"dtype": "bf16"}),
        ({"dtype": "fp16", "bf16": True}, {"dtype": "fp16"}),
        ({"eval_every": None, "model": {"type": "gpt"}, "unknown": 3}, {}),
    ],
)
def test_settings_in_their_spellings(content: dict[str, Any], config: dict[str, Any]) -> None:
    """Common trainers' names are known; null is not set; unknown keys are nobody's business."""
    assert read_config(content) == (config, [])


WRONG: dict[str, list[object]] = {
    "checkpoint_every": [0, 2.5, "often", True, 1e400],
    "checkpoints": [100, ["a"]],
    "dtype": ["int7", ["fp16"]],
    "name": [{"a": 1}, "\x1b[2J"],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in WRONG.items() for value in values])
def test_settings_of_the_wrong_kind_are_notes(key: str, value: object) -> None:
    """A wrong value is told and left out."""
    config, notes = read_config({key: value})
    assert not config
    assert len(notes) == (0 if isinstance(value, dict) else 1)
    assert all(note.isprintable() for note in notes)


def test_precisions() -> None:
    """Every usual spelling of a precision is one of four."""
    assert {dtype(spelling) for spelling in ("float16", "half", "16-mixed", 16)} == {"fp16"}
    assert {dtype(spelling) for spelling in ("torch.bfloat16", "bf16-mixed", "BF16")} == {"bf16"}
    assert [dtype(spelling) for spelling in (32, "tf32", "fp8_e4m3")] == ["fp32", "fp32", "fp8"]


@pytest.mark.parametrize("files", [[], ["notes.txt"]])
def test_a_folder_without_metrics(tmp_path: Path, files: list[str]) -> None:
    """What is there is listed."""
    for name in files:
        write(tmp_path, "hello\n", name)
    with pytest.raises(StabtreeError) as caught:
        load_run(tmp_path)
    assert all(name in caught.value.problem for name in files)


def test_metrics_in_two_places_are_refused(tmp_path: Path) -> None:
    """Which of the two is the run is not ours to choose: one of them may hold the NaN."""
    write(tmp_path, "step,loss\n0,2.5\n1,2.25\n", "ok.csv")
    content = json.dumps({"metrics_file": "ok.csv", "series": {"step": [0, 1], "loss": [1.0, 9.0]}})
    with pytest.raises(StabtreeError) as caught:
        load_run(write(tmp_path, content, "manifest.json"))
    assert caught.value.problem == "holds metrics of its own under 'series', and names files that hold metrics"


def test_what_a_manifest_holds_besides_is_told(tmp_path: Path) -> None:
    """Of files, columns and records the first ones are read, and a note names those that are not."""
    write(tmp_path, text())
    columns = {"step": [0, 1], "loss": [2, 1]}
    for content, left in (
        ({"series": columns, "history": [{"step": 0, "loss": 1}]}, "'series'; left unread: 'history'"),
        ({"metrics": columns, "rows": [{"step": 0, "grad_norm": 1}]}, "'metrics'; left unread: 'rows'"),
        ({"metrics_file": "metrics.csv", "log_file": "b.csv"}, "'metrics_file'; left unread: 'log_file'"),
        ({"metrics_file": "metrics.csv", "series": {"step": [0], "x": [1]}}, "'metrics_file'; left unread: 'series'"),
    ):
        run = load_run(manifest(tmp_path, **content))
        assert f"The manifest's metrics are read from its {left}." in run.notes
