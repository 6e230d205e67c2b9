"""Configurations that lie beside each other, or in a log: those of one run are put together, others are left out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from stabtree.common.errors import StabtreeError
from stabtree.tools.check.load import load_config
from tests.loaders.make import write
from tests.loaders.make_binary import wandb

if TYPE_CHECKING:
    from pathlib import Path

ARGS = {
    "output_dir": "out",
    "per_device_train_batch_size": 4,
    "gradient_accumulation_steps": 2,
    "warmup_steps": 0,
    "warmup_ratio": 0.1,
    "learning_rate": 1e-4,
}
MAIN = "output_dir: out\nper_device_train_batch_size: 4\nlearning_rate: 1e-4\nfp16: true\n"
DS = json.dumps({"fp16": {"enabled": "auto", "loss_scale": 0, "initial_scale_power": 8}, "zero_optimization": {}})
MODEL = json.dumps({"architectures": ["NetForCausalLM"], "model_type": "net", "dtype": "bfloat16", "vocab_size": 99})


def test_the_files_of_one_training_are_merged(tmp_path: Path) -> None:
    """The DeepSpeed file that the training names and the model's configuration add what only they say."""
    write(tmp_path, f"{MAIN}deepspeed: configs/ds.json\n", "train.yaml")
    write(tmp_path, DS, "ds.json")
    write(tmp_path, DS.replace("8", "4"), "ds_other.json")
    write(tmp_path, MODEL, "config.json")
    run = load_config(tmp_path)
    assert run.config["lr"].value == 1e-4
    assert run.config["initial_loss_scale"].value == 256
    assert run.config["vocab_size"].value == 99
    assert run.config["weights_dtype"].value == "bf16"
    assert {source.path.rsplit("/", 1)[-1] for source in run.sources} == {"train.yaml", "ds.json", "config.json"}
    assert any("ds_other.json" in note for note in run.notes)


def test_of_several_trainings_one_is_read_and_the_others_are_named(tmp_path: Path) -> None:
    """Two trainings in a folder are not mixed: the one that says more is read, a note names the other."""
    write(tmp_path, f"{MAIN}max_steps: 10\nseed: 1\n", "a.yaml")
    write(tmp_path, "output_dir: out\nper_device_train_batch_size: 8\nweight_decay: 0.5\n", "b.yaml")
    run = load_config(tmp_path)
    assert run.config["weight_decay"].source.startswith("default of ")
    assert run.config["micro_batch_size"].value == 4
    assert any("b.yaml" in note for note in run.notes)


def test_hydra_keeps_its_configuration_in_a_folder_of_its_own(tmp_path: Path) -> None:
    """A run's folder holds `.hydra/config.yaml`; Hydra's own settings beside it are not the run's."""
    (tmp_path / ".hydra").mkdir()
    write(tmp_path / ".hydra", "optimizer: {_target_: torch.optim.SGD, lr: 0.1}\n", "config.yaml")
    write(tmp_path / ".hydra", "hydra: {job: {name: x}}\nseed: 9\nlr: 3\nbatch_size: 2\n", "hydra.yaml")
    config = load_config(tmp_path).config
    assert {key: one.value for key, one in config.items()} == {"optimizer": "sgd", "lr": 0.1}


@pytest.mark.parametrize("name", ["/etc/hosts.json", "../ds.json", "nowhere/ds.json"])
def test_a_file_is_followed_only_where_it_lies_beside(tmp_path: Path, name: str) -> None:
    """A configuration from someone else opens nothing outside of its folder; a note says what was not read."""
    inner = tmp_path / "inner"
    inner.mkdir()
    write(tmp_path, DS, "ds.json")
    run = load_config(write(inner, f"{MAIN}deepspeed: {name}\n", "train.yaml"))
    assert "initial_loss_scale" not in run.config
    assert any("does not lie beside it" in note for note in run.notes)


