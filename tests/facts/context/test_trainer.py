"""Which trainer wrote a log, and what beats what where several things show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from stabtree.context.find import context_of, framework_of
from stabtree.context.model import CONFIGURED, INFERRED, LOGGED
from stabtree.loaders import load_run
from stabtree.run import ColumnUse, FileUse
from tests.conftest import make_run
from tests.facts.context import known, run_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("columns", "trainer"),
    [
        ("step, smpl, ep, loss, grdn, updt_s, data_s", "lerobot"),
        ("charts/episodic_return, charts/SPS, losses/approx_kl", "cleanrl"),
        ("EpRewMean, EpLenMean, TimestepsSoFar", "baselines"),
        ("iteration, total_loss, rank_data_time, lr", "detectron2"),
        ("step, loss, num_tokens, mean_token_accuracy", "trl"),
        ("step, train_loss, train_time, step_avg", "modded_nanogpt"),
        ("step, loss, lr, grad_norm", None),
    ],
)
def test_a_trainer_is_known_by_columns_that_no_other_writes(columns: str, trainer: str | None) -> None:
    """Columns that many have are no proof."""
    assert known(columns).framework.value == trainer


def test_the_log_comes_before_the_configuration_unless_that_is_more_special() -> None:
    """An engine may be all that is configured; what is built on a trainer writes the same log."""
    by_log = framework_of(run_of("loss, reward", "trainer_state", framework="deepspeed"))
    assert (by_log.value, by_log.how) == ("huggingface", LOGGED)
    special = framework_of(run_of("loss, grad_norm, learning_rate, epoch", framework="axolotl"))
    assert (special.value, special.how) == ("axolotl", CONFIGURED)
    assert framework_of(run_of("loss", framework="unheard-of")).value is None


@pytest.mark.parametrize(("logged", "trainer"), [((90, 10), "lightning"), ((100, 10), None)])
def test_rows_of_their_own_show_lightning_s_csv(logged: tuple[int, int], trainer: str | None) -> None:
    """It writes training and validation in rows of their own; others join them."""
    used = ColumnUse("train_loss", "loss", logged=logged[0]), ColumnUse("val_loss", "eval_loss", logged=logged[1])
    axes = ColumnUse("epoch", "epoch"), ColumnUse("step", "step", logged=100)
    run = replace(make_run({"loss": [1.0]}), sources=(FileUse("m.csv", "csv", 100, (*axes, *used)),))
    found = framework_of(run)
    assert found.value == trainer
    assert found.how in (INFERRED, "unknown")


ROWS = "".join(f"step {step}: loss {3 - step / 50:.4f}\n" for step in range(40))


@pytest.mark.parametrize(
    ("line", "part", "value"),
    [
        ("[08/30 15:01:16] detectron2 INFO: Environment info:", "framework", "detectron2"),
        ("Using 16bit Automatic Mixed Precision (AMP)", "precision", "fp16"),
        ("Using 16bit Automatic Mixed Precision (AMP)", "framework", "lightning"),
        ("Initializing a new model from scratch", "phase", "from scratch"),
        ("trainable params: 16,515,072 || all params: 4,024,452,608 || trainable%: 0.4104", "phase", "LoRA"),
        ("using fused AdamW: False", "optimizer", "adamw"),
    ],
)
def test_a_line_that_a_trainer_prints_is_evidence(tmp_path: Path, line: str, part: str, value: str) -> None:
    """It shows who prints it, and what it says."""
    file = tmp_path / "train.log"
    file.write_text(f"{line}\n{ROWS}", encoding="utf-8")
    found = getattr(context_of(load_run(str(file))), part)
    assert (found.value, found.how) == (value, LOGGED)


def test_arguments_go_on_after_a_dict(tmp_path: Path) -> None:
    """A call that is printed over many lines may hold a dict or a list."""
    file = tmp_path / "train.log"
    text = "TrainingArguments(\naccelerator_config={'split_batches': False},\nfp16=True,\noptim=adamw_torch,\n)\n"
    file.write_text(text + ROWS, encoding="utf-8")
    config = load_run(str(file)).config
    assert (config["dtype"].value, config["optimizer"].value) == ("fp16", "adamw_torch")


def test_code_that_a_log_holds_is_no_evidence(tmp_path: Path) -> None:
    """The source of a trainer has every line that it may print."""
    file = tmp_path / "train.log"
    file.write_text(f"import torch\nprint('Initializing a new model from scratch')\n{ROWS}", encoding="utf-8")
    assert "init_from" not in load_run(str(file)).config
