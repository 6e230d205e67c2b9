"""What the configuration of a model, its `config.json`, says of a training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WEIGHTS_DTYPE = "weights_dtype"

# The heads whose loss is a cross-entropy over the vocabulary.
_LANGUAGE_HEADS = ("LMHeadModel", "ForCausalLM", "ForMaskedLM", "ForConditionalGeneration")


def of_model(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the configuration of a model says of its training: what its loss is over, and its weights' precision.

    The latter is that of the run only where no trainer's flag says otherwise: mixed precision has weights in fp32.
    """
    found: dict[str, Any] = {}
    head = _head(values)
    labels = _label_count(values)
    # A model that was built in code has no head until it is saved; two labels are what every model begins with.
    if (not head and labels <= 2) or head.endswith(_LANGUAGE_HEADS):
        found["vocab_size"] = values.get("vocab_size")
    elif (not head or head.endswith("Classification")) and labels > 1:
        single = values.get("problem_type") in (None, "single_label_classification")
        found["n_classes"] = labels if single else None
    found[WEIGHTS_DTYPE] = values.get("dtype") or values.get("torch_dtype")
    return found


def _head(values: Mapping[str, Any]) -> str:
    """Return the name of the class that a model was saved as; empty where it is not known."""
    heads = values.get("architectures")
    if isinstance(heads, list) and heads:
        return str(heads[0])
    return ""


def _label_count(values: Mapping[str, Any]) -> int:
    """Return how many labels a model has names for."""
    labels = values.get("id2label")
    return len(labels) if isinstance(labels, Mapping) else 0