def test_the_later_of_two_named_files_counts_and_a_note_says_where_they_differ(tmp_path: Path) -> None:
    """A base and what overrides it are named in that order."""
    base = write(tmp_path, "lr: 0.1\nseed: 1\n", "base.yaml")
    over = write(tmp_path, "lr: 0.2\nseed: 1\n", "over.yaml")
    run = load_config(base, over)
    assert run.config["lr"].value == 0.2
    assert run.config["lr"].source == "over.yaml:1, lr"
    assert run.notes == ("base.yaml:1, lr says 0.1; over.yaml:1, lr says 0.2, which counts.",)


def test_a_link_in_circles_and_a_broken_file_beside_cost_nothing(tmp_path: Path) -> None:
    """What nobody named is left out where it can't be read."""
    write(tmp_path, MAIN, "train.yaml")
    write(tmp_path, "{", "other.json")
    write(tmp_path, "{", "args.json")
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    run = load_config(tmp_path)
    assert run.config["lr"].value == 1e-4
    assert [note for note in run.notes if "args.json" in note]


def test_the_header_of_a_log_is_a_configuration(tmp_path: Path) -> None:
    """What W&B kept of a run whose configuration is lost, named as a file or by its folder."""
    settings = {**ARGS, "optim": "adamw", "weight_decay": 0.1, "max_steps": 50}
    file = write(tmp_path, wandb([{"_step": 1, "loss": 2.0}], settings), "run-a.wandb")
    for path in (file, tmp_path):
        config = load_config(path).config
        assert (config["lr"].value, config["optimizer"].value, config["weight_decay"].value) == (1e-4, "adamw", 0.1)


def test_of_what_a_log_prints_only_the_sure_is_read(tmp_path: Path) -> None:
    """A printed warm-up of 0 steps may be one by a share, and a batch that of one device: neither is read."""
    text = "TrainingArguments(\nwarmup_steps=0,\nlearning_rate=0.001,\nper_device_train_batch_size=4,\n"
    text += "seed=1,\nweight_decay=0.1,\n)\n"
    rows = "".join(f"{{'loss': {2 - step / 20}, 'learning_rate': 0.001, 'epoch': {step / 10}}}\n" for step in range(9))
    config = load_config(write(tmp_path, text + rows, "train.log")).config
    assert config["lr"].value == 0.001
    assert {"warmup_steps", "batch_size", "micro_batch_size"}.isdisjoint(config)


def test_a_log_that_names_its_optimizer_is_no_configuration(tmp_path: Path) -> None:
    """A column `lr-Adam` says which optimizer it was, which is not enough to judge a configuration by."""
    rows = "".join(f"{step},{step},{2 - step / 20},0.001\n" for step in range(20))
    with pytest.raises(StabtreeError, match="no log whose header"):
        load_config(write(tmp_path, f"epoch,step,train_loss,lr-Adam\n{rows}", "metrics.csv"))


def test_the_configuration_of_a_model_alone_is_no_training(tmp_path: Path) -> None:
    """`config.json` beside weights says nothing of how they are trained."""
    write(tmp_path, MODEL, "config.json")
    with pytest.raises(StabtreeError):
        load_config(tmp_path)


def test_deepspeed_is_added_to_the_trainer_that_it_is_named_with(tmp_path: Path) -> None:
    """In either order: it is read once, the trainer's defaults count, and two precisions are two."""
    text = "output_dir: o\nper_device_train_batch_size: 1\nbf16: true\ndeepspeed: b.json\n"
    write(tmp_path, text, "a.yaml")
    write(tmp_path, '{"fp16": {"enabled": true}, "zero_optimization": {"stage": 2}}', "b.json")
    for names in (["a.yaml"], ["a.yaml", "b.json"], ["b.json", "a.yaml"]):
        run = load_config(*(tmp_path / name for name in names))
        assert run.setting("framework") == "huggingface"
        assert run.setting("precisions") == "fp16+bf16"
        assert run.setting("checkpoint_every") == 500
        assert len(run.sources) == 2
