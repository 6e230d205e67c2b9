"""Shell scripts that start a training: the flags of their longest command, read and never run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabtree.tools.check.configs import load_config
from stabtree.tools.check.configs.forms.shell import parsed
from tests.loaders.make import write

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """#!/bin/bash
# lr of the last run: --learning_rate 9
RATE=2e-5
BATCH=${BATCH:-4}
TOTAL=$((BATCH * 8))
export MORE=(
    --weight_decay 0.1  # as before
    --no-gradient-checkpointing
)
cat > hosts.txt <<EOF
python other.py --learning_rate 7 --max_steps 3 --seed 4 --a 1 --b 2 --c 3 --d 4 --e 5 --f 6 --g 7 --h 8 --i 9
EOF
mkdir -p out && torchrun --nproc_per_node=2 train.py \\
    --model_name_or_path some/model --learning_rate $RATE \\
    --per_device_train_batch_size "$BATCH" --gradient_accumulation_steps 4 \\
    --num_train_epochs=3 --warmup_ratio ${WARM} "${MORE[@]}" \\
    --betas 0.9 0.95 --bf16 --optim 'adamw_torch' \\
    --output_dir out/$TOTAL 2>&1 | tee log.txt
"""


def said(place: Path, text: str, name: str = "run.sh") -> dict[str, Any]:
    """The settings of a script but the defaults of its trainer."""
    config = load_config(write(place, text, name)).config
    return {key: one.value for key, one in config.items() if not one.source.startswith("default of ")}


def test_the_flags_of_a_script_are_settings(tmp_path: Path) -> None:
    """With variables, their defaults, arrays, continued lines, switches and lists; without comments and texts."""
    found = said(tmp_path, SCRIPT)
    expected = {
        "framework": "huggingface",
        "init_from": "some/model",
        "lr": 2e-5,
        "micro_batch_size": 4,
        "accumulation_steps": 4,
        "world_size": 2,
        "epochs": 3,
        "weight_decay": 0.1,
        "gradient_checkpointing": False,
        "beta2": 0.95,
        "dtype": "bf16",
        "optimizer": "adamw_torch",
    }
    assert {key: found.get(key) for key in expected} == expected
    assert {"max_steps", "seed"}.isdisjoint(found)


def test_a_flag_whose_variable_is_not_known_has_no_default(tmp_path: Path) -> None:
    """`--warmup_ratio ${WARM}` is given, and not what; the line of a setting is that of its command."""
    config = load_config(write(tmp_path, SCRIPT, "run.sh")).config
    assert {"warmup_steps", "warmup_ratio"}.isdisjoint(config)
    assert config["grad_clip"].source == "default of Hugging Face Trainer"
    assert config["lr"].source == "run.sh:13, learning_rate"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("python a.py lr=0.1 +max_steps=5\n", {"lr": 0.1, "max_steps": 5}),
        ("python a.py optimizer.lr=0.1 trainer.max_epochs=5\n", {"framework": "lightning", "lr": 0.1, "epochs": 5}),
        ("python a.py run/max_epochs=5 optim=sgd\n", {"epochs": 5, "optimizer": "sgd"}),
        ("LR=1 python a.py --lr 0.1 --epochs 5\n", {"lr": 0.1, "epochs": 5}),
        ("A='--lr 0.1'\nA+=' --epochs 5'\npython a.py $A\n", {"lr": 0.1, "epochs": 5}),
        ("python a.py --lr 0.1 --epochs 5 && python b.py --lr 0.2\n", {"lr": 0.1, "epochs": 5}),
        ("python a.py --lr 0.1 \\\n  # --lr 0.2 \\\n  --epochs 5\n", {"lr": 0.1, "epochs": 5}),
        ("python a.py --lr -1 --epochs 5\n", {"epochs": 5}),
    ],
)
def test_flags_and_overrides_are_spelled_in_many_ways(tmp_path: Path, text: str, expected: dict[str, Any]) -> None:
    """Overrides of Hydra, sections with dots and slashes, variables that grow, and a flag that is commented out."""
    assert said(tmp_path, text) == expected
    assert said(tmp_path, f"#!/usr/bin/env bash\n{text}", "run") == expected


@given(st.text(alphabet="ab=-$(){}[]'\"\\#;&|<\n 01", max_size=120))
def test_any_text_is_read(text: str) -> None:
    """Whatever a script holds: settings or none, and no crash."""
    assert parsed(text).values is not None


@pytest.mark.parametrize(
    "text",
    [
        "A=$A$A$A\n" * 500 + "B=$B$A\n",
        "A=aaaaaaaaaa\n" + "A=$A$A\n" * 60,
        "A=(a b)\n" + 'A=("${A[@]}" "${A[@]}")\n' * 60,
    ],
)
def test_variables_that_grow_in_one_another_come_to_an_end(text: str) -> None:
    """Each would double the one before; what is too long is not known, and what follows is read."""
    found = parsed(f"{text}python a.py --lr 0.1 --name $A\n").values
    assert found["lr"] == 0.1
    assert len(str(found["name"])) <= 1 << 20


def test_a_quotation_without_an_end_is_no_reason_to_wait() -> None:
    """It takes no longer than the text is long."""
    assert parsed("python a.py --lr 0.1 '" + "x" * 600_000).values["lr"] == 0.1
