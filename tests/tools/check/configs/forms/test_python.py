"""Python files: what they assign, declare as a default and hand to a trainer, read and never run."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabtree.tools.check.configs import load_config
from stabtree.tools.check.configs.forms.python import UnreadableError, parsed
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

TRAINER = """
from transformers import AutoModelForCausalLM, TrainingArguments
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("-e", "--epochs", type=int, default=3)
args = parser.parse_args()
RATE = 2e-5

def main(batch=4):
    model = AutoModelForCausalLM.from_pretrained("some/model", load_in_8bit=True, load_in_4bit=True)
    decay = RATE * 100
    given = TrainingArguments(
        output_dir="out",
        learning_rate=RATE,
        weight_decay=decay,
        num_train_epochs=args.epochs,
        per_device_train_batch_size=batch,
        warmup_steps=steps() // 10,
        bf16=True,
        fp16=True,
    )
"""
LOOP = """
import torch

EPOCHS = 10
LR = 1.0
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=LR / 1000, betas=(0.9, 0.95), weight_decay=0.1)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000, eta_min=1e-5)
for epoch in range(EPOCHS):
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
"""
CLASSES = """
from dataclasses import dataclass, field

@dataclass
class TrainConfig:
    max_lr: float = 6e-4
    min_lr: float = max_lr * 0.1
    betas: tuple = field(default_factory=lambda: (0.9, 0.95))
    max_steps: int = field(default=1000)

@dataclass
class OptimizerConfig:
    name: str = "adamw"

class Shape:
    batch_size = 3
"""
LIGHTNING = """
import pytorch_lightning as pl
trainer = pl.Trainer(
    max_epochs=10,
    gradient_clip_val=1.0,
    callbacks=[
        pl.callbacks.ModelCheckpoint(save_top_k=1),
        pl.callbacks.ModelCheckpoint(save_top_k=-1, every_n_train_steps=500),
        pl.callbacks.ModelCheckpoint(save_top_k=2, every_n_train_steps=100),
    ],
)
"""
HANDED = 'wandb.init(project="x", config={"learning_rate": 0.1, "epochs": 5, "architecture": "cnn"})\n'


def said(place: Path, text: str) -> dict[str, Any]:
    """The settings of a file but the defaults of its trainer."""
    config = load_config(write(place, text, "train.py")).config
    return {key: one.value for key, one in config.items() if not one.source.startswith("default of ")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            TRAINER,
            {
                "framework": "huggingface",
                "lr": 2e-5,
                "weight_decay": pytest.approx(2e-3),
                "epochs": 3,
                "micro_batch_size": 4,
                "init_from": "pretrained",
                "quantizations": "load_in_8bit+load_in_4bit",
                "precisions": "fp16+bf16",
            },
        ),
        (
            LOOP,
            {
                "optimizer": "adamw",
                "lr": 1e-3,
                "beta2": 0.95,
                "weight_decay": 0.1,
                "grad_clip": 0.5,
                "schedule_steps": 1000,
                "min_lr": 1e-5,
                "epochs": 10,
            },
        ),
        (CLASSES, {"lr": 6e-4, "min_lr": pytest.approx(6e-5), "beta2": 0.95, "max_steps": 1000, "optimizer": "adamw"}),
        (LIGHTNING, {"framework": "lightning", "epochs": 10, "grad_clip": 1.0, "checkpoint_every": 100}),
        (HANDED, {"lr": 0.1, "epochs": 5}),
        (
            "flags.DEFINE_float('lr', 0.1, 'the rate')\nflags.DEFINE_integer('epochs', 5, '')\n",
            {"lr": 0.1, "epochs": 5},
        ),
    ],
    ids=["trainer", "loop", "classes", "lightning", "handed", "flags"],
)
def test_what_a_file_sets_up_is_read(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    """Calls, names that stand for values, defaults of functions, classes and flags, and what other calls are handed."""
    found = said(tmp_path, text)
    assert {key: found.get(key) for key in expected} == expected
    assert {"batch_size", "save_total_limit", "warmup_steps"}.isdisjoint(found)


def test_what_a_call_is_given_and_can_not_be_read_has_no_default(tmp_path: Path) -> None:
    """The default of the trainer counts for what is not given, not for what is computed."""
    config = load_config(write(tmp_path, TRAINER, "train.py")).config
    assert "warmup_steps" not in config
    assert (config["grad_clip"].value, config["grad_clip"].source) == (1.0, "default of Hugging Face Trainer")
    more = load_config(write(tmp_path, "TrainingArguments(learning_rate=1e-4, **more)\n", "more.py")).config
    assert not any(one.source.startswith("default of ") for one in more.values())


def test_what_an_imported_name_stands_for_is_not_known(tmp_path: Path) -> None:
    """A setting that another module holds is no default and no mistake."""
    text = "from config import CFG\nTrainingArguments(learning_rate=CFG.rate, max_grad_norm=CFG.clip, seed=1)\n"
    run = load_config(write(tmp_path, text, "train.py"))
    assert {"lr", "grad_clip"}.isdisjoint(run.config)
    assert not run.notes
    handed = "SFTTrainer(args=given, dataset_text_field='text', max_seq_length=512, peft_config=LoraConfig(r=8))\n"
    assert said(tmp_path, handed)["lora_rank"] == 8
    assert "lr" not in load_config(write(tmp_path, handed, "sft.py")).config


def test_a_variable_is_no_misspelled_setting(tmp_path: Path) -> None:
    """What a file calls its own variables is its own matter; the arguments of a trainer are not."""
    assert "misspelled" not in said(tmp_path, "learning_rte = 0.1\nseed = 1\n")
    assert "misspelled" in said(tmp_path, "TrainingArguments(learning_rte=0.1, seed=1)\n")


def test_the_place_of_an_argument_is_its_line(tmp_path: Path) -> None:
    """A setting that a call makes is said with the line of the argument and the name of what is called."""
    config = load_config(write(tmp_path, TRAINER, "train.py")).config
    line = 1 + TRAINER.split("\n").index("        learning_rate=RATE,")
    assert config["lr"].source == f"train.py:{line}, TrainingArguments.learning_rate"


@pytest.mark.parametrize(
    "text",
    [
        "if x:\n    lr = 0.1\nelse:\n    lr = 0.2\nseed = 1\n",
        "seed = 1\nlr = 0.1\nif x:\n    lr = 0.2\n",
        "seed = 1\nSGD(p, lr=0.1)\nSGD(q, lr=0.2)\n",
        "seed = 1\nSGD(p, lr=9 ** 9 ** 9)\n",
        "seed = 1\ndef f(lr):\n    SGD(p, lr=lr)\n",
    ],
)
def test_what_is_set_in_two_ways_is_not_known(tmp_path: Path, text: str) -> None:
    """Neither of two branches, of two calls of the same kind, nor what only a run would tell."""
    found = said(tmp_path, text)
    assert found["seed"] == 1
    assert "lr" not in found


def test_the_task_is_that_of_the_trainer_that_is_called(tmp_path: Path) -> None:
    """TRL's classes say what is trained, and with it which default holds."""
    config = load_config(write(tmp_path, "GRPOConfig(output_dir='x', max_steps=100)\n", "train.py")).config
    assert (config["task"].value, config["lr"].value, config["num_generations"].value) == ("grpo", 1e-6, 8)
    assert load_config(write(tmp_path, "SFTConfig(max_steps=100)\n", "sft.py")).config["lr"].value == 2e-5


