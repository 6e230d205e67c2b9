"""The precision of a run, among the settings of its model and of its trainer, which W&B keeps together."""

from __future__ import annotations

import pytest

from stabtree.loaders.config import read_config


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ({"torch_dtype": "bfloat16", "fp16": True}, "fp16"),
        ({"torch_dtype": "bfloat16", "mixed_precision": "fp16"}, "fp16"),
        ({"torch_dtype": "float32", "bf16": True, "fp16": False}, "bf16"),
        ({"transformers_version": "5.0.0", "dtype": "bfloat16", "fp16": True}, "fp16"),
        ({"dtype": "bfloat16", "fp16": False}, "bf16"),
        ({"torch_dtype": "bfloat16"}, "bf16"),
    ],
)
def test_what_a_trainer_computes_in_outranks_the_weights(values: dict[str, object], dtype: str) -> None:
    """A model is loaded in a precision of its own, which only counts where no flag says more."""
    assert read_config(values)[0]["dtype"] == dtype