@given(st.text(alphabet="abc=(){}[]:,.*/+-#'\"\n \t0123456789", max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever a file holds: values, or an error of its own kind."""
    with contextlib.suppress(UnreadableError):
        assert parsed(text).values is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "A = builds(torch.optim.AdamW, lr=0.1, zen_partial=True)\nB = builds(L.Trainer, max_epochs=3)",
            {"optimizer": "adamw", "lr": 0.1, "epochs": 3},
        ),
        ("A = pbuilds(Net, learning_rate=0.1, populate_full_signature=True)", {"lr": 0.1}),
        ("A = make_config(lr=0.1, wd=0.2, trainer=dict(max_epochs=3))", {"lr": 0.1, "weight_decay": 0.2, "epochs": 3}),
        ("A = partial(Adam, lr=0.1)", {"optimizer": "adam", "lr": 0.1}),
        ("A = L(torch.optim.SGD)(lr=0.1)", {"optimizer": "sgd", "lr": 0.1}),
        ("A = builds(lambda: 1, lr=0.1)\nseed = 1", {"seed": 1}),
    ],
)
def test_what_is_built_later_is_read_as_if_it_were_built_here(
    tmp_path: Path, text: str, expected: dict[str, Any]
) -> None:
    """hydra-zen, partial calls, and Detectron2's lazy ones."""
    found = said(tmp_path, f"{text}\n")
    assert {key: value for key, value in found.items() if key != "framework"} == expected


def test_many_flags_take_no_longer_than_they_are_many() -> None:
    """Each of them is an attribute of all that may hold the flags."""
    text = "".join(f'p.add_argument("--a{number}", default=1)\n' for number in range(20_000))
    assert len(parsed(text).values) == 20_000
